/* Which attention problems the CUDA kernels serve, and what they say otherwise. */
#include "kernelwright/cuda/attention/problem.h"

#include <math.h>
#include <string.h>

#include "kernelwright/attention/checks.h"
#include "kernelwright/cuda/launchers/common/refuse.h"

/* TMA addresses rows by multiples of 16 bytes, below 2^40 bytes (CUDA driver API, cuTensorMapEncodeTiled). Copies of 16
 * bytes, which the other kernels use, need the same multiples. */
#define VECTOR_BYTES 16
#define STRIDE_LIMIT (INT64_C(1) << 40)
/* Rows are counted in 32 bits, and 2^30 of them is where load.hpp puts the end of a request. */
#define MOST_ROWS (INT64_C(1) << 30)
#define MOST_BLOCKS 65535 /* of the second and third extent of a grid */

#define TRY(call)                     \
  do {                                \
    const kw_status tried = (call);   \
    if (tried != KW_OK) return tried; \
  } while (0)

static kw_status check_extent(kw_reason r, const char* field, int64_t extent) {
  if (extent >= 0 && extent < MOST_ROWS) return KW_OK;
  return kw_cuda_refuse(r, "%s is %lld; this kernel takes 0 to 2^30 - 1", field, (long long)extent);
}

static kw_status check_stride(kw_reason r, const char* tensor, const char* which, int64_t stride, uint32_t dtype) {
  const int64_t bytes = kw_dtype_bytes(dtype);
  if (stride >= 0 && stride * bytes % VECTOR_BYTES == 0 && stride < STRIDE_LIMIT / bytes) return KW_OK;
  return kw_cuda_refuse(
      r,
      "the %s stride of %s is %lld; this kernel needs multiples of 16 bytes, that is of %d %s elements, "
      "from 0 to 2^40 bytes",
      which, tensor, (long long)stride, (int)(VECTOR_BYTES / bytes), kw_dtype_name(dtype));
}

static kw_status check_tensor(kw_reason r, const char* name, const kw_attention_strides* strides, int64_t rows,
                              uint32_t dtype) {
  TRY(check_stride(r, name, "row", strides->row, dtype));
  TRY(check_stride(r, name, "head", strides->head, dtype));
  TRY(check_stride(r, name, "request", strides->request, dtype));
  if (strides->row != 0 || rows <= 1) return KW_OK;
  return kw_cuda_refuse(r, "the row stride of %s is 0; this kernel reads rows of their own", name);
}

/* With a length of keys for each request, requests are found as rows of one packed tensor. */
static kw_status check_packed(kw_reason r, const kw_attention_problem* p, const char* name,
                              const kw_attention_strides* strides) {
  if (p->group || !p->kv_lengths || p->batch < 2 || strides->row == 0) return KW_OK;
  if (strides->request % strides->row != 0) {
    return kw_cuda_refuse(
        r,
        "the request stride of %s is %lld; with kv_lengths this kernel needs a multiple of the row stride "
        "%lld",
        name, (long long)strides->request, (long long)strides->row);
  }
  if (strides->request / strides->row * p->batch >= MOST_ROWS) {
    return kw_cuda_refuse(r, "%s spans 2^30 rows or more; with kv_lengths this kernel takes fewer", name);
  }
  return KW_OK;
}

static kw_status check_sizes(kw_reason r, const kw_attention_problem* p) {
  TRY(check_extent(r, "batch", p->batch));
  TRY(check_extent(r, "heads_q", p->heads_q));
  TRY(check_extent(r, "heads_kv", p->heads_kv));
  TRY(check_extent(r, "max_seqlen_q", p->max_seqlen_q));
  TRY(check_extent(r, "max_seqlen_k", p->max_seqlen_k));
  TRY(check_extent(r, "total_q", p->total_q));
  TRY(check_extent(r, "total_k", p->total_k));
  const int64_t longest = p->max_seqlen_q / 64 + 1, all = p->group ? p->total_q / 64 + p->batch : p->batch * longest;
  if (p->heads_q > 0 && all > INT32_MAX / 2 / p->heads_q) {
    return kw_cuda_refuse(r, "%lld heads with about %lld tiles of queries; this kernel counts fewer than 2^30 tiles",
                          (long long)p->heads_q, (long long)all);
  }
  return KW_OK;
}

static kw_status check_scale(kw_reason r, const kw_attention_problem* p) {
  if (!(p->scale > 0) || !isfinite((float)p->scale)) {
    return kw_cuda_refuse(
        r, "scale is %g; this kernel, which finds maxima before it scales, serves finite scales above 0", p->scale);
  }
  if (p->soft_cap == 0 || (p->soft_cap > 0 && isfinite((float)(p->scale / p->soft_cap)))) return KW_OK;
  return kw_cuda_refuse(r, "soft_cap is %g; this kernel serves finite caps above 0", p->soft_cap);
}

/* Pages are found as rows of the whole cache, and copied by 8 rows or more. */
static kw_status check_pages(kw_reason r, const kw_attention_problem* p, const char* name,
                             const kw_attention_strides* strides) {
  TRY(check_extent(r, "pages", p->pages));
  if (p->pages == 0) return KW_OK;
  if (p->page_size % 8 != 0) {
    return kw_cuda_refuse(r, "page_size is %lld; this kernel serves multiples of 8", (long long)p->page_size);
  }
  if (strides->row == 0 || strides->request % strides->row != 0) {
    return kw_cuda_refuse(r, "pages of %s are %lld apart; this kernel needs a multiple of the row stride %lld", name,
                          (long long)strides->request, (long long)strides->row);
  }
  if (strides->request / strides->row * p->pages >= MOST_ROWS) {
    return kw_cuda_refuse(r, "%s spans 2^30 rows or more; this kernel takes fewer", name);
  }
  return p->page_table_stride * p->batch < MOST_ROWS ? KW_OK
                                                     : kw_cuda_refuse(r, "the page table has 2^30 entries or more");
}

static kw_status check_grid(kw_reason r, const kw_attention_traits* t, const kw_attention_problem* p) {
  if (t->family != KW_ATTENTION_FWD_SPLITKV && t->family != KW_ATTENTION_BWD_DQ_DK_DV) return KW_OK;
  if (p->heads_kv > MOST_BLOCKS) {
    return kw_cuda_refuse(r, "heads_kv is %lld; this kernel serves up to %d", (long long)p->heads_kv, MOST_BLOCKS);
  }
  TRY(check_extent(r, "pages", p->pages));
  return check_extent(r, "page_size", p->page_size);
}

/* Tensors of KW_OP_ATTENTION_PART. */
static kw_status check_part(kw_reason r, const kw_attention_traits* t, const kw_attention_problem* p) {
  TRY(check_scale(r, p));
  TRY(check_grid(r, t, p));
  TRY(check_tensor(r, "q", &p->q, p->max_seqlen_q, p->dtype_q));
  TRY(check_tensor(r, "k", &p->k, p->max_seqlen_k, p->dtype_kv));
  TRY(check_tensor(r, "v", &p->v, p->max_seqlen_k, p->dtype_kv));
  TRY(check_tensor(r, "o", &p->o, p->max_seqlen_q, p->dtype_o));
  if (t->family == KW_ATTENTION_BATCH_PREFILL) {
    TRY(check_pages(r, p, "k", &p->k));
    return check_pages(r, p, "v", &p->v);
  }
  if (t->family != KW_ATTENTION_FWD) return KW_OK;
  TRY(check_packed(r, p, "k", &p->k));
  return check_packed(r, p, "v", &p->v);
}

/* Tensors of KW_OP_ATTENTION_DQ_DK_DV. */
static kw_status check_gradients(kw_reason r, const kw_attention_traits* t, const kw_attention_problem* p) {
  TRY(check_scale(r, p));
  TRY(check_grid(r, t, p));
  if (p->batch > MOST_BLOCKS || p->heads_q > MOST_BLOCKS) {
    return kw_cuda_refuse(r, "%lld requests of %lld heads; this kernel serves up to %d of each", (long long)p->batch,
                          (long long)p->heads_q, MOST_BLOCKS);
  }
  TRY(check_tensor(r, "q", &p->q, p->max_seqlen_q, p->dtype_q));
  TRY(check_tensor(r, "k", &p->k, p->max_seqlen_k, p->dtype_kv));
  TRY(check_tensor(r, "v", &p->v, p->max_seqlen_k, p->dtype_kv));
  TRY(check_tensor(r, "d_o", &p->d_o, p->max_seqlen_q, p->dtype_o));
  TRY(check_tensor(r, "dq", &p->dq, p->max_seqlen_q, p->dtype_q));
  TRY(check_tensor(r, "dk", &p->dk, p->max_seqlen_k, p->dtype_kv));
  return check_tensor(r, "dv", &p->dv, p->max_seqlen_k, p->dtype_kv);
}

kw_status kw_cuda_attention_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                     size_t reason_bytes) {
  const kw_attention_traits* t = kernel->traits;
  const kw_attention_problem* p = (const kw_attention_problem*)problem;
  const kw_reason r = {reason, reason_bytes};
  TRY(kw_attention_traits_match(t, p, reason, reason_bytes));
  TRY(check_sizes(r, p));
  if (p->batch == 0 || p->heads_q == 0) return KW_OK;
  if (p->base.op == KW_OP_ATTENTION_DQ_DK_DV) return check_gradients(r, t, p);
  if (p->max_seqlen_q == 0) return KW_OK;
  if (p->base.op == KW_OP_ATTENTION_PART) return check_part(r, t, p);
  return check_tensor(r, "o", &p->o, p->max_seqlen_q, p->dtype_o);
}

kw_status kw_cuda_attention_plan_problem(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  (void)kernel;
  ((kw_cuda_attention_plan*)plan)->problem = *(const kw_attention_problem*)problem;
  return KW_OK;
}

static kw_status check_pointer(const char* name, const void* pointer, int needed) {
  if (!needed) return KW_OK;
  if (!pointer) return kw_cuda_fail(KW_INVALID_ARGUMENT, "%s is null", name);
  if ((uintptr_t)pointer % VECTOR_BYTES == 0) return KW_OK;
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

/* A thread turns 8 elements at a time. */
static kw_status check_rotary(kw_reason r, const kw_append_problem* p) {
  const int64_t step = p->rope == KW_ROPE_HALF ? 16 : 8;
  if (p->rope == KW_ROPE_NONE || p->rotary_dim % step == 0) return KW_OK;
  return kw_cuda_refuse(r, "rotary_dim is %lld; this kernel serves multiples of %lld", (long long)p->rotary_dim,
                        (long long)step);
}

kw_status kw_cuda_append_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                  size_t reason_bytes) {
  const kw_append_problem* p = (const kw_append_problem*)problem;
  const kw_reason r = {reason, reason_bytes};
  TRY(kw_append_traits_match(kernel->traits, p, reason, reason_bytes));
  TRY(check_rotary(r, p));
  TRY(check_extent(r, "batch", p->batch));
  TRY(check_extent(r, "capacity", p->capacity));
  TRY(check_extent(r, "page_size", p->page_size));
  TRY(check_extent(r, "rows of k", p->batch * p->seqlen_new * p->heads_kv));
  TRY(check_extent(r, "rows of q", p->batch * p->seqlen_q * p->heads_q));
  TRY(check_tensor(r, "q", &p->q, 0, p->dtype));
  TRY(check_tensor(r, "q_out", &p->q_out, 0, p->dtype));
  TRY(check_tensor(r, "k", &p->k, 0, p->dtype));
  TRY(check_tensor(r, "v", &p->v, 0, p->dtype));
  TRY(check_tensor(r, "k_cache", &p->k_cache, p->capacity, p->dtype));
  return check_tensor(r, "v_cache", &p->v_cache, p->capacity, p->dtype);
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
