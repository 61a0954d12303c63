// O and LSE from the splits that a split-KV kernel left: a workgroup for each row, whose warps share the splits.
#pragma once

#include <cfloat>

#include "kernelwright/cuda/attention/early.hpp"
#include "kernelwright/cuda/attention/mma.hpp"
#include "kernelwright/cuda/attention/rows.hpp"

namespace kernelwright::cuda::attention {

struct combine_params {
  const float *o_splits, *lse_splits;
  void* o;
  float* lse;
  rows_of_queries rows;
  strides of_o;
  int32_t splits, hdim;  // the head dimension: a multiple of 8, at most that of the kernel
};

// Config: element, hdim.
template <class Config>
struct combine {
  using element = typename Config::element;
  static constexpr int hdim = Config::hdim, warps = 8, threads = 32 * warps;
  static constexpr int width = hdim / 32, vector = width < 4 ? width : 4;  // elements of a lane, and of one load of it
  static constexpr int ahead = 4;                                          // splits that a warp reads at once

  struct alignas(4 * vector) values {
    float x[vector];
  };

  // What is known of a row after some splits: the weight of one is e^(lse - highest).
  struct state {
    float sums[width] = {}, highest = -infinity, total = 0;

    __device__ void scale_to(float top) {
      const float factor = __expf(highest - fmaxf(top, -FLT_MAX));
      highest = top, total *= factor;
#pragma unroll
      for (float& sum : sums) sum *= factor;
    }
  };

  __device__ static void run(combine_params const& p) {
    __shared__ float sums[warps][hdim], highs[warps], totals[warps];
    wait_for_kernel_before();
    const int64_t row = blockIdx.x;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    state mine;
    for (int first = warp; first < p.splits; first += warps * ahead) add(p, row, first, lane, mine);
    if (lane == 0) highs[warp] = mine.highest, totals[warp] = mine.total;
#pragma unroll
    for (int i = 0; i < width; ++i) sums[warp][place(i, lane)] = mine.sums[i];
    __syncthreads();
    float top = -infinity, total = 0, weights[warps];
#pragma unroll
    for (float high : highs) top = fmaxf(top, high);
    const float subtracted = fmaxf(top, -FLT_MAX);
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      weights[w] = __expf(highs[w] - subtracted);
      total += weights[w] * totals[w];
    }
    const float factor = total > 0 ? 1 / total : 0;
    auto* const to = static_cast<element*>(p.o) + p.rows.offset(row, p.of_o);
    for (int at = threadIdx.x; at < p.hdim; at += threads) {
      float sum = 0;
#pragma unroll
      for (int w = 0; w < warps; ++w) sum += weights[w] * sums[w][at];
      to[at] = rounded<element>(sum * factor);
    }
    if (p.lse && threadIdx.x == 0) p.lse[row] = total > 0 ? subtracted + __logf(total) : -infinity;
  }

 private:
  // Which element of a row is the i-th of a lane.
  __device__ static int place(int i, int lane) { return i / vector * 32 * vector + lane * vector + i % vector; }

  __device__ static void load(values& to, const float* from) {
    if constexpr (sizeof to == 16)
      load_16_bytes(to, from);
    else
      to = *reinterpret_cast<const values*>(from);
  }

  // The splits first, first + warps, ...: all of them are on their way before one is used.
  __device__ static void add(combine_params const& p, int64_t row, int first, int lane, state& mine) {
    float lse[ahead];
    values o[ahead][width / vector] = {};
    float top = mine.highest;
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const int split = first + i * warps;
      lse[i] = -infinity;
      if (split >= p.splits) continue;
      const int64_t at = split * p.rows.count + row;
      lse[i] = p.lse_splits[at];
#pragma unroll
      for (int j = 0; j < width / vector; ++j) {
        const int column = place(j * vector, lane);
        if (column < p.hdim) load(o[i][j], p.o_splits + at * p.hdim + column);
      }
    }
#pragma unroll
    for (float one : lse) top = fmaxf(top, one);
    mine.scale_to(top);
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const float weight = __expf(lse[i] - fmaxf(top, -FLT_MAX));
      mine.total += weight;
      // The sums of a split that saw nothing need not be there.
#pragma unroll
      for (int j = 0; j < width; ++j) mine.sums[j] += weight > 0 ? weight * o[i][j / vector].x[j % vector] : 0;
    }
  }
};

template <class Config>
__global__ void __launch_bounds__(combine<Config>::threads) combine_kernel(const __grid_constant__ combine_params p) {
  combine<Config>::run(p);
}

}  // namespace kernelwright::cuda::attention
