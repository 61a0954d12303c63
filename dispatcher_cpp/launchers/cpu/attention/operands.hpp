// What is checked of a launch before a kernel touches memory.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_OPERANDS_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_OPERANDS_HPP

#include "kernelwright/attention/checks.h"
#include "launchers/cpu/attention/lengths.hpp"
#include "launchers/cpu/attention/written_rows.hpp"
#include "launchers/cpu/common/library.hpp"

namespace kernelwright::cpu {

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

inline kw_status check_attention_args(const kw_attention_problem& p, const kw_attention_args& a) {
  kw_status status = check_args_size(a.struct_size, sizeof a);
  if (status != KW_OK) return status;
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
  status = check_operands(operands);
  return status == KW_OK ? check_lengths(p, a) : status;
}

// workspace: of the plan, see written_rows.hpp.
inline kw_status check_append_args(const kw_append_problem& p, const kw_append_args& a, void* workspace) {
  kw_status status = check_args_size(a.struct_size, sizeof a);
  if (status != KW_OK) return status;
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
  status = check_operands(operands);
  if (status == KW_OK) status = check_append_places(p, a);
  return status == KW_OK ? check_written_rows(p, a, workspace) : status;
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_OPERANDS_HPP
