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
  const bool own = channel / p.c == static_cast<int>(group % p.merged);
  const auto* from = static_cast<const uint16_t*>(p.from);
  static_cast<uint16_t*>(p.to)[number] = own ? from[(k * p.filter_points + point) * p.c + channel % p.c] : 0;
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

// The sum over slices of `width` neighbours: all slices' loads are under way at once, in the order of their addition.
template <int width>
CUTLASS_DEVICE void add_slices(const float* from, int64_t slice, int slices, float* sums) {
  struct alignas(4 * width) part {
    float values[width];
  };
#pragma unroll 8
  for (int i = 0; i < slices; ++i) {
    const part next = *reinterpret_cast<const part*>(from + i * slice);
#pragma unroll
    for (int j = 0; j < width; ++j) sums[j] += next.values[j];
  }
}

template <class Config, int width>
CUTLASS_DEVICE void sum_of_slices(const kw_cuda_conv_sum& p, int64_t number) {
  using element = typename Config::element;
  const int64_t row = number / p.c, k = row / p.filter_points;
  const int channel = static_cast<int>(number - row * p.c), within = static_cast<int>(k / p.k % p.merged);
  float sums[width] = {};
  add_slices<width>(p.from + row * p.c * p.merged + within * p.c + channel, p.slice, p.slices, sums);
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
  const int width = p.c % 4 == 0 ? 4 : 1;
  const int64_t number = helper_index() * width;
  wait_for_kernels_before();
  if (number >= p.count) return;
  if (width == 4) {
    sum_of_slices<Config, 4>(p, number);
  } else {
    sum_of_slices<Config, 1>(p, number);
  }
}

}  // namespace kernelwright::cuda::conv
