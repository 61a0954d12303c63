// Which attention problems and arguments the NVIDIA kernels take; the kernels launch themselves.
#include "kernelwright/cuda/attention/launcher.h"
#include "launchers/cuda/attention/conditions.h"
#include "launchers/cuda/common/checks.hpp"

namespace kernelwright::cuda::launchers {
namespace {

kw_status check_part(const kw_attention_problem& p, const kw_attention_args& a) {
  const bool pages = p.page_table != KW_PAGES_NONE, list = p.page_table == KW_PAGES_LIST, group = p.group != 0;
  const bool keys = pages ? p.pages > 0 : group ? p.total_k > 0 : p.max_seqlen_k > 0;
  return check_operands({
      {"q", a.q, true},
      {"k", a.k, keys},
      {"v", a.v, keys},
      {"cu_seqlens_q", a.cu_seqlens_q, group, 1},
      {"cu_seqlens_k", a.cu_seqlens_k, group && !pages, 1},
      {"seqlens_k", a.seqlens_k, p.kv_lengths != 0, 1},
      {"page_table", a.page_table, keys && pages, 1},
      {"page_indptr", a.page_indptr, list, 1},
      {"last_page_lengths", a.last_page_lengths, list, 1},
      {"bias", a.bias, keys && p.bias != KW_BIAS_NONE, 1},
      {"sinks", a.sinks, p.sink != 0, 1},
  });
}

kw_status check_gradients(const kw_attention_problem& p, const kw_attention_args& a) {
  const bool group = p.group != 0;
  const bool queries = group ? p.total_q > 0 : p.max_seqlen_q > 0, keys = group ? p.total_k > 0 : p.max_seqlen_k > 0;
  return check_operands({
      {"q", a.q, queries},
      {"d_o", a.d_o, queries},
      {"dq", a.dq, queries},
      {"lse", a.lse, queries, 1},
      {"d", a.d, queries, 1},
      {"k", a.k, keys},
      {"v", a.v, keys},
      {"dk", a.dk, keys},
      {"dv", a.dv, keys},
      {"cu_seqlens_q", a.cu_seqlens_q, group, 1},
      {"cu_seqlens_k", a.cu_seqlens_k, group, 1},
      {"bias", a.bias, queries && keys && p.bias != KW_BIAS_NONE, 1},
      {"seqlens_k", a.seqlens_k, p.kv_lengths != 0, 1},
  });
}

}  // namespace
}  // namespace kernelwright::cuda::launchers

using namespace kernelwright::cuda::launchers;

kw_status kw_cuda_attention_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                     size_t reason_bytes) {
  return kw_cuda_attention_check(&held_by<kw_attention_traits>(kernel), &as<kw_attention_problem>(problem), reason,
                                 reason_bytes);
}

kw_status kw_cuda_attention_plan_problem(const kw_kernel*, const kw_problem* problem, void* plan) {
  static_cast<kw_cuda_attention_plan*>(plan)->problem = as<kw_attention_problem>(problem);
  return KW_OK;
}

kw_status kw_cuda_attention_check_args(const kw_attention_problem* p, const kw_attention_args* args) {
  kw_status status = check_size(args);
  if (status != KW_OK) return status;
  if (p->base.op == KW_OP_ATTENTION_DQ_DK_DV) return check_gradients(*p, *args);
  if (p->base.op == KW_OP_ATTENTION_DOT)
    return check_operands({{"o", args->o, true}, {"d_o", args->d_o, true}, {"d", args->d, true, 1}});
  const bool part = p->base.op == KW_OP_ATTENTION_PART, leaves = p->leaves_splits != 0, whole = !part || !leaves;
  if (part) status = check_part(*p, *args);
  if (status != KW_OK) return status;
  return check_operands({
      {"o", args->o, whole},
      {"o_splits", args->o_splits, !part || leaves},
      {"lse_splits", args->lse_splits, !part || leaves},
      {"lse", args->lse, whole && p->lse != 0, 1},
  });
}

kw_status kw_cuda_append_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                  size_t reason_bytes) {
  return kw_cuda_attention_append_check(&held_by<kw_attention_traits>(kernel), &as<kw_append_problem>(problem), reason,
                                        reason_bytes);
}

kw_status kw_cuda_append_plan_problem(const kw_kernel*, const kw_problem* problem, void* plan) {
  static_cast<kw_cuda_append_plan*>(plan)->problem = as<kw_append_problem>(problem);
  return KW_OK;
}

kw_status kw_cuda_append_check_args(const kw_append_problem* p, const kw_append_args* args) {
  const kw_status status = check_size(args);
  if (status != KW_OK) return status;
  const bool keys = p->seqlen_new > 0, turned = p->rotates_q && p->seqlen_q > 0, rotary = p->rope != KW_ROPE_NONE;
  return check_operands({
      {"q", args->q, turned},
      {"q_out", args->q_out, turned},
      {"k", args->k, keys},
      {"v", args->v, keys},
      {"k_cache", args->k_cache, keys},
      {"v_cache", args->v_cache, keys},
      {"seqlens_k", args->seqlens_k, true, 1},
      {"page_table", args->page_table, p->page_table != KW_PAGES_NONE, 1},
      {"cos", args->cos, rotary, 1},
      {"sin", args->sin, rotary, 1},
  });
}
