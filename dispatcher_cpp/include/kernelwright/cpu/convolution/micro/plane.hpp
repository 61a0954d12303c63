// One channel of its own with its points side by side: a vector holds neighbouring outputs.
#ifndef KERNELWRIGHT_CPU_CONVOLUTION_MICRO_PLANE_HPP
#define KERNELWRIGHT_CPU_CONVOLUTION_MICRO_PLANE_HPP

#include "kernelwright/cpu/convolution/kernel.hpp"
#include "kernelwright/cpu/gemm/micro/epilogue.hpp"

namespace kernelwright::cpu {
namespace {

// Points of the slab behind the last output are read, not used: it has room for a vector block behind its end.
template <class Epilogue>
void plane_line(const plane_block& b) {
  constexpr int kVectors = 4;
  for (int64_t j = 0; j < b.outputs; j += kVectors * kLanes) {
    vec sum[kVectors];
    KW_CPU_UNROLL for (int v = 0; v < kVectors; ++v) sum[v] = zero();
    for (int64_t t = 0; t < b.tap_count; ++t) {
      const float* point = b.slab + b.taps[t] + j;
      const vec weight = broadcast(b.weights[t]);
      KW_CPU_UNROLL for (int v = 0; v < kVectors; ++v) sum[v] = fma(load(point + v * kLanes), weight, sum[v]);
    }
    KW_CPU_UNROLL for (int v = 0; v < kVectors; ++v) {
      const int64_t at = j + v * kLanes, count = b.outputs - at;
      if (count >= kLanes) {
        Epilogue::write_vector(sum[v], 0, at, b.to);
      } else if (count > 0) {
        Epilogue::write_first(sum[v], count, 0, at, b.to);
      }
    }
  }
}

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_CONVOLUTION_MICRO_PLANE_HPP
