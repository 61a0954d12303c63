/* What every CUDA attention kernel of a library shares: plans, and the checks of problems and arguments. */
#ifndef KERNELWRIGHT_CUDA_ATTENTION_LAUNCHER_H
#define KERNELWRIGHT_CUDA_ATTENTION_LAUNCHER_H

#include "kernelwright/attention.h"
#include "kernelwright/cuda/common/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What plan() leaves for launch(). TMA descriptors hold pointers, and lengths are known on the device only, so the rest
 * is made at launch. */
typedef struct kw_cuda_attention_plan {
  kw_attention_problem problem;
} kw_cuda_attention_plan;

typedef struct kw_cuda_append_plan {
  kw_append_problem problem;
} kw_cuda_append_plan;

/* Descriptor functions of forward, split-KV and combine kernels; they read kw_attention_traits and touch no device. */
KW_HIDDEN kw_status kw_cuda_attention_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                               size_t reason_bytes);
KW_HIDDEN kw_status kw_cuda_attention_plan_problem(const kw_kernel* kernel, const kw_problem* problem, void* plan);

/* Null or misaligned pointers of one launch: KW_OK or KW_INVALID_ARGUMENT. */
KW_HIDDEN kw_status kw_cuda_attention_check_args(const kw_attention_problem* problem, const kw_attention_args* args);

/* The same of append kernels. */
KW_HIDDEN kw_status kw_cuda_append_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                            size_t reason_bytes);
KW_HIDDEN kw_status kw_cuda_append_plan_problem(const kw_kernel* kernel, const kw_problem* problem, void* plan);
KW_HIDDEN kw_status kw_cuda_append_check_args(const kw_append_problem* problem, const kw_append_args* args);

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_CUDA_ATTENTION_LAUNCHER_H */
