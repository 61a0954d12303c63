// D, the row sums of dO * O: a warp for each row.
#pragma once

#include "kernelwright/cuda/attention/mma.hpp"
#include "kernelwright/cuda/attention/rows.hpp"

namespace kernelwright::cuda::attention {

struct dot_params {
  const void *o, *d_o;
  float* d;
  rows_of_queries rows;
  strides of_o, of_d_o;
  float factor;
};

// Config: element, hdim.
template <class Config>
struct dot {
  using element = typename Config::element;
  static constexpr int threads = 128, width = Config::hdim / 32;

  __device__ static void run(dot_params const& p) {
    const int64_t row = blockIdx.x * int64_t(threads / 32) + threadIdx.x / 32;
    if (row >= p.rows.count) return;
    const int lane = threadIdx.x % 32;
    const auto* const o = static_cast<const element*>(p.o) + p.rows.offset(row, p.of_o);
    const auto* const d_o = static_cast<const element*>(p.d_o) + p.rows.offset(row, p.of_d_o);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < width; ++i) sum += float(o[i * 32 + lane]) * float(d_o[i * 32 + lane]);
    for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(~0u, sum, other);
    if (lane == 0) p.d[row] = sum * p.factor;
  }
};

template <class Config>
__global__ void __launch_bounds__(dot<Config>::threads) dot_kernel(const __grid_constant__ dot_params p) {
  dot<Config>::run(p);
}

}  // namespace kernelwright::cuda::attention
