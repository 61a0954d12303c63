/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/attention/rules/checks.py by `kernelwright formulas`, and explained there. */
#ifndef KERNELWRIGHT_ATTENTION_CHECKS_H
#define KERNELWRIGHT_ATTENTION_CHECKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernelwright/abi.h"
#include "kernelwright/attention.h"
#include "kernelwright/checks.h"
#include "kernelwright/dtypes.h"
#include "kernelwright/rules.h"


/* Rows that LSE, D and partial results have for each element of "per row" in kernelwright/attention.h. */
static inline int64_t kw_attention_rows(const kw_attention_problem* p) {
  return kw_mul(p->heads_q, p->group != 0 ? p->total_q : kw_mul(p->batch, p->max_seqlen_q));
}

/* The mask of traits that serve exactly this problem: windows are generic. */
static inline uint32_t kw_attention_mask_kind(const kw_attention_problem* p) {
  const bool causal = p->window_left < 0 && p->window_right == 0;
  if (p->mask == KW_MASK_NONE || causal) {
    return p->mask;
  }
  return KW_MASK_GENERIC;
}

/* The kernel serves problems with, or without, something. */
static inline kw_status kw_attention_has(uint32_t served, bool asked, const char* what, char* reason, size_t bytes) {
  if (kw_in_set(served, asked)) {
    return KW_OK;
  }
  if (asked) {
    snprintf(reason, bytes, "the problem has %s, this kernel has not", what);
    return KW_UNSUPPORTED;
  }
  snprintf(reason, bytes, "the problem has no %s, this kernel has", what);
  return KW_UNSUPPORTED;
}

/* Whether a stage reads Q. */
static inline bool kw_attention_reads_q(uint32_t op) {
  return op != KW_OP_ATTENTION_COMBINE && op != KW_OP_ATTENTION_DOT;
}

/* Whether a stage reads K and V. */
static inline bool kw_attention_reads_kv(uint32_t op) {
  return op == KW_OP_ATTENTION_PART || op == KW_OP_ATTENTION_DQ_DK_DV;
}

/* Whether a stage reads or writes O. */
static inline bool kw_attention_reads_o(uint32_t op) {
  return op != KW_OP_ATTENTION_CONVERT_DQ;
}

/* A stage is compared by the tensors that it touches. */
static inline kw_status kw_attention_dtypes_match(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  const bool biased = p->bias == KW_BIAS_ELEMENTWISE && kw_attention_reads_kv(p->base.op);
  if (kw_attention_reads_q(p->base.op) && (status = kw_dtype_matches("dtype_q", p->dtype_q, t->dtype_q, reason, bytes)) != KW_OK) return status;
  if (kw_attention_reads_kv(p->base.op) && (status = kw_dtype_matches("dtype_kv", p->dtype_kv, t->dtype_kv, reason, bytes)) != KW_OK) return status;
  if (kw_attention_reads_o(p->base.op) && (status = kw_dtype_matches("dtype_o", p->dtype_o, t->dtype_o, reason, bytes)) != KW_OK) return status;
  if (biased && (status = kw_dtype_matches("dtype_bias", p->dtype_bias, t->dtype_bias, reason, bytes)) != KW_OK) return status;
  return KW_OK;
}

/* A head dimension is not too large, exact where it is not padded, and a multiple of the vector. */
static inline kw_status kw_attention_hdim_matches(int64_t most, bool pad, int64_t vector, int64_t hdim, const char* what, char* reason, size_t bytes) {
  if (most != 0 && (hdim > most || (!pad && hdim != most))) {
    snprintf(reason, bytes, "%s is %lld, this kernel serves %s%lld", what, (long long)(hdim), pad ? "up to " : "", (long long)(most));
    return KW_UNSUPPORTED;
  }
  if (vector > 1 && hdim % vector != 0) {
    snprintf(reason, bytes, "%s is %lld, this kernel serves multiples of %lld", what, (long long)(hdim), (long long)(vector));
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* Head dimensions of the tensors that a stage touches. */
static inline kw_status kw_attention_hdims_match(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if (kw_attention_reads_q(p->base.op) && (status = kw_attention_hdim_matches(t->hdim_q, t->pad_d != 0, t->vector_q, p->hdim_q, "hdim_q", reason, bytes)) != KW_OK) return status;
  if (kw_attention_reads_o(p->base.op) && (status = kw_attention_hdim_matches(t->hdim_v, t->pad_dv != 0, t->vector_v, p->hdim_v, "hdim_v", reason, bytes)) != KW_OK) return status;
  return KW_OK;
}

/* Lengths are whole tiles of a kernel without padding; lengths that are known on the device only need padding. */
static inline kw_status kw_attention_lengths_match(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  if (t->max_group != 0 && p->heads_q / p->heads_kv > t->max_group) {
    snprintf(reason, bytes, "%s", "this kernel serves fewer heads of Q for each of K and V");
    return KW_UNSUPPORTED;
  }
  if (t->max_seqlen_q != 0 && p->max_seqlen_q > t->max_seqlen_q) {
    snprintf(reason, bytes, "%s", "this kernel serves few queries only");
    return KW_UNSUPPORTED;
  }
  const bool tiles_q = !(t->pad_s != 0) && t->tile_m0 != 0;
  const bool tiles_k = !(t->pad_sk != 0) && t->tile_n0 != 0;
  if (kw_attention_reads_kv(p->base.op) && tiles_k && (p->group != 0 || p->kv_lengths != 0 || p->max_seqlen_k % t->tile_n0 != 0)) {
    snprintf(reason, bytes, "%s", "this kernel serves numbers of keys that are multiples of its tile");
    return KW_UNSUPPORTED;
  }
  if (tiles_q && (p->group != 0 || p->max_seqlen_q % t->tile_m0 != 0)) {
    snprintf(reason, bytes, "%s", "this kernel serves numbers of queries that are multiples of its tile");
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* The kernel has the features of the scores, and none that the problem lacks. */
static inline kw_status kw_attention_scores_match(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  const uint32_t kind = kw_attention_mask_kind(p);
  if (!kw_in_set(t->masks, kind) && !kw_in_set(t->masks, KW_MASK_GENERIC)) {
    snprintf(reason, bytes, "mask is %s, which this kernel does not serve", kw_mask_name(kind));
    return KW_UNSUPPORTED;
  }
  if (!kw_in_set(t->biases, p->bias)) {
    snprintf(reason, bytes, "bias is %s, which this kernel does not serve", kw_bias_name(p->bias));
    return KW_UNSUPPORTED;
  }
  if ((status = kw_attention_has(t->dropouts, p->dropout != 0, "dropout", reason, bytes)) != KW_OK) return status;
  if ((status = kw_attention_has(t->random_bytes, p->random_bytes != 0, "random bytes", reason, bytes)) != KW_OK) return status;
  if ((status = kw_attention_has(t->soft_caps, p->soft_cap != 0.0, "soft cap", reason, bytes)) != KW_OK) return status;
  return kw_attention_has(t->kv_lengths, p->kv_lengths != 0, "kv_lengths", reason, bytes);
}

/* Pages are those of the kernel. */
static inline kw_status kw_attention_pages_match(const kw_attention_traits* t, uint32_t table, uint32_t layout, int64_t page_size, char* reason, size_t bytes) {
  if (!kw_in_set(t->page_tables, table)) {
    snprintf(reason, bytes, "page table is %s, which this kernel does not serve", kw_page_table_name(table));
    return KW_UNSUPPORTED;
  }
  if (table == KW_PAGES_NONE) {
    return KW_OK;
  }
  if (t->page_size != 0 && page_size != t->page_size) {
    snprintf(reason, bytes, "page_size is %lld, this kernel serves %lld", (long long)(page_size), (long long)(t->page_size));
    return KW_UNSUPPORTED;
  }
  if (!kw_in_set(t->page_layouts, layout)) {
    snprintf(reason, bytes, "page_layout is %s, which this kernel does not serve", kw_page_layout_name(layout));
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* Of KW_OP_ATTENTION_PART. Splits always have LSE; a split-KV kernel that writes O itself writes it if asked. */
static inline kw_status kw_attention_part_matches(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_attention_scores_match(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_attention_pages_match(t, p->page_table, p->page_layout, p->page_size, reason, bytes)) != KW_OK) return status;
  if ((status = kw_attention_has(t->sinks, p->sink != 0, "sinks", reason, bytes)) != KW_OK) return status;
  if ((status = kw_attention_has(t->min_seqlens_q, p->min_seqlen_q != 0, "min_seqlen_q", reason, bytes)) != KW_OK) return status;
  if (!kw_in_set(t->qscales, p->qscale)) {
    snprintf(reason, bytes, "qscale is %s, which this kernel does not serve", kw_qscale_name(p->qscale));
    return KW_UNSUPPORTED;
  }
  if (t->family != KW_ATTENTION_FWD_SPLITKV && (status = kw_attention_has(t->lses, p->lse != 0, "LSE", reason, bytes)) != KW_OK) return status;
  return KW_OK;
}

/* What the stage that the kernel serves asks for. */
static inline kw_status kw_attention_stage_matches(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if (p->base.op == KW_OP_ATTENTION_PART) {
    return kw_attention_part_matches(t, p, reason, bytes);
  }
  if (p->base.op == KW_OP_ATTENTION_COMBINE) {
    return kw_attention_has(t->lses, p->lse != 0, "LSE", reason, bytes);
  }
  if (p->base.op != KW_OP_ATTENTION_DQ_DK_DV) {
    return KW_OK;
  }
  if ((status = kw_attention_scores_match(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_attention_has(t->dbiases, p->dbias != 0, "dbias", reason, bytes)) != KW_OK) return status;
  return kw_attention_has(t->deterministics, p->deterministic != 0, "a fixed order of sums", reason, bytes);
}

/* Everything but types, head dimensions and choices: what holds before the dispatcher has chosen. */
static inline kw_status kw_attention_variant_matches(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_attention_has(t->groups, p->group != 0, "lengths of each request (group mode)", reason, bytes)) != KW_OK) return status;
  if ((status = kw_attention_lengths_match(t, p, reason, bytes)) != KW_OK) return status;
  return kw_attention_stage_matches(t, p, reason, bytes);
}

/* Sums of dQ that a kernel leaves. */
static inline int64_t kw_attention_dq_slices(const kw_attention_traits* t, const kw_attention_problem* p) {
  return t->leaves_dq == 2 ? kw_parts(kw_larger(p->max_seqlen_k, 1), kw_larger(t->tile_n0, 1)) : t->leaves_dq;
}

/* Whether a part with so many splits leaves them to a combination. */
static inline bool kw_attention_leaves(const kw_attention_traits* t, int64_t splits) {
  return kw_in_set(t->leaves_splits, true) && (splits > 1 || !kw_in_set(t->leaves_splits, false));
}

/* The kernel splits so, and leaves what the problem says. */
static inline kw_status kw_attention_choices_match(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  const bool part = p->base.op == KW_OP_ATTENTION_PART;
  const bool combine = p->base.op == KW_OP_ATTENTION_COMBINE;
  if ((part || combine) && (p->num_splits < 1 || p->num_splits > t->max_splits)) {
    snprintf(reason, bytes, "num_splits is %lld, this kernel serves 1 to %lld", (long long)(p->num_splits), (long long)(t->max_splits));
    return KW_UNSUPPORTED;
  }
  const bool left = kw_attention_leaves(t, p->num_splits);
  if (part && (p->leaves_splits != 0) != left) {
    snprintf(reason, bytes, "leaves_splits is %lld, this kernel serves %lld", (long long)(p->leaves_splits != 0 ? 1 : 0), (long long)(left ? 1 : 0));
    return KW_UNSUPPORTED;
  }
  const int64_t slices = kw_attention_dq_slices(t, p);
  if (p->base.op == KW_OP_ATTENTION_DQ_DK_DV && p->dq_slices != slices) {
    snprintf(reason, bytes, "dq_slices is %lld, this kernel leaves %lld", (long long)(p->dq_slices), (long long)(slices));
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* All of the above: what a backend checks of a problem before its own conditions. */
static inline kw_status kw_attention_traits_match(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_attention_dtypes_match(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_attention_hdims_match(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_attention_variant_matches(t, p, reason, bytes)) != KW_OK) return status;
  return kw_attention_choices_match(t, p, reason, bytes);
}

/* The same of KW_OP_ATTENTION_APPEND: first the types, */
static inline kw_status kw_attention_append_dtypes_match(const kw_attention_traits* t, const kw_append_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_dtype_matches("dtype", p->dtype, t->dtype_kv, reason, bytes)) != KW_OK) return status;
  if (p->rope != KW_ROPE_NONE && (status = kw_dtype_matches("dtype_rotary", p->dtype_rotary, t->dtype_bias, reason, bytes)) != KW_OK) return status;
  return KW_OK;
}

/* then the head dimensions, */
static inline kw_status kw_attention_append_hdims_match(const kw_attention_traits* t, const kw_append_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_attention_hdim_matches(t->hdim_q, t->pad_d != 0, t->vector_q, p->hdim_q, "hdim_q", reason, bytes)) != KW_OK) return status;
  return kw_attention_hdim_matches(t->hdim_v, t->pad_dv != 0, t->vector_v, p->hdim_v, "hdim_v", reason, bytes);
}

/* then the rest, */
static inline kw_status kw_attention_append_variant_matches(const kw_attention_traits* t, const kw_append_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_attention_pages_match(t, p->page_table, p->page_layout, p->page_size, reason, bytes)) != KW_OK) return status;
  if (!kw_in_set(t->ropes, p->rope)) {
    snprintf(reason, bytes, "rotary embedding is %s, which this kernel does not serve", kw_rope_name(p->rope));
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* and all of it. */
static inline kw_status kw_attention_append_traits_match(const kw_attention_traits* t, const kw_append_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_attention_append_dtypes_match(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_attention_append_hdims_match(t, p, reason, bytes)) != KW_OK) return status;
  return kw_attention_append_variant_matches(t, p, reason, bytes);
}

#endif /* KERNELWRIGHT_ATTENTION_CHECKS_H */
