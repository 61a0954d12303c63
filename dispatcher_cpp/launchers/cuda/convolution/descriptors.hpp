// The TMA descriptors of a convolution's operands.
#ifndef KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_DESCRIPTORS_HPP
#define KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_DESCRIPTORS_HPP

#include "kernelwright/cuda/convolution/launcher.h"

namespace kernelwright::cuda::launchers {

// Four dimensions of 16-bit elements, the first one dense; stride is of the others, in elements.
struct tensor_box {
  int64_t extent[4], stride[3];
  cuuint32_t box[4];
  CUtensorMapSwizzle swizzle;
};
KW_HIDDEN kw_status describe_box(const kw_kernel* kernel, const char* what, uint32_t dtype, const tensor_box& x,
                                 const void* at, CUtensorMap* map);

// Both operands of the implicit GEMM at these addresses.
KW_HIDDEN kw_status describe_operands(const kw_kernel* kernel, const kw_cuda_conv_plan& plan, const void* a,
                                      const void* b, kw_cuda_conv_params* params);

}  // namespace kernelwright::cuda::launchers

#endif  // KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_DESCRIPTORS_HPP
