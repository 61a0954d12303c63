/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/attention/rules/hip.py by `kernelwright formulas`, and explained there. */
#ifndef LAUNCHERS_HIP_ATTENTION_CONDITIONS_H
#define LAUNCHERS_HIP_ATTENTION_CONDITIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernelwright/abi.h"
#include "kernelwright/attention.h"
#include "kernelwright/attention/checks.h"
#include "kernelwright/dtypes.h"
#include "kernelwright/hip/attention/sizes.h"
#include "kernelwright/rules.h"

#define KW_HIP_ATTENTION_ROTARY_VECTOR 16
#define KW_HIP_ATTENTION_ALIBI_POSITIONS 65536
#define KW_HIP_ATTENTION_MOST_POSITIONS 536870911
#define KW_HIP_ATTENTION_BEYOND_ROW 256
#define KW_HIP_ATTENTION_COMBINING_WAVES 8

/* Strides are 32-bit numbers. */
static inline kw_status kw_hip_attention_stride_fits(const char* name, int64_t stride, int64_t size, int64_t aligned, char* reason, size_t bytes) {
  if (!kw_fits_int32(stride)) {
    snprintf(reason, bytes, "a stride of %s is %lld: it does not fit into 31 bits", name, (long long)(stride));
    return KW_UNSUPPORTED;
  }
  if (kw_mul(stride, size) % aligned != 0) {
    snprintf(reason, bytes, "a stride of %s is %lld elements: rows are not aligned to %lld bytes", name, (long long)(stride), (long long)(aligned));
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* Byte offsets within a request's rows of a head, a tile beyond the last one, are 32-bit numbers. */
static inline kw_status kw_hip_attention_lines_fit(const kw_attention_traits* t, int64_t aligned, const char* name, int64_t request, int64_t head, int64_t row, int64_t count, uint32_t dtype, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  const int64_t size = kw_dtype_bytes(dtype);
  const int64_t reached = kw_add(kw_mul(kw_add(count, kw_larger(t->tile_m0, t->tile_n0)), kw_larger(row, 1)), KW_HIP_ATTENTION_BEYOND_ROW);
  if ((status = kw_hip_attention_stride_fits(name, request, size, aligned, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_stride_fits(name, head, size, aligned, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_stride_fits(name, row, size, aligned, reason, bytes)) != KW_OK) return status;
  if (kw_bytes_fit_int32(reached, size)) return KW_OK;
  snprintf(reason, bytes, "%s has %lld rows of a head, %lld elements apart: byte offsets do not fit into 31 bits", name, (long long)(count), (long long)(row));
  return KW_UNSUPPORTED;
}

/* The same of a tensor of the problem. */
static inline kw_status kw_hip_attention_tensor_fits(const kw_attention_traits* t, int64_t aligned, const char* name, const kw_attention_strides* strides, int64_t count, uint32_t dtype, char* reason, size_t bytes) {
  return kw_hip_attention_lines_fit(t, aligned, name, strides->request, strides->head, strides->row, count, dtype, reason, bytes);
}

/* A number that kernels multiply in 32 bits. */
static inline kw_status kw_hip_attention_product_fits(const char* what, int64_t value, char* reason, size_t bytes) {
  if (kw_fits_int32(value)) {
    return KW_OK;
  }
  if (kw_fits_int64(value)) {
    snprintf(reason, bytes, "%s: %lld does not fit into 31 bits", what, (long long)(value));
    return KW_UNSUPPORTED;
  }
  snprintf(reason, bytes, "%s: the number does not fit into 31 bits", what);
  return KW_UNSUPPORTED;
}

/* Lengths are 32-bit numbers. */
static inline kw_status kw_hip_attention_length_fits(int64_t value, char* reason, size_t bytes) {
  if (kw_fits_int32(value)) {
    return KW_OK;
  }
  snprintf(reason, bytes, "a length of the problem is %lld: it does not fit into 31 bits", (long long)(value));
  return KW_UNSUPPORTED;
}

/* The larger of the strides of requests and heads in a dense tensor of values per row. */
static inline int64_t kw_hip_attention_to_last_request(const kw_attention_problem* p, int64_t hdim) {
  const int64_t head = kw_mul(p->group != 0 ? p->total_q : p->max_seqlen_q, hdim);
  return !(p->group != 0) && p->batch > 1 && p->heads_q > 1 ? kw_mul(p->heads_q, head) : head;
}

/* Counts. */
static inline kw_status kw_hip_attention_lengths_fit(const kw_attention_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_hip_attention_length_fits(p->batch, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_length_fits(p->heads_q, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_length_fits(p->heads_kv, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_length_fits(p->hdim_q, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_length_fits(p->hdim_v, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_length_fits(p->max_seqlen_q, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_length_fits(p->max_seqlen_k, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_length_fits(p->total_q, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_length_fits(p->total_k, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_length_fits(p->pages, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_length_fits(p->page_size, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_length_fits(p->page_table_stride, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_length_fits(p->min_seqlen_q, reason, bytes)) != KW_OK) return status;
  return kw_hip_attention_length_fits(p->slopes_stride, reason, bytes);
}

/* Counts, and what kernels multiply in 32 bits. */
static inline kw_status kw_hip_attention_range_fits(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  const int64_t keys = p->max_seqlen_k;
  const int64_t random_request = p->random_bytes != 0 ? kw_hip_attention_to_last_request(p, keys) : 0;
  const int64_t random_head = p->random_bytes != 0 ? kw_mul(kw_add(p->max_seqlen_q, kw_larger(t->tile_m0, t->tile_n0)), keys) : 0;
  if ((status = kw_hip_attention_lengths_fit(p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_product_fits("entries of LSE from one request to the next", kw_hip_attention_to_last_request(p, 1), reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_product_fits("entries of the page table", kw_mul(p->batch, p->page_table_stride), reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_product_fits("slopes of all requests", kw_add(kw_mul(p->batch, p->slopes_stride), p->heads_q), reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_product_fits("random bytes from one request to the next", random_request, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_product_fits("random bytes of a head", random_head, reason, bytes)) != KW_OK) return status;
  if (kw_add(p->max_seqlen_q, keys) > KW_HIP_ATTENTION_MOST_POSITIONS) {
    snprintf(reason, bytes, "%lld queries and %lld keys are more than the %lld positions that a kernel can add up", (long long)(p->max_seqlen_q), (long long)(keys), (long long)(KW_HIP_ATTENTION_MOST_POSITIONS));
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* Parts that are addressed by 32-bit offsets, with a tile of queries and splits beyond the last ones. */
static inline kw_status kw_hip_attention_parts_fit(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  const bool part = p->base.op == KW_OP_ATTENTION_PART;
  const bool splits = p->base.op == KW_OP_ATTENTION_COMBINE || (part && p->leaves_splits != 0);
  const bool slices = p->dq_slices != 0 && !part;
  const int64_t count = splits ? kw_mul(kw_parts(p->num_splits, KW_HIP_ATTENTION_COMBINING_WAVES), KW_HIP_ATTENTION_COMBINING_WAVES) : kw_larger(p->dq_slices, 1);
  const int64_t row = splits ? p->hdim_v : p->hdim_q;
  const int64_t results = kw_mul(kw_mul(count, kw_attention_rows(p)), row);
  const int64_t reached = kw_add(kw_add(results, kw_mul(t->tile_m0, row)), KW_HIP_ATTENTION_BEYOND_ROW);
  if ((!splits && !slices) || kw_bytes_fit_int32(reached, 4)) {
    return KW_OK;
  }
  snprintf(reason, bytes, "partial results have %lld elements: byte offsets do not fit into 31 bits", (long long)(results));
  return KW_UNSUPPORTED;
}

/* Distances of ALiBi have 16 bits. */
static inline kw_status kw_hip_attention_alibi_fits(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  const int64_t longest = kw_larger(p->max_seqlen_q, p->max_seqlen_k);
  const bool reads = p->bias == KW_BIAS_ALIBI && kw_attention_reads_kv(p->base.op);
  if (!reads || t->family == KW_ATTENTION_FWD_SPLITKV || longest <= KW_HIP_ATTENTION_ALIBI_POSITIONS) {
    return KW_OK;
  }
  snprintf(reason, bytes, "ALiBi with %lld positions: CK Tile's distances have 16 bits, for %lld positions at most", (long long)(longest), (long long)(KW_HIP_ATTENTION_ALIBI_POSITIONS));
  return KW_UNSUPPORTED;
}

/* Slices of dQ are tiles of keys of the kernel that made them. */
static inline kw_status kw_hip_attention_slices_match(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  const int64_t slices = t->tile_n0 == 0 ? 1 : kw_parts(kw_larger(p->max_seqlen_k, 1), t->tile_n0);
  if (t->family != KW_ATTENTION_BWD_CONVERT_DQ || p->dq_slices == slices) {
    return KW_OK;
  }
  snprintf(reason, bytes, "dQ is left as %lld sums, this kernel adds up %lld", (long long)(p->dq_slices), (long long)(slices));
  return KW_UNSUPPORTED;
}

/* Gradients of K and V for each head of Q, which are added up where heads share those of K and V. */
static inline kw_status kw_hip_attention_shared_heads_fit(const kw_attention_traits* t, const kw_attention_problem* p, int64_t aligned, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if (p->base.op != KW_OP_ATTENTION_DQ_DK_DV || p->heads_q == p->heads_kv) {
    return KW_OK;
  }
  const int64_t count = p->group != 0 ? p->total_k : p->max_seqlen_k;
  const int64_t batch = p->group != 0 ? 1 : p->batch;
  const bool many = batch > 1;
  const int64_t head_k = kw_mul(count, p->hdim_q);
  const int64_t head_v = kw_mul(count, p->hdim_v);
  const int64_t request_k = many ? kw_mul(p->heads_q, head_k) : 0;
  const int64_t request_v = many ? kw_mul(p->heads_q, head_v) : 0;
  const int64_t sums = kw_mul(kw_mul(kw_mul(batch, count), p->heads_kv), kw_larger(p->hdim_q, p->hdim_v));
  if ((status = kw_hip_attention_lines_fit(t, aligned, "dK of every head of Q", request_k, head_k, p->hdim_q, count, p->dtype_kv, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_lines_fit(t, aligned, "dV of every head of Q", request_v, head_v, p->hdim_v, count, p->dtype_kv, reason, bytes)) != KW_OK) return status;
  if (kw_fits_uint32(kw_add(sums, KW_HIP_ATTENTION_BLOCK))) return KW_OK;
  snprintf(reason, bytes, "gradients of K have %lld elements, more than a launch can add up", (long long)(sums));
  return KW_UNSUPPORTED;
}

/* Workgroups along y and z. */
static inline kw_status kw_hip_attention_grid_fits(int64_t y, int64_t z, char* reason, size_t bytes) {
  if (y <= KW_HIP_ATTENTION_MAX_GRID && z <= KW_HIP_ATTENTION_MAX_GRID) {
    return KW_OK;
  }
  snprintf(reason, bytes, "%lld heads, requests or tiles are more than the %lld that a grid can have", (long long)(kw_larger(y, z)), (long long)(KW_HIP_ATTENTION_MAX_GRID));
  return KW_UNSUPPORTED;
}

/* Places of keys that batch_prefill keeps for a request: behind them the rest of a tile, and one loaded ahead. */
static inline int64_t kw_hip_attention_places(const kw_attention_traits* t, const kw_attention_problem* p) {
  return kw_mul(kw_add(kw_parts(p->max_seqlen_k, t->tile_n0), 1), t->tile_n0);
}

/* Whether the rows of a request lie behind those of the one before, as the kernels of ragged requests read them. */
static inline bool kw_hip_attention_follow(const kw_attention_problem* p, const kw_attention_strides* strides) {
  return p->batch < 2 || p->max_seqlen_q == 1 || strides->request == kw_mul(p->max_seqlen_q, strides->row);
}

/* Requests of one length are served by batch_prefill as ragged ones, whose LSE lies otherwise. */
static inline kw_status kw_hip_attention_requests_follow(const kw_attention_traits* t, const kw_attention_problem* p, int64_t aligned, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if (t->family != KW_ATTENTION_BATCH_PREFILL || p->group != 0) {
    return KW_OK;
  }
  const bool one = p->max_seqlen_q == 1;
  const bool biased = p->bias == KW_BIAS_ELEMENTWISE;
  if (!kw_hip_attention_follow(p, &p->q) || !kw_hip_attention_follow(p, &p->o) || (biased && !kw_hip_attention_follow(p, &p->bias_strides))) {
    snprintf(reason, bytes, "%s", "the rows of a request do not lie behind those of the one before");
    return KW_UNSUPPORTED;
  }
  if (p->batch > 1 && (p->lse != 0 || p->random_bytes != 0)) {
    snprintf(reason, bytes, "%s", "LSE and random bytes lie by heads and requests, this kernel writes them by heads alone");
    return KW_UNSUPPORTED;
  }
  const kw_attention_strides* bias = &p->bias_strides;
  if (one && (status = kw_hip_attention_lines_fit(t, aligned, "Q of single queries", 0, p->q.head, p->q.request, 1, p->dtype_q, reason, bytes)) != KW_OK) return status;
  if (one && (status = kw_hip_attention_lines_fit(t, aligned, "O of single queries", 0, p->o.head, p->o.request, 1, p->dtype_o, reason, bytes)) != KW_OK) return status;
  if ((one && biased) && (status = kw_hip_attention_lines_fit(t, aligned, "bias of single queries", 0, bias->head, bias->request, 1, p->dtype_bias, reason, bytes)) != KW_OK) return status;
  return KW_OK;
}

/* Tiles of keys lie in one page; places of keys are found by one multiplication. */
static inline kw_status kw_hip_attention_pages_fit(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  bool even = false;
  if (p->page_table == KW_PAGES_NONE) {
    return KW_OK;
  }
  if (t->family == KW_ATTENTION_BATCH_PREFILL) {
    even = p->k.request == kw_mul(p->page_size, p->k.row) && p->v.request == kw_mul(p->page_size, p->v.row);
    if (!even || !kw_fits_int32(kw_mul(p->pages, p->page_size))) {
      snprintf(reason, bytes, "%s", "the keys of neighbouring pages are not everywhere equally far apart in memory");
      return KW_UNSUPPORTED;
    }
    return kw_hip_attention_product_fits("places of keys of all requests", kw_mul(p->batch, kw_add(kw_hip_attention_places(t, p), KW_HIP_ATTENTION_BLOCK)), reason, bytes);
  }
  if (p->page_size > 0 && p->page_size % t->tile_n0 == 0) {
    return KW_OK;
  }
  snprintf(reason, bytes, "page_size is %lld, this kernel serves multiples of its tile of %lld keys", (long long)(p->page_size), (long long)(t->tile_n0));
  return KW_UNSUPPORTED;
}

/* The tensors that a stage touches. */
static inline kw_status kw_hip_attention_operands_fit(const kw_attention_traits* t, const kw_attention_problem* p, int64_t aligned, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  const int64_t queries = p->max_seqlen_q;
  const bool paged = p->page_table != KW_PAGES_NONE;
  const int64_t cached = t->family == KW_ATTENTION_BATCH_PREFILL ? kw_mul(p->pages, p->page_size) : p->page_size;
  const int64_t keys = paged ? cached : p->max_seqlen_k;
  const bool gradients = p->base.op == KW_OP_ATTENTION_DQ_DK_DV;
  const bool converts = p->base.op == KW_OP_ATTENTION_CONVERT_DQ;
  const bool scores = kw_attention_reads_kv(p->base.op);
  const bool biased = scores && p->bias == KW_BIAS_ELEMENTWISE;
  const bool writes_dq = converts || (gradients && p->dq_slices == 0);
  const bool reads_do = gradients || p->base.op == KW_OP_ATTENTION_DOT;
  if (scores && (status = kw_hip_attention_tensor_fits(t, aligned, "Q", &p->q, queries, p->dtype_q, reason, bytes)) != KW_OK) return status;
  if (scores && (status = kw_hip_attention_tensor_fits(t, aligned, "K", &p->k, keys, p->dtype_kv, reason, bytes)) != KW_OK) return status;
  if (scores && (status = kw_hip_attention_tensor_fits(t, aligned, "V", &p->v, keys, p->dtype_kv, reason, bytes)) != KW_OK) return status;
  if ((!converts && !gradients) && (status = kw_hip_attention_tensor_fits(t, aligned, "O", &p->o, queries, p->dtype_o, reason, bytes)) != KW_OK) return status;
  if (reads_do && (status = kw_hip_attention_tensor_fits(t, aligned, "dO", &p->d_o, queries, p->dtype_o, reason, bytes)) != KW_OK) return status;
  if (writes_dq && (status = kw_hip_attention_tensor_fits(t, aligned, "dQ", &p->dq, queries, p->dtype_q, reason, bytes)) != KW_OK) return status;
  if (gradients && (status = kw_hip_attention_tensor_fits(t, aligned, "dK", &p->dk, keys, p->dtype_kv, reason, bytes)) != KW_OK) return status;
  if (gradients && (status = kw_hip_attention_tensor_fits(t, aligned, "dV", &p->dv, keys, p->dtype_kv, reason, bytes)) != KW_OK) return status;
  if (biased && (status = kw_hip_attention_tensor_fits(t, aligned, "bias", &p->bias_strides, queries, p->dtype_bias, reason, bytes)) != KW_OK) return status;
  if ((biased && p->dbias != 0) && (status = kw_hip_attention_tensor_fits(t, aligned, "dbias", &p->dbias_strides, queries, p->dtype_bias, reason, bytes)) != KW_OK) return status;
  return KW_OK;
}

/* What is checked of attention but the struct itself; strides are multiples of ``aligned`` bytes. */
static inline kw_status kw_hip_attention_check(const kw_attention_traits* t, const kw_attention_problem* p, int64_t aligned, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  const bool part = p->base.op == KW_OP_ATTENTION_PART;
  const int64_t tiles = t->tile_m0 == 0 ? 1 : kw_parts(p->max_seqlen_q, t->tile_m0);
  if ((status = kw_attention_traits_match(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_range_fits(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_parts_fit(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_alibi_fits(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_slices_match(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_operands_fit(t, p, aligned, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_shared_heads_fit(t, p, aligned, reason, bytes)) != KW_OK) return status;
  if (part && (status = kw_hip_attention_pages_fit(t, p, reason, bytes)) != KW_OK) return status;
  if (part && (status = kw_hip_attention_requests_follow(t, p, aligned, reason, bytes)) != KW_OK) return status;
  if (part && p->max_seqlen_k == 0 && !(t->pad_sk != 0)) {
    snprintf(reason, bytes, "%s", "there are no keys; this kernel serves whole tiles of them");
    return KW_UNSUPPORTED;
  }
  return kw_hip_attention_grid_fits(kw_larger(p->heads_q, tiles), kw_larger(p->batch, tiles), reason, bytes);
}

/* What kernels of append multiply in 32 bits; its lengths go with strides, which tensor_fits sees. */
static inline kw_status kw_hip_attention_append_range_fits(const kw_append_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  const int64_t angles = p->rope != KW_ROPE_NONE ? kw_mul(p->rotary_places, p->rotary_dim) : 0;
  const int64_t copied = p->rotates_q != 0 ? kw_mul(kw_mul(kw_mul(p->batch, p->seqlen_q), p->heads_q), p->hdim_q) : 0;
  if ((status = kw_hip_attention_product_fits("new keys", p->seqlen_new, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_product_fits("queries", p->seqlen_q, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_product_fits("entries of the page table", kw_mul(p->batch, p->page_table_stride), reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_product_fits("a page", p->page_size, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_product_fits("a row of the page table", p->page_table_stride, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_product_fits("angles of all places", angles, reason, bytes)) != KW_OK) return status;
  if (kw_fits_uint32(kw_add(copied, KW_HIP_ATTENTION_BLOCK))) return KW_OK;
  snprintf(reason, bytes, "q has %lld elements, more than a launch can copy", (long long)(copied));
  return KW_UNSUPPORTED;
}

/* New rows, the cache, and queries that are turned. */
static inline kw_status kw_hip_attention_append_tensors_fit(const kw_attention_traits* t, const kw_append_problem* p, int64_t aligned, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  const int64_t keys = p->page_table != KW_PAGES_NONE ? p->page_size : p->capacity;
  if ((status = kw_hip_attention_tensor_fits(t, aligned, "the new K", &p->k, p->seqlen_new, p->dtype, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_tensor_fits(t, aligned, "the new V", &p->v, p->seqlen_new, p->dtype, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_tensor_fits(t, aligned, "the cache of K", &p->k_cache, keys, p->dtype, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_tensor_fits(t, aligned, "the cache of V", &p->v_cache, keys, p->dtype, reason, bytes)) != KW_OK) return status;
  if (p->rotates_q != 0 && (status = kw_hip_attention_tensor_fits(t, aligned, "q", &p->q, p->seqlen_q, p->dtype, reason, bytes)) != KW_OK) return status;
  if (p->rotates_q != 0 && (status = kw_hip_attention_tensor_fits(t, aligned, "q_out", &p->q_out, p->seqlen_q, p->dtype, reason, bytes)) != KW_OK) return status;
  return KW_OK;
}

/* Tiles of queries and of new keys, which lie in two pages at most. */
static inline kw_status kw_hip_attention_append_tiles_fit(const kw_attention_traits* t, const kw_append_problem* p, char* reason, size_t bytes) {
  const bool whole_q = t->pad_s != 0 || p->seqlen_q % t->tile_m0 == 0;
  const bool whole_k = t->pad_sk != 0 || p->seqlen_new % t->tile_n0 == 0;
  if (!whole_q || !whole_k) {
    snprintf(reason, bytes, "this kernel serves whole tiles of %lld queries and %lld new keys", (long long)(t->tile_m0), (long long)(t->tile_n0));
    return KW_UNSUPPORTED;
  }
  const int64_t together = kw_smaller(p->seqlen_new, t->tile_n0);
  if (p->page_table != KW_PAGES_NONE && p->page_size < together) {
    snprintf(reason, bytes, "page_size is %lld: the %lld keys that are written at once lie in more than two pages", (long long)(p->page_size), (long long)(together));
    return KW_UNSUPPORTED;
  }
  if (p->rope != KW_ROPE_NONE && p->rotary_dim % KW_HIP_ATTENTION_ROTARY_VECTOR != 0) {
    snprintf(reason, bytes, "rotary_dim is %lld, this kernel serves multiples of %lld", (long long)(p->rotary_dim), (long long)(KW_HIP_ATTENTION_ROTARY_VECTOR));
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* The same of KW_OP_ATTENTION_APPEND. */
static inline kw_status kw_hip_attention_append_check(const kw_attention_traits* t, const kw_append_problem* p, int64_t aligned, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_attention_append_traits_match(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_append_range_fits(p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_append_tensors_fit(t, p, aligned, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_attention_append_tiles_fit(t, p, reason, bytes)) != KW_OK) return status;
  return kw_hip_attention_grid_fits(kw_larger(p->heads_q, p->heads_kv), p->batch, reason, bytes);
}

#endif /* LAUNCHERS_HIP_ATTENTION_CONDITIONS_H */
