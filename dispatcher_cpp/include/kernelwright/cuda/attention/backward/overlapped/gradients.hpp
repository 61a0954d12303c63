// dQ, dK and dV by wgmma and TMA: one pass over the scores.
#pragma once

#include "kernelwright/cuda/attention/backward/overlapped/consumer.hpp"
#include "kernelwright/cuda/attention/backward/overlapped/producer.hpp"

namespace kernelwright::cuda::attention {

// Config: element, hdim, tile_m, deterministic, bias.
template <class Config>
struct overlapped {
  using element = typename Config::element;
  using storage = overlapped_storage<Config>;
  using consumer = overlapped_consumer<Config>;
  using plain = typename consumer::plain;
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
      store(p.all.dv, p.all.of_dv, t, mine, rows, p.all.hdim_v, mine.dv, 1.0f);
      store(p.all.dk, p.all.of_dk, t, mine, rows, p.all.hdim_q, mine.dk, p.all.scale);
    }
  }

 private:
  // A warp stores 16 rows of 64 to 128 columns: through its part of V, whose rows only its group reads, so that threads
  // write 16 bytes side by side.
  CUTLASS_DEVICE static void store(void* to, strides const& by, tile const& t, consumer const& mine, int count,
                                   int columns, const float (&values)[hdim / 2], float scale) {
    constexpr int pieces = hdim / 8;  // 16 bytes of a row
    const int first = mine.group * key_rows_of_group + mine.warp * 16;
    const auto place = [&](int row, int piece) {
      return mine.v + piece / 8 * consumer::key_chunk + (first + row) * atom_row_bytes + (piece % 8 ^ row % 8) * 16;
    };
    const int lane = mine.lane;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < hdim / 16; ++i) {
      uint32_t four[4];
      CUTLASS_PRAGMA_UNROLL
      for (int j = 0; j < 4; ++j) {
        four[j] = pair_of<plain>(values[8 * i + 2 * j] * scale, values[8 * i + 2 * j + 1] * scale);
      }
      store_matrices(place(lane / 8 % 2 * 8 + lane % 8, 2 * i + lane / 16), four[0], four[1], four[2], four[3]);
    }
    __syncwarp();
    auto* const base = static_cast<element*>(to) + t.request * by.request + t.kv_head * by.head + t.k.start * by.row;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < 16 * pieces / 32; ++i) {
      const int row = (i * 32 + lane) / pieces, piece = (i * 32 + lane) % pieces, key = t.index * N + first + row;
      const uint4 eight = *reinterpret_cast<const uint4*>(__cvta_shared_to_generic(place(row, piece)));
      if (key < count && piece * 8 < columns) *reinterpret_cast<uint4*>(base + key * by.row + piece * 8) = eight;
    }
    __syncwarp();
  }
};

template <class Config>
__global__ void __launch_bounds__(overlapped<Config>::threads, 1)
    overlapped_kernel(const __grid_constant__ overlapped_params p) {
  extern __shared__ __align__(1024) char memory[];
  overlapped<Config>::run(p, memory);
}

}  // namespace kernelwright::cuda::attention
