/* libdispatcher_conv_lib.so: convolutions through the function names that users of the CK Tile dispatcher know.
 *
 * The library is the dispatcher of kernelwright/dispatcher.h with kernel libraries loaded into it. Operands lie on the
 * device that is current in the calling thread (hipSetDevice, cudaSetDevice, or the context of the CUDA driver); for
 * CPU libraries in host memory. Tensors have no gaps and channels innermost: x is (N, H, W, C) or (N, D, H, W, C), w
 * (K, Y, X, C / G) or (K, Z, Y, X, C / G). Programs that fuse epilogues, or that have streams, strides or asymmetric
 * padding, use kernelwright/dispatcher.h.
 *
 * Any number of threads may call anything at once. Functions that can fail return a negative number and leave a
 * sentence for conv_dispatcher_last_error() in the calling thread.
 */
#ifndef KERNELWRIGHT_DISPATCHER_CONV_LIB_H
#define KERNELWRIGHT_DISPATCHER_CONV_LIB_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CONV_DISPATCHER_EXPORT __attribute__((visibility("default")))
#else
#define CONV_DISPATCHER_EXPORT
#endif

enum {
  CONV_DISPATCHER_OK = 0,
  CONV_DISPATCHER_ERROR = -1,
  CONV_DISPATCHER_NO_KERNEL = -2,
  CONV_DISPATCHER_FAILED = -3
};

/* directions, with the operands a, b and c of conv_dispatcher_run() */
enum { CONV_FORWARD = 0 /* x, w, y */, CONV_BWD_DATA = 1 /* dy, w, dx */, CONV_BWD_WEIGHT = 2 /* x, dy, dw */ };

/* C and K are of all G groups. A problem has three dimensions if input_d or filter_z is above 1, else two, and then
 * stride_d, pad_d and dilation_d are not read. Padding is the same on both sides. */
struct ConvProblemC {
  int N, G, C, K;
  int input_d, input_h, input_w;
  int filter_z, filter_y, filter_x;
  int stride_d, stride_h, stride_w;
  int pad_d, pad_h, pad_w;
  int dilation_d, dilation_h, dilation_w;
  int direction;
  int split_k; /* of CONV_BWD_WEIGHT, else not read: slices of the sum; 1 or less: the dispatcher chooses */
};

/* "2.0.0": the version of these functions and of the struct, as there. */
CONV_DISPATCHER_EXPORT const char* conv_dispatcher_version(void);
/* Why the last call of this thread failed; "" if none did. Valid until the next failure in this thread. */
CONV_DISPATCHER_EXPORT const char* conv_dispatcher_last_error(void);

/* Loads kernel libraries: those that KERNELWRIGHT_CONV_KERNELS names, or else of the folder dispatcher_conv_kernels
 * beside this file, or else of the wheels kernelwright-kernels-convolution-<arch> that are installed where this file
 * is. 0 or -1; 0 also if it was done before, until conv_dispatcher_cleanup(). */
CONV_DISPATCHER_EXPORT int conv_dispatcher_init(void);
/* The same with arguments in place of the environment; null leaves one to it.
 *
 * kernels: files, or folders that hold lib*.so or <arch>/lib*.so, separated by colons. Those for other devices than
 * this machine's are left out; it fails if none is left, if a file is no kernel library, or if they are of several
 * backends.
 *
 * dtype: of x, w and y: "fp32", "fp16" or "bf16". Null: KERNELWRIGHT_CONV_DTYPE, or else what all kernels have in
 * common; it fails if theirs differ. */
CONV_DISPATCHER_EXPORT int conv_dispatcher_init_from(const char* kernels, const char* dtype);
/* Waits for calls under way and forgets everything; conv_dispatcher_init() may follow. Returns 0. */
CONV_DISPATCHER_EXPORT int conv_dispatcher_cleanup(void);

/* 1 if some kernel of the dtype serves forward; 0 before conv_dispatcher_init(). */
CONV_DISPATCHER_EXPORT int conv_dispatcher_has_kernels(void);
CONV_DISPATCHER_EXPORT int conv_dispatcher_has_bwd_data(void);
CONV_DISPATCHER_EXPORT int conv_dispatcher_has_bwd_weight(void);
/* Kernels that were loaded; 0 before conv_dispatcher_init(). */
CONV_DISPATCHER_EXPORT int conv_dispatcher_get_kernel_count(void);
/* Their names, in a fixed order. 0 or -1, as for an index out of range or a buffer too small. */
CONV_DISPATCHER_EXPORT int conv_dispatcher_get_kernel_name(int index, char* name, int bytes);
/* The name of the kernel that would run. 0, -1, or -2 if no kernel serves the problem. */
CONV_DISPATCHER_EXPORT int conv_dispatcher_select_kernel(const struct ConvProblemC* problem, char* name, int bytes);

/* 1 if some kernel serves the problem, else 0 and the reasons in conv_dispatcher_last_error(). */
CONV_DISPATCHER_EXPORT int conv_dispatcher_is_supported(const struct ConvProblemC* problem);
/* Computes c on a stream (hipStream_t, CUstream; null: the default one), waits for it and returns milliseconds, above
 * 0: the kernel is launched once to warm up and then for about 100 ms, at least 1 and at most 10 times. Operands are as
 * said at the directions. -1 for arguments that make no problem, -2 if no kernel serves it, -3 if a launch fails. */
CONV_DISPATCHER_EXPORT float conv_dispatcher_run(const void* a, const void* b, void* c,
                                                 const struct ConvProblemC* problem, void* stream);

/* Backward weight by the names of a library that older versions of the CK Tile dispatcher had for it. Here both
 * families share what conv_dispatcher_init() or conv_bwdw_init() loaded, until one of them cleans up. */
struct ConvBwdwProblemC {
  int N, G, C, K;
  int input_d, input_h, input_w;
  int filter_z, filter_y, filter_x;
  int stride_d, stride_h, stride_w;
  int pad_d, pad_h, pad_w;
  int dilation_d, dilation_h, dilation_w;
  int split_k;
};
CONV_DISPATCHER_EXPORT int conv_bwdw_init(void);
CONV_DISPATCHER_EXPORT void conv_bwdw_cleanup(void);
CONV_DISPATCHER_EXPORT const char* conv_bwdw_version(void); /* "1.0.0" */
CONV_DISPATCHER_EXPORT int conv_bwdw_has_kernels(void);
/* Kernels of backward weight, and their names. */
CONV_DISPATCHER_EXPORT int conv_bwdw_get_kernel_count(void);
CONV_DISPATCHER_EXPORT int conv_bwdw_get_kernel_name(int index, char* name, int bytes);
CONV_DISPATCHER_EXPORT float conv_bwdw_run(const void* x, const void* dy, void* dw,
                                           const struct ConvBwdwProblemC* problem, void* stream);

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_DISPATCHER_CONV_LIB_H */
