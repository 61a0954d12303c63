// Families that work on single rows: D, combinations of splits, sums of dQ. A task is some queries of a head.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_LINES_DRIVER_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_LINES_DRIVER_HPP

#include "kernelwright/attention/checks.h"
#include "launchers/cpu/attention/request.hpp"
#include "launchers/cpu/common/threads.hpp"

namespace kernelwright::cpu {

constexpr int64_t kLinesPerTask = 64;

struct lines_plan {
  kw_attention_problem problem;
  uint32_t threads;
  int64_t blocks;  // most tasks of a head of a request
};

inline lines_plan make_lines_plan(const kw_attention_problem& p, uint32_t threads) {
  lines_plan plan = {};
  plan.problem = p;
  plan.blocks = divide_up(p.max_seqlen_q, kLinesPerTask);
  const double numbers = static_cast<double>(kw_attention_rows(&p)) * static_cast<double>(p.hdim_q + p.hdim_v) *
                         static_cast<double>(larger(1, larger(p.num_splits, p.dq_slices)));
  plan.threads = threads_for(numbers / kMultiplicationsPerThread, threads);
  return plan;
}

class lines_job {
 public:
  lines_job(const attention_kernel& kernel, const lines_plan& plan, const kw_attention_args& args)
      : kernel_(kernel), plan_(plan), p_(plan.problem), args_(args), next_(0) {}

  void run() { run_parts(threads_now(plan_.threads), &lines_job::participate, this); }

 private:
  static void participate(void* context, uint32_t) {
    lines_job& job = *static_cast<lines_job*>(context);
    const int64_t heads = job.p_.heads_q, blocks = job.plan_.blocks;
    for (;;) {
      const int64_t ticket = __atomic_fetch_add(&job.next_, 1, __ATOMIC_RELAXED);
      if (ticket >= job.p_.batch * heads * blocks) break;
      job.compute(ticket / blocks / heads, ticket / blocks % heads, ticket % blocks * kLinesPerTask);
    }
  }

  void compute(int64_t number, int64_t head, int64_t query) const {
    const request r = request_of_queries(p_, args_, number);
    if (r.skipped) return;
    line_call c = {};
    c.rows = smaller(kLinesPerTask, r.queries - query);
    if (c.rows <= 0) return;
    const int64_t row = row_number(p_, r, head, query), outer = p_.group != 0 ? 0 : number;
    const int64_t place = r.first_query + query, all = kw_attention_rows(&p_);
    const auto at = [&](const void* from, const kw_attention_strides& s) {
      return static_cast<const char*>(from) + row_offset(s, outer, head, place) * kernel_.input_bytes;
    };
    c.slices = 1;
    if (p_.base.op == KW_OP_ATTENTION_DOT) {
      c.hdim = p_.hdim_v;
      c.a = at(args_.o, p_.o);
      c.ld_a = p_.o.row;
      c.b = at(args_.d_o, p_.d_o);
      c.ld_b = p_.d_o.row;
      c.numbers = args_.d + row;
      c.factor = p_.dropout != 0 ? static_cast<float>(1 - p_.dropout_p) : 1.0f;
    } else if (p_.base.op == KW_OP_ATTENTION_COMBINE) {
      c.hdim = p_.hdim_v;
      c.a = args_.o_splits + row * p_.hdim_v;
      c.ld_a = p_.hdim_v;
      c.slices = p_.num_splits;
      c.slice_stride = all * p_.hdim_v;
      c.lse_splits = args_.lse_splits + row;
      c.lse_stride = all;
      c.numbers = p_.lse != 0 ? args_.lse + row : nullptr;
      c.factor = kw_dtype_bytes(p_.dtype_o) == 1 ? *args_.scale_o : 1.0f;
      c.to = const_cast<char*>(at(args_.o, p_.o));
      c.ld_to = p_.o.row;
    } else {
      c.hdim = p_.hdim_q;
      c.a = args_.dq_sums + row * p_.hdim_q;
      c.ld_a = p_.hdim_q;
      c.slices = p_.dq_slices;
      c.slice_stride = all * p_.hdim_q;
      c.to = const_cast<char*>(at(args_.dq, p_.dq));
      c.ld_to = p_.dq.row;
    }
    kernel_.lines(c);
  }

  const attention_kernel& kernel_;
  const lines_plan& plan_;
  const kw_attention_problem& p_;
  const kw_attention_args& args_;
  alignas(64) int64_t next_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_LINES_DRIVER_HPP
