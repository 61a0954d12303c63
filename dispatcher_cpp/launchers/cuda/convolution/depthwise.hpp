// How depthwise convolutions and their gradients are launched: boxes of images, strips of outputs. The device is
// current.
#ifndef KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_DEPTHWISE_HPP
#define KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_DEPTHWISE_HPP

#include "kernelwright/cuda/convolution/launcher.h"

namespace kernelwright::cuda::launchers {

KW_HIDDEN kw_status launch_depthwise(const kw_kernel* kernel, const kw_conv_problem& p, const kw_launch& launch,
                                     const kw_conv_args& args);
KW_HIDDEN kw_status launch_depthwise_weight(const kw_kernel* kernel, const kw_cuda_conv_plan& plan,
                                            const kw_launch& launch, const kw_conv_args& args);

// Some address for a descriptor of what nobody reads.
inline const void* unread(const kw_conv_args& args) {
  return reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(args.d) / 16 * 16);
}

}  // namespace kernelwright::cuda::launchers

#endif  // KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_DEPTHWISE_HPP
