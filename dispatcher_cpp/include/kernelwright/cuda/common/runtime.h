/* What every CUDA kernel of a library shares: errors, device facts, one-time preparation.
 *
 * Plain C, so that a library needs no C++ runtime. Nothing here runs when a library is loaded, and
 * supports and plan do not touch the CUDA runtime: a process may load libraries, ask and fork. Only workspace_size of
 * kernels whose workspace grows with the multiprocessors (groups, stream-K, split-K) asks which devices there are.
 */
#ifndef KERNELWRIGHT_CUDA_COMMON_RUNTIME_H
#define KERNELWRIGHT_CUDA_COMMON_RUNTIME_H

#include "kernelwright/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Beyond this ordinal a device is not cached but asked each time. */
#define KW_CUDA_MAX_DEVICES 64

/* Keeps the sentence for kw_backend_last_error and returns status. */
KW_HIDDEN kw_status kw_cuda_fail(kw_status status, const char* format, ...) __attribute__((format(printf, 2, 3)));

/* How many devices there are, and how many multiprocessors one of them has, or the reference device of the library's
 * architecture, which need not be there (0: the architecture names no number). */
KW_HIDDEN kw_status kw_cuda_devices(int* count);
KW_HIDDEN kw_status kw_cuda_multiprocessors(int device, int* multiprocessors);
KW_HIDDEN int kw_cuda_reference_multiprocessors(void);

/* Makes the launch's device the calling thread's current one; *pushed says whether it was not. Refuses a stream of
 * another device. After KW_OK, kw_cuda_leave makes current what was so before, also nothing at all, and returns status,
 * or why it could not. No other device gets a context, which would take hundreds of MiB of it. */
KW_HIDDEN kw_status kw_cuda_enter(const kw_launch* launch, int* pushed);
KW_HIDDEN kw_status kw_cuda_leave(int pushed, kw_status status);

/* Lets kernel use shared_bytes of dynamic shared memory on device; done once per kernel and device (bits of done). */
KW_HIDDEN kw_status kw_cuda_prepare(const void* kernel, int shared_bytes, int device, uint64_t* done);

/* The driver's function of this name. Nothing links against libcuda, so it is looked up, once for each slot. */
KW_HIDDEN kw_status kw_cuda_driver_function(const char* name, void** slot, void** function);

/* How many TMA descriptors the driver has refused in this thread: CUTLASS itself cannot report one. */
KW_HIDDEN uint64_t kw_cuda_descriptors_refused(void);

/* The message of a failed CUDA runtime call, also clearing it. */
KW_HIDDEN kw_status kw_cuda_launch_failed(const kw_kernel* kernel, int error);

/* The message of a launch whose workspace is below what workspace_size said. */
KW_HIDDEN kw_status kw_cuda_workspace_too_small(const kw_kernel* kernel, uint64_t needed, uint64_t given);

/* The library's side of the table (see abi.h: check_device, last_error, set_num_threads, set_runtime). */
KW_HIDDEN kw_status kw_backend_check_device(int32_t device, char* reason, size_t reason_bytes);
KW_HIDDEN const char* kw_backend_last_error(void);
KW_HIDDEN kw_status kw_backend_set_num_threads(uint32_t threads);
KW_HIDDEN kw_status kw_backend_set_runtime(const char* path);

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_CUDA_COMMON_RUNTIME_H */
