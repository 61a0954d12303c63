// How a forward problem is cut: units of requests and heads of K and V, blocks of rows, blocks of keys, splits.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_PART_PLAN_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_PART_PLAN_HPP

#include "launchers/cpu/attention/request.hpp"
#include "launchers/cpu/common/room.hpp"
#include "launchers/cpu/common/threads.hpp"

namespace kernelwright::cpu {

// Packed K and V that are kept at a time: a share of a third-level cache.
constexpr int64_t kPackedBytes = 12 << 20;
// Splits begin at multiples of so many keys.
constexpr int64_t kSplitKeys = 64;

// Offsets of what a thread has for itself, in bytes.
struct part_memory {
  uint64_t q_rows, q, scores, partial, fresh, arrays, packed, gathered, bytes;
};

struct part_plan {
  kw_attention_problem problem;
  uint32_t threads;
  bool shared;                   // are K and V packed once for all blocks of rows?
  int64_t units, blocks;         // requests times heads of K and V; most blocks of rows of a unit
  int64_t key_blocks;            // most of a unit
  int64_t chunk;                 // units that are packed at a time
  int64_t k_units, block_units;  // of packed K, and of packed K and V, of a block of keys
  part_memory own;
  uint64_t private_offset, workspace_bytes;
};

// Packed units of a block of keys.
inline int64_t packed_k_units(const attention_kernel& k, int64_t hdim_q) {
  return divide_up(k.traits.tile_n0, k.mr) * panel_units(k.mr, divide_up(hdim_q, k.depth));
}
inline int64_t packed_v_units(const attention_kernel& k, int64_t hdim_v) {
  return divide_up(hdim_v, k.mr) * panel_units(k.mr, divide_up(k.traits.tile_n0, k.depth));
}

constexpr uint64_t kArrayBytes = 3 * sizeof(void*) + sizeof(dropout_row) + 6 * sizeof(float);

inline part_memory make_part_memory(const attention_kernel& k, const part_plan& plan) {
  const kw_attention_problem& p = plan.problem;
  const int64_t m0 = k.traits.tile_m0, n0 = k.traits.tile_n0;
  const int64_t steps = divide_up(p.hdim_q, k.depth), wide_v = round_up(p.hdim_v, kSpareUnits);
  part_memory m = {};
  const auto take = [&m](int64_t bytes) {
    const uint64_t at = m.bytes;
    m.bytes = behind(at, room(bytes, 1));
    return at;
  };
  m.q_rows = take(m0 * p.hdim_q * k.staged_bytes);
  m.q = take(4 * larger(m0 / k.nr * panel_units(k.nr, steps), kFewRows * round_up(p.hdim_q, kSpareUnits)));
  m.scores = take(8 * larger(k.nr, kFewRows) * round_up(n0, kSpareUnits));
  m.partial = take(4 * larger(m0 * round_up(p.hdim_v, k.mr), kFewRows * wide_v));
  m.fresh = take(4 * kFewRows * wide_v);
  m.arrays = take(m0 * static_cast<int64_t>(kArrayBytes));
  if (!plan.shared) m.packed = take(4 * plan.block_units);
  if (p.page_table != KW_PAGES_NONE || k.widen_rows != nullptr)
    m.gathered = take(n0 * (p.hdim_q + p.hdim_v) * k.staged_bytes);
  return m;
}

inline part_plan make_part_plan(const attention_kernel& k, const kw_attention_problem& p, uint32_t threads) {
  part_plan plan = {};
  plan.problem = p;
  plan.units = kw_mul(p.batch, p.heads_kv);
  plan.key_blocks = divide_up(p.max_seqlen_k, k.traits.tile_n0);
  const int64_t group = p.heads_q / p.heads_kv;
  plan.blocks = kw_mul(group, divide_up(p.max_seqlen_q, k.traits.tile_m0));
  plan.k_units = packed_k_units(k, p.hdim_q);
  plan.block_units = plan.k_units + packed_v_units(k, p.hdim_v);
  plan.shared = p.num_splits <= 1 && kw_mul(group, p.max_seqlen_q) > k.traits.tile_m0;
  plan.chunk = plan.units;
  const int64_t tasks = kw_mul3(plan.units, plan.blocks, larger(p.num_splits, 1));
  const double work = static_cast<double>(tasks) * static_cast<double>(p.max_seqlen_k * (p.hdim_q + p.hdim_v)) *
                      static_cast<double>(smaller(k.traits.tile_m0, kw_mul(p.max_seqlen_q, group)));
  plan.threads =
      static_cast<uint32_t>(larger(1, smaller(threads_for(work / kMultiplicationsPerThread, threads), tasks)));
  if (plan.shared) {
    const int64_t unit_bytes = kw_mul3(larger(1, plan.key_blocks), plan.block_units, 4);
    const int64_t busy = divide_up(kTasksPerThread * plan.threads, larger(1, plan.blocks));
    plan.chunk = larger(1, smaller(plan.units, larger(kPackedBytes / unit_bytes, busy)));
    plan.private_offset = room(plan.chunk, unit_bytes);
  }
  plan.own = make_part_memory(k, plan);
  plan.workspace_bytes = behind_all(plan.private_offset, plan.threads, plan.own.bytes);
  return plan;
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_PART_PLAN_HPP
