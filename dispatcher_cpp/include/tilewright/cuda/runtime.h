/* What every CUDA kernel of a library shares: errors, device facts, the checks of a GEMM problem.
 *
 * Plain C, so that a library needs no C++ runtime. Nothing here runs when a library is loaded, and only tw_cuda_device,
 * tw_cuda_prepare and tw_backend_check_device touch the CUDA runtime: a process may load libraries, ask and fork.
 */
#ifndef TILEWRIGHT_CUDA_RUNTIME_H
#define TILEWRIGHT_CUDA_RUNTIME_H

#include "tilewright/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Beyond this ordinal a device is not cached but asked each time. */
#define TW_CUDA_MAX_DEVICES 64

/* What plan() leaves for launch(). TMA descriptors hold pointers, so they are made at launch. */
typedef struct tw_cuda_gemm_plan {
  tw_gemm_problem problem;
} tw_cuda_gemm_plan;

typedef struct tw_cuda_grouped_plan {
  int64_t group_count;
  double alpha, beta;
  uint32_t dtype_c, reserved;
} tw_cuda_grouped_plan;

/* Keeps the sentence for tw_backend_last_error and returns status. */
TW_HIDDEN tw_status tw_cuda_fail(tw_status status, const char* format, ...) __attribute__((format(printf, 2, 3)));

/* The calling thread's current device and its number of multiprocessors. */
TW_HIDDEN tw_status tw_cuda_device(int* device, int* multiprocessors);

/* Lets kernel use shared_bytes of dynamic shared memory on device; done once per kernel and device (bits of done). */
TW_HIDDEN tw_status tw_cuda_prepare(const void* kernel, int shared_bytes, int device, uint64_t* done);

/* How many TMA descriptors the driver has refused in this thread: CUTLASS itself cannot report one. */
TW_HIDDEN uint64_t tw_cuda_descriptors_refused(void);

/* The message of a failed CUDA runtime call, also clearing it. */
TW_HIDDEN tw_status tw_cuda_launch_failed(const tw_kernel* kernel, int error);

/* The message of a launch whose workspace is below what workspace_size said. */
TW_HIDDEN tw_status tw_cuda_workspace_too_small(const tw_kernel* kernel, uint64_t needed, uint64_t given);

/* Descriptor functions of every GEMM kernel; they read tw_gemm_traits and touch no device. */
TW_HIDDEN tw_status tw_cuda_gemm_supports(const tw_kernel* kernel, const tw_problem* problem, char* reason,
                                          size_t reason_bytes);
TW_HIDDEN tw_status tw_cuda_gemm_plan_problem(const tw_kernel* kernel, const tw_problem* problem, void* plan);

/* Null, misaligned or missing pointers of one launch: TW_OK or TW_INVALID_ARGUMENT. */
TW_HIDDEN tw_status tw_cuda_gemm_check_args(const tw_gemm_problem* problem, const tw_gemm_args* args);

/* D = beta C for k = 0 (beta is 0 or 1, see supports). */
TW_HIDDEN tw_status tw_cuda_gemm_without_k(const tw_kernel* kernel, const tw_gemm_problem* problem,
                                           const tw_gemm_args* args);

/* The same for grouped kernels. */
TW_HIDDEN tw_status tw_cuda_grouped_supports(const tw_kernel* kernel, const tw_problem* problem, char* reason,
                                             size_t reason_bytes);
TW_HIDDEN tw_status tw_cuda_grouped_plan_problem(const tw_kernel* kernel, const tw_problem* problem, void* plan);
TW_HIDDEN tw_status tw_cuda_grouped_check_args(const tw_kernel* kernel, const tw_cuda_grouped_plan* plan,
                                               const tw_grouped_gemm_args* args);
TW_HIDDEN tw_status tw_cuda_group_without_k(const tw_kernel* kernel, const tw_cuda_grouped_plan* plan,
                                            const tw_gemm_group* group, const void* c, void* d, void* stream);

/* The library's side of the table (see abi.h: check_device, last_error, set_num_threads, set_runtime). */
TW_HIDDEN tw_status tw_backend_check_device(int32_t device, char* reason, size_t reason_bytes);
TW_HIDDEN const char* tw_backend_last_error(void);
TW_HIDDEN tw_status tw_backend_set_num_threads(uint32_t threads);
TW_HIDDEN tw_status tw_backend_set_runtime(const char* path);

#ifdef __cplusplus
}
#endif
#endif /* TILEWRIGHT_CUDA_RUNTIME_H */
