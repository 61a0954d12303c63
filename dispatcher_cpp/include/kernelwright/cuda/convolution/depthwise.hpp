// Depthwise convolution and its gradient with respect to data: one channel in and out per group, no GEMM.
//
// A workgroup brings a box of the image (with what lies around it, zeros beyond the edges) into shared memory by one
// TMA copy. A warp has 64 channels, two for each lane; it computes strips of kStrip neighbouring outputs, whose inputs
// it reads and converts once per line of the filter.
//
// Backward data with a stride of 1 is the convolution of dy with the filter turned round. With a stride of 2, a point
// of dx meets the filter points of its own parity: strips begin at points whose parity is known.
#pragma once

#include <cutlass/arch/barrier.h>

#include <cute/arch/copy_sm90_tma.hpp>

#include "kernelwright/cuda/common/activation.hpp"
#include "kernelwright/cuda/common/resources.hpp"
#include "kernelwright/cuda/convolution/tile.hpp"

namespace kernelwright::cuda::conv {

constexpr int kStrip = KW_CUDA_CONV_STRIP, kEvenStrip = KW_CUDA_CONV_EVEN_STRIP;
constexpr int kChannels = KW_CUDA_CONV_STEP;
constexpr int kDirectThreads = 256;

template <class Spec, bool data>
struct direct {
  using element = typename Spec::element;
  struct alignas(4) pair {
    element x, y;
  };
  static CUTLASS_DEVICE float2 wide(pair two) { return {static_cast<float>(two.x), static_cast<float>(two.y)}; }

  // Filter points of 64 channels as [point][channel] in fp32; those of channels that do not exist are 0. `turned`: the
  // last point first.
  static CUTLASS_DEVICE void load_filter(const kw_cuda_conv_direct& p, int points, int first, bool turned, float* to) {
    const auto* from = static_cast<const element*>(p.w);
    for (int i = threadIdx.x; i < points * kChannels; i += kDirectThreads) {
      const int channel = i / points, point = i - channel * points;
      const bool exists = first + channel < p.channels;
      to[(turned ? points - 1 - point : point) * kChannels + channel] =
          exists ? static_cast<float>(from[static_cast<int64_t>(first + channel) * points + point]) : 0.0f;
    }
  }

  static constexpr bool any = cutlass::platform::is_same<typename Spec::activation, function::any>::value;

  // Bias of both channels of a lane.
  static CUTLASS_DEVICE float2 bias_of(const kw_cuda_conv_direct& p, int channel) {
    if (!Spec::bias || p.bias == nullptr) return {0.0f, 0.0f};
    const auto* const from = static_cast<const element*>(p.bias) + channel;
    return {static_cast<float>(from[0]), static_cast<float>(from[1])};
  }

  // Does the epilogue more than add a bias and cut negative numbers off? The same for all threads.
  static CUTLASS_DEVICE bool is_plain(const kw_cuda_conv_direct& p) {
    if constexpr (!any) return false;
    return p.beta == 0.0f && p.residual == nullptr &&
           (p.activation == KW_ACTIVATION_NONE || p.activation == KW_ACTIVATION_RELU);
  }

  static CUTLASS_DEVICE void write(const kw_cuda_conv_direct& p, float2 value, int64_t at) {
    *reinterpret_cast<pair*>(static_cast<element*>(p.y) + at) = {static_cast<element>(value.x),
                                                                 static_cast<element>(value.y)};
  }

  static CUTLASS_DEVICE void store(const kw_cuda_conv_direct& p, float2 sum, float2 bias, int64_t at) {
    float2 value = {p.alpha * sum.x, p.alpha * sum.y};
    const auto add = [&](const void* from, int64_t where, float factor) {
      const float2 more = wide(*reinterpret_cast<const pair*>(static_cast<const element*>(from) + where));
      value.x += factor * more.x;
      value.y += factor * more.y;
    };
    if (p.beta != 0.0f) add(p.y, at, p.beta);
    if constexpr (Spec::bias) value = {value.x + bias.x, value.y + bias.y};
    if (Spec::residual && p.residual != nullptr) add(p.residual, at, 1.0f);
    with_activation<typename Spec::activation>(p.activation,
                                               [&](auto act) { value = {act.of(value.x), act.of(value.y)}; });
    write(p, value, at);
  }

  // A strip of outputs: line `row` of the box, outputs from `column` on.
  template <int filter, int stride>
  static CUTLASS_DEVICE void strip(const pair* box, const float* taps, int box_w, int row, int column,
                                   float2 (&sums)[kStrip]) {
    constexpr int inputs = (kStrip - 1) * stride + filter;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < kStrip; ++i) sums[i] = {0.0f, 0.0f};
#pragma unroll 1
    for (int r = 0; r < filter; ++r) {
      const pair* const line = box + ((row * stride + r) * box_w + column * stride) * (kChannels / 2) + lane;
      const float* const weights = taps + r * filter * kChannels + 2 * lane;
      float2 values[inputs];
#pragma unroll
      for (int i = 0; i < inputs; ++i) values[i] = wide(line[i * (kChannels / 2)]);
#pragma unroll
      for (int s = 0; s < filter; ++s) {
        const float2 weight = *reinterpret_cast<const float2*>(weights + s * kChannels);
#pragma unroll
        for (int i = 0; i < kStrip; ++i) {
          sums[i].x = fmaf(values[i * stride + s].x, weight.x, sums[i].x);
          sums[i].y = fmaf(values[i * stride + s].y, weight.y, sums[i].y);
        }
      }
    }
  }

  // The same of dx with a stride of 2, from an even line and column on.
  template <int filter>
  static CUTLASS_DEVICE void strided_strip(const pair* box, const float* taps, int box_w, int row, int column,
                                           float2 (&sums)[kEvenStrip]) {
    constexpr int reach = (filter - 1) / 2, inputs = kEvenStrip / 2 + reach;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < kEvenStrip; ++i) sums[i] = {0.0f, 0.0f};
#pragma unroll 1
    for (int r = row % 2; r < filter; r += 2) {
      const pair* const line = box + (((row - r) / 2 + reach) * box_w + column / 2) * (kChannels / 2) + lane;
      const float* const weights = taps + r * filter * kChannels + 2 * lane;
      float2 values[inputs];
#pragma unroll
      for (int i = 0; i < inputs; ++i) values[i] = wide(line[i * (kChannels / 2)]);
#pragma unroll
      for (int s = 0; s < filter; ++s) {
        const float2 weight = *reinterpret_cast<const float2*>(weights + s * kChannels);
#pragma unroll
        for (int i = s % 2; i < kEvenStrip; i += 2) {
          sums[i].x = fmaf(values[(i - s) / 2 + reach].x, weight.x, sums[i].x);
          sums[i].y = fmaf(values[(i - s) / 2 + reach].y, weight.y, sums[i].y);
        }
      }
    }
  }

  template <int filter, int stride>
  static CUTLASS_DEVICE void compute(const kw_cuda_conv_direct& p, const pair* box, const float* taps, const int* at,
                                     int image, int first) {
    constexpr bool strided = data && stride == 2;
    constexpr int length = strided ? kEvenStrip : kStrip;
    const int warp = threadIdx.x / 32, channel = first + threadIdx.x % 32 * 2;
    const int box_w =
        strided ? p.strips * length / 2 + (filter - 1) / 2 : (p.strips * length - 1) * (data ? 1 : stride) + filter;
    for (int number = warp; number < p.strips * p.rows; number += kDirectThreads / 32) {
      const int row = number / p.strips, column = (number - row * p.strips) * length;
      const int h = at[1] + row - p.before[1], w = at[0] + column - p.before[0];
      if (h < 0 || h >= p.out[1] || w >= p.out[0]) continue;
      float2 sums[length];
      if constexpr (strided) {
        strided_strip<filter>(box, taps, box_w, row, column, sums);
      } else {
        strip<filter, stride>(box, taps, box_w, row, column, sums);
      }
      if (channel >= p.channels) continue;
      const int64_t line = static_cast<int64_t>(image) * p.image + h * p.point[1] + w * p.point[0] + channel;
      const float2 bias = bias_of(p, channel);
      if (is_plain(p)) {
        const float least = p.activation == KW_ACTIVATION_RELU ? 0.0f : -INFINITY;
#pragma unroll
        for (int i = 0; i < length; ++i) {
          const float2 value = {p.alpha * sums[i].x + bias.x, p.alpha * sums[i].y + bias.y};
          if (w + i < 0 || w + i >= p.out[0]) continue;
          write(p, {value.x < least ? least : value.x, value.y < least ? least : value.y}, line + i * p.point[0]);
        }
      } else {
#pragma unroll
        for (int i = 0; i < length; ++i) {
          if (w + i >= 0 && w + i < p.out[0]) store(p, sums[i], bias, line + i * p.point[0]);
        }
      }
    }
  }

  static CUTLASS_DEVICE void run(const kw_cuda_conv_direct& p, char* memory) {
    const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
    memory += (128 - address % 128) % 128;
    auto* const barrier = reinterpret_cast<uint64_t*>(memory);
    auto* const taps = reinterpret_cast<float*>(memory + 128);
    const int points = p.filter * p.filter;
    char* const box = memory + 128 + points * kChannels * 4;
    int number = static_cast<int>(blockIdx.x);
    const int block = split_off(p.channel_blocks, &number), across = split_off(p.across, &number);
    const int down = split_off(p.down, &number), first = block * kChannels;
    const int length = data && p.stride == 2 ? kEvenStrip : kStrip;
    const int at[2] = {across * p.strips * length, down * p.rows};
    const int read[2] = {data ? at[0] / p.stride : at[0] * p.stride, data ? at[1] / p.stride : at[1] * p.stride};
    wait_for_kernels_before();
    if (threadIdx.x == 0) {
      cutlass::arch::ClusterBarrier::init(barrier, 1);
      cutlass::arch::fence_barrier_init();
      cutlass::arch::ClusterTransactionBarrier::arrive_and_expect_tx(barrier, p.box_bytes);
      cute::SM90_TMA_LOAD_4D::copy(&p.x, barrier, static_cast<uint64_t>(cute::TMA::CacheHintSm90::EVICT_NORMAL), box,
                                   first, p.corner[0] + read[0], p.corner[1] + read[1], number);
    }
    load_filter(p, points, first, data && p.stride == 1, taps);
    __syncthreads();
    cutlass::arch::ClusterBarrier::wait(barrier, 0);
    const auto* const image = reinterpret_cast<const pair*>(box);
    switch (p.filter * 16 + p.stride) {
      case 3 * 16 + 1:
        return compute<3, 1>(p, image, taps, at, number, first);
      case 3 * 16 + 2:
        return compute<3, 2>(p, image, taps, at, number, first);
      case 5 * 16 + 1:
        return compute<5, 1>(p, image, taps, at, number, first);
      case 5 * 16 + 2:
        return compute<5, 2>(p, image, taps, at, number, first);
      case 7 * 16 + 1:
        return compute<7, 1>(p, image, taps, at, number, first);
      case 7 * 16 + 2:
        return compute<7, 2>(p, image, taps, at, number, first);
    }
  }
};

template <class Spec, bool data>
__global__ void __launch_bounds__(kDirectThreads, 3)
    kernelwright_conv_direct(const __grid_constant__ kw_cuda_conv_direct params) {
  extern __shared__ char memory[];
  direct<Spec, data>::run(params, memory);
}

// Depthwise kernels read operands as they are.
struct no_helpers {
  static const void* pack() { return nullptr; }
  static const void* pad() { return nullptr; }
  static const void* fold() { return nullptr; }
  static const void* gather() { return nullptr; }
  static const void* unfold() { return nullptr; }
  static const void* sum() { return nullptr; }
};

constexpr kernel_resources kDirectResources = {sizeof(kernel_resources), KW_CUDA_CONV_DIRECT_BYTES, kDirectThreads, 1};

template <class Spec>
struct depthwise : no_helpers {
  static constexpr kernel_resources resources = kDirectResources;
  static const void* function() { return reinterpret_cast<const void*>(&kernelwright_conv_direct<Spec, false>); }
};

template <class Spec>
struct depthwise_data : no_helpers {
  static constexpr kernel_resources resources = kDirectResources;
  static const void* function() { return reinterpret_cast<const void*>(&kernelwright_conv_direct<Spec, true>); }
};

}  // namespace kernelwright::cuda::conv
