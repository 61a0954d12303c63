// Which attention problems a kernel serves.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_CONDITIONS_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_CONDITIONS_HPP

#include "kernelwright/attention/checks.h"
#include "launchers/cpu/attention/conditions.h"
#include "launchers/cpu/attention/plan.hpp"
#include "launchers/cpu/common/library.hpp"

namespace kernelwright::cpu {

inline kw_status refused(char* reason, size_t bytes, const char* field, int64_t value, const char* allowed) {
  return fail(KW_INVALID_ARGUMENT, reason, bytes, "%s is %lld; allowed: %s", field, static_cast<long long>(value),
              allowed);
}

// Places of keys are compared in fp32.
constexpr int64_t kMaxKeys = 1 << 24;

// What the drivers divide by and index with. The dispatcher says more about an invalid problem.
inline kw_status check_sizes(const kw_attention_problem& p, char* reason, size_t bytes) {
  if (p.batch < 0) return refused(reason, bytes, "batch", p.batch, "0 or more");
  if (p.heads_kv < 1 || p.heads_q < 1 || p.heads_q % p.heads_kv != 0)
    return refused(reason, bytes, "heads_q", p.heads_q, "multiples of heads_kv, which is 1 or more");
  if (p.hdim_q < 1 || p.hdim_v < 1) return refused(reason, bytes, "hdim_q or hdim_v", p.hdim_q, "1 or more");
  if (p.max_seqlen_q < 0 || p.max_seqlen_q > kMaxKeys)
    return refused(reason, bytes, "max_seqlen_q", p.max_seqlen_q, "0 to 2^24");
  if (p.max_seqlen_k < 0 || p.max_seqlen_k > kMaxKeys)
    return refused(reason, bytes, "max_seqlen_k", p.max_seqlen_k, "0 to 2^24");
  if (p.page_table != KW_PAGES_NONE && p.page_size < 1)
    return refused(reason, bytes, "page_size", p.page_size, "1 or more");
  if (p.dropout != 0 && !(p.dropout_p >= 0 && p.dropout_p < 1))
    return fail(KW_INVALID_ARGUMENT, reason, bytes, "dropout_p is %g; allowed: 0 or more, below 1", p.dropout_p);
  return KW_OK;
}

inline kw_status check_append_sizes(const kw_append_problem& p, char* reason, size_t bytes) {
  if (p.batch < 0 || p.seqlen_new < 0 || p.seqlen_q < 0)
    return refused(reason, bytes, "batch, seqlen_new or seqlen_q", p.seqlen_new, "0 or more");
  if (p.heads_kv < 1) return refused(reason, bytes, "heads_kv", p.heads_kv, "1 or more");
  if (p.hdim_q < 1 || p.hdim_v < 1) return refused(reason, bytes, "hdim_q or hdim_v", p.hdim_q, "1 or more");
  const int64_t most = smaller(p.hdim_q, kMaxRotary);
  if (p.rope != KW_ROPE_NONE && (p.rotary_dim < 2 || p.rotary_dim % 2 != 0 || p.rotary_dim > most))
    return refused(reason, bytes, "rotary_dim", p.rotary_dim, "even numbers up to hdim_q and 1024");
  if (p.page_table != KW_PAGES_NONE && p.page_size < 1)
    return refused(reason, bytes, "page_size", p.page_size, "1 or more");
  return KW_OK;
}

inline kw_status check_attention_problem(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                         size_t bytes) {
  if (kernel == nullptr || problem == nullptr) {
    return fail(KW_INVALID_ARGUMENT, reason, bytes, "kernel or problem is a null pointer");
  }
  const bool append = kernel->op == KW_OP_ATTENTION_APPEND;
  const size_t needed = append ? sizeof(kw_append_problem) : sizeof(kw_attention_problem);
  kw_status status = check_op(*kernel, *problem, kw_attention_op_name(kernel->op), needed, reason, bytes);
  if (status != KW_OK) return status;
  const auto& p = *reinterpret_cast<const kw_attention_problem*>(problem);
  const auto& a = *reinterpret_cast<const kw_append_problem*>(problem);
  const kw_attention_traits* const traits = &held_by<attention_kernel>(kernel).traits;
  status = append ? check_append_sizes(a, reason, bytes) : check_sizes(p, reason, bytes);
  if (status != KW_OK) return status;
  char why[256] = "";
  status = append ? kw_attention_append_traits_match(traits, &a, why, sizeof why)
                  : kw_cpu_attention_check(traits, &p, why, sizeof why);
  if (status != KW_OK) return fail(status, reason, bytes, "%s", why);
  return check_features(*kernel, held_by<attention_kernel>(kernel).required_features, reason, bytes);
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_CONDITIONS_HPP
