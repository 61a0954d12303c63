// D, the row sums of dO * O: 16 bytes of a row for each lane.
#pragma once

#include "kernelwright/cuda/attention/mma.hpp"
#include "kernelwright/cuda/attention/rows.hpp"

namespace kernelwright::cuda::attention {

struct dot_params {
  const void *o, *d_o;
  float* d;
  rows_of_queries rows;
  strides of_o, of_d_o;
  int32_t hdim;
  float factor;
};

// Config: element, hdim.
template <class Config>
struct dot {
  using element = typename Config::element;
  static constexpr int threads = 128, lanes = Config::hdim / 8, rounds = 4;  // a lane takes 8 elements of a row
  static constexpr int rows_of_round = threads / lanes, rows_of_block = rounds * rows_of_round;

  __device__ static void run(dot_params const& p) {
    const int64_t first = blockIdx.x * int64_t(rows_of_block) + threadIdx.x / lanes;
    const int column = threadIdx.x % lanes * 8;
    uint4 o[rounds] = {}, d_o[rounds] = {};
#pragma unroll
    for (int i = 0; i < rounds; ++i) {
      const int64_t row = first + i * rows_of_round;
      if (row >= p.rows.count || column >= p.hdim) continue;
      o[i] = eight(p.o, p.rows.offset(row, p.of_o) + column);
      d_o[i] = eight(p.d_o, p.rows.offset(row, p.of_d_o) + column);
    }
#pragma unroll
    for (int i = 0; i < rounds; ++i) {
      const int64_t row = first + i * rows_of_round;
      float sum = product(o[i].x, d_o[i].x) + product(o[i].y, d_o[i].y);
      sum += product(o[i].z, d_o[i].z) + product(o[i].w, d_o[i].w);
      for (int other = lanes / 2; other > 0; other /= 2) sum += __shfl_xor_sync(~0u, sum, other);
      if (threadIdx.x % lanes == 0 && row < p.rows.count) p.d[row] = sum * p.factor;
    }
  }

 private:
  __device__ static uint4 eight(const void* from, int64_t at) {
    return *reinterpret_cast<const uint4*>(static_cast<const element*>(from) + at);
  }
  __device__ static float product(uint32_t left, uint32_t right) {
    const auto* const a = reinterpret_cast<const element*>(&left);
    const auto* const b = reinterpret_cast<const element*>(&right);
    return float(a[0]) * float(b[0]) + float(a[1]) * float(b[1]);
  }
};

template <class Config>
__global__ void __launch_bounds__(dot<Config>::threads) dot_kernel(const __grid_constant__ dot_params p) {
  dot<Config>::run(p);
}

}  // namespace kernelwright::cuda::attention
