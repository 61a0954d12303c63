/* What crosses from the host to a forward attention kernel.
 *
 * C99 and C++; the same bytes for a 64-bit host and for the GPU. The kernel gets plain numbers and builds CK Tile's own
 * argument struct on the device, so no host ever sees a CK Tile header.
 */
#ifndef KERNELWRIGHT_HIP_ATTENTION_ARGUMENTS_H
#define KERNELWRIGHT_HIP_ATTENTION_ARGUMENTS_H

#include <stdint.h>

/* Elements between neighbours along the length, the heads and the batch; the head dimension is contiguous. */
typedef struct kw_hip_attention_strides {
  int32_t row, head, batch;
} kw_hip_attention_strides;

/* The kernel arguments, in kernarg order. A kernel reads what its spec names.
 *
 * Batch mode: all requests have seqlen_q queries and seqlen_k keys. Group mode: request b has the rows seqstart_q[b] to
 * seqstart_q[b + 1] of Q and O, and likewise of K and V; seqlen_k, if not null, holds how many of the keys count.
 * Query i of request b sees the keys from i - window_left to i + window_right, -1 for no bound; with mask 2 (bottom
 * right) i counts from the last query's place at the last key, with mask 1 from the first's at the first.
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
  uint64_t seed, offset; /* of dropout */
  int32_t seqlen_q, seqlen_k, hdim_q, hdim_v;
  int32_t heads;      /* of Q */
  int32_t head_ratio; /* heads of Q for each head of K and V */
  kw_hip_attention_strides q_strides, k_strides, v_strides, o_strides, bias_strides, random_strides;
  int32_t lse_head_stride, lse_batch_stride;
  int32_t slopes_batch_stride; /* 0: all requests share the slopes */
  int32_t window_left, window_right, mask;
  int32_t min_seqlen_q;
  float scale;            /* of the scores */
  float scale_p, scale_o; /* of fp8 probabilities and results */
  float soft_cap;         /* above 0 */
  float keep;             /* the part of probabilities that dropout keeps, above 0 */
} kw_hip_attention_arguments;

#endif
