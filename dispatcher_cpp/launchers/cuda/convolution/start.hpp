#ifndef KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_START_HPP
#define KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_START_HPP

#include "kernelwright/cuda/common/runtime.h"

// A launch of `blocks` workgroups with one struct of parameters.
extern "C" KW_HIDDEN kw_status kw_cuda_conv_start(const kw_kernel* kernel, const void* function, uint32_t blocks,
                                                  uint32_t threads, uint32_t shared_bytes, void* params, void* stream);

#endif  // KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_START_HPP
