// Groups of few channels, without a GEMM: a vector holds neighbouring channels of whole groups. For each filter point,
// each output channel needs every input channel of its group, which a permutation of the vector brings to its lane.
#ifndef KERNELWRIGHT_CPU_CONVOLUTION_MICRO_LANES_HPP
#define KERNELWRIGHT_CPU_CONVOLUTION_MICRO_LANES_HPP

#include "kernelwright/cpu/convolution/kernel.hpp"
#include "kernelwright/cpu/gemm/micro/epilogue.hpp"

namespace kernelwright::cpu {
namespace {

// Lane i holds the first lane of the group that it belongs to.
KW_CPU_INLINE ivec first_of_group(int64_t per_group) {
  int32_t lanes[kLanes];
  for (int32_t i = 0; i < kLanes; ++i) lanes[i] = i - i % static_cast<int32_t>(per_group);
  return load_int32(lanes);
}

KW_CPU_INLINE ivec broadcast_int32(int64_t value) {
  int32_t lanes[kLanes];
  for (int32_t i = 0; i < kLanes; ++i) lanes[i] = static_cast<int32_t>(value);
  return load_int32(lanes);
}

// kLanes values, or the first `count`.
template <class Element, bool Whole>
KW_CPU_INLINE vec load_lanes(const typename Element::storage* p, int64_t count) {
  return Whole ? Element::load_float(p) : Element::load_first(p, count);
}

template <class Element, class Epilogue>
class lanes {
 public:
  using storage = typename Element::storage;

  static void multiply(const lanes_block& b) {
    for (int64_t j = 0; j < b.channels; j += kLanes) {
      const int64_t count = b.channels - j;
      if (count >= kLanes) {
        b.per_group == 1 ? line<true, true>(b, j, kLanes) : line<true, false>(b, j, kLanes);
      } else {
        b.per_group == 1 ? line<false, true>(b, j, count) : line<false, false>(b, j, count);
      }
    }
  }

 private:
  static constexpr int kOutputs = 8;  // at a time: multiply-adds in flight

  template <bool Whole, bool Single>
  static void line(const lanes_block& b, int64_t j, int64_t count) {
    int64_t i = 0;
    for (; i + kOutputs <= b.outputs; i += kOutputs) block<kOutputs, Whole, Single>(b, i, j, count);
    const int64_t left = b.outputs - i;
    if (left >= 4) block<4, Whole, Single>(b, i, j, count), i += 4;
    if (left % 4 >= 2) block<2, Whole, Single>(b, i, j, count), i += 2;
    if (left % 2 == 1) block<1, Whole, Single>(b, i, j, count);
  }

  template <int Outputs, bool Whole, bool Single>
  static KW_CPU_INLINE void block(const lanes_block& b, int64_t i, int64_t j, int64_t count) {
    const storage* x = static_cast<const storage*>(b.x) + i * b.x_step + j;
    const float* w = b.w + j / kLanes * b.w_vector;
    vec sum[Outputs];
    KW_CPU_UNROLL for (int o = 0; o < Outputs; ++o) sum[o] = zero();
    const ivec group = Single ? ivec() : first_of_group(b.per_group);
    for (int64_t t = 0; t < b.tap_count; ++t) {
      const storage* point = x + b.taps[t].x;
      const vec weights = load(w + b.taps[t].w);
      const ivec from = Single ? ivec() : add_int32(group, broadcast_int32(b.taps[t].channel));
      KW_CPU_UNROLL for (int o = 0; o < Outputs; ++o) {
        vec value = load_lanes<Element, Whole>(point + o * b.x_step, count);
        if (!Single) value = permute(value, from);
        sum[o] = fma(value, weights, sum[o]);
      }
    }
    KW_CPU_UNROLL for (int o = 0; o < Outputs; ++o) {
      if (Whole) {
        Epilogue::write_vector(sum[o], i + o, j, b.to);
      } else {
        Epilogue::write_first(sum[o], count, i + o, j, b.to);
      }
    }
  }
};

template <class Element>
class lanes_weight {
 public:
  using storage = typename Element::storage;

  static void multiply(const lanes_weight_block& b) {
    int64_t t = 0;
    for (; t + kTaps <= b.tap_count; t += kTaps) taps<kTaps>(b, t);
    const int64_t left = b.tap_count - t;
    if (left >= 4) taps<4>(b, t), t += 4;
    if (left % 4 >= 2) taps<2>(b, t), t += 2;
    if (left % 2 == 1) taps<1>(b, t);
  }

 private:
  static constexpr int kTaps = 8;  // at a time: multiply-adds in flight

  template <int Taps>
  static void taps(const lanes_weight_block& b, int64_t first) {
    if (b.channels >= kLanes) {
      b.per_group == 1 ? sum_up<Taps, true, true>(b, first) : sum_up<Taps, true, false>(b, first);
    } else {
      b.per_group == 1 ? sum_up<Taps, false, true>(b, first) : sum_up<Taps, false, false>(b, first);
    }
  }

  template <int Taps, bool Whole, bool Single>
  static void sum_up(const lanes_weight_block& b, int64_t first) {
    const storage* x = static_cast<const storage*>(b.x);
    const storage* dy = static_cast<const storage*>(b.dy);
    const lanes_tap* at = b.taps + first;
    vec sum[Taps];
    ivec from[Taps];
    const ivec group = Single ? ivec() : first_of_group(b.per_group);
    KW_CPU_UNROLL for (int t = 0; t < Taps; ++t) {
      sum[t] = load(b.sums + at[t].w);
      if (!Single) from[t] = add_int32(group, broadcast_int32(at[t].channel));
    }
    for (int64_t i = 0; i < b.outputs; ++i, x += b.x_step, dy += b.dy_step) {
      const vec gradient = load_lanes<Element, Whole>(dy, b.channels);
      KW_CPU_UNROLL for (int t = 0; t < Taps; ++t) {
        vec value = load_lanes<Element, Whole>(x + at[t].x, b.channels);
        if (!Single) value = permute(value, from[t]);
        sum[t] = fma(value, gradient, sum[t]);
      }
    }
    KW_CPU_UNROLL for (int t = 0; t < Taps; ++t) store(b.sums + at[t].w, sum[t]);
  }
};

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_CONVOLUTION_MICRO_LANES_HPP
