// The implicit GEMM of each direction: its extents, and its operands as views.
#ifndef KERNELWRIGHT_HIP_CONVOLUTION_PROBLEM_HPP
#define KERNELWRIGHT_HIP_CONVOLUTION_PROBLEM_HPP

#include "kernelwright/hip/convolution/views.hpp"

namespace kernelwright::hip::convolution {

using arguments = kw_hip_conv_arguments;

CK_TILE_DEVICE int32_t product(const int32_t (&values)[3]) { return values[0] * values[1] * values[2]; }

// Filter points along a dimension: three where that is known at compile time.
template <class T>
CK_TILE_DEVICE auto taps_of(const arguments& x) {
  if constexpr (T::specialization == special::filter3x3)
    return [](int) { return number<3>{}; };
  else
    return [filter = x.filter](int i) { return filter[i]; };
}

// What the filter covers of x, for each output point: (output points, filter points x c).
template <class T, int Vector>
CK_TILE_DEVICE auto covered_image(const arguments& x) {
  constexpr int one[3] = {1, 1, 1};
  if constexpr (T::explicit_gemm)
    return evenly_spaced<Vector>(x.n * product(x.out), x.c, x.point_x);
  else if constexpr (T::specialization == special::filter1x1_stride1_pad0)
    return point_matrix<T::dims, Vector>(x.n, x.out, x.c, x.image_x, x.point_x, one);
  else if constexpr (T::specialization == special::filter1x1_pad0)
    return point_matrix<T::dims, Vector>(x.n, x.out, x.c, x.image_x, x.point_x, x.stride);
  else
    return window_matrix<T::dims, Vector>(x.n, x.extent, x.extent, x.c, x.image_x, x.point_x, x.out, taps_of<T>(x),
                                          x.stride, x.dilation, x.pad);
}

// (output points, k)
template <class T, int Vector>
CK_TILE_DEVICE auto output(const arguments& x) {
  constexpr int one[3] = {1, 1, 1};
  if constexpr (T::explicit_gemm)
    return evenly_spaced<Vector>(x.n * product(x.out), x.k, x.point_y);
  else
    return point_matrix<T::dims, Vector>(x.n, x.out, x.k, x.image_y, x.point_y, one);
}

// (k, filter points x c)
template <int Vector>
CK_TILE_DEVICE auto weights(const arguments& x) {
  const int32_t row = product(x.filter) * x.c;
  return make_naive_tensor_descriptor(make_tuple(x.k, row), make_tuple(row, 1), number<Vector>{}, number<1>{});
}

// y = x w: M output points, N output channels, K filter points x channels. The phase says nothing here.
template <class T>
struct forward {
  static constexpr bool a_by_column = false, b_by_row = false;
  CK_TILE_DEVICE forward(const arguments& x, int32_t) : x(x) {}
  CK_TILE_DEVICE int32_t m() const { return x.n * product(x.out); }
  CK_TILE_DEVICE int32_t n() const { return x.k; }
  CK_TILE_DEVICE int32_t k() const { return product(x.filter) * x.c; }
  CK_TILE_DEVICE int32_t most_m() const { return m(); }
  CK_TILE_DEVICE int64_t at_a(int32_t group) const { return int64_t{group} * x.c; }
  CK_TILE_DEVICE int64_t at_b(int32_t group) const { return int64_t{group} * x.k * k(); }
  CK_TILE_DEVICE int64_t at_d(int32_t group) const { return int64_t{group} * x.k; }
  CK_TILE_DEVICE auto a() const { return covered_image<T, T::vector_a>(x); }
  CK_TILE_DEVICE auto b() const { return weights<T::vector_b>(x); }
  CK_TILE_DEVICE auto d() const { return output<T, T::vector_c>(x); }
  const arguments& x;
};

// dw = dy x: M output channels, N filter points x channels, K output points.
template <class T>
struct backward_weight {
  static constexpr bool a_by_column = true, b_by_row = true;
  CK_TILE_DEVICE backward_weight(const arguments& x, int32_t) : x(x) {}
  CK_TILE_DEVICE int32_t m() const { return x.k; }
  CK_TILE_DEVICE int32_t n() const { return product(x.filter) * x.c; }
  CK_TILE_DEVICE int32_t k() const { return x.n * product(x.out); }
  CK_TILE_DEVICE int32_t most_m() const { return m(); }
  CK_TILE_DEVICE int64_t at_a(int32_t group) const { return int64_t{group} * x.k; }
  CK_TILE_DEVICE int64_t at_b(int32_t group) const { return int64_t{group} * x.c; }
  CK_TILE_DEVICE int64_t at_d(int32_t group) const { return int64_t{group} * x.k * n(); }
  CK_TILE_DEVICE auto a() const { return output<T, T::vector_a>(x); }
  CK_TILE_DEVICE auto b() const { return covered_image<T, T::vector_b>(x); }
  CK_TILE_DEVICE auto d() const { return weights<T::vector_c>(x); }
  const arguments& x;
};

// dx = dy w: M input points, N channels, K filter points x output channels. Input points that a stride puts into one
// phase meet the same filter points, so each phase is a GEMM of its own: point i of phase r lies at i * stride + r.
template <class T>
struct backward_data {
  static constexpr bool a_by_column = false, b_by_row = true;

  CK_TILE_DEVICE backward_data(const arguments& x, int32_t phase) : x(x) {
    for (int i = 2; i >= 0; --i) {
      const int32_t rest = phase / x.stride[i];
      take_phase(i, phase - rest * x.stride[i]);
      phase = rest;
    }
  }
  CK_TILE_DEVICE int32_t m() const { return x.n * product(points); }
  CK_TILE_DEVICE int32_t n() const { return x.c; }
  CK_TILE_DEVICE int32_t k() const { return product(taps) * x.k; }
  // Of the first phase, which has the most.
  CK_TILE_DEVICE int32_t most_m() const {
    int32_t most = x.n;
    for (int i = 0; i < 3; ++i) most *= (x.extent[i] + x.stride[i] - 1) / x.stride[i];
    return most;
  }
  CK_TILE_DEVICE int64_t at_a(int32_t group) const { return int64_t{group} * x.k; }
  CK_TILE_DEVICE int64_t at_b(int32_t group) const {
    const int32_t tap = (first_tap[0] * x.filter[1] + first_tap[1]) * x.filter[2] + first_tap[2];
    return (int64_t{group} * x.k * product(x.filter) + tap) * x.c;
  }
  CK_TILE_DEVICE int64_t at_d(int32_t group) const {
    int64_t at = int64_t{group} * x.c;
    for (int i = 0; i < 3; ++i) at += int64_t{first_point[i]} * x.point_x[i];
    return at;
  }
  CK_TILE_DEVICE auto a() const {
    constexpr int32_t one[3] = {1, 1, 1};
    const auto count = [taps = taps](int i) { return taps[i]; };
    return window_matrix<T::dims, T::vector_a>(x.n, x.out, visible, x.k, x.image_y, x.point_y, points, count, one, back,
                                               left);
  }
  CK_TILE_DEVICE auto b() const {
    const int32_t row = product(x.filter) * x.c;
    const int32_t memory[3] = {x.filter[1] * x.filter[2] * x.c, x.filter[2] * x.c, x.c};
    const auto count = [&](int i) { return taps[i]; };
    const auto strides = [&](int i) { return memory[i] * tap_step[i]; };
    const auto lengths = tuple_of_dims<T::dims>(count, x.k, x.c);
    const auto by_tap = make_naive_tensor_descriptor(lengths, tuple_of_dims<T::dims>(strides, row, 1),
                                                     number<T::vector_b>{}, number<1>{});
    return transform_tensor_descriptor(
        by_tap, make_tuple(make_merge_transform(tuple_of_dims<T::dims>(count, x.k)), make_pass_through_transform(x.c)),
        rows_and_channels<T::dims>(), two());
  }
  CK_TILE_DEVICE auto d() const {
    return point_matrix<T::dims, T::vector_c>(x.n, points, x.c, x.image_x, x.point_x, x.stride);
  }
  const arguments& x;

 private:
  // Tap t of the phase is filter point first_tap + t * tap_step, and pairs input point i with output point
  // i - left + t * back.
  CK_TILE_DEVICE void take_phase(int i, int32_t phase) {
    const int32_t stride = x.stride[i], dilation = x.dilation[i], reach = phase + x.pad[i];
    first_point[i] = phase;
    points[i] = (x.extent[i] - phase + stride - 1) / stride;
    int32_t common = stride;
    for (int32_t other = dilation; other != 0;) {
      const int32_t rest = common % other;
      common = other;
      other = rest;
    }
    tap_step[i] = stride / common;
    back[i] = -dilation / common;
    int32_t tap = 0;
    while (tap < tap_step[i] && (reach - tap * dilation) % stride != 0) ++tap;
    first_tap[i] = tap;
    taps[i] = (x.filter[i] - tap + tap_step[i] - 1) / tap_step[i];
    left[i] = -((reach - tap * dilation) / stride);
    visible[i] = x.out[i];
    if (tap < tap_step[i] && tap < x.filter[i]) return;
    // No filter point meets this phase. Its points are zero: one tap that sees no output point.
    first_tap[i] = 0;
    taps[i] = 1;
    left[i] = 0;
    visible[i] = 0;
  }
  int32_t points[3], first_point[3], first_tap[3], tap_step[3], taps[3], back[3], left[3], visible[3];
};

}  // namespace kernelwright::hip::convolution

#endif
