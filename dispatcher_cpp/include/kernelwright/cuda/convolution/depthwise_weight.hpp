// Depthwise backward weight: dw[r, s] of a channel is the sum over outputs of dy times the image point that each meets.
//
// A workgroup sums over boxes of outputs of 64 channels, two for each lane. TMA brings a box of dy and the box of x
// that it meets, one box ahead. A warp takes strips of neighbouring outputs: their gradients stay in registers, a line
// of x is read for each line of the filter. Warps add up in a fixed order, and a second kernel adds the workgroups'
// slices up.
#pragma once

#include <cutlass/arch/barrier.h>

#include <cute/arch/copy_sm90_tma.hpp>

#include "kernelwright/cuda/common/activation.hpp"
#include "kernelwright/cuda/common/resources.hpp"
#include "kernelwright/cuda/convolution/helpers.hpp"

namespace kernelwright::cuda::conv {

template <class Spec>
struct direct_weight {
  using element = typename Spec::element;
  struct alignas(4) pair {
    element x, y;
  };
  static constexpr int strip = KW_CUDA_CONV_STRIP, channels = KW_CUDA_CONV_STEP, lanes = channels / 2;
  static constexpr int threads = 256, warps = threads / 32, stages = 2;
  static constexpr int line = KW_CUDA_CONV_DIRECT_LINE;  // of 64 sums: lines lie in different banks
  static CUTLASS_DEVICE float2 wide(pair two) { return {static_cast<float>(two.x), static_cast<float>(two.y)}; }

  const kw_cuda_conv_direct_weight& p;
  uint64_t* full;
  char* memory;  // of the stages; sums of warps, once all boxes are done
  int first, slice;

  CUTLASS_DEVICE direct_weight(const kw_cuda_conv_direct_weight& params, char* shared) : p(params) {
    const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
    full = reinterpret_cast<uint64_t*>(shared + (128 - address % 128) % 128);
    memory = reinterpret_cast<char*>(full) + 128;
    slice = static_cast<int>(blockIdx.x);
    first = split_off(p.channel_blocks, &slice) * channels;
  }

  CUTLASS_DEVICE int begin() const { return slice * p.of_slice; }
  CUTLASS_DEVICE int end() const { return min(p.boxes, begin() + p.of_slice); }
  CUTLASS_DEVICE char* stage(int box) const {
    return memory + (box - begin()) % stages * static_cast<int>(p.x_bytes + p.dy_bytes);
  }

  struct place {
    int w, h, image;
  };
  CUTLASS_DEVICE place place_of(int box) const {
    const int across = split_off(p.across, &box), down = split_off(p.down, &box);
    return {across * p.strips * strip, down * p.rows, box};
  }

  CUTLASS_DEVICE void load(int box) const {
    const place at = place_of(box);
    uint64_t* const barrier = full + (box - begin()) % stages;
    const auto hint = static_cast<uint64_t>(cute::TMA::CacheHintSm90::EVICT_NORMAL);
    cutlass::arch::ClusterTransactionBarrier::arrive_and_expect_tx(barrier, p.x_bytes + p.dy_bytes);
    cute::SM90_TMA_LOAD_4D::copy(&p.x, barrier, hint, stage(box), first, at.w * p.stride - p.pad[0],
                                 at.h * p.stride - p.pad[1], at.image);
    cute::SM90_TMA_LOAD_4D::copy(&p.dy, barrier, hint, stage(box) + p.x_bytes, first, at.w, at.h, at.image);
  }

  CUTLASS_DEVICE void prepare() const {
    if (threadIdx.x == 0) {
      for (int i = 0; i < stages; ++i) cutlass::arch::ClusterBarrier::init(full + i, 1);
      cutlass::arch::fence_barrier_init();
    }
    __syncthreads();
    wait_for_kernels_before();
    if (threadIdx.x == 0) {
      for (int i = begin(); i < end() && i < begin() + stages; ++i) load(i);
    }
  }

  // Products of a strip of outputs with `count` lines of the filter, the first of which may be another warp's.
  template <int filter, int stride, int count>
  static CUTLASS_DEVICE void add_strip(const pair* x, const pair* dy, int x_width, bool whole,
                                       float2 (&sums)[count * filter]) {
    constexpr int inputs = (strip - 1) * stride + filter;
    float2 gradients[strip];
#pragma unroll
    for (int i = 0; i < strip; ++i) gradients[i] = wide(dy[i * lanes]);
#pragma unroll
    for (int r = 0; r < count; ++r) {
      if (r == 0 && !whole) continue;
      float2 values[inputs];
#pragma unroll
      for (int i = 0; i < inputs; ++i) values[i] = wide(x[(r * x_width + i) * lanes]);
#pragma unroll
      for (int s = 0; s < filter; ++s) {
#pragma unroll
        for (int i = 0; i < strip; ++i) {
          sums[r * filter + s].x = fmaf(values[i * stride + s].x, gradients[i].x, sums[r * filter + s].x);
          sums[r * filter + s].y = fmaf(values[i * stride + s].y, gradients[i].y, sums[r * filter + s].y);
        }
      }
    }
  }

  // `count` lines of the filter from `top` on, in every sharing-th strip from `number` on. All warps come here
  // together, because they meet at barriers.
  template <int filter, int stride, int count>
  CUTLASS_DEVICE void add_boxes(int number, int sharing, int top) const {
    const int lane = threadIdx.x % 32, width = p.strips * strip, x_width = (width - 1) * stride + filter;
    float2 sums[count * filter];
#pragma unroll
    for (int i = 0; i < count * filter; ++i) sums[i] = {0.0f, 0.0f};
#pragma unroll 1
    for (int box = begin(); box < end(); ++box) {
      const place at = place_of(box);
      const auto* const x = reinterpret_cast<const pair*>(stage(box)) + lane;
      const auto* const dy = reinterpret_cast<const pair*>(stage(box) + p.x_bytes) + lane;
      cutlass::arch::ClusterBarrier::wait(full + (box - begin()) % stages, (box - begin()) / stages & 1);
#pragma unroll 1
      for (int i = number; i < p.strips * p.rows; i += sharing) {
        const int row = i / p.strips, column = (i - row * p.strips) * strip;
        if (at.h + row >= p.out[1] || at.w + column >= p.out[0]) continue;
        add_strip<filter, stride, count>(x + ((row * stride + top) * x_width + column * stride) * lanes,
                                         dy + (row * width + column) * lanes, x_width, top == 0, sums);
      }
      cutlass::arch::NamedBarrier::sync(threads, 1);  // all warps have read the stage
      if (threadIdx.x == 0 && box + stages < end()) load(box + stages);
    }
    auto* const own = reinterpret_cast<float*>(memory) + (number * filter + top) * filter * line + 2 * lane;
#pragma unroll
    for (int i = 0; i < count * filter; ++i) {
      if (i >= filter || top == 0) *reinterpret_cast<float2*>(own + i * line) = sums[i];
    }
    cutlass::arch::NamedBarrier::sync(threads, 1);
    store(filter * filter, sharing);
  }

  // What the warps have added up, as [channel][filter point].
  CUTLASS_DEVICE void store(int points, int sharing) const {
    float* const to = p.to + (static_cast<int64_t>(slice) * p.channels + first) * points;
    for (int i = threadIdx.x; i < points * channels; i += threads) {
      const int channel = i / points, point = i - channel * points;
      if (first + channel >= p.channels) break;
      const float* const from = reinterpret_cast<const float*>(memory) + point * line + channel;
      float sum = 0;
      for (int warp = 0; warp < sharing; ++warp) sum += from[warp * points * line];
      to[i] = sum;
    }
  }

  // Two warps share the lines of a 7x7 filter: a lane has no registers for more sums. The second one's lines begin with
  // the last one of the first, which it leaves out.
  template <int filter, int stride>
  CUTLASS_DEVICE void run() const {
    constexpr int sharing = filter < 7 ? 1 : 2, count = filter / sharing + sharing - 1;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    add_boxes<filter, stride, count>(warp / sharing, warps / sharing, warp % sharing * (filter - count));
  }

  CUTLASS_DEVICE void run() const {
    switch (p.filter * 16 + p.stride) {
      case 3 * 16 + 1:
        return run<3, 1>();
      case 3 * 16 + 2:
        return run<3, 2>();
      case 5 * 16 + 1:
        return run<5, 1>();
      case 5 * 16 + 2:
        return run<5, 2>();
      case 7 * 16 + 1:
        return run<7, 1>();
      case 7 * 16 + 2:
        return run<7, 2>();
    }
  }
};

template <class Spec>
__global__ void __launch_bounds__(direct_weight<Spec>::threads, 2)
    kernelwright_conv_direct_weight(const __grid_constant__ kw_cuda_conv_direct_weight params) {
  extern __shared__ char memory[];
  const direct_weight<Spec> here(params, memory);
  here.prepare();
  here.run();
}

template <class Spec>
struct depthwise_weight {
  static constexpr kernel_resources resources = {sizeof(kernel_resources), KW_CUDA_CONV_DIRECT_WEIGHT_BYTES,
                                                 direct_weight<Spec>::threads, direct_weight<Spec>::stages};

  static const void* function() { return reinterpret_cast<const void*>(&kernelwright_conv_direct_weight<Spec>); }
  static const void* pack() { return nullptr; }
  static const void* pad() { return nullptr; }
  static const void* fold() { return nullptr; }
  static const void* gather() { return nullptr; }
  static const void* unfold() { return nullptr; }
  static const void* sum() { return reinterpret_cast<const void*>(&kernelwright_conv_helper_sum<Spec>); }
};

}  // namespace kernelwright::cuda::conv
