/* What the launcher sources of convolution call of each other. */
#ifndef KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_INTERNAL_H
#define KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_INTERNAL_H

#include "kernelwright/cuda/convolution/launcher.h"

#define KW_CUDA_CONV_ALIGNMENT 16 /* of addresses and strides that TMA reads */

typedef struct kw_reason {
  char* text;
  size_t bytes;
} kw_reason;

/* Writes the sentence and returns KW_UNSUPPORTED. */
KW_HIDDEN kw_status kw_cuda_conv_refuse(kw_reason reason, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

/* The implicit GEMM of a valid problem that the traits allow. */
KW_HIDDEN kw_status kw_cuda_conv_derive(const kw_conv_traits* t, const kw_conv_problem* p, kw_cuda_conv_shape* shape,
                                        kw_reason reason);

/* Are memory strides of an image of these extents (along D, H, W) multiples of 16 bytes? */
KW_HIDDEN int kw_cuda_conv_aligned(const int64_t* strides, int64_t images, const int64_t* extent);

/* The descriptors of both operands at these addresses. */
KW_HIDDEN kw_status kw_cuda_conv_describe(const kw_kernel* kernel, const kw_cuda_conv_plan* plan, const void* a,
                                          const void* b, kw_cuda_conv_params* params);

#endif /* KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_INTERNAL_H */
