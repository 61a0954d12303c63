// O and LSE from the splits that a split-KV kernel left: a warp for each row.
#pragma once

#include <cfloat>

#include "kernelwright/cuda/attention/mma.hpp"
#include "kernelwright/cuda/attention/rows.hpp"

namespace kernelwright::cuda::attention {

struct combine_params {
  const float *o_splits, *lse_splits;
  void* o;
  float* lse;
  rows_of_queries rows;
  strides of_o;
  int32_t splits;
};

// Config: element, hdim.
template <class Config>
struct combine {
  using element = typename Config::element;
  static constexpr int hdim = Config::hdim, threads = 128;
  static constexpr int width = hdim / 32;  // elements of a lane

  __device__ static void run(combine_params const& p) {
    const int64_t row = blockIdx.x * int64_t(threads / 32) + threadIdx.x / 32;
    if (row >= p.rows.count) return;
    const int lane = threadIdx.x % 32;
    float highest = -infinity;
    for (int split = lane; split < p.splits; split += 32) {
      highest = fmaxf(highest, p.lse_splits[split * p.rows.count + row]);
    }
    for (int other = 16; other > 0; other /= 2) highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, other));
    const float subtracted = fmaxf(highest, -FLT_MAX);
    float sums[width] = {}, total = 0;
    for (int split = 0; split < p.splits; ++split) {
      const int64_t at = split * p.rows.count + row;
      const float weight = __expf(p.lse_splits[at] - subtracted);
      if (weight == 0) continue;  // its sums need not be there
      total += weight;
#pragma unroll
      for (int i = 0; i < width; ++i) sums[i] += weight * p.o_splits[at * hdim + i * 32 + lane];
    }
    const float factor = total > 0 ? 1 / total : 0;
    auto* const to = static_cast<element*>(p.o) + p.rows.offset(row, p.of_o);
#pragma unroll
    for (int i = 0; i < width; ++i) to[i * 32 + lane] = rounded<element>(sums[i] * factor);
    if (p.lse && lane == 0) p.lse[row] = total > 0 ? subtracted + __logf(total) : -infinity;
  }
};

template <class Config>
__global__ void __launch_bounds__(combine<Config>::threads) combine_kernel(const __grid_constant__ combine_params p) {
  combine<Config>::run(p);
}

}  // namespace kernelwright::cuda::attention
