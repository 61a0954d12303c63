// dQ, dK and dV by wgmma and TMA: one pass over the scores.
#pragma once

#include "kernelwright/cuda/attention/backward/overlapped/consumer.hpp"
#include "kernelwright/cuda/attention/backward/overlapped/producer.hpp"

namespace kernelwright::cuda::attention {

// Config: element, hdim, tile_m, deterministic.
template <class Config>
struct overlapped {
  using element = typename Config::element;
  using storage = overlapped_storage<Config>;
  using consumer = overlapped_consumer<Config>;
  static constexpr int M = storage::M, N = storage::N, hdim = Config::hdim, threads = 128 + consumer_threads;
  static constexpr int shared_bytes = sizeof(storage);

  CUTLASS_DEVICE static void run(overlapped_params const& p, char* memory) {
    auto& shared = *reinterpret_cast<storage*>(memory);
    const tile t = tile_of_block(p, blockIdx.x);
    const int rows = rows_of_keys(p.all, t);
    if (t.index * N >= rows) return;
    const band seen = band::of(p.all.visible, t);
    const auto queries = query_range<M, N>::of(t, seen);
    if (threadIdx.x == 0) shared.initialise();
    __syncthreads();
    if (threadIdx.x < 128) {
      cutlass::arch::warpgroup_reg_dealloc<24>();
      if (queries.tiles > 0) overlapped_producer<Config>::run(p, shared, t, seen, queries);
    } else {
      cutlass::arch::warpgroup_reg_alloc<240>();
      consumer mine(shared);
      if (queries.tiles > 0) mine.run(p, t, seen, queries);
      store(p.all.dk, p.all.of_dk, t, mine, rows, mine.dk, p.all.scale);
      store(p.all.dv, p.all.of_dv, t, mine, rows, mine.dv, 1.0f);
    }
  }

 private:
  CUTLASS_DEVICE static void store(void* to, strides const& by, tile const& t, consumer const& mine, int count,
                                   const float (&values)[hdim / 2], float scale) {
    using plain = std::conditional_t<cute::is_same_v<element, cutlass::bfloat16_t>, bfloat16, half>;
    auto* const base = static_cast<element*>(to) + t.request * by.request + t.kv_head * by.head + t.k.start * by.row;
    CUTLASS_PRAGMA_UNROLL
    for (int j = 0; j < 2; ++j) {
      const int row = t.index * N + mine.group * key_rows_of_group + mine.warp * 16 + mine.lane / 4 + 8 * j;
      if (row >= count) continue;
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < hdim / 8; ++i) {
        *reinterpret_cast<uint32_t*>(base + row * by.row + i * 8 + mine.lane % 4 * 2) =
            pair_of<plain>(values[4 * i + 2 * j] * scale, values[4 * i + 2 * j + 1] * scale);
      }
    }
  }
};

template <class Config>
__global__ void __launch_bounds__(overlapped<Config>::threads, 1)
    overlapped_kernel(const __grid_constant__ overlapped_params p) {
  extern __shared__ __align__(1024) char memory[];
  overlapped<Config>::run(p, memory);
}

}  // namespace kernelwright::cuda::attention
