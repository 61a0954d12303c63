// What runs before and after an implicit GEMM: operands that TMA cannot read as they are, and sums of slices.
#pragma once

#include <cuda_runtime.h>
#include <cutlass/cutlass.h>

#include "kernelwright/cuda/convolution/launcher.h"

namespace kernelwright::cuda::conv {

CUTLASS_DEVICE int64_t helper_index() {
  return static_cast<int64_t>(blockIdx.x) * KW_CUDA_CONV_HELPER_THREADS + threadIdx.x;
}

// Config makes the symbols of each object its own.
template <class Config>
__global__ void __launch_bounds__(KW_CUDA_CONV_HELPER_THREADS) kernelwright_conv_helper_pack(kw_cuda_conv_pack p) {
  const int64_t number = helper_index();
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
  const int parts = p.line / 8;
  const int64_t number = helper_index();
  if (number >= p.points * parts) return;
  int64_t point = number / parts, at = 0;
  const int first = static_cast<int>(number % parts) * 8;
  for (int i = 0; i < 3; ++i) {
    at += point % p.extent[i] * p.point[i];
    point /= p.extent[i];
  }
  const auto* from = static_cast<const uint16_t*>(p.from) + at + point * p.image + first;
  alignas(16) uint16_t values[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) values[i] = first + i < p.channels ? from[i] : 0;
  static_cast<uint4*>(p.to)[number] = *reinterpret_cast<const uint4*>(values);
}

template <class Config>
__global__ void __launch_bounds__(KW_CUDA_CONV_HELPER_THREADS) kernelwright_conv_helper_sum(kw_cuda_conv_sum p) {
  using element = typename Config::element;
  const int64_t number = helper_index();
  if (number >= p.count) return;
  const int channel = static_cast<int>(number % p.c);
  const int64_t row = number / p.c, k = row / p.filter_points;
  const int within = static_cast<int>(k / p.k % p.merged);
  const float* from = p.from + row * p.c * p.merged + within * p.c + channel;
  float sum = 0.0f;
  for (int i = 0; i < p.slices; ++i) sum += from[i * p.slice];
  element* const to = static_cast<element*>(p.to) + number;
  sum *= p.alpha;
  if (p.beta != 0.0f) sum += p.beta * static_cast<float>(*to);
  *to = static_cast<element>(sum);
}

}  // namespace kernelwright::cuda::conv
