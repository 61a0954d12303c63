// What is launched before and after an implicit GEMM: copies of operands, sums of slices, unfolded gradients.
#ifndef KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_HELPERS_HPP
#define KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_HELPERS_HPP

#include "kernelwright/cuda/convolution/launcher.h"

namespace kernelwright::cuda::launchers {

// Replaces operands by the copies that the kernel reads. Backward weight has dy first.
KW_HIDDEN kw_status prepare_operands(const kw_kernel* kernel, const kw_cuda_conv_plan& plan, const kw_launch& launch,
                                     const void** a, const void** b);
// The result from sums in fp32: of backward weight, and of folded or gathered backward data.
KW_HIDDEN kw_status sum_slices(const kw_kernel* kernel, const kw_cuda_conv_plan& plan, const void* from, void* to,
                               void* stream);
KW_HIDDEN kw_status unfold_sums(const kw_kernel* kernel, const kw_cuda_conv_plan& plan, const void* from, void* to,
                                void* stream);
// A sum of slices of which all but `parts` is set.
KW_HIDDEN kw_status add_slices(const kw_kernel* kernel, kw_cuda_conv_sum sum, void* stream);

}  // namespace kernelwright::cuda::launchers

#endif  // KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_HELPERS_HPP
