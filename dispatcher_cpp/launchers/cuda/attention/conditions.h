/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/attention/rules/cuda.py by `kernelwright formulas`, and explained there. */
#ifndef LAUNCHERS_CUDA_ATTENTION_CONDITIONS_H
#define LAUNCHERS_CUDA_ATTENTION_CONDITIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernelwright/abi.h"
#include "kernelwright/attention.h"
#include "kernelwright/attention/checks.h"
#include "kernelwright/dtypes.h"
#include "kernelwright/rules.h"

#define KW_CUDA_ATTENTION_VECTOR_BYTES 16
#define KW_CUDA_ATTENTION_STRIDE_LIMIT 1099511627776
#define KW_CUDA_ATTENTION_MOST_ROWS 1073741824
#define KW_CUDA_ATTENTION_MOST_BLOCKS 65535
#define KW_CUDA_ATTENTION_PAGE_PART 8

/* Lengths are below 2^30. */
static inline kw_status kw_cuda_attention_extent_fits(const char* field, int64_t extent, char* reason, size_t bytes) {
  if (extent >= 0 && extent < KW_CUDA_ATTENTION_MOST_ROWS) {
    return KW_OK;
  }
  snprintf(reason, bytes, "%s is %lld; this kernel takes 0 to 2^30 - 1", field, (long long)(extent));
  return KW_UNSUPPORTED;
}

/* Strides are multiples of 16 bytes. */
static inline kw_status kw_cuda_attention_stride_fits(const char* tensor, const char* which, int64_t stride, uint32_t dtype, char* reason, size_t bytes) {
  const int64_t size = kw_dtype_bytes(dtype);
  if (stride >= 0 && stride < KW_CUDA_ATTENTION_STRIDE_LIMIT / size && kw_mul(stride, size) % KW_CUDA_ATTENTION_VECTOR_BYTES == 0) {
    return KW_OK;
  }
  snprintf(reason, bytes, "the %s stride of %s is %lld; this kernel needs multiples of 16 bytes, that is of %lld %s elements, from 0 to 2^40 bytes", which, tensor, (long long)(stride), (long long)(KW_CUDA_ATTENTION_VECTOR_BYTES / size), kw_dtype_name(dtype));
  return KW_UNSUPPORTED;
}

/* Rows of a tensor are their own. */
static inline kw_status kw_cuda_attention_tensor_fits(const char* name, const kw_attention_strides* strides, int64_t rows, uint32_t dtype, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_cuda_attention_stride_fits(name, "row", strides->row, dtype, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_stride_fits(name, "head", strides->head, dtype, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_stride_fits(name, "request", strides->request, dtype, reason, bytes)) != KW_OK) return status;
  if (strides->row == 0 && rows > 1) {
    snprintf(reason, bytes, "the row stride of %s is 0; this kernel reads rows of their own", name);
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* With a length of keys for each request, requests are found as rows of one packed tensor. */
static inline kw_status kw_cuda_attention_packed_fits(const kw_attention_problem* p, const char* name, const kw_attention_strides* strides, char* reason, size_t bytes) {
  if (p->group != 0 || !(p->kv_lengths != 0) || p->batch < 2 || strides->row == 0) {
    return KW_OK;
  }
  if (strides->request % strides->row != 0) {
    snprintf(reason, bytes, "the request stride of %s is %lld; with kv_lengths this kernel needs a multiple of the row stride %lld", name, (long long)(strides->request), (long long)(strides->row));
    return KW_UNSUPPORTED;
  }
  if (kw_mul(strides->request / strides->row, p->batch) >= KW_CUDA_ATTENTION_MOST_ROWS) {
    snprintf(reason, bytes, "%s spans 2^30 rows or more; with kv_lengths this kernel takes fewer", name);
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* Tiles of queries are counted in 31 bits. */
static inline kw_status kw_cuda_attention_tiles_fit(const kw_attention_problem* p, char* reason, size_t bytes) {
  const int64_t longest = kw_add(p->max_seqlen_q / 64, 1);
  const int64_t tiles = p->group != 0 ? kw_add(p->total_q / 64, p->batch) : kw_mul(p->batch, longest);
  if (p->heads_q > 0 && tiles > INT32_MAX / 2 / p->heads_q) {
    snprintf(reason, bytes, "%lld heads with about %lld tiles of queries; this kernel counts fewer than 2^30 tiles", (long long)(p->heads_q), (long long)(tiles));
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* Lengths of the problem. */
static inline kw_status kw_cuda_attention_sizes_fit(const kw_attention_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_cuda_attention_extent_fits("batch", p->batch, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_extent_fits("heads_q", p->heads_q, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_extent_fits("heads_kv", p->heads_kv, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_extent_fits("max_seqlen_q", p->max_seqlen_q, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_extent_fits("max_seqlen_k", p->max_seqlen_k, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_extent_fits("total_q", p->total_q, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_extent_fits("total_k", p->total_k, reason, bytes)) != KW_OK) return status;
  return kw_cuda_attention_tiles_fit(p, reason, bytes);
}

/* Kernels find maxima before they scale. */
static inline kw_status kw_cuda_attention_scale_fits(const kw_attention_problem* p, char* reason, size_t bytes) {
  if (!(p->scale > 0.0) || !kw_finite_fp32(p->scale)) {
    snprintf(reason, bytes, "scale is %g; this kernel, which finds maxima before it scales, serves finite scales above 0", p->scale);
    return KW_UNSUPPORTED;
  }
  if (p->soft_cap == 0.0 || (p->soft_cap > 0.0 && kw_finite_fp32(p->scale / p->soft_cap))) {
    return KW_OK;
  }
  snprintf(reason, bytes, "soft_cap is %g; this kernel serves finite caps above 0", p->soft_cap);
  return KW_UNSUPPORTED;
}

/* Pages of a cache that has some. */
static inline kw_status kw_cuda_attention_cache_fits(const kw_attention_problem* p, const char* name, const kw_attention_strides* strides, char* reason, size_t bytes) {
  if (p->page_size % KW_CUDA_ATTENTION_PAGE_PART != 0) {
    snprintf(reason, bytes, "page_size is %lld; this kernel serves multiples of %lld", (long long)(p->page_size), (long long)(KW_CUDA_ATTENTION_PAGE_PART));
    return KW_UNSUPPORTED;
  }
  if (strides->row == 0 || strides->request % strides->row != 0) {
    snprintf(reason, bytes, "pages of %s are %lld apart; this kernel needs a multiple of the row stride %lld", name, (long long)(strides->request), (long long)(strides->row));
    return KW_UNSUPPORTED;
  }
  if (kw_mul(strides->request / strides->row, p->pages) >= KW_CUDA_ATTENTION_MOST_ROWS) {
    snprintf(reason, bytes, "%s spans 2^30 rows or more; this kernel takes fewer", name);
    return KW_UNSUPPORTED;
  }
  if (kw_mul(p->page_table_stride, p->batch) < KW_CUDA_ATTENTION_MOST_ROWS) {
    return KW_OK;
  }
  snprintf(reason, bytes, "%s", "the page table has 2^30 entries or more");
  return KW_UNSUPPORTED;
}

/* Pages are found as rows of the whole cache, and copied by 8 rows or more. */
static inline kw_status kw_cuda_attention_pages_fit(const kw_attention_problem* p, const char* name, const kw_attention_strides* strides, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_cuda_attention_extent_fits("pages", p->pages, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_extent_fits("page_size", p->page_size, reason, bytes)) != KW_OK) return status;
  if (p->pages != 0 && (status = kw_cuda_attention_cache_fits(p, name, strides, reason, bytes)) != KW_OK) return status;
  return KW_OK;
}

/* Heads that are an extent of the grid. */
static inline kw_status kw_cuda_attention_grid_fits(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if (t->family != KW_ATTENTION_FWD_SPLITKV && t->family != KW_ATTENTION_BWD_DQ_DK_DV) {
    return KW_OK;
  }
  if (p->heads_kv > KW_CUDA_ATTENTION_MOST_BLOCKS) {
    snprintf(reason, bytes, "heads_kv is %lld; this kernel serves up to %lld", (long long)(p->heads_kv), (long long)(KW_CUDA_ATTENTION_MOST_BLOCKS));
    return KW_UNSUPPORTED;
  }
  if ((status = kw_cuda_attention_extent_fits("pages", p->pages, reason, bytes)) != KW_OK) return status;
  return kw_cuda_attention_extent_fits("page_size", p->page_size, reason, bytes);
}

/* Tensors of KW_OP_ATTENTION_PART. */
static inline kw_status kw_cuda_attention_part_fits(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  const bool paged = t->family == KW_ATTENTION_BATCH_PREFILL;
  const bool whole = t->family == KW_ATTENTION_FWD;
  if ((status = kw_cuda_attention_scale_fits(p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_grid_fits(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_tensor_fits("q", &p->q, p->max_seqlen_q, p->dtype_q, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_tensor_fits("k", &p->k, p->max_seqlen_k, p->dtype_kv, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_tensor_fits("v", &p->v, p->max_seqlen_k, p->dtype_kv, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_tensor_fits("o", &p->o, p->max_seqlen_q, p->dtype_o, reason, bytes)) != KW_OK) return status;
  if (paged && (status = kw_cuda_attention_pages_fit(p, "k", &p->k, reason, bytes)) != KW_OK) return status;
  if (paged && (status = kw_cuda_attention_pages_fit(p, "v", &p->v, reason, bytes)) != KW_OK) return status;
  if (whole && (status = kw_cuda_attention_packed_fits(p, "k", &p->k, reason, bytes)) != KW_OK) return status;
  if (whole && (status = kw_cuda_attention_packed_fits(p, "v", &p->v, reason, bytes)) != KW_OK) return status;
  return KW_OK;
}

/* Tensors of KW_OP_ATTENTION_DQ_DK_DV. */
static inline kw_status kw_cuda_attention_gradients_fit(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_cuda_attention_scale_fits(p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_grid_fits(t, p, reason, bytes)) != KW_OK) return status;
  if (p->soft_cap != 0.0 && p->bias != KW_BIAS_NONE) {
    snprintf(reason, bytes, "%s", "scores have a soft cap and a bias; this kernel computes gradients of one of them");
    return KW_UNSUPPORTED;
  }
  if (p->batch > KW_CUDA_ATTENTION_MOST_BLOCKS || p->heads_q > KW_CUDA_ATTENTION_MOST_BLOCKS) {
    snprintf(reason, bytes, "%lld requests of %lld heads; this kernel serves up to %lld of each", (long long)(p->batch), (long long)(p->heads_q), (long long)(KW_CUDA_ATTENTION_MOST_BLOCKS));
    return KW_UNSUPPORTED;
  }
  if ((status = kw_cuda_attention_tensor_fits("q", &p->q, p->max_seqlen_q, p->dtype_q, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_tensor_fits("k", &p->k, p->max_seqlen_k, p->dtype_kv, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_tensor_fits("v", &p->v, p->max_seqlen_k, p->dtype_kv, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_tensor_fits("d_o", &p->d_o, p->max_seqlen_q, p->dtype_o, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_tensor_fits("dq", &p->dq, p->max_seqlen_q, p->dtype_q, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_tensor_fits("dk", &p->dk, p->max_seqlen_k, p->dtype_kv, reason, bytes)) != KW_OK) return status;
  return kw_cuda_attention_tensor_fits("dv", &p->dv, p->max_seqlen_k, p->dtype_kv, reason, bytes);
}

/* Tensors that the stage touches, where there are any. */
static inline kw_status kw_cuda_attention_memory_fits(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  if (p->batch == 0 || p->heads_q == 0) {
    return KW_OK;
  }
  if (p->base.op == KW_OP_ATTENTION_DQ_DK_DV) {
    return kw_cuda_attention_gradients_fit(t, p, reason, bytes);
  }
  if (p->max_seqlen_q == 0) {
    return KW_OK;
  }
  if (p->base.op == KW_OP_ATTENTION_PART) {
    return kw_cuda_attention_part_fits(t, p, reason, bytes);
  }
  return kw_cuda_attention_tensor_fits("o", &p->o, p->max_seqlen_q, p->dtype_o, reason, bytes);
}

/* What is checked of attention. */
static inline kw_status kw_cuda_attention_check(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_attention_traits_match(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_sizes_fit(p, reason, bytes)) != KW_OK) return status;
  return kw_cuda_attention_memory_fits(t, p, reason, bytes);
}

/* A thread turns 8 elements at a time. */
static inline kw_status kw_cuda_attention_rotary_fits(const kw_append_problem* p, char* reason, size_t bytes) {
  const int64_t step = p->rope == KW_ROPE_HALF ? 16 : 8;
  if (p->rope == KW_ROPE_NONE || p->rotary_dim % step == 0) {
    return KW_OK;
  }
  snprintf(reason, bytes, "rotary_dim is %lld; this kernel serves multiples of %lld", (long long)(p->rotary_dim), (long long)(step));
  return KW_UNSUPPORTED;
}

/* The same of KW_OP_ATTENTION_APPEND. */
static inline kw_status kw_cuda_attention_append_check(const kw_attention_traits* t, const kw_append_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_attention_append_traits_match(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_rotary_fits(p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_extent_fits("batch", p->batch, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_extent_fits("capacity", p->capacity, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_extent_fits("page_size", p->page_size, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_extent_fits("seqlen_new", p->seqlen_new, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_extent_fits("seqlen_q", p->seqlen_q, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_extent_fits("heads_kv", p->heads_kv, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_extent_fits("heads_q", p->heads_q, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_extent_fits("rotary_places", p->rotary_places, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_extent_fits("rows of k", kw_mul(kw_mul(p->batch, p->seqlen_new), p->heads_kv), reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_extent_fits("rows of q", kw_mul(kw_mul(p->batch, p->seqlen_q), p->heads_q), reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_tensor_fits("q", &p->q, 0, p->dtype, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_tensor_fits("q_out", &p->q_out, 0, p->dtype, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_tensor_fits("k", &p->k, 0, p->dtype, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_tensor_fits("v", &p->v, 0, p->dtype, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_attention_tensor_fits("k_cache", &p->k_cache, p->capacity, p->dtype, reason, bytes)) != KW_OK) return status;
  return kw_cuda_attention_tensor_fits("v_cache", &p->v_cache, p->capacity, p->dtype, reason, bytes);
}

#endif /* LAUNCHERS_CUDA_ATTENTION_CONDITIONS_H */
