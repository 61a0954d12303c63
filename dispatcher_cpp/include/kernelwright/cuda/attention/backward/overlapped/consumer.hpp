// Two groups of four warps: scores transposed, S = K Q^T, so that probabilities and dS are operands in registers.
//
// A step is a tile of queries. Its five products run while the other group, or the group itself, computes
// probabilities; only dQ needs the dS of both groups, which goes through shared memory.
#pragma once

#include "kernelwright/cuda/attention/backward/overlapped/added.hpp"
#include "kernelwright/cuda/attention/backward/overlapped/storage.hpp"
#include "kernelwright/cuda/attention/backward/overlapped/work.hpp"

namespace kernelwright::cuda::attention {

template <class Config>
struct overlapped_consumer {
  using element = typename Config::element;
  using plain = std::conditional_t<cute::is_same_v<element, cutlass::bfloat16_t>, bfloat16, half>;
  using storage = overlapped_storage<Config>;
  static constexpr int M = storage::M, N = storage::N, hdim = storage::hdim;
  static constexpr int query_chunk = M * atom_row_bytes, key_chunk = N * atom_row_bytes;  // 64 columns of a tile
  // dQ^T = K^T dS^T: of 64 columns and all queries, or of all 64 columns and half of the queries.
  static constexpr int dq_queries = hdim == 64 ? M / 2 : M;
  // Probabilities are multiplied while dS is computed, where registers are left for both.
  static constexpr bool early = hdim == 128 && M == 64;
  using scores = from_shared<element, M, major::K, major::K>;
  using gradient = from_registers<element, hdim, major::MN>;
  using added = overlapped_addend<Config>;
  using query_sums = from_shared<element, dq_queries, major::MN, major::K>;

  storage& shared;
  uint32_t k, v, q, d_o, ds;  // shared addresses
  int group, warp, lane;      // of both consumers; of the group; of the warp
  float dk[hdim / 2], dv[hdim / 2];

  CUTLASS_DEVICE explicit overlapped_consumer(storage& memory) : shared(memory) {
    k = shared_address(memory.k), v = shared_address(memory.v), q = shared_address(memory.q);
    d_o = shared_address(memory.d_o), ds = shared_address(memory.ds);
    group = __shfl_sync(~0u, int(threadIdx.x) / 128 - 1, 0);
    warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < hdim / 2; ++i) dk[i] = dv[i] = 0;
  }

  CUTLASS_DEVICE void run(overlapped_params const& p, tile const& t, band const& seen,
                          query_range<M, N> const& queries) {
    barrier::wait(&shared.k_full, 0);
    if (t.index * N + N > t.k.count) clear_tail(t);
    ring at;
    uint32_t parity = 1;
    const float scale = p.all.scale * 1.4426950408889634f;
    query_steps<Config::deterministic> step(queries, p.all.group);
    const int first_key = t.index * N + group * key_rows_of_group + warp * 16 + lane / 4;
    for (int left = step.count(); left > 0; --left, step.next()) {
      const int query = step.tile * M;
      const added more = added::of(p.bias, t, t.head + step.head, query + lane % 4 * 2, first_key);
      float s[M / 2];
      start_scores(s, at);
      one_tile(s, at, t, seen, query, scale, more, parity);
      parity ^= 1;
    }
    cute::warpgroup_wait<0>();
    settle(dk);
    settle(dv);
  }

 private:
  CUTLASS_DEVICE static uint32_t column_step(int i, int chunk) { return i / 4 * chunk + i % 4 * 32; }

  CUTLASS_DEVICE void release(uint64_t& empty) const {
    __syncwarp();
    if (lane == 0) barrier::arrive(&empty);
  }

  // Keys behind the last one are zeros: what stands there in memory belongs to others.
  CUTLASS_DEVICE void clear_tail(tile const& t) const {
    barrier::wait(&shared.v_full, 0);
    const int count = t.k.count - t.index * N;  // 1 or more: there are queries that see keys
    const int chunks = (N - count) * atom_row_bytes / 16;
    for (int c = 0; c < hdim / 64; ++c) {
      const int first = c * key_chunk + count * atom_row_bytes;
      for (int i = threadIdx.x - 128; i < chunks; i += consumer_threads) {
        *reinterpret_cast<uint4*>(shared.k + first + i * 16) = uint4{};
        *reinterpret_cast<uint4*>(shared.v + first + i * 16) = uint4{};
      }
    }
    cutlass::arch::fence_view_async_shared();
    cutlass::arch::NamedBarrier::sync(consumer_threads, 1);
  }

  CUTLASS_DEVICE void start_scores(float (&s)[M / 2], ring const& at) const {
    barrier::wait(&shared.q_full[at.stage], at.round);
    const uint32_t rows = k + group * key_rows_of_group * atom_row_bytes, queries = q + at.stage * storage::query_bytes;
    multiply_shared<scores, hdim / 16>(
        s, [&](int i) { return operand_at(rows + column_step(i, key_chunk)); },
        [&](int i) { return operand_at(queries + column_step(i, query_chunk)); });
  }

  // Products run while the instructions between their start and the wait for them do. Each wait leaves the products in
  // flight that were started last: a number of them.
  CUTLASS_DEVICE void one_tile(float (&s)[M / 2], ring& at, tile const& t, band const& seen, int query, float scale,
                               added const& more, uint32_t parity) {
    const ring now = at;
    const uint32_t of_q = q + now.stage * storage::query_bytes, of_d_o = d_o + now.stage * storage::query_bytes;
    const uint32_t of_ds = ds + now.stage * storage::score_bytes;
    float dp[M / 2];
    barrier::wait(&shared.v_full, 0);
    barrier::wait(&shared.d_o_full[now.stage], now.round);
    const uint32_t rows = v + group * key_rows_of_group * atom_row_bytes;
    multiply_shared<scores, hdim / 16>(
        dp, [&](int i) { return operand_at(rows + column_step(i, key_chunk)); },
        [&](int i) { return operand_at(of_d_o + column_step(i, query_chunk)); });
    cute::warpgroup_wait<1>();
    settle(s);
    apply_mask(s, t, seen, query);
    recompute_probabilities(s, shared.lse[now.stage], scale, more);
    uint32_t ps[M / 4], dss[M / 4];
    const auto start_values = [&] {
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < M / 4; ++i) ps[i] = pair_of<plain>(s[2 * i], s[2 * i + 1]);
      add_product<gradient, M / 16>(dv, ps,
                                    [&](int i) { return operand_at(of_d_o + i * 2 * atom_bytes, query_chunk); });
    };
    if constexpr (early) start_values();
    cute::warpgroup_wait<early ? 1 : 0>();
    settle(dp);
    score_gradients(dss, s, dp, shared.d[now.stage]);
    store_scores(of_ds, dss);
    if constexpr (!early) start_values();
    cutlass::arch::fence_view_async_shared();
    cutlass::arch::NamedBarrier::sync(consumer_threads, 1);

    float dq[dq_queries / 2];
    const uint32_t columns = k + (hdim == 64 ? 0 : group * key_chunk);
    const uint32_t part = of_ds + (hdim == 64 ? group * dq_queries * atom_row_bytes : 0);
    multiply_shared<query_sums, N / 16>(
        dq, [&](int i) { return operand_at(columns + i * 2 * atom_bytes); },
        [&](int i) { return operand_at(part + column_step(i, query_chunk)); });
    add_product<gradient, M / 16>(dk, dss, [&](int i) { return operand_at(of_q + i * 2 * atom_bytes, query_chunk); });
    at.next();
    cute::warpgroup_wait<1>();
    settle(dq);
    release(shared.d_o_empty[now.stage]);
    leave_sums(dq, parity);
    cute::warpgroup_wait<0>();
    release(shared.q_empty[now.stage]);
  }

  // Scores of what no query may see become -inf, where the tile has such.
  CUTLASS_DEVICE void apply_mask(float (&s)[M / 2], tile const& t, band const& seen, int query) const {
    const int key = t.index * N + group * key_rows_of_group;
    const bool whole = query + seen.right >= key + key_rows_of_group - 1 &&
                       query + M - 1 + seen.right - key <= seen.left && key + key_rows_of_group <= t.k.count;
    if (whole) return;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < M / 2; ++i) {
      const int mine = key + warp * 16 + lane / 4 + i / 2 % 2 * 8, other = query + i / 4 * 8 + lane % 4 * 2 + i % 2;
      const int past = other + seen.right - mine;  // 0 to left: the key is in the query's window
      if (past < 0 || past > seen.left || mine >= t.k.count) s[i] = -infinity;
    }
  }

  CUTLASS_DEVICE void recompute_probabilities(float (&s)[M / 2], const float* lse, float scale,
                                              added const& more) const {
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < M / 8; ++i) {
      const float2 two = *reinterpret_cast<const float2*>(lse + i * 8 + lane % 4 * 2);
      CUTLASS_PRAGMA_UNROLL
      for (int e = 0; e < 4; ++e) {
        float score = s[4 * i + e] * scale;
        if constexpr (Config::bias != addend::none) score += more(i * 8 + e % 2, e / 2 * 8);
        s[4 * i + e] = power_of_two(score - (e % 2 ? two.y : two.x));
      }
    }
  }

  // dS = P (dP - D), without the scale.
  CUTLASS_DEVICE void score_gradients(uint32_t (&ds)[M / 4], const float (&p)[M / 2], const float (&dp)[M / 2],
                                      const float* d) const {
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < M / 8; ++i) {
      const float2 two = *reinterpret_cast<const float2*>(d + i * 8 + lane % 4 * 2);
      ds[2 * i] = pair_of<plain>(p[4 * i] * (dp[4 * i] - two.x), p[4 * i + 1] * (dp[4 * i + 1] - two.y));
      ds[2 * i + 1] = pair_of<plain>(p[4 * i + 2] * (dp[4 * i + 2] - two.x), p[4 * i + 3] * (dp[4 * i + 3] - two.y));
    }
  }

  // dS^T as rows of queries, 64 keys of this group each.
  CUTLASS_DEVICE void store_scores(uint32_t to, const uint32_t (&values)[M / 4]) const {
    const int row = lane / 16 * 8 + lane % 8, chunk = warp * 2 + lane / 8 % 2;
    const uint32_t at = to + group * query_chunk + row * atom_row_bytes + ((chunk ^ (lane % 8)) * 16);
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < M / 16; ++i) {
      store_transposed(at + i * 2 * atom_bytes, values[4 * i], values[4 * i + 1], values[4 * i + 2], values[4 * i + 3]);
    }
  }

  CUTLASS_DEVICE void leave_sums(const float (&dq)[dq_queries / 2], uint32_t parity) const {
    barrier::wait(&shared.sums_empty[group], parity);
    auto* const to = reinterpret_cast<float4*>(shared.sums[group]) + threadIdx.x % 128;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < dq_queries / 8; ++i) {
      to[i * 128] = float4{dq[4 * i], dq[4 * i + 1], dq[4 * i + 2], dq[4 * i + 3]};
    }
    cutlass::arch::fence_view_async_shared();
    release(shared.sums_full[group]);
  }
};

}  // namespace kernelwright::cuda::attention
