/* libdispatcher_gemm_lib.so: GEMM on host memory through the function names that users of the CK Tile dispatcher know.
 *
 * The library is the dispatcher of kernelwright/dispatcher.h with kernel libraries loaded into it. Matrices lie in host
 * memory, without gaps between their rows or columns; for GPUs each call copies A and B to the device and C back, so
 * time_ms is what a kernel takes and the call takes longer. Programs that keep their data on the device use
 * kernelwright/dispatcher.h.
 *
 * On GPUs a call uses the device that is current in the calling thread (hipSetDevice, cudaSetDevice, or the context of
 * the CUDA driver), and leaves it current. Names, count and registry are those of the device that was current in
 * dispatcher_init().
 *
 * Any number of threads may call anything at once. Functions that can fail return a negative number and leave a
 * sentence for dispatcher_last_error() in the calling thread.
 */
#ifndef KERNELWRIGHT_DISPATCHER_GEMM_LIB_H
#define KERNELWRIGHT_DISPATCHER_GEMM_LIB_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define DISPATCHER_EXPORT __attribute__((visibility("default")))
#else
#define DISPATCHER_EXPORT
#endif

#define DISPATCHER_GEMM_LIB_ABI_VERSION 1u

enum { DISPATCHER_OK = 0, DISPATCHER_ERROR = -1, DISPATCHER_NO_KERNEL = -2 };

/* DISPATCHER_GEMM_LIB_ABI_VERSION of the loaded file: compare it before anything else. */
DISPATCHER_EXPORT uint32_t dispatcher_abi_version(void);
/* Why the last call of this thread failed; "" if none did. Valid until the next failure in this thread. */
DISPATCHER_EXPORT const char* dispatcher_last_error(void);

/* Loads kernel libraries: those that KERNELWRIGHT_GEMM_KERNELS names, or else of the folder dispatcher_gemm_kernels
 * beside this file, or else of the wheels kernelwright-kernels-gemm-<arch> that are installed where this file is. 0 or
 * -1; 0 also if it was done before, until dispatcher_cleanup(). */
DISPATCHER_EXPORT int dispatcher_init(void);
/* The same with arguments in place of the environment; null leaves one to it.
 *
 * kernels: files, or folders that hold lib*.so or <arch>/lib*.so, separated by colons. Those for other devices than
 * this machine's are left out; it fails if none is left, if a file is no kernel library, or if they are of several
 * backends. Libraries may share kernels (see kw_dispatcher_add_library).
 *
 * types: dtype of A and B, and layouts of A, B and C, such as "fp16_rcr"; then, if you like, the dtype of C:
 * "fp8_rcr_bf16". Where kernels with D tensors differ in what they do, the one that is meant stands behind a colon:
 * "fp16_rcr:add_gelu_d1". Null: KERNELWRIGHT_GEMM_TYPES, or else what all kernels have in common; it fails if their
 * types differ. */
DISPATCHER_EXPORT int dispatcher_init_from(const char* kernels, const char* types);
DISPATCHER_EXPORT int dispatcher_initialize(void); /* dispatcher_init under its other name */
/* Waits for calls under way and forgets everything; dispatcher_init() may follow. */
DISPATCHER_EXPORT void dispatcher_cleanup(void);

/* Kernels that were loaded; 0 before dispatcher_init(). */
DISPATCHER_EXPORT int dispatcher_get_kernel_count(void);
/* Their names, in a fixed order. 0 or -1, as for an index out of range or a buffer too small. */
DISPATCHER_EXPORT int dispatcher_get_kernel_name_at(int index, char* name, int bytes);
/* The name of the kernel that ran last in the calling thread, else of the first one; valid for the life of the process.
 * Null, with the reason in dispatcher_last_error(), before dispatcher_init(). */
DISPATCHER_EXPORT const char* dispatcher_get_kernel_name(void);
/* Libraries and kernels as JSON; valid until dispatcher_cleanup(). Null before dispatcher_init(). */
DISPATCHER_EXPORT const char* dispatcher_export_registry_json(void);

/* 1 if some kernel serves the sizes (0 is a legal size), else 0 and the reasons in dispatcher_last_error(). */
DISPATCHER_EXPORT int dispatcher_is_supported(int64_t m, int64_t n, int64_t k);
/* The name of the kernel that would run. 0, -1, or -2 if no kernel serves the sizes. */
DISPATCHER_EXPORT int dispatcher_select_kernel(int64_t m, int64_t n, int64_t k, char* name, int bytes);
/* C = A * B for A (m, k), B (k, n) and C (m, n) in host memory, of the types above. C shares no memory with A or B; -1
 * if it does, on every backend (sentences call C by its name in kernelwright/gemm.h, d).
 *
 * With time_ms, the kernel is launched once to warm up and then for about 100 ms, at least 1 and at most 10 times, and
 * *time_ms is the average, without copies; without, it is launched once. 0, -1, or -2 if no kernel serves the sizes; on
 * failure *time_ms is -1. */
DISPATCHER_EXPORT int dispatcher_run_gemm(const void* a, const void* b, void* c, int64_t m, int64_t n, int64_t k,
                                          float* time_ms);

/* How many D tensors dispatcher_run_multi_d_gemm() takes: 1 or more, -1 if kernels differ and none was chosen, or -2 if
 * no kernel takes any. */
DISPATCHER_EXPORT int dispatcher_get_num_d_tensors(void);
/* C = act(A * B op D0 op D1 ...) with the operation and activation of the kernels, or of the types above. ds are num_d
 * matrices like C: (m, n), of its dtype, in its layout, without gaps. Otherwise as dispatcher_run_gemm(). */
DISPATCHER_EXPORT int dispatcher_run_multi_d_gemm(const void* a, const void* b, const void** ds, int num_d, void* c,
                                                  int64_t m, int64_t n, int64_t k, float* time_ms);
/* group_count products C[i] = A[i] * B[i] with sizes of their own, in one launch. Otherwise as dispatcher_run_gemm().
 */
DISPATCHER_EXPORT int dispatcher_run_grouped_gemm(int group_count, const int64_t* ms, const int64_t* ns,
                                                  const int64_t* ks, const void** a, const void** b, void** c,
                                                  float* time_ms);

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_DISPATCHER_GEMM_LIB_H */
