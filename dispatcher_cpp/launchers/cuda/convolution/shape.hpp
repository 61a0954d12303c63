// The implicit GEMM of a convolution: tiles, residues of strides, filter points, merged groups.
#ifndef KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_SHAPE_HPP
#define KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_SHAPE_HPP

#include "kernelwright/convolution/checks.h"
#include "kernelwright/cuda/convolution/launcher.h"
#include "launchers/cuda/common/checks.hpp"

namespace kernelwright::cuda::launchers {

// The shape of a valid problem that the traits allow.
KW_HIDDEN kw_status derive_shape(const kw_conv_traits& t, const kw_conv_problem& p, kw_cuda_conv_shape* s, reason why);

KW_HIDDEN kw_cuda_divider divider_of(int64_t divisor);

inline int64_t round_up(int64_t value, int64_t unit) { return kw_mul(kw_parts(value, unit), unit); }

// Channels of a group in the dense copy of an image.
inline int64_t padded(int64_t channels) { return (channels + 7) / 8 * 8; }

}  // namespace kernelwright::cuda::launchers

#endif  // KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_SHAPE_HPP
