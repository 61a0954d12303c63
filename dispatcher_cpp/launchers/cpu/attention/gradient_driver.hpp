// The backward pass with however many threads come: tasks are handed out by a ticket counter.
//
// dK and dV of a block of keys are summed over panels of rows in one order, and dQ of a row over blocks of keys in
// ascending order, by one thread each: results depend neither on the number of threads nor on how tasks are cut.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_GRADIENT_DRIVER_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_GRADIENT_DRIVER_HPP

#include "kernelwright/attention/checks.h"
#include "kernelwright/attention/dropout.h"
#include "launchers/cpu/attention/gradient_plan.hpp"
#include "launchers/cpu/attention/rows.hpp"

namespace kernelwright::cpu {

class gradient_job {
 public:
  gradient_job(const attention_kernel& kernel, const gradient_plan& plan, const kw_attention_args& args,
               void* workspace)
      : kernel_(kernel),
        plan_(plan),
        p_(plan.problem),
        args_(args),
        memory_(static_cast<char*>(workspace)),
        rules_(rules_of(plan.problem, args, kw_attention_keeps(&plan.problem))),
        next_(0) {}

  void run() { run_parts(threads_now(plan_.threads), &gradient_job::participate, this); }

 private:
  static void participate(void* context, uint32_t index) {
    gradient_job& job = *static_cast<gradient_job*>(context);
    const gradient_plan& plan = job.plan_;
    const int64_t keys = larger(1, plan.key_blocks), per_unit = plan.fused ? 1 : keys + plan.row_tasks;
    char* const own = job.memory_ + index * plan.own.bytes;
    for (;;) {
      const int64_t ticket = __atomic_fetch_add(&job.next_, 1, __ATOMIC_RELAXED);
      if (ticket >= plan.units * per_unit) break;
      const unit u = job.unit_at(ticket / per_unit);
      const int64_t task = ticket % per_unit;
      if (plan.fused) {
        job.clear_rows(u, {0, u.panels});
        for (int64_t block = 0; block < keys; ++block) job.visit(u, block, {0, u.panels}, true, true, own);
      } else if (task < keys) {
        job.visit(u, task, {0, u.panels}, true, false, own);
      } else {
        const range panels = {smaller(u.panels, (task - keys) * kPanelsPerTask),
                              smaller(u.panels, (task - keys + 1) * kPanelsPerTask)};
        job.clear_rows(u, panels);
        for (int64_t block = 0; block < keys; ++block) job.visit(u, block, panels, false, true, own);
      }
    }
  }

  // A request and a head of K and V.
  struct unit {
    request r;
    int64_t head, panels;
  };

  int64_t group() const { return p_.heads_q / p_.heads_kv; }
  int64_t tile() const { return kernel_.traits.tile_n0; }
  float* floats(char* own, uint64_t offset) const { return reinterpret_cast<float*>(own + offset); }

  unit unit_at(int64_t index) const {
    unit u = {request_at(p_, args_, index / p_.heads_kv), index % p_.heads_kv, 0};
    u.panels = row_blocks(u.r, group(), kernel_.nr);
    return u;
  }

  row_range rows_at(const unit& u, int64_t panel) const {
    return row_range_at(u.r, u.head * group(), group(), kernel_.nr, panel);
  }

  // Sums of dQ begin at 0, and dbias is 0 where a row does not see a key.
  void clear_rows(const unit& u, const range& panels) const {
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const row_range which = rows_at(u, panel);
      for (int64_t i = 0; i < which.rows(); ++i) {
        const int64_t head = which.head + i / which.queries, query = which.query + i % which.queries;
        float* const sums = args_.dq_sums + row_number(p_, u.r, head, query) * p_.hdim_q;
        memset(sums, 0, static_cast<size_t>(p_.hdim_q) * sizeof(float));
        if (p_.dbias == 0) continue;
        memset(dbias_row(u.r, head, query), 0, static_cast<size_t>(p_.max_seqlen_k * kernel_.bias_bytes));
      }
    }
  }

  void* dbias_row(const request& r, int64_t head, int64_t query) const {
    const int64_t offset = row_offset(p_.dbias_strides, r.number, head, r.first_query + query);
    return static_cast<char*>(args_.dbias) + offset * kernel_.bias_bytes;
  }

  // Some panels of rows meet one block of keys.
  void visit(const unit& u, int64_t block, const range& panels, bool keys, bool queries, char* own) const {
    gradient_call call = {};
    call.rules = &rules_;
    call.first = block * tile();
    call.count = larger(0, smaller(tile(), u.r.keys - call.first));
    call.hdim_q = p_.hdim_q;
    call.hdim_v = p_.hdim_v;
    call.scale = static_cast<float>(p_.scale);
    call.kept_factor = p_.dropout != 0 ? static_cast<float>(1 / (1 - p_.dropout_p)) : 1.0f;
    if (keys) begin_keys(call, own);
    if (call.count > 0) {
      pack_keys(u, call, own);
      for (int64_t panel = panels.begin; panel < panels.end; ++panel) add_panel(u, panel, queries, call, own);
    }
    if (keys) write_keys(u, call);
  }

  void begin_keys(gradient_call& call, char* own) const {
    call.dk = floats(own, plan_.own.dk);
    call.dv = floats(own, plan_.own.dv);
    memset(call.dk, 0, static_cast<size_t>(tile() * round_up(p_.hdim_q, kSpareUnits)) * sizeof(float));
    memset(call.dv, 0, static_cast<size_t>(tile() * round_up(p_.hdim_v, kSpareUnits)) * sizeof(float));
  }

  void pack_keys(const unit& u, gradient_call& call, char* own) const {
    const int64_t number = p_.group != 0 ? 0 : u.r.number, row = u.r.first_key + call.first;
    const auto at = [&](const void* from, const kw_attention_strides& s) {
      return static_cast<const char*>(from) + row_offset(s, number, u.head, row) * kernel_.input_bytes;
    };
    kernel_.pack_k(own + plan_.own.k, at(args_.k, p_.k), p_.k.row, call.count, p_.hdim_q);
    kernel_.pack_k(own + plan_.own.v, at(args_.v, p_.v), p_.v.row, call.count, p_.hdim_v);
    kernel_.pack_v(own + plan_.own.k_columns, at(args_.k, p_.k), p_.k.row, p_.hdim_q, call.count);
    call.k = floats(own, plan_.own.k);
    call.v = floats(own, plan_.own.v);
    call.k_columns = floats(own, plan_.own.k_columns);
  }

  void add_panel(const unit& u, int64_t panel, bool queries, gradient_call& call, char* own) const {
    const row_range which = rows_at(u, panel);
    char* arrays = own + plan_.own.arrays;
    row_block rows = place_rows(arrays, kernel_.nr);
    const range seen = describe_rows(p_, args_, u.r, which, kernel_.bias_bytes, kernel_.nr, rows);
    if (seen.begin >= call.first + call.count || seen.end <= call.first) return;
    arrays += kernel_.nr * static_cast<int64_t>(kArrayBytes);
    take_array(arrays, kernel_.nr, call.dq);
    take_array(arrays, kernel_.nr, call.dbias);
    for (int64_t i = 0; i < rows.rows; ++i) {
      const int64_t head = which.head + i / which.queries, query = which.query + i % which.queries;
      const int64_t number = row_number(p_, u.r, head, query);
      // A row that sees nothing has no LSE; its probabilities are 0.
      rows.top[i] = args_.lse[number] == -INFINITY ? __FLT_MAX__ : args_.lse[number] * kLog2OfE;
      rows.sum[i] = args_.d[number];
      call.dq[i] = args_.dq_sums + number * p_.hdim_q;
      if (p_.dbias != 0) call.dbias[i] = dbias_row(u.r, head, query);
    }
    if (!queries) call.dq = nullptr;
    if (!queries || p_.dbias == 0) call.dbias = nullptr;
    call.rows = &rows;
    pack_rows(u, which, call, own);
    kernel_.gradients(call);
  }

  void pack_rows(const unit& u, const row_range& which, gradient_call& call, char* own) const {
    const gradient_memory& m = plan_.own;
    copy_rows(own + m.q_rows, args_.q, p_.q, p_, u.r, which, p_.hdim_q, kernel_.input_bytes);
    copy_rows(own + m.do_rows, args_.d_o, p_.d_o, p_, u.r, which, p_.hdim_v, kernel_.input_bytes);
    kernel_.pack_q(own + m.q, own + m.q_rows, p_.hdim_q, which.rows(), p_.hdim_q);
    kernel_.pack_q(own + m.d_o, own + m.do_rows, p_.hdim_v, which.rows(), p_.hdim_v);
    if (call.dk != nullptr) {
      kernel_.pack_columns(own + m.q_columns, own + m.q_rows, p_.hdim_q, p_.hdim_q, which.rows());
      kernel_.pack_columns(own + m.do_columns, own + m.do_rows, p_.hdim_v, p_.hdim_v, which.rows());
    }
    call.q = floats(own, m.q);
    call.d_o = floats(own, m.d_o);
    call.q_columns = floats(own, m.q_columns);
    call.d_o_columns = floats(own, m.do_columns);
    call.scores = floats(own, m.scores);
    call.slopes = floats(own, m.slopes);
    call.factors = floats(own, m.factors);
    call.packed = floats(own, m.packed);
    call.narrow = reinterpret_cast<uint16_t*>(own + m.narrow);
    call.turned = floats(own, m.turned);
  }

  // Rows behind the keys that count have gradients of 0.
  void write_keys(const unit& u, const gradient_call& call) const {
    const int64_t held = p_.group != 0 ? int64_t{args_.cu_seqlens_k[u.r.number + 1]} - u.r.first_key : p_.max_seqlen_k;
    const auto write = [&](float* sums, void* to, const kw_attention_strides& s, int64_t hdim) {
      line_call c = {};
      c.rows = larger(0, smaller(tile(), held - call.first));
      c.hdim = hdim;
      c.a = sums;
      c.ld_a = round_up(hdim, kSpareUnits);
      c.slices = 1;
      c.ld_to = s.row;
      const int64_t number = p_.group != 0 ? 0 : u.r.number;
      const int64_t offset = row_offset(s, number, u.head, u.r.first_key + call.first);
      c.to = static_cast<char*>(to) + offset * kernel_.input_bytes;
      if (c.rows > 0) kernel_.lines(c);
    };
    write(call.dk, args_.dk, p_.dk, p_.hdim_q);
    write(call.dv, args_.dv, p_.dv, p_.hdim_v);
  }

  const attention_kernel& kernel_;
  const gradient_plan& plan_;
  const kw_attention_problem& p_;
  const kw_attention_args& args_;
  char* memory_;
  score_rules rules_;
  alignas(64) int64_t next_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_GRADIENT_DRIVER_HPP
