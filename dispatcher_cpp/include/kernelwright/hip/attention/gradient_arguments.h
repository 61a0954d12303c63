/* What crosses from the host to the kernels of attention's gradients; see arguments.h. */
#ifndef KERNELWRIGHT_HIP_ATTENTION_GRADIENT_ARGUMENTS_H
#define KERNELWRIGHT_HIP_ATTENTION_GRADIENT_ARGUMENTS_H

#include "kernelwright/hip/attention/arguments.h"

/* Of bwd_dot_do_o, bwd_dq_dk_dv and bwd_convert_dq, in kernarg order; each reads some of them.
 *
 * Strides of Q, K, V, O, their gradients and the bias are as in kw_hip_attention_arguments, as are group mode and
 * masks; lengths_q, if not null, holds how many of the queries count. d is fp32 like lse and has its strides: keep
 * times the row sums of dO * O. dk and dv have a row for each head of Q. dq_sums is fp32: what is added up of dQ, or in
 * a deterministic kernel the part of each tile of keys, split_stride_sums after the one before.
 */
typedef struct kw_hip_gradient_arguments {
  const void* q;
  const void* k;
  const void* v;
  const void* o;
  const void* d_o;
  const void* lse;
  void* d;
  void* dq_sums;
  void* dq;
  void* dk;
  void* dv;
  const void* bias;
  void* dbias;
  void* random_bytes;
  const int32_t* seqstart_q;
  const int32_t* seqstart_k;
  const int32_t* lengths_q;
  const int32_t* lengths_k;
  uint64_t seed, offset;
  int32_t seqlen_q, seqlen_k, hdim_q, hdim_v;
  int32_t heads, head_ratio;
  kw_hip_attention_strides q_strides, k_strides, v_strides, o_strides, do_strides;
  kw_hip_attention_strides sums_strides, dq_strides, dk_strides, dv_strides;
  kw_hip_attention_strides bias_strides, dbias_strides, random_strides;
  int32_t lse_head_stride, lse_batch_stride;
  int32_t split_stride_sums;
  int32_t slopes_batch_stride;
  int32_t window_left, window_right, mask;
  float scale, keep;
} kw_hip_gradient_arguments;

/* Of the kernel that adds up the heads of Q that share a head of K and V: `rows` rows of `hdim` elements for each of
 * `heads` heads of K and V, to[...] = the sum of head_ratio rows of `from`; strides.batch is of requests. */
typedef struct kw_hip_head_sum_arguments {
  const void* from;
  void* to;
  int32_t batch, rows, heads, hdim, head_ratio;
  kw_hip_attention_strides from_strides, to_strides;
} kw_hip_head_sum_arguments;

/* Of the kernel that clears what others add to. */
typedef struct kw_hip_clear_arguments {
  float* to;
  uint64_t count;
} kw_hip_clear_arguments;

#endif
