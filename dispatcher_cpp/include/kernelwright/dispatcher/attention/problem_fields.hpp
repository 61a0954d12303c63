// Fields of the problems of kernelwright/attention.h.
// Made of kernelwright.problems.attention.description by `kernelwright headers`: edit that.
#ifndef KERNELWRIGHT_DISPATCHER_ATTENTION_PROBLEM_FIELDS_HPP
#define KERNELWRIGHT_DISPATCHER_ATTENTION_PROBLEM_FIELDS_HPP

#include "kernelwright/attention.h"
#include "kernelwright/dispatcher/support/fields.hpp"

namespace kernelwright {

static_assert(sizeof(kw_attention_strides) == 24, "kw_attention_strides is as its description");
static_assert(sizeof(kw_attention_problem) == 504, "kw_attention_problem is as its description");
static_assert(sizeof(kw_attention_args) == 240, "kw_attention_args is as its description");
static_assert(sizeof(kw_append_problem) == 288, "kw_append_problem is as its description");
static_assert(sizeof(kw_append_args) == 88, "kw_append_args is as its description");
static_assert(sizeof(kw_attention_traits) == 188, "kw_attention_traits is as its description");

constexpr Field kAttentionProblemFields[] = {
    {"group", offsetof(kw_attention_problem, group), kUint32, 0, 0, 1},
    {"dtype_q", offsetof(kw_attention_problem, dtype_q), kUint32, 0, 1, 7, kw_dtype_name},
    {"dtype_kv", offsetof(kw_attention_problem, dtype_kv), kUint32, 0, 1, 7, kw_dtype_name},
    {"dtype_o", offsetof(kw_attention_problem, dtype_o), kUint32, 0, 1, 7, kw_dtype_name},
    {"mask", offsetof(kw_attention_problem, mask), kUint32, 0, 0, 2, kw_mask_name},
    {"bias", offsetof(kw_attention_problem, bias), kUint32, 0, 0, 2, kw_bias_name},
    {"lse", offsetof(kw_attention_problem, lse), kUint32, 0, 0, 1},
    {"sink", offsetof(kw_attention_problem, sink), kUint32, 0, 0, 1},
    {"dropout", offsetof(kw_attention_problem, dropout), kUint32, 0, 0, 1},
    {"random_bytes", offsetof(kw_attention_problem, random_bytes), kUint32, 0, 0, 1},
    {"kv_lengths", offsetof(kw_attention_problem, kv_lengths), kUint32, 0, 0, 1},
    {"qscale", offsetof(kw_attention_problem, qscale), kUint32, 0, 0, 3, kw_qscale_name},
    {"page_table", offsetof(kw_attention_problem, page_table), kUint32, 0, 0, 2, kw_page_table_name},
    {"page_layout", offsetof(kw_attention_problem, page_layout), kUint32, 0, 0, 1, kw_page_layout_name},
    {"dbias", offsetof(kw_attention_problem, dbias), kUint32, 0, 0, 1},
    {"deterministic", offsetof(kw_attention_problem, deterministic), kUint32, 0, 0, 1},
    {"num_splits", offsetof(kw_attention_problem, num_splits), kUint32},
    {"leaves_splits", offsetof(kw_attention_problem, leaves_splits), kUint32, 0, 0, 1, nullptr, nullptr, 0, true},
    {"batch", offsetof(kw_attention_problem, batch), kInt64, 0, 0, INT64_MAX / 64},
    {"heads_q", offsetof(kw_attention_problem, heads_q), kInt64, 0, 1, INT64_MAX / 64},
    {"heads_kv", offsetof(kw_attention_problem, heads_kv), kInt64, 0, 1, INT64_MAX / 64},
    {"hdim_q", offsetof(kw_attention_problem, hdim_q), kInt64, 0, 1, INT64_MAX / 64},
    {"hdim_v", offsetof(kw_attention_problem, hdim_v), kInt64, 0, 1, INT64_MAX / 64},
    {"max_seqlen_q", offsetof(kw_attention_problem, max_seqlen_q), kInt64, 0, 0, INT64_MAX / 64},
    {"max_seqlen_k", offsetof(kw_attention_problem, max_seqlen_k), kInt64, 0, 0, INT64_MAX / 64},
    {"total_q", offsetof(kw_attention_problem, total_q), kInt64, 0, 0, INT64_MAX / 64},
    {"total_k", offsetof(kw_attention_problem, total_k), kInt64, 0, 0, INT64_MAX / 64},
    {"window_left", offsetof(kw_attention_problem, window_left), kInt64, 0, -1, INT64_MAX / 64},
    {"window_right", offsetof(kw_attention_problem, window_right), kInt64, 0, -1, INT64_MAX / 64},
    {"min_seqlen_q", offsetof(kw_attention_problem, min_seqlen_q), kInt64, 0, 0, INT64_MAX / 64},
    {"pages", offsetof(kw_attention_problem, pages), kInt64},
    {"page_size", offsetof(kw_attention_problem, page_size), kInt64},
    {"slopes_stride", offsetof(kw_attention_problem, slopes_stride), kInt64, 0, 0, INT64_MAX / 64, nullptr, nullptr, 0,
     true},
    {"scale_block_q", offsetof(kw_attention_problem, scale_block_q), kInt64, 0, 0, INT64_MAX / 64, nullptr, nullptr, 0,
     true},
    {"scale_block_k", offsetof(kw_attention_problem, scale_block_k), kInt64, 0, 0, INT64_MAX / 64, nullptr, nullptr, 0,
     true},
    {"scale", offsetof(kw_attention_problem, scale), kReal},
    {"soft_cap", offsetof(kw_attention_problem, soft_cap), kReal},
    {"dropout_p", offsetof(kw_attention_problem, dropout_p), kReal},
    {"q", offsetof(kw_attention_problem, q), kInt64, 3},
    {"k", offsetof(kw_attention_problem, k), kInt64, 3},
    {"v", offsetof(kw_attention_problem, v), kInt64, 3},
    {"o", offsetof(kw_attention_problem, o), kInt64, 3},
};

constexpr Field kAppendProblemFields[] = {
    {"dtype", offsetof(kw_append_problem, dtype), kUint32, 0, 1, 7, kw_dtype_name},
    {"rope", offsetof(kw_append_problem, rope), kUint32, 0, 0, 2, kw_rope_name},
    {"rotates_q", offsetof(kw_append_problem, rotates_q), kUint32, 0, 0, 1},
    {"page_table", offsetof(kw_append_problem, page_table), kUint32, 0, 0, 1, kw_page_table_name},
    {"page_layout", offsetof(kw_append_problem, page_layout), kUint32, 0, 0, 1, kw_page_layout_name},
    {"batch", offsetof(kw_append_problem, batch), kInt64, 0, 0, INT64_MAX / 64},
    {"heads_q", offsetof(kw_append_problem, heads_q), kInt64, 0, 0, INT64_MAX / 64},
    {"heads_kv", offsetof(kw_append_problem, heads_kv), kInt64, 0, 1, INT64_MAX / 64},
    {"hdim_q", offsetof(kw_append_problem, hdim_q), kInt64, 0, 1, INT64_MAX / 64},
    {"hdim_v", offsetof(kw_append_problem, hdim_v), kInt64, 0, 1, INT64_MAX / 64},
    {"seqlen_q", offsetof(kw_append_problem, seqlen_q), kInt64, 0, 0, INT64_MAX / 64},
    {"seqlen_new", offsetof(kw_append_problem, seqlen_new), kInt64, 0, 0, INT64_MAX / 64},
    {"capacity", offsetof(kw_append_problem, capacity), kInt64, 0, 0, INT64_MAX / 64},
    {"pages", offsetof(kw_append_problem, pages), kInt64},
    {"page_size", offsetof(kw_append_problem, page_size), kInt64},
    {"rotary_dim", offsetof(kw_append_problem, rotary_dim), kInt64, 0, 0, INT64_MAX / 64},
    {"rotary_places", offsetof(kw_append_problem, rotary_places), kInt64, 0, 0, INT64_MAX / 64},
    {"k_cache", offsetof(kw_append_problem, k_cache), kInt64, 3},
    {"v_cache", offsetof(kw_append_problem, v_cache), kInt64, 3},
};

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_ATTENTION_PROBLEM_FIELDS_HPP
