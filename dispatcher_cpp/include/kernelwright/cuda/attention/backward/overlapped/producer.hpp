// The four warps that feed the consumers and take their dQ away.
#pragma once

#include "kernelwright/cuda/attention/backward/overlapped/storage.hpp"
#include "kernelwright/cuda/attention/backward/overlapped/work.hpp"

namespace kernelwright::cuda::attention {

template <class Config>
struct overlapped_producer {
  using storage = overlapped_storage<Config>;
  static constexpr int M = storage::M, N = storage::N, hdim = storage::hdim;
  using range = query_range<M, N>;
  using steps = query_steps<Config::deterministic>;

  CUTLASS_DEVICE static void run(overlapped_params const& p, storage& shared, tile const& t, band const& seen,
                                 range const& queries) {
    const int warp = threadIdx.x / 32;
    if (warp == 0) {
      if (cute::elect_one_sync()) copy_operands(p, shared, t, queries);
    } else if (warp == 1) {
      copy_numbers(p, shared, t, queries);
    } else if (cute::elect_one_sync()) {
      add_sums(p, shared, t, seen, queries, warp - 2);
    }
  }

 private:
  // One thread: K and V, and Q and dO of each step, in the order in which they are read.
  CUTLASS_DEVICE static void copy_operands(overlapped_params const& p, storage& shared, tile const& t,
                                           range const& queries) {
    const bool group = p.all.cu_seqlens_q != nullptr;
    const int key = (group ? t.k.start : 0) + t.index * N, request = group ? 0 : t.request;
    barrier::arrive_and_expect_tx(&shared.k_full, storage::key_bytes);
    copy_rows<hdim, N>(p.k, shared.k_full, shared.k, key, t.kv_head, request, 0);
    const int before = group ? int(edge) - t.q.count : 0, d = group ? t.q.start + t.q.count : t.request;
    const int c = group ? int(edge) : 0;
    ring at;
    steps step(queries, p.all.group);
    const int count = step.count();
    for (int i = 0; i < count; ++i, step.next(), at.next()) {
      const int row = before + step.tile * M, head = t.head + step.head;
      barrier::wait(&shared.q_empty[at.stage], at.round ^ 1);
      barrier::arrive_and_expect_tx(&shared.q_full[at.stage], storage::query_bytes);
      copy_rows<hdim, M>(p.q, shared.q_full[at.stage], shared.q[at.stage], row, head, d, c);
      if (i == 0) {
        barrier::arrive_and_expect_tx(&shared.v_full, storage::key_bytes);
        copy_rows<hdim, N>(p.v, shared.v_full, shared.v, key, t.kv_head, request, 0);
      }
      barrier::wait(&shared.d_o_empty[at.stage], at.round ^ 1);
      barrier::arrive_and_expect_tx(&shared.d_o_full[at.stage], storage::query_bytes);
      copy_rows<hdim, M>(p.d_o, shared.d_o_full[at.stage], shared.d_o[at.stage], row, head, d, c);
    }
  }

  // One warp: LSE, for scores that are powers of two, and D; rows that do not exist have probability 0.
  CUTLASS_DEVICE static void copy_numbers(overlapped_params const& p, storage& shared, tile const& t,
                                          range const& queries) {
    constexpr int each = (M + 31) / 32;
    const int lane = threadIdx.x % 32;
    const int64_t of_request = p.all.cu_seqlens_q ? 0 : t.request * int64_t(p.all.heads) * p.all.rows_per_head;
    ring at;
    steps step(queries, p.all.group);
    for (int left = step.count(); left > 0; --left, step.next(), at.next()) {
      const int64_t row = of_request + (t.head + step.head) * p.all.rows_per_head + t.q.start;
      float lse[each], d[each];
      CUTLASS_PRAGMA_UNROLL
      for (int j = 0; j < each; ++j) {
        const int query = step.tile * M + j * 32 + lane;
        const bool exists = query < t.q.count;
        const float found = exists ? p.all.lse[row + query] : -infinity;
        lse[j] = found == -infinity ? infinity : found * 1.4426950408889634f;
        d[j] = exists ? p.all.d[row + query] : 0;
      }
      barrier::wait(&shared.q_empty[at.stage], at.round ^ 1);
      CUTLASS_PRAGMA_UNROLL
      for (int j = 0; j < each; ++j) {
        if (j * 32 + lane < M) shared.lse[at.stage][j * 32 + lane] = lse[j];
      }
      barrier::arrive(&shared.q_full[at.stage]);
      barrier::wait(&shared.d_o_empty[at.stage], at.round ^ 1);
      CUTLASS_PRAGMA_UNROLL
      for (int j = 0; j < each; ++j) {
        if (j * 32 + lane < M) shared.d[at.stage][j * 32 + lane] = d[j];
      }
      barrier::arrive(&shared.d_o_full[at.stage]);
    }
  }

  // One thread for each consumer: adds what it leaves of dQ to memory. Deterministic: when it is its turn.
  CUTLASS_DEVICE static void add_sums(overlapped_params const& p, storage& shared, tile const& t, band const& seen,
                                      range const& queries, int consumer) {
    const uint32_t from = shared_address(shared.sums[consumer]);
    uint32_t parity = 0;
    steps step(queries, p.all.group);
    for (int left = step.count(); left > 0; --left, step.next(), parity ^= 1) {
      const int64_t tile = first_tile_of_sums<M>(p, t.request, t.head + step.head, t.q.start) + step.tile;
      const int64_t at = tile * consumers + consumer;
      barrier::wait(&shared.sums_full[consumer], parity);
      const int turn = t.index - range::first_key_tile(seen, step.tile);
      if constexpr (Config::deterministic) wait_for_turn(p.turns + at, turn);
      add_to_memory(p.sums + at * storage::sum_floats, from, storage::sum_floats * 4);
      wait_until_read();
      barrier::arrive(&shared.sums_empty[consumer]);
      if constexpr (Config::deterministic) {
        wait_until_added();
        end_turn(p.turns + at);
      }
    }
  }

  CUTLASS_DEVICE static void wait_for_turn(const int32_t* turn, int mine) {
    int now;
    do {
      asm volatile("ld.acquire.gpu.global.s32 %0, [%1];\n" : "=r"(now) : "l"(turn) : "memory");
    } while (now != mine);
    asm volatile("fence.proxy.async.global;\n" ::: "memory");
  }
  CUTLASS_DEVICE static void end_turn(int32_t* turn) {
    asm volatile("fence.proxy.async.global;\nred.release.gpu.global.add.s32 [%0], 1;\n" ::"l"(turn) : "memory");
  }
};

}  // namespace kernelwright::cuda::attention
