// Groups of few channels, without a GEMM: a vector holds neighbouring channels of whole groups. For each filter point,
// each output channel needs every input channel of its group, which a permutation of the vector brings to its lane.
#ifndef KERNELWRIGHT_CPU_CONVOLUTION_MICRO_LANES_HPP
#define KERNELWRIGHT_CPU_CONVOLUTION_MICRO_LANES_HPP

#include "kernelwright/cpu/convolution/kernel.hpp"
#include "kernelwright/cpu/convolution/micro/moved.hpp"

namespace kernelwright::cpu {
namespace {

// Lane i holds the lane of channel 0 of the group that it belongs to.
KW_CPU_INLINE ivec first_of_group(int64_t per_group) {
  int32_t lanes[kLanes];
  for (int32_t i = 0; i < kLanes; ++i) lanes[i] = i - i % static_cast<int32_t>(per_group);
  return load_int32(lanes);
}

template <class Epilogue>
class lanes {
 public:
  static void multiply(const lanes_block& b) {
    const bool single = b.per_group == 1;
    for (int64_t i = 0; i < b.tile_count; ++i) {
      const pixel_tile& t = b.tiles[i];
      kTable.run[single ? 0 : 1][t.rows[0] + t.rows[1] - 1](b, t);
    }
  }

 private:
  static constexpr int kHalf = kLanesHalf, kOutputs = 2 * kHalf;
  using tile_function = void (*)(const lanes_block&, const pixel_tile&);

  template <int Rows, bool Single>
  static void run(const lanes_block& b, const pixel_tile& t) {
    vec sum[Rows];
    KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) sum[i] = zero();
    const ivec group = Single ? ivec() : first_of_group(b.per_group);
    const int64_t row = b.a_row;
    for (int64_t tap = 0; tap < b.tap_count; ++tap) {
      const float* point[2] = {b.slab + t.a[0] + b.taps[tap].x, b.slab + t.a[1] + b.taps[tap].x};
      const vec weights = load(b.w + b.taps[tap].w);
      const ivec from = Single ? ivec() : add_int32(group, broadcast_int32(b.taps[tap].channel));
      KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
        vec value = load(i < kHalf ? point[0] + i * row : point[1] + (i - kHalf) * row);
        if (!Single) value = permute(value, from);
        sum[i] = fma(value, weights, sum[i]);
      }
    }
    write<Rows>(sum, b, t);
  }

  template <int Rows>
  static KW_CPU_INLINE void write(const vec (&sum)[Rows], const lanes_block& b, const pixel_tile& t) {
    if constexpr (Epilogue::kActivation == KW_ACTIVATION_ANY) {
      alignas(64) float sums[Rows * kLanes];
      KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) store(sums + i * kLanes, sum[i]);
      Epilogue::write(sums, kLanes, t.rows[0], b.channels, moved_point<Epilogue>(b.to, t.d[0]));
      if (t.rows[1] == 0) return;
      Epilogue::write(sums + kHalf * kLanes, kLanes, t.rows[1], b.channels, moved_point<Epilogue>(b.to, t.d[1]));
    } else {
      const auto at = [&](int i) { return i < kHalf ? t.d[0] + i * b.to.ldc : t.d[1] + (i - kHalf) * b.to.ldc; };
      if (b.channels == kLanes) {
        KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) Epilogue::template write_at<true>(sum[i], kLanes, at(i), b.to);
      } else {
        KW_CPU_UNROLL for (int i = 0; i < Rows; ++i)
            Epilogue::template write_at<false>(sum[i], b.channels, at(i), b.to);
      }
    }
  }

  struct table {
    tile_function run[2][kOutputs];

    template <int Rows>
    constexpr void fill() {
      run[0][Rows - 1] = &lanes::run<Rows, true>;
      run[1][Rows - 1] = &lanes::run<Rows, false>;
      if constexpr (Rows > 1) fill<Rows - 1>();
    }
    constexpr table() : run() { fill<kOutputs>(); }
  };
  static constexpr table kTable{};
};

template <class Element>
class lanes_weight {
 public:
  // Filter points in parts as large as one another, so that each has many multiply-adds in flight.
  static void multiply(const lanes_weight_block& b) {
    const int64_t parts = divide_up(b.tap_count, kTaps);
    for (int64_t index = 0, first = 0; index < parts; ++index) {
      const int64_t taps = b.tap_count / parts + (index < b.tap_count % parts ? 1 : 0);
      kTable.run[b.per_group == 1 ? 0 : 1][taps - 1](b, b.taps + first);
      first += taps;
    }
  }

 private:
  using storage = typename Element::storage;
  using taps_function = void (*)(const lanes_weight_block&, const lanes_tap*);
  static constexpr int kTaps = 12;

  template <int Taps, bool Single>
  static void sum_up(const lanes_weight_block& b, const lanes_tap* taps) {
    vec sum[Taps];
    ivec from[Taps];
    const ivec group = Single ? ivec() : first_of_group(b.per_group);
    KW_CPU_UNROLL for (int t = 0; t < Taps; ++t) {
      sum[t] = load(b.sums + taps[t].w);
      if (!Single) from[t] = add_int32(group, broadcast_int32(taps[t].channel));
    }
    for (int64_t n = 0; n < b.count[0]; ++n) {
      for (int64_t d = 0; d < b.count[1]; ++d) {
        for (int64_t h = 0; h < b.count[2]; ++h) {
          const float* x = b.slab + n * b.slab_stride[0] + d * b.slab_stride[1] + h * b.slab_stride[2];
          const storage* dy =
              static_cast<const storage*>(b.dy) + n * b.dy_stride[0] + d * b.dy_stride[1] + h * b.dy_stride[2];
          for (int64_t w = b.count[3]; w > 0; --w, x += b.slab_stride[3], dy += b.dy_stride[3]) {
            const vec gradient = b.channels == kLanes ? Element::load_float(dy) : Element::load_first(dy, b.channels);
            KW_CPU_UNROLL for (int t = 0; t < Taps; ++t) {
              vec value = load(x + taps[t].x);
              if (!Single) value = permute(value, from[t]);
              sum[t] = fma(value, gradient, sum[t]);
            }
          }
        }
      }
    }
    KW_CPU_UNROLL for (int t = 0; t < Taps; ++t) store(b.sums + taps[t].w, sum[t]);
  }

  struct table {
    taps_function run[2][kTaps];

    template <int Taps>
    constexpr void fill() {
      run[0][Taps - 1] = &lanes_weight::sum_up<Taps, true>;
      run[1][Taps - 1] = &lanes_weight::sum_up<Taps, false>;
      if constexpr (Taps > 1) fill<Taps - 1>();
    }
    constexpr table() : run() { fill<kTaps>(); }
  };
  static constexpr table kTable{};
};

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_CONVOLUTION_MICRO_LANES_HPP
