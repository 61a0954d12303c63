// Convolution on Hopper as implicit GEMMs. A generated header names element, tile and schedule, and a descriptor.
//
// TMA's im2col mode brings the image points that a tile's outputs meet at one filter point, so neither edges nor
// strides cost the multiplying warps anything. Backward data is cut into residues modulo the stride: each is a sum over
// its own part of the filter, and all of them are tiles of one grid.
#pragma once

#include "kernelwright/cuda/common/resources.hpp"
#include "kernelwright/cuda/convolution/helpers.hpp"
#include "kernelwright/cuda/convolution/kernel.hpp"

namespace kernelwright::cuda::conv {

template <class Spec>
struct implicit_gemm {
  using config_of = config<Spec>;
  static constexpr kernel_resources resources = {sizeof(kernel_resources), config_of::shared_bytes, kThreads,
                                                 config_of::stages};

  static const void* function() { return reinterpret_cast<const void*>(&kernelwright_conv<config_of>); }
  static const void* pad() { return reinterpret_cast<const void*>(&kernelwright_conv_helper_pad<config_of>); }
  // Weights are packed and images folded where they are read, gradients finished where they are written.
  static const void* pack() {
    if constexpr (!Spec::weight) return reinterpret_cast<const void*>(&kernelwright_conv_helper_pack<config_of>);
    return nullptr;
  }
  static const void* fold() {
    if constexpr (!Spec::data) return reinterpret_cast<const void*>(&kernelwright_conv_helper_fold<config_of>);
    return nullptr;
  }
  static const void* gather() {
    if constexpr (!Spec::data) return reinterpret_cast<const void*>(&kernelwright_conv_helper_gather<config_of>);
    return nullptr;
  }
  static const void* unfold() {
    if constexpr (Spec::data) return reinterpret_cast<const void*>(&kernelwright_conv_helper_unfold<config_of>);
    return nullptr;
  }
  static const void* sum() {
    if constexpr (Spec::weight) return reinterpret_cast<const void*>(&kernelwright_conv_helper_sum<config_of>);
    return nullptr;
  }
};

}  // namespace kernelwright::cuda::conv
