// The AMD kernels of norms: what a generated header instantiates.
#ifndef KERNELWRIGHT_HIP_NORM_NORM_HPP
#define KERNELWRIGHT_HIP_NORM_NORM_HPP

#include "kernelwright/hip/norm/device.hpp"
#include "kernelwright/norm/gpu/backward.hpp"
#include "kernelwright/norm/gpu/forward.hpp"

namespace kernelwright::hip::norm {

using namespace kernelwright::norm;

template <class Kernel>
KW_NORM_DEVICE void run(const kw_norm_gpu_arguments& p) {
  __shared__ typename Kernel::row_type::shared memory;
  Kernel::run(p, memory);
}

template <class Kernel>
KW_NORM_DEVICE void finish(const kw_norm_gpu_arguments& p) {
  __shared__ float memory[KW_NORM_SUM_BLOCK];
  Kernel::finish(p, memory);
}

}  // namespace kernelwright::hip::norm

#endif  // KERNELWRIGHT_HIP_NORM_NORM_HPP
