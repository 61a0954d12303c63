// Which points of an image meet which outputs, one spatial dimension at a time.
//
// Forward reads x and writes y. Backward data reads dy and writes dx; it is cut into phases, one for each remainder of
// a coordinate of dx by the stride. Within a phase both are the same: output j meets image points at fixed distances.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_GEOMETRY_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_GEOMETRY_HPP

#include "kernelwright/convolution/checks.h"
#include "kernelwright/cpu/common/blocks.hpp"

namespace kernelwright::cpu {

// Output j has the coordinate first + j * step. At filter point tap_first + i * tap_period it meets the image at
// low + (j * slab_step + tap_at + i * tap_step) * grain; the factor of grain counts entries of a slab, from 0.
struct axis {
  int64_t outputs, first, step;
  int64_t taps, tap_first, tap_period;
  int64_t extent;  // of the image
  int64_t low, grain, slab_step, tap_at, tap_step;

  // Slab entries that `count` neighbouring outputs need: all that lie between the first and the last …
  int64_t entries(int64_t count) const { return taps == 0 ? 0 : window(count) + (taps - 1) * size_of(tap_step); }
  // … or, where filter points are further apart than that, those of one filter point after another.
  int64_t window(int64_t count) const { return (count - 1) * slab_step + 1; }
  bool has_gaps(int64_t count) const { return size_of(tap_step) > window(count); }
  int64_t least_entries(int64_t count) const { return has_gaps(count) ? taps * window(count) : entries(count); }
  static int64_t size_of(int64_t value) { return value < 0 ? -value : value; }
  // Does no output meet a point outside of the image?
  bool inside() const {
    return taps == 0 || outputs == 0 || (low >= 0 && low + (entries(outputs) - 1) * grain < extent);
  }
};

inline int64_t greatest_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// in_step: image points from one output to the next; offset: of the first filter point; delta: to the next one.
inline void place_slab(axis& a, int64_t in_step, int64_t offset, int64_t delta) {
  const int64_t size = delta < 0 ? -delta : delta;
  a.low = a.taps > 0 && delta < 0 ? offset + (a.taps - 1) * delta : offset;
  a.grain = a.taps > 1 ? greatest_divisor(in_step, size) : in_step;
  a.slab_step = in_step / a.grain;
  a.tap_at = (offset - a.low) / a.grain;
  a.tap_step = a.taps > 1 ? delta / a.grain : 0;
}

inline axis forward_axis(const kw_conv_problem& p, int dim) {
  axis a = {};
  a.outputs = kw_conv_out(&p, dim);
  a.step = 1;
  a.taps = p.filter[dim];
  a.tap_period = 1;
  a.extent = p.extent[dim];
  place_slab(a, p.stride[dim], -p.pad_left[dim], p.dilation[dim]);
  return a;
}

// a * b modulo m, all below 2^63.
inline uint64_t product_modulo(uint64_t a, uint64_t b, uint64_t m) {
  if (a < UINT64_C(1) << 32 && b < UINT64_C(1) << 32) return a * b % m;
  uint64_t sum = 0;
  for (a %= m; b != 0; b >>= 1) {
    if ((b & 1) != 0) sum = (sum + a) % m;
    a = (a + a) % m;
  }
  return sum;
}

// The first filter point t with t * dilation = remainder modulo stride, or -1 if there is none: by Euclid's algorithm,
// so that the time grows with the digits of the stride.
inline int64_t first_tap(int64_t stride, int64_t dilation, int64_t remainder) {
  int64_t divisor = stride, rest = dilation % stride, before = 0,
          factor = 1;  // factor * dilation = rest, modulo stride
  while (rest != 0) {
    const int64_t whole = divisor / rest, next = before - whole * factor, left = divisor % rest;
    before = factor, factor = next, divisor = rest, rest = left;
  }
  if (remainder % divisor != 0) return -1;
  const int64_t period = stride / divisor, inverse = before < 0 ? before + period : before;
  return static_cast<int64_t>(product_modulo(static_cast<uint64_t>(remainder / divisor), static_cast<uint64_t>(inverse),
                                             static_cast<uint64_t>(period)));
}

// Phase `first` holds the points of dx that are `first` modulo the stride.
inline axis backward_axis(const kw_conv_problem& p, int dim, int64_t first) {
  const int64_t stride = p.stride[dim], dilation = p.dilation[dim];
  axis a = {};
  a.first = first;
  a.step = stride;
  a.outputs = first < p.extent[dim] ? (p.extent[dim] - 1 - first) / stride + 1 : 0;
  a.extent = kw_conv_out(&p, dim);
  const int64_t common = greatest_divisor(stride, dilation);
  a.tap_period = stride / common;
  a.tap_first = first_tap(stride, dilation, (first + p.pad_left[dim]) % stride);
  const bool meets = a.tap_first >= 0 && a.tap_first < p.filter[dim];
  a.taps = meets ? (p.filter[dim] - 1 - a.tap_first) / a.tap_period + 1 : 0;
  if (!meets) a.tap_first = 0;
  place_slab(a, 1, (first + p.pad_left[dim] - a.tap_first * dilation) / stride, -(dilation / common));
  return a;
}

// The phase of backward data that has the most filter points along a dimension, whether dx has points of it or not: it
// has the first one, and phases that begin later have those behind it.
inline axis longest_axis(const kw_conv_problem& p, int dim) {
  const int64_t stride = p.stride[dim], beyond = p.pad_left[dim] % stride;
  return backward_axis(p, dim, beyond == 0 ? 0 : stride - beyond);
}

// One phase of a problem: forward has one, backward data as many as remainders by the strides have points of dx.
struct sweep {
  axis along[3];

  int64_t taps() const { return along[0].taps * along[1].taps * along[2].taps; }
};

inline int64_t phases_along(const kw_conv_problem& p, int dim) { return smaller(p.stride[dim], p.extent[dim]); }

inline int64_t phases(const kw_conv_problem& p) {
  return p.base.op == KW_OP_CONV_BACKWARD_DATA ? phases_along(p, 0) * phases_along(p, 1) * phases_along(p, 2) : 1;
}

inline sweep make_sweep(const kw_conv_problem& p, int64_t phase) {
  sweep s;
  for (int dim = 2; dim >= 0; --dim) {
    if (p.base.op == KW_OP_CONV_BACKWARD_DATA) {
      s.along[dim] = backward_axis(p, dim, phase % phases_along(p, dim));
      phase /= phases_along(p, dim);
    } else {
      s.along[dim] = forward_axis(p, dim);
    }
  }
  return s;
}

// Elements from one point of a tensor to the next along images, D, H and W.
struct image_strides {
  int64_t at[4];
  explicit image_strides(const int64_t (&strides)[KW_CONV_STRIDES])
      : at{strides[0], strides[2], strides[3], strides[4]} {}
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_GEOMETRY_HPP
