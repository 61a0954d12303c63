// How a backward problem is cut: units of requests and heads of K and V, panels of rows, blocks of keys.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_GRADIENT_PLAN_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_GRADIENT_PLAN_HPP

#include "launchers/cpu/attention/part_plan.hpp"

namespace kernelwright::cpu {

// Panels of rows that a task of dQ alone computes: K and V are packed once for them.
constexpr int64_t kPanelsPerTask = 4;

// Offsets of what a thread has for itself, in bytes.
struct gradient_memory {
  uint64_t q_rows, do_rows, q, d_o, q_columns, do_columns, k, v, k_columns, dk, dv;
  uint64_t scores, slopes, factors, packed, narrow, turned, arrays, bytes;
};

struct gradient_plan {
  kw_attention_problem problem;
  uint32_t threads;
  bool fused;     // does a task compute all gradients of a unit? Else dK and dV, and dQ, have tasks of their own
  int64_t units;  // requests times heads of K and V
  int64_t key_blocks, row_tasks;  // most of a unit
  gradient_memory own;
  uint64_t workspace_bytes;
};

inline gradient_memory make_gradient_memory(const attention_kernel& k, const kw_attention_problem& p) {
  const int64_t nr = k.nr, n0 = k.traits.tile_n0, steps = divide_up(nr, k.depth);
  const auto columns = [&](int64_t hdim) { return divide_up(hdim, nr) * panel_units(nr, steps); };
  gradient_memory m = {};
  const auto take = [&m](int64_t bytes) {
    const uint64_t at = m.bytes;
    m.bytes = behind(at, room(bytes, 1));
    return at;
  };
  m.q_rows = take(nr * p.hdim_q * k.input_bytes);
  m.do_rows = take(nr * p.hdim_v * k.input_bytes);
  m.q = take(4 * panel_units(nr, divide_up(p.hdim_q, k.depth)));
  m.d_o = take(4 * panel_units(nr, divide_up(p.hdim_v, k.depth)));
  m.q_columns = take(4 * columns(p.hdim_q));
  m.do_columns = take(4 * columns(p.hdim_v));
  m.k = take(4 * packed_k_units(k, p.hdim_q));
  m.v = take(4 * packed_k_units(k, p.hdim_v));
  m.k_columns = take(4 * packed_v_units(k, p.hdim_q));
  m.dk = take(4 * n0 * round_up(p.hdim_q, kSpareUnits));
  m.dv = take(4 * n0 * round_up(p.hdim_v, kSpareUnits));
  m.scores = take(4 * nr * n0);
  m.slopes = take(4 * nr * n0);
  m.factors = take(4 * nr * n0);
  m.packed = take(4 * divide_up(n0, k.mr) * panel_units(k.mr, steps));
  m.narrow = take(2 * nr * n0);
  m.turned = take(4 * nr * p.hdim_q);
  m.arrays = take(nr * static_cast<int64_t>(kArrayBytes + 2 * sizeof(void*)));
  return m;
}

inline gradient_plan make_gradient_plan(const attention_kernel& k, const kw_attention_problem& p, uint32_t threads) {
  gradient_plan plan = {};
  plan.problem = p;
  plan.units = kw_mul(p.batch, p.heads_kv);
  plan.key_blocks = divide_up(p.max_seqlen_k, k.traits.tile_n0);
  plan.row_tasks = divide_up(kw_mul(p.heads_q / p.heads_kv, divide_up(p.max_seqlen_q, k.nr)), kPanelsPerTask);
  const double work = 3.0 * static_cast<double>(p.batch) * static_cast<double>(p.heads_q) *
                      static_cast<double>(p.max_seqlen_q) * static_cast<double>(p.max_seqlen_k) *
                      static_cast<double>(p.hdim_q + p.hdim_v);
  plan.threads = threads_for(work / kMultiplicationsPerThread, threads);
  // Results are the same to the bit; with fewer units than threads some would be idle.
  plan.fused = plan.units >= 2 * int64_t{plan.threads} || plan.units % plan.threads == 0;
  plan.own = make_gradient_memory(k, p);
  plan.workspace_bytes = behind_all(0, plan.threads, plan.own.bytes);
  return plan;
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_GRADIENT_PLAN_HPP
