// Shared memory of a workgroup, and the order in which its warps fill and empty it.
#pragma once

#include "kernelwright/cuda/attention/backward/overlapped/copies.hpp"
#include "kernelwright/cuda/attention/backward/overlapped/products.hpp"

namespace kernelwright::cuda::attention {

constexpr int key_rows_of_group = 64, consumers = 2, consumer_threads = 256, consumer_warps = 8;

// M queries and 128 keys. A consumer owns 64 keys: their dK and dV, and their scores.
template <class Config>
struct overlapped_storage {
  static constexpr int M = Config::tile_m, N = consumers * key_rows_of_group, hdim = Config::hdim, stages = 2;
  static constexpr int query_bytes = M * hdim * 2, key_bytes = N * hdim * 2, score_bytes = M * N * 2;
  static constexpr int sum_floats = M * hdim / consumers;  // of dQ, what one consumer adds

  alignas(1024) char k[key_bytes];
  alignas(1024) char v[key_bytes];
  alignas(1024) char q[stages][query_bytes];
  alignas(1024) char d_o[stages][query_bytes];
  alignas(1024) char ds[stages][score_bytes];
  alignas(1024) float sums[consumers][sum_floats];
  alignas(16) float lse[stages][M];
  alignas(16) float d[stages][M];
  alignas(8) uint64_t k_full, v_full, q_full[stages], q_empty[stages], d_o_full[stages], d_o_empty[stages];
  uint64_t sums_full[consumers], sums_empty[consumers];

  CUTLASS_DEVICE void initialise() {
    barrier::init(&k_full, 1), barrier::init(&v_full, 1);
    for (int i = 0; i < stages; ++i) {
      barrier::init(&q_full[i], 1 + 32), barrier::init(&d_o_full[i], 1 + 32);  // one thread's copies, a warp's numbers
      barrier::init(&q_empty[i], consumer_warps), barrier::init(&d_o_empty[i], consumer_warps);
    }
    for (int i = 0; i < consumers; ++i) {
      barrier::init(&sums_full[i], consumer_warps / consumers);
      barrier::init(&sums_empty[i], 1);
    }
    cutlass::arch::fence_barrier_init();
  }
};

// A ring of stages: which one is next, and in which round.
struct ring {
  int stage = 0;
  uint32_t round = 0;  // parity
  CUTLASS_DEVICE void next() {
    stage ^= 1;
    round ^= stage == 0;
  }
};

}  // namespace kernelwright::cuda::attention
