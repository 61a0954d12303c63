/* What the launcher sources of convolution call of each other. */
#ifndef KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_INTERNAL_H
#define KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_INTERNAL_H

#include "kernelwright/cuda/convolution/launcher.h"
#include "launchers/cuda/common/refuse.h"
#include "launchers/cuda/convolution/conditions.h"

#define KW_CUDA_CONV_ALIGNMENT 16 /* of addresses and strides that TMA reads */

/* The implicit GEMM of a valid problem that the traits allow. */
KW_HIDDEN kw_status kw_cuda_conv_derive(const kw_conv_traits* t, const kw_conv_problem* p, kw_cuda_conv_shape* shape,
                                        kw_reason reason);

/* Channels of a group in the dense copy of an image. */
static inline int64_t kw_cuda_conv_padded(int64_t channels) { return (channels + 7) / 8 * 8; }

KW_HIDDEN kw_cuda_divider kw_cuda_conv_divider(int64_t divisor);

/* Folds points along W of the plan's problem into channels where that pays, see conv_fold.c. */
KW_HIDDEN void kw_cuda_conv_fold_problem(kw_cuda_conv_plan* plan);

/* Makes a matrix of the points that the outputs of the posed problem meet, see conv_gather.c; 0 where it cannot. */
KW_HIDDEN int kw_cuda_conv_gather_problem(kw_cuda_conv_plan* plan);

/* Replaces operands by the copies that the kernel reads. Backward weight has dy first. */
KW_HIDDEN kw_status kw_cuda_conv_prepare(const kw_kernel* kernel, const kw_cuda_conv_plan* plan,
                                         const kw_launch* launch, const void** a, const void** b);
/* The result from sums in fp32: of backward weight, and of folded backward data. */
KW_HIDDEN kw_status kw_cuda_conv_sum_slices(const kw_kernel* kernel, const kw_cuda_conv_plan* plan, const void* from,
                                            void* to, void* stream);
KW_HIDDEN kw_status kw_cuda_conv_unfold_sums(const kw_kernel* kernel, const kw_cuda_conv_plan* plan, const void* from,
                                             void* to, void* stream);
/* A sum of slices of which all but `parts` is set. */
KW_HIDDEN kw_status kw_cuda_conv_add_slices(const kw_kernel* kernel, kw_cuda_conv_sum* params, void* stream);

/* Depthwise: the launch; the device is current. */
KW_HIDDEN kw_status kw_cuda_conv_launch_direct(const kw_kernel* kernel, const kw_conv_problem* p,
                                               const kw_launch* launch, const kw_conv_args* args);
KW_HIDDEN kw_status kw_cuda_conv_launch_direct_weight(const kw_kernel* kernel, const kw_cuda_conv_plan* plan,
                                                      const kw_launch* launch, const kw_conv_args* args);

/* A launch of `blocks` workgroups with one struct of parameters. */
KW_HIDDEN kw_status kw_cuda_conv_start(const kw_kernel* kernel, const void* function, uint32_t blocks, uint32_t threads,
                                       uint32_t shared_bytes, void* params, void* stream);

/* TMA's descriptor of four dimensions of 16-bit elements, the first one dense; stride is of the others, in elements. */
KW_HIDDEN kw_status kw_cuda_conv_describe_box(const kw_kernel* kernel, const char* what, uint32_t dtype,
                                              const int64_t* extent, const int64_t* stride, const cuuint32_t* box,
                                              CUtensorMapSwizzle swizzle, const void* at, CUtensorMap* map);

/* The descriptors of both operands at these addresses. */
KW_HIDDEN kw_status kw_cuda_conv_describe(const kw_kernel* kernel, const kw_cuda_conv_plan* plan, const void* a,
                                          const void* b, kw_cuda_conv_params* params);

#endif /* KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_INTERNAL_H */
