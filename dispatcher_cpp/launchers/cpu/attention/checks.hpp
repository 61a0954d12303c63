// What is checked before a kernel touches memory: problems, launches, arguments.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_CHECKS_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_CHECKS_HPP

#include "kernelwright/attention/checks.h"
#include "launchers/cpu/attention/conditions.h"
#include "launchers/cpu/attention/lengths.hpp"
#include "launchers/cpu/attention/written_rows.hpp"

namespace kernelwright::cpu {

inline const attention_kernel& kernel_of(const kw_kernel* kernel) {
  return *static_cast<const attention_kernel*>(kernel->traits);
}

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

inline kw_status check_features(const kw_kernel* kernel, char* reason, size_t bytes) {
  if ((kernel_of(kernel).required_features & ~this_processor().features) == 0) return KW_OK;
  return fail(KW_UNSUPPORTED, reason, bytes, "the processor lacks %s, which this kernel needs", kernel->features);
}

inline kw_status check_problem(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  if (kernel == nullptr || problem == nullptr) {
    return fail(KW_INVALID_ARGUMENT, reason, bytes, "kernel or problem is a null pointer");
  }
  const bool append = kernel->op == KW_OP_ATTENTION_APPEND;
  const size_t needed = append ? sizeof(kw_append_problem) : sizeof(kw_attention_problem);
  if (problem->op != kernel->op || problem->struct_size < needed) {
    return fail(KW_UNSUPPORTED, reason, bytes, "op is %u with %u bytes, but this kernel serves %s (%u) with %zu",
                problem->op, problem->struct_size, kw_attention_op_name(kernel->op), kernel->op, needed);
  }
  const auto& p = *reinterpret_cast<const kw_attention_problem*>(problem);
  const auto& a = *reinterpret_cast<const kw_append_problem*>(problem);
  const kw_attention_traits* const traits = &kernel_of(kernel).traits;
  kw_status status = append ? check_append_sizes(a, reason, bytes) : check_sizes(p, reason, bytes);
  if (status != KW_OK) return status;
  char why[256] = "";
  status = append ? kw_attention_append_traits_match(traits, &a, why, sizeof why)
                  : kw_cpu_attention_check(traits, &p, why, sizeof why);
  if (status != KW_OK) return fail(status, reason, bytes, "%s", why);
  return check_features(kernel, reason, bytes);
}

// An operand that a problem has, by name.
struct operand {
  const char* name;
  const void* at;
  bool needed;
};

template <int Count>
kw_status check_operands(const operand (&operands)[Count]) {
  for (const operand& one : operands) {
    if (one.needed && one.at == nullptr) {
      return fail(KW_INVALID_ARGUMENT, nullptr, 0, "%s is a null pointer, and the problem has it", one.name);
    }
  }
  return KW_OK;
}

inline kw_status too_small(uint32_t size, size_t needed) {
  return fail(KW_INVALID_ARGUMENT, nullptr, 0, "args.struct_size is %u, below %zu", size, needed);
}

inline kw_status check_attention_args(const kw_attention_problem& p, const kw_attention_args& a) {
  if (a.struct_size < sizeof a) return too_small(a.struct_size, sizeof a);
  const uint32_t op = p.base.op;
  const bool rows = kw_attention_rows(&p) != 0, paged = p.page_table != KW_PAGES_NONE;
  const bool part = op == KW_OP_ATTENTION_PART && rows, splits = p.leaves_splits != 0;
  const bool gradients = op == KW_OP_ATTENTION_DQ_DK_DV, dot = op == KW_OP_ATTENTION_DOT && rows;
  const bool combine = op == KW_OP_ATTENTION_COMBINE && rows, convert = op == KW_OP_ATTENTION_CONVERT_DQ && rows;
  const bool reads_kv = op == KW_OP_ATTENTION_PART || gradients, keys = reads_kv && p.max_seqlen_k != 0 && rows;
  const bool scaled = part && p.qscale != KW_QSCALE_NONE;
  const bool narrow = kw_dtype_bytes(p.dtype_o) == 1 && ((part && !splits) || combine);
  const bool back = gradients && rows, list = p.page_table == KW_PAGES_LIST;
  const operand operands[] = {
      {"q", a.q, part || back},
      {"k", a.k, keys},
      {"v", a.v, keys},
      {"o", a.o, (part && !splits) || combine || dot},
      {"o_splits", a.o_splits, (part && splits) || combine},
      {"lse_splits", a.lse_splits, (part && splits) || combine},
      {"lse", a.lse, (((part && !splits) || combine) && p.lse != 0) || back},
      {"bias", a.bias, keys && p.bias != KW_BIAS_NONE},
      {"sinks", a.sinks, part && p.sink != 0},
      {"descale_q", a.descale_q, scaled},
      {"descale_k", a.descale_k, scaled},
      {"descale_v", a.descale_v, scaled},
      {"scale_o", a.scale_o, narrow},
      {"cu_seqlens_q", a.cu_seqlens_q, p.group != 0},
      {"cu_seqlens_k", a.cu_seqlens_k, reads_kv && p.group != 0 && !paged},
      {"seqlens_k", a.seqlens_k, reads_kv && p.kv_lengths != 0},
      {"page_table", a.page_table, part && keys && paged},
      {"page_indptr", a.page_indptr, part && list},
      {"last_page_lengths", a.last_page_lengths, part && list},
      {"d_o", a.d_o, back || dot},
      {"d", a.d, back || dot},
      {"dq", a.dq, convert},
      {"dq_sums", a.dq_sums, back || convert},
      {"dk", a.dk, gradients && p.max_seqlen_k != 0},
      {"dv", a.dv, gradients && p.max_seqlen_k != 0},
      {"dbias", a.dbias, back && p.dbias != 0},
  };
  const kw_status status = check_operands(operands);
  return status == KW_OK ? check_lengths(p, a) : status;
}

// workspace: of the plan, see written_rows.hpp.
inline kw_status check_append_args(const kw_append_problem& p, const kw_append_args& a, void* workspace) {
  if (a.struct_size < sizeof a) return too_small(a.struct_size, sizeof a);
  const bool appends = p.batch != 0 && p.seqlen_new != 0, rotary = p.rope != KW_ROPE_NONE;
  const bool turns = p.batch != 0 && p.rotates_q != 0 && p.seqlen_q != 0;
  const operand operands[] = {
      {"k", a.k, appends},
      {"v", a.v, appends},
      {"k_cache", a.k_cache, appends},
      {"v_cache", a.v_cache, appends},
      {"q", a.q, turns},
      {"q_out", a.q_out, turns},
      {"seqlens_k", a.seqlens_k, p.batch != 0},
      {"page_table", a.page_table, appends && p.page_table != KW_PAGES_NONE},
      {"cos", a.cos, rotary && (appends || turns)},
      {"sin", a.sin, rotary && (appends || turns)},
  };
  kw_status status = check_operands(operands);
  if (status == KW_OK) status = check_append_places(p, a);
  return status == KW_OK ? check_written_rows(p, a, workspace) : status;
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_CHECKS_HPP
