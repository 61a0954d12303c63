// New rows of K and V into a cache, and Q, with rotary embedding. A task is one row of all heads of a request.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_APPEND_DRIVER_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_APPEND_DRIVER_HPP

#include "launchers/cpu/attention/request.hpp"
#include "launchers/cpu/common/threads.hpp"

namespace kernelwright::cpu {

struct append_plan {
  kw_append_problem problem;
  uint32_t threads;
};

inline append_plan make_append_plan(const kw_append_problem& p, uint32_t threads) {
  const double numbers = static_cast<double>(p.batch) *
                         static_cast<double>(p.heads_kv * p.seqlen_new + p.heads_q * p.seqlen_q) *
                         static_cast<double>(p.hdim_q + p.hdim_v);
  return {p, threads_for(4 * numbers / kMultiplicationsPerThread, threads)};
}

class append_job {
 public:
  append_job(const attention_kernel& kernel, const append_plan& plan, const kw_append_args& args)
      : kernel_(kernel), plan_(plan), p_(plan.problem), args_(args), next_(0) {}

  void run() { run_parts(threads_now(plan_.threads), &append_job::participate, this); }

 private:
  static void participate(void* context, uint32_t) {
    append_job& job = *static_cast<append_job*>(context);
    const int64_t rows = larger(job.p_.seqlen_new, job.p_.rotates_q != 0 ? job.p_.seqlen_q : 0);
    for (;;) {
      const int64_t ticket = __atomic_fetch_add(&job.next_, 1, __ATOMIC_RELAXED);
      if (ticket >= job.p_.batch * rows) break;
      const int64_t number = ticket / rows, row = ticket % rows;
      if (row < job.p_.seqlen_new) job.append(number, row);
      if (job.p_.rotates_q != 0 && row < job.p_.seqlen_q) job.rotate_query(number, row);
    }
  }

  int64_t bytes() const { return kernel_.input_bytes; }

  // Elements from the beginning of a cache to place `place` of a request.
  int64_t cache_offset(const kw_attention_strides& s, int64_t number, int64_t head, int64_t place) const {
    if (p_.page_table == KW_PAGES_NONE) return row_offset(s, number, head, place);
    const int64_t page = args_.page_table[number * p_.page_table_stride + place / p_.page_size];
    return row_offset(s, page, head, place % p_.page_size);
  }

  void append(int64_t number, int64_t row) const {
    const int64_t place = int64_t{args_.seqlens_k[number]} + row;
    for (int64_t head = 0; head < p_.heads_kv; ++head) {
      put(at(args_.k, row_offset(p_.k, number, head, row)),
          const_cast<char*>(at(args_.k_cache, cache_offset(p_.k_cache, number, head, place))), p_.hdim_q, place);
      memcpy(const_cast<char*>(at(args_.v_cache, cache_offset(p_.v_cache, number, head, place))),
             at(args_.v, row_offset(p_.v, number, head, row)), static_cast<size_t>(p_.hdim_v * bytes()));
    }
  }

  void rotate_query(int64_t number, int64_t row) const {
    const int64_t place = int64_t{args_.seqlens_k[number]} + row;
    for (int64_t head = 0; head < p_.heads_q; ++head) {
      put(at(args_.q, row_offset(p_.q, number, head, row)),
          const_cast<char*>(at(args_.q_out, row_offset(p_.q_out, number, head, row))), p_.hdim_q, place);
    }
  }

  const char* at(const void* from, int64_t offset) const { return static_cast<const char*>(from) + offset * bytes(); }

  // A row, turned by its place.
  void put(const char* from, char* to, int64_t hdim, int64_t place) const {
    if (to != from) memcpy(to, from, static_cast<size_t>(hdim * bytes()));
    if (p_.rope == KW_ROPE_NONE) return;
    const int64_t half = p_.rotary_dim / 2;
    rotate_call c = {};
    c.from = from;
    c.to = to;
    c.cos = at(args_.cos, place * half);
    c.sin = at(args_.sin, place * half);
    c.rotary_dim = p_.rotary_dim;
    c.interleaved = p_.rope == KW_ROPE_INTERLEAVED;
    kernel_.rotate(c);
  }

  const attention_kernel& kernel_;
  const append_plan& plan_;
  const kw_append_problem& p_;
  const kw_append_args& args_;
  alignas(64) int64_t next_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_APPEND_DRIVER_HPP
