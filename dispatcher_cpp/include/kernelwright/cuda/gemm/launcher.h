/* What every CUDA GEMM kernel of a library shares: plans, the checks of a problem, launches without a kernel. */
#ifndef KERNELWRIGHT_CUDA_GEMM_LAUNCHER_H
#define KERNELWRIGHT_CUDA_GEMM_LAUNCHER_H

#include "kernelwright/cuda/common/runtime.h"
#include "kernelwright/gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What plan() leaves for launch(). TMA descriptors hold pointers, so they are made at launch. */
typedef struct kw_cuda_gemm_plan {
  kw_gemm_problem problem;
} kw_cuda_gemm_plan;

typedef struct kw_cuda_grouped_plan {
  int64_t group_count;
  double alpha, beta;
  uint32_t dtype_c, reserved;
} kw_cuda_grouped_plan;

/* Descriptor functions of every GEMM kernel; they read kw_gemm_traits and touch no device. `copied`: of kernels whose
 * threads copy the operands, so that rows lie anywhere. */
KW_HIDDEN kw_status kw_cuda_gemm_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                          size_t reason_bytes);
KW_HIDDEN kw_status kw_cuda_copied_gemm_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                                 size_t reason_bytes);
KW_HIDDEN kw_status kw_cuda_gemm_plan_problem(const kw_kernel* kernel, const kw_problem* problem, void* plan);

/* Null, misaligned or missing pointers of one launch: KW_OK or KW_INVALID_ARGUMENT. */
KW_HIDDEN kw_status kw_cuda_gemm_check_args(const kw_gemm_problem* problem, const kw_gemm_args* args);
KW_HIDDEN kw_status kw_cuda_copied_gemm_check_args(const kw_gemm_problem* problem, const kw_gemm_args* args);

/* D = beta C for k = 0 (beta is 0 or 1, see supports). */
KW_HIDDEN kw_status kw_cuda_gemm_without_k(const kw_kernel* kernel, const kw_gemm_problem* problem,
                                           const kw_gemm_args* args, void* stream);

/* The same for grouped kernels. */
KW_HIDDEN kw_status kw_cuda_grouped_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                             size_t reason_bytes);
KW_HIDDEN kw_status kw_cuda_grouped_plan_problem(const kw_kernel* kernel, const kw_problem* problem, void* plan);
KW_HIDDEN kw_status kw_cuda_grouped_check_args(const kw_kernel* kernel, const kw_cuda_grouped_plan* plan,
                                               const kw_grouped_gemm_args* args);
KW_HIDDEN kw_status kw_cuda_group_without_k(const kw_kernel* kernel, const kw_cuda_grouped_plan* plan,
                                            const kw_gemm_group* group, const void* c, void* d, void* stream);

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_CUDA_GEMM_LAUNCHER_H */
