/* What crosses from the host to attention kernels that compute scores, to the kernel that puts splits together, and to
 * the one that appends keys; those of the gradients are in gradient_arguments.h.
 *
 * C99 and C++; the same bytes for a 64-bit host and for the GPU. A kernel gets plain numbers and builds CK Tile's own
 * argument struct on the device, so no host ever sees a CK Tile header. Lengths and strides count elements.
 */
#ifndef KERNELWRIGHT_HIP_ATTENTION_ARGUMENTS_H
#define KERNELWRIGHT_HIP_ATTENTION_ARGUMENTS_H

#include <stdint.h>

#include "kernelwright/hip/attention/sizes.h"

/* Elements between neighbours along the length, the heads and the batch; the head dimension is contiguous. Of K and V
 * in pages, `batch` is from one page to the next. */
typedef struct kw_hip_attention_strides {
  int32_t row, head, batch;
} kw_hip_attention_strides;

/* Of fwd, fwd_splitkv, fwd_pagedkv and batch_prefill, in kernarg order. A kernel reads what its spec names.
 *
 * Batch mode: all requests have seqlen_q queries, and seqlen_k keys or, where it is not null, lengths_k[b]. Group mode:
 * request b has the rows seqstart_q[b] to seqstart_q[b + 1] of Q and O, and likewise of K and V; lengths_k, if not
 * null, holds how many of the keys count.
 * Query i of request b sees the keys from i - window_left to i + window_right, -1 for no bound; with mask 2 (bottom
 * right) i counts from the last query's place at the last key, with mask 1 from the first's at the first.
 *
 * Pages: the ones of request b are numbers from pages[b * pages_stride] on, each of page_size keys. batch_prefill: the
 * places of the keys of request b are pages[page_starts[2 b]] up to but not pages[page_starts[2 b + 1]], and the cache
 * has page_count places. Behind a request's places there are others up to the end of a tile of keys and a tile more.
 *
 * fwd_splitkv computes `splits` parts of the keys. Part i of O and LSE, in fp32, starts i * split_stride_o and
 * i * split_stride_lse after the first.
 *
 * Factors of 8-bit operands are one number each, on the device: stored value * factor = value, null for 1. Where O has
 * 8 bits, it is multiplied by scale_o before it is rounded.
 */
typedef struct kw_hip_attention_arguments {
  const void* q;
  const void* k;
  const void* v;
  void* o;
  const void* bias;   /* a matrix of bias for each head, or slopes: fp32, one for each head */
  void* lse;          /* fp32: heads x queries */
  void* random_bytes; /* of dropout, heads x queries x keys; null: not stored */
  const int32_t* seqstart_q;
  const int32_t* seqstart_k;
  const int32_t* lengths_k;
  const int32_t* pages;
  const int32_t* page_starts;
  const float* descale_q;
  const float* descale_k;
  const float* descale_v;
  const float* scale_o;
  uint64_t seed, offset; /* of dropout */
  int32_t seqlen_q, seqlen_k, hdim_q, hdim_v;
  int32_t heads;      /* of Q */
  int32_t head_ratio; /* heads of Q for each head of K and V */
  kw_hip_attention_strides q_strides, k_strides, v_strides, o_strides, bias_strides, random_strides;
  int32_t lse_head_stride, lse_batch_stride;
  int32_t slopes_batch_stride; /* 0: all requests share the slopes */
  int32_t window_left, window_right, mask;
  int32_t min_seqlen_q;
  int32_t pages_stride, page_size, page_count;
  int32_t batch, splits, split_stride_o, split_stride_lse;
  float scale;    /* of the scores */
  float soft_cap; /* above 0 */
  float keep;     /* the part of probabilities that dropout keeps, above 0 */
} kw_hip_attention_arguments;

/* Of the kernel that makes places of keys for batch_prefill out of a table of pages: of a list, whose pages of request
 * b are pages[page_starts[b]] up to but not pages[page_starts[b + 1]], the last with last_lengths[b] keys; or of a
 * block table, see lengths_k and pages_stride above. places[b * places_stride + j] is the place of key j, past_end
 * behind the last key, where nothing is read; ends[2 b] and ends[2 b + 1] are where the keys begin and end. Where all
 * requests have as many `queries`, query_starts[b], if not null, becomes the number of those before request b.
 */
typedef struct kw_hip_page_list_arguments {
  const int32_t* pages;
  const int32_t* page_starts; /* null: a block table */
  const int32_t* last_lengths;
  const int32_t* lengths_k;
  int32_t* places;
  int32_t* ends;
  int32_t* query_starts; /* one more than requests */
  int32_t pages_stride, page_size, places_stride, past_end, queries;
} kw_hip_page_list_arguments;

/* Of fwd_splitkv_combine: O and LSE out of their parts, which are as above. */
typedef struct kw_hip_combine_arguments {
  const void* o_parts;
  const void* lse_parts;
  void* o;
  void* lse;
  const int32_t* seqstart_q;
  const float* scale_o; /* see above */
  int32_t batch, seqlen_q, hdim_v, splits;
  kw_hip_attention_strides part_strides, o_strides;
  int32_t part_lse_head_stride, part_lse_batch_stride, lse_head_stride, lse_batch_stride;
  int32_t split_stride_o, split_stride_lse;
} kw_hip_combine_arguments;

/* Of fwd_appendkv: seqlen_new keys of each request go behind the lengths_k[b] that its cache holds, turned by the
 * rotary embedding if the spec says so; Q is turned in place, its row i by the angle of key lengths_k[b] + i or,
 * without turn_by_row, of key lengths_k[b]. cosines and sines are dense: keys x rotary_dim / 2, in Q's type.
 * cache_rows, if not null, says in which row of the cache each request is; pages as above.
 */
typedef struct kw_hip_append_arguments {
  void* q;
  void* k;
  void* v;
  const void* k_new;
  const void* v_new;
  const void* cosines;
  const void* sines;
  const int32_t* lengths_k;
  const int32_t* cache_rows;
  const int32_t* pages;
  int32_t seqlen_q, seqlen_new, hdim_q, hdim_v;
  int32_t heads, head_ratio;
  kw_hip_attention_strides q_strides, k_strides, v_strides, k_new_strides, v_new_strides;
  int32_t rotary_dim, turn_by_row;
  int32_t pages_stride, page_size;
} kw_hip_append_arguments;

#define KW_HIP_ATTENTION_FACTS_MAGIC 0x3141574bu /* "KWA1" */

/* Constants that only the device pass of the compiler knows, kept in the code object beside the kernel. */
typedef struct kw_hip_attention_facts {
  uint32_t magic;
  uint32_t arguments_bytes; /* of the kernel's argument struct as the device sees it */
  uint32_t block_size;      /* work-items per workgroup */
  uint32_t rows;            /* queries, or keys where workgroups are tiles of keys, of a workgroup */
} kw_hip_attention_facts;

#endif
