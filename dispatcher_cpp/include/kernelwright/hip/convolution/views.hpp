// Images, outputs and weights as the matrices of an implicit GEMM: descriptors that are built on the device.
//
// D counts spatial dimensions; arrays of the arguments are indexed by D, H and W, so the last D entries count.
#ifndef KERNELWRIGHT_HIP_CONVOLUTION_VIEWS_HPP
#define KERNELWRIGHT_HIP_CONVOLUTION_VIEWS_HPP

#include <hip/hip_runtime.h>

#include "ck_tile/core.hpp"
#include "kernelwright/hip/convolution/arguments.h"

namespace kernelwright::hip::convolution {

using ck_tile::make_embed_transform;
using ck_tile::make_merge_transform;
using ck_tile::make_naive_tensor_descriptor;
using ck_tile::make_pad_transform;
using ck_tile::make_pass_through_transform;
using ck_tile::make_tuple;
using ck_tile::number;
using ck_tile::sequence;
using ck_tile::transform_tensor_descriptor;

enum class special { none, filter1x1_pad0, filter1x1_stride1_pad0, filter3x3 };

// make_tuple(first, of(0), ..., of(D - 1), last), of the dimensions that there are.
template <int D, class First, class Of, class... Last>
CK_TILE_DEVICE auto tuple_of(First first, const Of& of, Last... last) {
  if constexpr (D == 1) return make_tuple(first, of(2), last...);
  if constexpr (D == 2) return make_tuple(first, of(1), of(2), last...);
  if constexpr (D == 3) return make_tuple(first, of(0), of(1), of(2), last...);
}
template <int D, class Of, class... Last>
CK_TILE_DEVICE auto tuple_of_dims(const Of& of, Last... last) {
  if constexpr (D == 1) return make_tuple(of(2), last...);
  if constexpr (D == 2) return make_tuple(of(1), of(2), last...);
  if constexpr (D == 3) return make_tuple(of(0), of(1), of(2), last...);
}

// Every second dimension, from the first or the second on: what a window of filter and output points has in turns.
template <int D>
using evens =
    std::conditional_t<D == 1, sequence<0, 2>, std::conditional_t<D == 2, sequence<0, 2, 4>, sequence<0, 2, 4, 6>>>;
template <int D>
using odds =
    std::conditional_t<D == 1, sequence<1, 3>, std::conditional_t<D == 2, sequence<1, 3, 5>, sequence<1, 3, 5, 7>>>;
// The dimensions of (n, points, channels), each by itself; and with a window's pair in place of each point.
template <int D>
CK_TILE_DEVICE constexpr auto each() {
  if constexpr (D == 1) return make_tuple(sequence<0>{}, sequence<1>{}, sequence<2>{});
  if constexpr (D == 2) return make_tuple(sequence<0>{}, sequence<1>{}, sequence<2>{}, sequence<3>{});
  if constexpr (D == 3) return make_tuple(sequence<0>{}, sequence<1>{}, sequence<2>{}, sequence<3>{}, sequence<4>{});
}
template <int D>
CK_TILE_DEVICE constexpr auto pairs() {
  if constexpr (D == 1) return make_tuple(sequence<0>{}, sequence<1, 2>{}, sequence<3>{});
  if constexpr (D == 2) return make_tuple(sequence<0>{}, sequence<1, 2>{}, sequence<3, 4>{}, sequence<5>{});
  if constexpr (D == 3)
    return make_tuple(sequence<0>{}, sequence<1, 2>{}, sequence<3, 4>{}, sequence<5, 6>{}, sequence<7>{});
}
// (n, points, channels): all but the channels, and the channels.
template <int D>
CK_TILE_DEVICE constexpr auto rows_and_channels() {
  if constexpr (D == 1) return make_tuple(sequence<0, 1>{}, sequence<2>{});
  if constexpr (D == 2) return make_tuple(sequence<0, 1, 2>{}, sequence<3>{});
  if constexpr (D == 3) return make_tuple(sequence<0, 1, 2, 3>{}, sequence<4>{});
}
CK_TILE_DEVICE constexpr auto two() { return make_tuple(sequence<0>{}, sequence<1>{}); }

// The points of all images, whose distance is everywhere that of neighbours along W: (points, channels).
template <int Vector>
CK_TILE_DEVICE auto evenly_spaced(int32_t points, int32_t channels, const int32_t (&point)[3]) {
  return make_naive_tensor_descriptor(make_tuple(points, channels), make_tuple(point[2], 1), number<Vector>{},
                                      number<1>{});
}

// Points of n images in memory, with `channels` side by side: (points, channels). `step` points apart along each
// dimension.
template <int D, int Vector>
CK_TILE_DEVICE auto point_matrix(int32_t n, const int32_t (&count)[3], int32_t channels, int32_t image,
                                 const int32_t (&point)[3], const int32_t (&step)[3]) {
  const auto counts = [&](int i) { return count[i]; };
  const auto strides = [&](int i) { return point[i] * step[i]; };
  const auto memory = make_naive_tensor_descriptor(tuple_of<D>(n, counts, channels), tuple_of<D>(image, strides, 1),
                                                   number<Vector>{}, number<1>{});
  return transform_tensor_descriptor(
      memory, make_tuple(make_merge_transform(tuple_of<D>(n, counts)), make_pass_through_transform(channels)),
      rows_and_channels<D>(), two());
}

// For each output point, what its filter covers: (output points, filter points x channels). Zeros beyond the image.
//
// Along each dimension, coordinate = output * output_step + tap * tap_step - left, for any steps but 0; `taps` may be
// numbers that are known at compile time. `visible` is the extent, or 0 where all coordinates are to read zeros: loads
// add 2^31 bytes to the offsets of those, which must not bring them back into the buffer.
template <int D, int Vector, class Taps>
CK_TILE_DEVICE auto window_matrix(int32_t n, const int32_t (&extent)[3], const int32_t (&visible)[3], int32_t channels,
                                  int32_t image, const int32_t (&point)[3], const int32_t (&outputs)[3],
                                  const Taps& taps, const int32_t (&output_step)[3], const int32_t (&tap_step)[3],
                                  const int32_t (&left)[3]) {
  const auto extents = [&](int i) { return extent[i]; };
  const auto strides = [&](int i) { return point[i]; };
  const auto memory = make_naive_tensor_descriptor(tuple_of<D>(n, extents, channels), tuple_of<D>(image, strides, 1),
                                                   number<Vector>{}, number<1>{});
  const auto pass_n = make_pass_through_transform(n);
  const auto pass_c = make_pass_through_transform(channels);
  // What lies to the right is beyond the extent, however far: the padding needs no length there.
  const auto padded = [&](int i) { return make_pad_transform(visible[i], left[i], 0); };
  const auto covered = [&](int i) {
    return make_embed_transform(make_tuple(taps(i), outputs[i]), make_tuple(tap_step[i], output_step[i]));
  };
  const auto in_reach = transform_tensor_descriptor(memory, tuple_of<D>(pass_n, padded, pass_c), each<D>(), each<D>());
  const auto windows =
      transform_tensor_descriptor(in_reach, tuple_of<D>(pass_n, covered, pass_c), each<D>(), pairs<D>());
  const auto output = [&](int i) { return outputs[i]; };
  return transform_tensor_descriptor(
      windows,
      make_tuple(make_merge_transform(tuple_of<D>(n, output)), make_merge_transform(tuple_of_dims<D>(taps, channels))),
      make_tuple(evens<D>{}, odds<D>{}), two());
}

}  // namespace kernelwright::hip::convolution

#endif
