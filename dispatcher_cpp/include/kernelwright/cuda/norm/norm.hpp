// The CUDA kernels of norms: what a generated header instantiates.
#pragma once

#include "kernelwright/cuda/common/resources.hpp"
#include "kernelwright/cuda/norm/device.hpp"
#include "kernelwright/cuda/norm/launcher.h"
#include "kernelwright/norm/gpu/backward.hpp"
#include "kernelwright/norm/gpu/forward.hpp"

namespace kernelwright::cuda::norm {

using namespace kernelwright::norm;

template <class Kernel, int kThreads>
__global__ void __launch_bounds__(kThreads) run(const kw_norm_gpu_arguments p) {
  __shared__ typename Kernel::row_type::shared memory;
  Kernel::run(p, memory);
}

template <class Kernel>
__global__ void __launch_bounds__(KW_NORM_SUM_BLOCK) finish(const kw_norm_gpu_arguments p) {
  __shared__ float memory[KW_NORM_SUM_BLOCK];
  Kernel::finish(p, memory);
}

}  // namespace kernelwright::cuda::norm
