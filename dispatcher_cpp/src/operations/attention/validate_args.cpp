// Null pointers that a problem of attention needs.
#include "kernelwright/attention/checks.h"
#include "kernelwright/dispatcher/attention/problem.hpp"
#include "kernelwright/dispatcher/support/error.hpp"

namespace kernelwright {
namespace {

struct Pointer {
  const char* name;
  const void* pointer;
  bool needed;
};

kw_status check_all(const Pointer* all, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!all[i].needed || all[i].pointer != nullptr) continue;
    return fail(KW_INVALID_ARGUMENT, "attention args: %s is null; this problem needs it", all[i].name);
  }
  return KW_OK;
}

// Operands beside the tensors: lengths, tables, scales.
kw_status check_tables(const kw_attention_problem& p, const kw_attention_args& a, bool keys) {
  const bool group = p.group != 0, paged = p.page_table != KW_PAGES_NONE, list = p.page_table == KW_PAGES_LIST;
  const bool scaled = keys && p.qscale != KW_QSCALE_NONE;
  const bool pairs = keys && kw_attention_rows(&p) > 0 && p.max_seqlen_k > 0;
  const Pointer all[] = {{"cu_seqlens_q", a.cu_seqlens_q, group},
                         {"cu_seqlens_k", a.cu_seqlens_k, group && !paged && keys},
                         {"seqlens_k", a.seqlens_k, keys && p.kv_lengths != 0},
                         {"page_table", a.page_table, keys && paged && p.pages > 0 && p.max_seqlen_k > 0},
                         {"page_indptr", a.page_indptr, keys && list},
                         {"last_page_lengths", a.last_page_lengths, keys && list},
                         {"bias", a.bias, pairs && p.bias != KW_BIAS_NONE},
                         {"sinks", a.sinks, keys && p.sink != 0 && !is_backward(p.base.op)},
                         {"descale_q", a.descale_q, scaled},
                         {"descale_k", a.descale_k, scaled},
                         {"descale_v", a.descale_v, scaled}};
  return check_all(all, sizeof all / sizeof *all);
}

kw_status check_forward(const kw_attention_problem& p, const kw_attention_args& a) {
  const uint32_t op = p.base.op;
  const bool part = op != KW_OP_ATTENTION_COMBINE, leaves = op == KW_OP_ATTENTION_PART && p.leaves_splits == 1;
  const bool keys = part && p.max_seqlen_k > 0 && (p.page_table == KW_PAGES_NONE || p.pages > 0);
  const bool narrow = kw_dtype_bytes(p.dtype_o) == 1;
  const Pointer all[] = {{"q", a.q, part},
                         {"k", a.k, keys},
                         {"v", a.v, keys},
                         {"o", a.o, !leaves},
                         {"lse", a.lse, p.lse != 0 && !leaves},
                         {"random_bytes", a.random_bytes, part && p.random_bytes != 0 && p.max_seqlen_k > 0},
                         {"o_splits", a.o_splits, leaves || !part},
                         {"lse_splits", a.lse_splits, leaves || !part},
                         {"scale_o", a.scale_o, narrow && !leaves}};
  return check_all(all, sizeof all / sizeof *all);
}

kw_status check_backward(const kw_attention_problem& p, const kw_attention_args& a) {
  const uint32_t op = p.base.op;
  const bool whole = op == KW_OP_ATTENTION_BACKWARD, dot = op == KW_OP_ATTENTION_DOT;
  const bool gradients = whole || op == KW_OP_ATTENTION_DQ_DK_DV, convert = op == KW_OP_ATTENTION_CONVERT_DQ;
  const bool queries = kw_attention_rows(&p) > 0, keys = (p.group != 0 ? p.total_k : p.max_seqlen_k) > 0;
  const bool direct = whole || (gradients && p.dq_slices == 0) || convert;
  const Pointer all[] = {{"q", a.q, gradients && queries},
                         {"k", a.k, gradients && keys},
                         {"v", a.v, gradients && keys},
                         {"o", a.o, (whole || dot) && queries},
                         {"d_o", a.d_o, (gradients || dot) && queries},
                         {"lse", a.lse, gradients && queries},
                         {"d", a.d, (dot || (gradients && !whole)) && queries},
                         {"dq", a.dq, direct && queries},
                         {"dk", a.dk, gradients && keys},
                         {"dv", a.dv, gradients && keys},
                         {"dbias", a.dbias, gradients && p.dbias != 0 && queries && keys},
                         {"dq_sums", a.dq_sums, convert || (gradients && !whole && p.dq_slices != 0 && queries)}};
  return check_all(all, sizeof all / sizeof *all);
}

}  // namespace

kw_status validate_attention_args(const kw_problem& problem, const void* args) {
  const kw_attention_problem& p = as_attention(problem);
  const auto* given = static_cast<const kw_attention_args*>(args);
  if (kw_status status = check_args("attention args", "kw_attention_args", given)) return status;
  const bool backward = is_backward(problem.op);
  if (!backward && kw_attention_rows(&p) == 0) return KW_OK;
  if (backward && p.batch == 0) return KW_OK;
  if (kw_status status = backward ? check_backward(p, *given) : check_forward(p, *given)) return status;
  return check_tables(p, *given, kw_attention_reads_kv(problem.op) || problem.op <= KW_OP_ATTENTION_BACKWARD);
}

}  // namespace kernelwright
