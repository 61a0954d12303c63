// What runs before and after an implicit GEMM: operands that TMA cannot read as they are, and sums of slices.
#pragma once

#include <cuda_runtime.h>
#include <cutlass/cutlass.h>

#include "kernelwright/cuda/convolution/tile.hpp"

namespace kernelwright::cuda::conv {

CUTLASS_DEVICE int64_t helper_index() {
  return static_cast<int64_t>(blockIdx.x) * KW_CUDA_CONV_HELPER_THREADS + threadIdx.x;
}

// Config makes the symbols of each object its own.
template <class Config>
__global__ void __launch_bounds__(KW_CUDA_CONV_HELPER_THREADS) kernelwright_conv_helper_pack(kw_cuda_conv_pack p) {
  const int64_t number = helper_index();
  wait_for_kernels_before();
  if (number >= p.count) return;
  const int channel = static_cast<int>(number % p.line);
  const int64_t row = number / p.line;  // of [group][k][filter point]
  const int point = static_cast<int>(row % p.filter_points);
  const int64_t k = row / p.filter_points;  // of all groups
  const int64_t group = k / p.k;
  const int part = channel / p.pitch, within = channel - part * p.pitch;
  const bool own = within < p.c && (p.taps > 1 ? part < p.taps : part == static_cast<int>(group % p.merged));
  const int64_t line = (k * p.filter_points + point) * p.taps + (p.taps > 1 ? part : 0);
  const auto* from = static_cast<const uint16_t*>(p.from);
  static_cast<uint16_t*>(p.to)[number] = own ? from[line * p.c + within] : 0;
}

// A thread writes 8 channels.
template <class Config>
__global__ void __launch_bounds__(KW_CUDA_CONV_HELPER_THREADS) kernelwright_conv_helper_pad(kw_cuda_conv_pad p) {
  const int of_group = p.line / 8, parts = of_group * p.groups;
  const int64_t number = helper_index();
  wait_for_kernels_before();
  if (number >= p.points * parts) return;
  int64_t point = number / parts, at = 0;
  const int part = static_cast<int>(number % parts), group = part / of_group, first = (part - group * of_group) * 8;
  for (int i = 0; i < 3; ++i) {
    at += point % p.extent[i] * p.point[i];
    point /= p.extent[i];
  }
  const auto* from = static_cast<const uint16_t*>(p.from) + at + point * p.image + group * p.channels + first;
  alignas(16) uint16_t values[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) values[i] = first + i < p.channels ? from[i] : 0;
  static_cast<uint4*>(p.to)[number] = *reinterpret_cast<const uint4*>(values);
}

// A thread writes 8 elements of a line: points along W, zeros around them, `pitch` elements for each.
template <class Config>
__global__ void __launch_bounds__(KW_CUDA_CONV_HELPER_THREADS) kernelwright_conv_helper_fold(kw_cuda_conv_fold p) {
  const int parts = p.line / 8;
  const int64_t number = helper_index();
  wait_for_kernels_before();
  if (number >= p.lines * parts) return;
  int64_t line = number / parts;
  const int first = static_cast<int>(number - line * parts) * 8;
  const int64_t h = line % p.extent[1], above = line / p.extent[1];
  const int64_t at = h * p.point[1] + above % p.extent[2] * p.point[2] + above / p.extent[2] * p.image;
  const auto* const from = static_cast<const uint16_t*>(p.from) + at;
  alignas(16) uint16_t values[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int point = (first + i) / p.pitch, channel = first + i - point * p.pitch, w = point - p.pad;
    const bool exists = channel < p.c && w >= 0 && w < p.extent[0];
    values[i] = exists ? from[w * p.point[0] + channel] : 0;
  }
  static_cast<uint4*>(p.to)[number] = *reinterpret_cast<const uint4*>(values);
}

// A thread writes 8 elements of a line.
template <class Config>
__global__ void __launch_bounds__(KW_CUDA_CONV_HELPER_THREADS) kernelwright_conv_helper_gather(kw_cuda_conv_gather p) {
  const int of_group = p.line / 8, parts = of_group * p.groups;
  const int64_t number = helper_index();
  wait_for_kernels_before();
  if (number >= p.rows * parts) return;
  int64_t row = number / parts;
  const int part = static_cast<int>(number - row * parts), group = part / of_group;
  int from[3], tap[3];  // the image point that the first filter point meets; the filter point
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    from[i] = static_cast<int>(row % p.out[i]) * p.stride[i] - p.pad[i];
    row /= p.out[i];
  }
  int rest = (part - group * of_group) * 8, channel = rest % p.c;
  rest /= p.c;
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    tap[i] = rest % p.filter[i];
    rest /= p.filter[i];
  }
  const auto* const image =
      static_cast<const uint16_t*>(p.from) + row * p.image + static_cast<int64_t>(group) * p.merged * p.c;
  alignas(16) uint16_t values[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {  // rest: which of the merged groups
    int64_t at = rest * p.c + channel;
    bool exists = rest < p.merged;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      const int place = from[i] + tap[i] * p.dilation[i];
      exists = exists && place >= 0 && place < p.extent[i];
      at += place * p.point[i];
    }
    values[j] = exists ? image[at] : 0;
    if (++channel < p.c) continue;
    channel = 0;
    if (++tap[0] < p.filter[0]) continue;
    tap[0] = 0;
    if (++tap[1] < p.filter[1]) continue;
    tap[1] = 0;
    if (++tap[2] < p.filter[2]) continue;
    tap[2] = 0;
    ++rest;
  }
  static_cast<uint4*>(p.to)[number] = *reinterpret_cast<const uint4*>(values);
}

// Where a point of dx meets the filter along an axis: how far it is behind the corner of the padding, and the first
// filter point that an output puts there, or the extent of the filter where none does.
struct meeting {
  int place, first;
};

CUTLASS_DEVICE meeting meeting_of(const kw_cuda_conv_unfold& p, int axis, int point) {
  meeting found = {point + p.pad[axis], 0};
  if (p.dilation[axis] == 1) {
    found.first = found.place % p.stride[axis];
    return found;
  }
  while (found.first < p.step[axis] && (found.place - found.first * p.dilation[axis]) % p.stride[axis]) ++found.first;
  if (found.first == p.step[axis]) found.first = p.filter[axis];
  return found;
}

// The output that has this filter point there; negative: none.
CUTLASS_DEVICE int output_of(const kw_cuda_conv_unfold& p, int axis, const meeting& m, int tap) {
  const int output = (m.place - tap * p.dilation[axis]) / p.stride[axis];
  return m.place >= tap * p.dilation[axis] && output < p.out[axis] ? output : -1;
}

// A thread has an element of dx.
template <class Config>
__global__ void __launch_bounds__(KW_CUDA_CONV_HELPER_THREADS) kernelwright_conv_helper_unfold(kw_cuda_conv_unfold p) {
  using element = typename Config::element;
  const int64_t number = helper_index();
  wait_for_kernels_before();
  if (number >= p.count) return;
  const auto split = [](int64_t* x, int by) {  // x becomes the quotient
    const int64_t whole = *x / by;
    const int rest = static_cast<int>(*x - whole * by);
    *x = whole;
    return rest;
  };
  int64_t row = number;
  const int channel = split(&row, p.c * p.groups), group = channel / p.c;
  const int x = split(&row, p.extent[0]), y = split(&row, p.extent[1]), z = split(&row, p.extent[2]);
  const meeting w = meeting_of(p, 0, x), h = meeting_of(p, 1, y), d = meeting_of(p, 2, z);
  float sum = 0;
  for (int tap_d = d.first; tap_d < p.filter[2]; tap_d += p.step[2]) {
    const int out_d = output_of(p, 2, d, tap_d);
    for (int tap_h = h.first; out_d >= 0 && tap_h < p.filter[1]; tap_h += p.step[1]) {
      const int out_h = output_of(p, 1, h, tap_h);
      for (int tap_w = w.first; out_h >= 0 && tap_w < p.filter[0]; tap_w += p.step[0]) {
        const int out_w = output_of(p, 0, w, tap_w);
        if (out_w < 0) continue;
        int64_t line = ((row * p.out[2] + out_d) * p.out[1] + out_h) * p.out[0] + out_w;
        line = (line * p.groups + group) * p.filter[2] + tap_d;
        sum += p.from[((line * p.filter[1] + tap_h) * p.filter[0] + tap_w) * p.c + channel - group * p.c];
      }
    }
  }
  const int64_t at = row * p.image + z * p.point[2] + y * p.point[1] + x * p.point[0] + channel;
  element* const to = static_cast<element*>(p.to) + at;
  const float old = p.beta != 0.0f ? p.beta * static_cast<float>(*to) : 0.0f;
  *to = static_cast<element>(p.alpha * sum + old);
}

// The sum over every parts-th slice of `width` neighbours: their loads are under way at once, in the order of addition.
template <int width>
CUTLASS_DEVICE void add_slices(const float* from, int64_t slice, int first, int slices, int parts, float* sums) {
  struct alignas(4 * width) part {
    float values[width];
  };
#pragma unroll 8
  for (int i = first; i < slices; i += parts) {
    const part next = *reinterpret_cast<const part*>(from + i * slice);
#pragma unroll
    for (int j = 0; j < width; ++j) sums[j] += next.values[j];
  }
}

// Threads of a workgroup that have the same elements add up, in the order of their parts. Each thread comes here.
template <class Config, int width>
CUTLASS_DEVICE void sum_of_slices(const kw_cuda_conv_sum& p) {
  using element = typename Config::element;
  __shared__ float parts[KW_CUDA_CONV_HELPER_THREADS * width];
  const int items = KW_CUDA_CONV_HELPER_THREADS / p.parts, thread = static_cast<int>(threadIdx.x);
  const int part = thread / items, item = thread - part * items;
  const int64_t number = (static_cast<int64_t>(blockIdx.x) * items + item) * width;
  const int64_t row = number / p.c, k = row / p.filter_points;
  const int channel = static_cast<int>(number - row * p.c), within = static_cast<int>(k / p.k % p.merged);
  float sums[width] = {};
  wait_for_kernels_before();
  if (number < p.count) {
    add_slices<width>(p.from + row * p.pitch + within * p.c + channel, p.slice, part, p.slices, p.parts, sums);
  }
  if (p.parts > 1) {
#pragma unroll
    for (int j = 0; j < width; ++j) parts[thread * width + j] = sums[j];
    __syncthreads();
    for (int other = 1; part == 0 && other < p.parts; ++other) {
#pragma unroll
      for (int j = 0; j < width; ++j) sums[j] += parts[(other * items + item) * width + j];
    }
  }
  if (part > 0 || number >= p.count) return;
  element* const to = static_cast<element*>(p.to) + number;
#pragma unroll
  for (int j = 0; j < width; ++j) {
    const float old = p.beta != 0.0f ? p.beta * static_cast<float>(to[j]) : 0.0f;
    to[j] = static_cast<element>(p.alpha * sums[j] + old);
  }
}

// A thread has four channels where groups have a multiple of four.
template <class Config>
__global__ void __launch_bounds__(KW_CUDA_CONV_HELPER_THREADS) kernelwright_conv_helper_sum(kw_cuda_conv_sum p) {
  if (p.c % 4 == 0) {
    sum_of_slices<Config, 4>(p);
  } else {
    sum_of_slices<Config, 1>(p);
  }
}

}  // namespace kernelwright::cuda::conv
