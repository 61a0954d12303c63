/* Which attention problems the CUDA kernels serve, and what they say otherwise. */
#include "kernelwright/cuda/attention/problem.h"

#include <string.h>

#include "launchers/cuda/attention/conditions.h"

#define TRY(call)                     \
  do {                                \
    const kw_status tried = (call);   \
    if (tried != KW_OK) return tried; \
  } while (0)

kw_status kw_cuda_attention_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                     size_t reason_bytes) {
  const kw_attention_traits* t = kernel->traits;
  const kw_attention_problem* p = (const kw_attention_problem*)problem;
  return kw_cuda_attention_check(t, p, reason, reason_bytes);
}

kw_status kw_cuda_attention_plan_problem(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  (void)kernel;
  ((kw_cuda_attention_plan*)plan)->problem = *(const kw_attention_problem*)problem;
  return KW_OK;
}

static kw_status check_pointer(const char* name, const void* pointer, int needed) {
  if (!needed) return KW_OK;
  if (!pointer) return kw_cuda_fail(KW_INVALID_ARGUMENT, "%s is null", name);
  if ((uintptr_t)pointer % KW_CUDA_ATTENTION_VECTOR_BYTES == 0) return KW_OK;
  return kw_cuda_fail(KW_INVALID_ARGUMENT, "%s is at %p; this kernel needs addresses that are multiples of 16", name,
                      pointer);
}

static kw_status check_lengths(const char* name, const void* lengths, int needed) {
  return needed && !lengths ? kw_cuda_fail(KW_INVALID_ARGUMENT, "%s is null", name) : KW_OK;
}

static kw_status check_size(uint32_t given, size_t needed, const void* args) {
  if (args && given >= needed) return KW_OK;
  return kw_cuda_fail(KW_INVALID_ARGUMENT, "arguments have %u bytes; attention version %u needs %u",
                      args ? (unsigned)given : 0u, KW_ATTENTION_VERSION, (unsigned)needed);
}

static kw_status check_operands(const kw_attention_problem* p, const kw_attention_args* args) {
  const int pages = p->page_table != KW_PAGES_NONE, list = p->page_table == KW_PAGES_LIST;
  const int keys = pages ? p->pages > 0 : p->group ? p->total_k > 0 : p->max_seqlen_k > 0;
  TRY(check_pointer("q", args->q, 1));
  TRY(check_pointer("k", args->k, keys));
  TRY(check_pointer("v", args->v, keys));
  TRY(check_lengths("cu_seqlens_q", args->cu_seqlens_q, p->group != 0));
  TRY(check_lengths("cu_seqlens_k", args->cu_seqlens_k, p->group && !pages));
  TRY(check_lengths("seqlens_k", args->seqlens_k, p->kv_lengths != 0));
  TRY(check_lengths("page_table", args->page_table, keys && pages));
  TRY(check_lengths("page_indptr", args->page_indptr, list));
  TRY(check_lengths("last_page_lengths", args->last_page_lengths, list));
  TRY(check_lengths("bias", args->bias, keys && p->bias != KW_BIAS_NONE));
  return p->sink && !args->sinks ? kw_cuda_fail(KW_INVALID_ARGUMENT, "sinks is null") : KW_OK;
}

static kw_status check_gradient_args(const kw_attention_problem* p, const kw_attention_args* args) {
  const int queries = p->group ? p->total_q > 0 : p->max_seqlen_q > 0;
  const int keys = p->group ? p->total_k > 0 : p->max_seqlen_k > 0;
  TRY(check_pointer("q", args->q, queries));
  TRY(check_pointer("d_o", args->d_o, queries));
  TRY(check_pointer("dq", args->dq, queries));
  TRY(check_lengths("lse", args->lse, queries));
  TRY(check_lengths("d", args->d, queries));
  TRY(check_pointer("k", args->k, keys));
  TRY(check_pointer("v", args->v, keys));
  TRY(check_pointer("dk", args->dk, keys));
  TRY(check_pointer("dv", args->dv, keys));
  TRY(check_lengths("cu_seqlens_q", args->cu_seqlens_q, p->group != 0));
  TRY(check_lengths("cu_seqlens_k", args->cu_seqlens_k, p->group != 0));
  TRY(check_lengths("bias", args->bias, queries && keys && p->bias != KW_BIAS_NONE));
  return check_lengths("seqlens_k", args->seqlens_k, p->kv_lengths != 0);
}

static kw_status check_dot_args(const kw_attention_args* args) {
  TRY(check_pointer("o", args->o, 1));
  TRY(check_pointer("d_o", args->d_o, 1));
  return check_lengths("d", args->d, 1);
}

kw_status kw_cuda_attention_check_args(const kw_attention_problem* p, const kw_attention_args* args) {
  TRY(check_size(args ? args->struct_size : 0, sizeof *args, args));
  if (p->base.op == KW_OP_ATTENTION_DQ_DK_DV) return check_gradient_args(p, args);
  if (p->base.op == KW_OP_ATTENTION_DOT) return check_dot_args(args);
  const int part = p->base.op == KW_OP_ATTENTION_PART, whole = !part || !p->leaves_splits;
  if (part) TRY(check_operands(p, args));
  TRY(check_pointer("o", args->o, whole));
  TRY(check_pointer("o_splits", args->o_splits, !part || p->leaves_splits));
  TRY(check_pointer("lse_splits", args->lse_splits, !part || p->leaves_splits));
  return whole && p->lse && !args->lse ? kw_cuda_fail(KW_INVALID_ARGUMENT, "lse is null") : KW_OK;
}

kw_status kw_cuda_append_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                  size_t reason_bytes) {
  return kw_cuda_attention_append_check(kernel->traits, (const kw_append_problem*)problem, reason, reason_bytes);
}

kw_status kw_cuda_append_plan_problem(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  (void)kernel;
  ((kw_cuda_append_plan*)plan)->problem = *(const kw_append_problem*)problem;
  return KW_OK;
}

kw_status kw_cuda_append_check_args(const kw_append_problem* p, const kw_append_args* args) {
  TRY(check_size(args ? args->struct_size : 0, sizeof *args, args));
  const int keys = p->seqlen_new > 0, turned = p->rotates_q && p->seqlen_q > 0, rotary = p->rope != KW_ROPE_NONE;
  TRY(check_pointer("q", args->q, turned));
  TRY(check_pointer("q_out", args->q_out, turned));
  TRY(check_pointer("k", args->k, keys));
  TRY(check_pointer("v", args->v, keys));
  TRY(check_pointer("k_cache", args->k_cache, keys));
  TRY(check_pointer("v_cache", args->v_cache, keys));
  TRY(check_lengths("seqlens_k", args->seqlens_k, 1));
  TRY(check_lengths("page_table", args->page_table, p->page_table != KW_PAGES_NONE));
  TRY(check_lengths("cos", args->cos, rotary));
  return check_lengths("sin", args->sin, rotary);
}
