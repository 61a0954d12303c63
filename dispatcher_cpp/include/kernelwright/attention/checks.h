/* Which attention problems a kernel may serve, as far as its traits tell: the checks that dispatcher and backends
 * share, and numbers that follow from a problem.
 *
 * C99. Functions that return a kw_status write one sentence into reason unless they return KW_OK; reason may be null
 * where bytes is 0.
 */
#ifndef KERNELWRIGHT_ATTENTION_CHECKS_H
#define KERNELWRIGHT_ATTENTION_CHECKS_H

#include "kernelwright/attention/names.h"

/* Rows that LSE, D and partial results have for each element of "per row" in kernelwright/attention.h. */
static inline int64_t kw_attention_rows(const kw_attention_problem* p) {
  return p->heads_q * (p->group ? p->total_q : p->batch * p->max_seqlen_q);
}

/* Dropout keeps a probability whose random byte is at most this; what is kept is divided by 1 - dropout_p. The byte of
 * query i and key j of head h of request b is drawn by Philox4x32-7 with key `seed` and counter
 * (offset + 64 (b * heads_q + h) + lane, i / 32, j / 32), 64 + 32 + 32 bits, where lane = j % 32 + 32 (i / 8 % 2); out
 * of the 16 bytes it is number 8 (i / 16 % 2) + i % 8. i and j are local to the request. */
static inline uint32_t kw_attention_keeps(const kw_attention_problem* p) {
  return (uint32_t)((float)(1.0 - p->dropout_p) * 255.0f); /* in fp32, as kernels know it */
}

/* kw_attention_mask of traits that serve exactly this problem: windows are generic. */
static inline uint32_t kw_attention_mask_kind(const kw_attention_problem* p) {
  const int causal = p->window_left < 0 && p->window_right == 0;
  return p->mask == KW_MASK_NONE || causal ? p->mask : (uint32_t)KW_MASK_GENERIC;
}

/* KW_UNSUPPORTED: the set of values that a kernel serves lacks this one. */
static inline kw_status kw_attention_in(uint32_t set, uint32_t value, const char* what, char* reason, size_t bytes) {
  if (value < 32 && (set >> value & 1u)) return KW_OK;
  snprintf(reason, bytes, "%s is %u, which this kernel does not serve", what, value);
  return KW_UNSUPPORTED;
}

/* Of members that are 0 or 1. */
static inline kw_status kw_attention_has(uint32_t set, uint32_t value, const char* what, char* reason, size_t bytes) {
  if (set >> (value ? 1 : 0) & 1u) return KW_OK;
  snprintf(reason, bytes, value ? "the problem has %s, this kernel has not" : "the problem has no %s, this kernel has",
           what);
  return KW_UNSUPPORTED;
}

static inline int kw_attention_reads_q(uint32_t op) {
  return op != KW_OP_ATTENTION_COMBINE && op != KW_OP_ATTENTION_DOT;
}
static inline int kw_attention_reads_kv(uint32_t op) {
  return op == KW_OP_ATTENTION_PART || op == KW_OP_ATTENTION_DQ_DK_DV;
}
static inline int kw_attention_reads_o(uint32_t op) { return op != KW_OP_ATTENTION_CONVERT_DQ; }

/* KW_UNSUPPORTED: the kernel is built for another dtype. A stage is compared by the tensors that it touches. */
static inline kw_status kw_attention_dtypes_match(const kw_attention_traits* t, const kw_attention_problem* p,
                                                  char* reason, size_t bytes) {
  const struct {
    const char* name;
    uint32_t asked, built;
    int counts;
  } all[] = {{"dtype_q", p->dtype_q, t->dtype_q, kw_attention_reads_q(p->base.op)},
             {"dtype_kv", p->dtype_kv, t->dtype_kv, kw_attention_reads_kv(p->base.op)},
             {"dtype_o", p->dtype_o, t->dtype_o, kw_attention_reads_o(p->base.op)},
             {"dtype_bias", p->dtype_bias, t->dtype_bias,
              p->bias == KW_BIAS_ELEMENTWISE && kw_attention_reads_kv(p->base.op)}};
  for (int i = 0; i < 4; ++i) {
    if (!all[i].counts || all[i].asked == all[i].built) continue;
    snprintf(reason, bytes, "%s is %s, this kernel serves %s", all[i].name, kw_dtype_name(all[i].asked),
             kw_dtype_name(all[i].built));
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* KW_UNSUPPORTED: a head dimension is too large, not exact where it is not padded, or no multiple of the vector. */
static inline kw_status kw_attention_hdim_matches(uint32_t most, uint32_t pad, uint32_t vector, int64_t hdim,
                                                  const char* what, char* reason, size_t bytes) {
  if (most != 0 && (hdim > most || (!pad && hdim != most))) {
    snprintf(reason, bytes, "%s is %lld, this kernel serves %s%u", what, (long long)hdim, pad ? "up to " : "", most);
    return KW_UNSUPPORTED;
  }
  if (vector > 1 && hdim % vector != 0) {
    snprintf(reason, bytes, "%s is %lld, this kernel serves multiples of %u", what, (long long)hdim, vector);
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

static inline kw_status kw_attention_hdims_match(const kw_attention_traits* t, const kw_attention_problem* p,
                                                 char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if (kw_attention_reads_q(p->base.op))
    status = kw_attention_hdim_matches(t->hdim_q, t->pad_d, t->vector_q, p->hdim_q, "hdim_q", reason, bytes);
  if (status == KW_OK && kw_attention_reads_o(p->base.op))
    status = kw_attention_hdim_matches(t->hdim_v, t->pad_dv, t->vector_v, p->hdim_v, "hdim_v", reason, bytes);
  return status;
}

/* KW_UNSUPPORTED: lengths are no multiples of the tile of a kernel without padding, or there are too many queries or
 * heads for one of K and V. Lengths that are known on the device only need padding. */
static inline kw_status kw_attention_lengths_match(const kw_attention_traits* t, const kw_attention_problem* p,
                                                   char* reason, size_t bytes) {
  const char* why = NULL;
  const uint32_t op = p->base.op;
  const int tiles_q = !t->pad_s && t->tile_m0 != 0, tiles_k = !t->pad_sk && t->tile_n0 != 0;
  if (tiles_q && (p->group || p->max_seqlen_q % t->tile_m0 != 0))
    why = "this kernel serves numbers of queries that are multiples of its tile";
  if (kw_attention_reads_kv(op) && tiles_k && (p->group || p->kv_lengths || p->max_seqlen_k % t->tile_n0 != 0))
    why = "this kernel serves numbers of keys that are multiples of its tile";
  if (t->max_seqlen_q != 0 && p->max_seqlen_q > t->max_seqlen_q) why = "this kernel serves few queries only";
  if (t->max_group != 0 && p->heads_q / p->heads_kv > t->max_group)
    why = "this kernel serves fewer heads of Q for each of K and V";
  if (why == NULL) return KW_OK;
  snprintf(reason, bytes, "%s", why);
  return KW_UNSUPPORTED;
}

/* KW_UNSUPPORTED: the kernel lacks a feature of the scores, or has one that the problem has not. */
static inline kw_status kw_attention_scores_match(const kw_attention_traits* t, const kw_attention_problem* p,
                                                  char* reason, size_t bytes) {
  const uint32_t kind = kw_attention_mask_kind(p);
  kw_status status = KW_OK;
  if (!(t->masks & (KW_SERVES(kind) | KW_SERVES(KW_MASK_GENERIC)))) {
    snprintf(reason, bytes, "mask is %s, which this kernel does not serve", kw_mask_name(kind));
    return KW_UNSUPPORTED;
  }
  if (!(t->biases >> p->bias & 1u)) {
    snprintf(reason, bytes, "bias is %s, which this kernel does not serve", kw_bias_name(p->bias));
    return KW_UNSUPPORTED;
  }
  status = kw_attention_has(t->dropouts, p->dropout, "dropout", reason, bytes);
  if (status == KW_OK) status = kw_attention_has(t->random_bytes, p->random_bytes, "random bytes", reason, bytes);
  if (status == KW_OK) status = kw_attention_has(t->soft_caps, p->soft_cap != 0, "soft cap", reason, bytes);
  if (status == KW_OK) status = kw_attention_has(t->kv_lengths, p->kv_lengths, "kv_lengths", reason, bytes);
  return status;
}

/* KW_UNSUPPORTED: pages or scales are others than the kernel's. */
static inline kw_status kw_attention_pages_match(uint32_t tables, uint32_t layouts, uint32_t size, uint32_t table,
                                                 uint32_t layout, int64_t page_size, char* reason, size_t bytes) {
  if (!(tables >> table & 1u)) {
    snprintf(reason, bytes, "page table is %s, which this kernel does not serve", kw_page_table_name(table));
    return KW_UNSUPPORTED;
  }
  if (table == KW_PAGES_NONE) return KW_OK;
  if (size != 0 && page_size != size) {
    snprintf(reason, bytes, "page_size is %lld, this kernel serves %u", (long long)page_size, size);
    return KW_UNSUPPORTED;
  }
  return kw_attention_in(layouts, layout, "page_layout", reason, bytes);
}

/* Of KW_OP_ATTENTION_PART. */
static inline kw_status kw_attention_part_matches(const kw_attention_traits* t, const kw_attention_problem* p,
                                                  char* reason, size_t bytes) {
  kw_status status = kw_attention_scores_match(t, p, reason, bytes);
  if (status == KW_OK)
    status = kw_attention_pages_match(t->page_tables, t->page_layouts, t->page_size, p->page_table, p->page_layout,
                                      p->page_size, reason, bytes);
  if (status == KW_OK) status = kw_attention_has(t->sinks, p->sink, "sinks", reason, bytes);
  if (status == KW_OK) status = kw_attention_has(t->min_seqlens_q, p->min_seqlen_q != 0, "min_seqlen_q", reason, bytes);
  if (status == KW_OK) status = kw_attention_in(t->qscales, p->qscale, "qscale", reason, bytes);
  /* Splits always have LSE; a split-KV kernel that writes O itself writes LSE if the problem asks for it. */
  if (status == KW_OK && t->family != KW_ATTENTION_FWD_SPLITKV)
    status = kw_attention_has(t->lses, p->lse, "LSE", reason, bytes);
  return status;
}

/* Everything but choices: what holds before the dispatcher has chosen. */
static inline kw_status kw_attention_variant_matches(const kw_attention_traits* t, const kw_attention_problem* p,
                                                     char* reason, size_t bytes) {
  kw_status status = kw_attention_has(t->groups, p->group, "lengths of each request (group mode)", reason, bytes);
  if (status == KW_OK) status = kw_attention_lengths_match(t, p, reason, bytes);
  if (status != KW_OK) return status;
  switch (p->base.op) {
    case KW_OP_ATTENTION_PART:
      return kw_attention_part_matches(t, p, reason, bytes);
    case KW_OP_ATTENTION_COMBINE:
      return kw_attention_has(t->lses, p->lse, "LSE", reason, bytes);
    case KW_OP_ATTENTION_DQ_DK_DV:
      status = kw_attention_scores_match(t, p, reason, bytes);
      if (status == KW_OK) status = kw_attention_has(t->dbiases, p->dbias, "dbias", reason, bytes);
      if (status == KW_OK)
        status = kw_attention_has(t->deterministics, p->deterministic, "a fixed order of sums", reason, bytes);
      return status;
    default:
      return KW_OK;
  }
}

/* Sums of dQ that a kernel leaves. */
static inline uint32_t kw_attention_dq_slices(const kw_attention_traits* t, const kw_attention_problem* p) {
  const int64_t tile = t->tile_n0 ? t->tile_n0 : 1, keys = p->max_seqlen_k > 0 ? p->max_seqlen_k : 1;
  return t->leaves_dq == 2 ? (uint32_t)((keys + tile - 1) / tile) : t->leaves_dq;
}

/* Does a part with so many splits leave them to a combination? */
static inline uint32_t kw_attention_leaves(const kw_attention_traits* t, uint32_t splits) {
  if (splits > 1) return t->leaves_splits >> 1 & 1u;
  return t->leaves_splits == KW_SERVES(1) ? 1u : 0u;
}

/* KW_UNSUPPORTED: the kernel does not split so, or leaves something else. Values that the dispatcher still has to
 * choose are compared later. */
static inline kw_status kw_attention_choices_match(const kw_attention_traits* t, const kw_attention_problem* p,
                                                   char* reason, size_t bytes) {
  const uint32_t op = p->base.op;
  if (op == KW_OP_ATTENTION_PART || op == KW_OP_ATTENTION_COMBINE) {
    if (p->num_splits < 1 || p->num_splits > t->max_splits) {
      snprintf(reason, bytes, "num_splits is %u, this kernel serves 1 to %u", p->num_splits, t->max_splits);
      return KW_UNSUPPORTED;
    }
    if (op == KW_OP_ATTENTION_PART && p->leaves_splits != kw_attention_leaves(t, p->num_splits)) {
      snprintf(reason, bytes, "leaves_splits is %u, this kernel serves %u", p->leaves_splits,
               kw_attention_leaves(t, p->num_splits));
      return KW_UNSUPPORTED;
    }
  }
  if (op == KW_OP_ATTENTION_DQ_DK_DV && p->dq_slices != kw_attention_dq_slices(t, p)) {
    snprintf(reason, bytes, "dq_slices is %u, this kernel leaves %u", p->dq_slices, kw_attention_dq_slices(t, p));
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* All of the above: what a backend checks of a problem before its own conditions. */
static inline kw_status kw_attention_traits_match(const kw_attention_traits* t, const kw_attention_problem* p,
                                                  char* reason, size_t bytes) {
  kw_status status = kw_attention_dtypes_match(t, p, reason, bytes);
  if (status == KW_OK) status = kw_attention_hdims_match(t, p, reason, bytes);
  if (status == KW_OK) status = kw_attention_variant_matches(t, p, reason, bytes);
  if (status == KW_OK) status = kw_attention_choices_match(t, p, reason, bytes);
  return status;
}

/* The same of KW_OP_ATTENTION_APPEND: first the dtypes, */
static inline kw_status kw_append_dtypes_match(const kw_attention_traits* t, const kw_append_problem* p, char* reason,
                                               size_t bytes) {
  const int rotary = p->rope != KW_ROPE_NONE;
  if (p->dtype == t->dtype_kv && (!rotary || p->dtype_rotary == t->dtype_bias)) return KW_OK;
  const int wrong = p->dtype != t->dtype_kv;
  snprintf(reason, bytes, "%s is %s, this kernel serves %s", wrong ? "dtype" : "dtype_rotary",
           kw_dtype_name(wrong ? p->dtype : p->dtype_rotary), kw_dtype_name(wrong ? t->dtype_kv : t->dtype_bias));
  return KW_UNSUPPORTED;
}

/* then the head dimensions, */
static inline kw_status kw_append_hdims_match(const kw_attention_traits* t, const kw_append_problem* p, char* reason,
                                              size_t bytes) {
  kw_status status = kw_attention_hdim_matches(t->hdim_q, t->pad_d, t->vector_q, p->hdim_q, "hdim_q", reason, bytes);
  if (status == KW_OK)
    status = kw_attention_hdim_matches(t->hdim_v, t->pad_dv, t->vector_v, p->hdim_v, "hdim_v", reason, bytes);
  return status;
}

/* then the rest, */
static inline kw_status kw_append_variant_matches(const kw_attention_traits* t, const kw_append_problem* p,
                                                  char* reason, size_t bytes) {
  kw_status status = kw_attention_pages_match(t->page_tables, t->page_layouts, t->page_size, p->page_table,
                                              p->page_layout, p->page_size, reason, bytes);
  if (status == KW_OK && !(t->ropes >> p->rope & 1u)) {
    snprintf(reason, bytes, "rotary embedding is %s, which this kernel does not serve", kw_rope_name(p->rope));
    status = KW_UNSUPPORTED;
  }
  return status;
}

/* and all of it. */
static inline kw_status kw_append_traits_match(const kw_attention_traits* t, const kw_append_problem* p, char* reason,
                                               size_t bytes) {
  kw_status status = kw_append_dtypes_match(t, p, reason, bytes);
  if (status == KW_OK) status = kw_append_hdims_match(t, p, reason, bytes);
  if (status == KW_OK) status = kw_append_variant_matches(t, p, reason, bytes);
  return status;
}

#endif /* KERNELWRIGHT_ATTENTION_CHECKS_H */
