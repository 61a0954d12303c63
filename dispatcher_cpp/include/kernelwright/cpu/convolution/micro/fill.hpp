// Copies points of an image into a slab of units.
#ifndef KERNELWRIGHT_CPU_CONVOLUTION_MICRO_FILL_HPP
#define KERNELWRIGHT_CPU_CONVOLUTION_MICRO_FILL_HPP

#include "kernelwright/cpu/convolution/kernel.hpp"
#include "kernelwright/cpu/gemm/micro/operation.hpp"

namespace kernelwright::cpu {
namespace {

template <class Loader>
void fill(float* to, int64_t pitch, const void* from, int64_t stride, int64_t pixels, int64_t channels) {
  using storage = typename Loader::storage;
  constexpr int64_t kValues = int64_t{kLanes} * Loader::kDepth;
  const storage* point = static_cast<const storage*>(from);
  if (Loader::kDepth == 1 && pitch == channels && stride == channels) {
    channels *= pixels;
    pixels = channels > 0 ? 1 : 0;
  }
  const int64_t whole = channels / kValues, rest = channels % kValues;
  for (; pixels > 0; --pixels, to += pitch, point += stride) {
    for (int64_t i = 0; i < whole; ++i) store(to + i * kLanes, Loader::load_along_k(point + i * kValues));
    if (rest > 0) {
      const vec last = Loader::load_first_along_k(point + whole * kValues, rest);
      store_first(to + whole * kLanes, last, divide_up(rest, Loader::kDepth));
    }
  }
}

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_CONVOLUTION_MICRO_FILL_HPP
