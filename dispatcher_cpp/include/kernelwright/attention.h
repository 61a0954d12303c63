/* Fused attention: problems, arguments, and what a kernel's traits say.
 *
 * C99. Sizes are int64 and count elements unless a name says bytes; structs as in kernelwright/abi.h. "Queries" are
 * rows of Q, "keys" rows of K and V. A request is one sequence of queries with the keys that they look at.
 *
 *   forward    O = softmax(bias + cap(scale * Q K^T), masked) V, LSE = log of each row's sum of exponentials
 *   backward   dQ, dK, dV and dbias from dO, O and LSE
 *   append     new K and V, and Q, with rotary embedding, into a cache
 *
 * Made of kernelwright.problems.attention.description by `kernelwright headers`: edit that.
 */
#ifndef KERNELWRIGHT_ATTENTION_H
#define KERNELWRIGHT_ATTENTION_H

#include "kernelwright/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of the structs below: member `version` of problems. */
#define KW_ATTENTION_VERSION 1u

/* Values of kw_problem.op: 32 to 47 are of this header. Callers ask for the first two and KW_OP_ATTENTION_APPEND; the
 * dispatcher makes the others out of them, and kernels serve KW_OP_ATTENTION_PART to KW_OP_ATTENTION_CONVERT_DQ. All
 * but append are described by kw_attention_problem. */
typedef enum kw_attention_op {
  KW_OP_ATTENTION = 32,           /* O and LSE: a part, and a combination where it leaves splits */
  KW_OP_ATTENTION_BACKWARD = 33,  /* dot, then gradients, then a conversion where dQ is left as sums */
  KW_OP_ATTENTION_PART = 34,      /* O and LSE, or splits of them where leaves_splits is 1 */
  KW_OP_ATTENTION_COMBINE = 35,   /* O and LSE from splits */
  KW_OP_ATTENTION_APPEND = 36,    /* kw_append_problem */
  KW_OP_ATTENTION_DOT = 37,       /* D from O and dO */
  KW_OP_ATTENTION_DQ_DK_DV = 38,  /* dK, dV and dbias; dQ, or sums of it where dq_slices is not 0 */
  KW_OP_ATTENTION_CONVERT_DQ = 39 /* dQ from its sums */
} kw_attention_op;

static inline const char* kw_attention_op_name(uint32_t op) {
  switch (op) {
    case KW_OP_ATTENTION:
      return "attention";
    case KW_OP_ATTENTION_BACKWARD:
      return "attention backward";
    case KW_OP_ATTENTION_PART:
      return "attention part";
    case KW_OP_ATTENTION_COMBINE:
      return "attention combine";
    case KW_OP_ATTENTION_APPEND:
      return "attention append";
    case KW_OP_ATTENTION_DOT:
      return "attention dot";
    case KW_OP_ATTENTION_DQ_DK_DV:
      return "attention dq_dk_dv";
    case KW_OP_ATTENTION_CONVERT_DQ:
      return "attention convert_dq";
    default:
      return "unknown";
  }
}

/* What a kernel computes: `family` of its spec. A problem may take kernels of several, one after the other. */
typedef enum kw_attention_family {
  KW_ATTENTION_FWD = 1,
  KW_ATTENTION_FWD_SPLITKV = 2,         /* parts of the keys, each with its own softmax */
  KW_ATTENTION_FWD_PAGEDKV = 3,         /* K and V in pages */
  KW_ATTENTION_BATCH_PREFILL = 4,       /* ragged requests, K and V in pages */
  KW_ATTENTION_FWD_SPLITKV_COMBINE = 5, /* puts the parts together */
  KW_ATTENTION_FWD_APPENDKV = 6,        /* writes new K and V into the cache, with rotary embedding if asked for */
  KW_ATTENTION_BWD_DOT_DO_O = 7,        /* D = rowsum(dO * O) */
  KW_ATTENTION_BWD_DQ_DK_DV = 8,
  KW_ATTENTION_BWD_CONVERT_DQ = 9 /* sums or converts the fp32 dQ */
} kw_attention_family;

static inline const char* kw_attention_family_name(uint32_t family) {
  switch (family) {
    case KW_ATTENTION_FWD:
      return "fwd";
    case KW_ATTENTION_FWD_SPLITKV:
      return "fwd_splitkv";
    case KW_ATTENTION_FWD_PAGEDKV:
      return "fwd_pagedkv";
    case KW_ATTENTION_BATCH_PREFILL:
      return "batch_prefill";
    case KW_ATTENTION_FWD_SPLITKV_COMBINE:
      return "fwd_splitkv_combine";
    case KW_ATTENTION_FWD_APPENDKV:
      return "fwd_appendkv";
    case KW_ATTENTION_BWD_DOT_DO_O:
      return "bwd_dot_do_o";
    case KW_ATTENTION_BWD_DQ_DK_DV:
      return "bwd_dq_dk_dv";
    case KW_ATTENTION_BWD_CONVERT_DQ:
      return "bwd_convert_dq";
    default:
      return "unknown";
  }
}

/* kw_kernel.op of a family: the first four serve KW_OP_ATTENTION_PART, so that selection compares them with each other.
 */
#define KW_ATTENTION_OP_OF(family) \
  ((family) <= KW_ATTENTION_BATCH_PREFILL ? (uint32_t)KW_OP_ATTENTION_PART : 30u + (uint32_t)(family))

/* Which keys query i of a request sees, of its n queries and m keys: those j with
 *   place(i) - window_left <= j <= place(i) + window_right, where a width of -1 is no bound and
 *   place(i) = i (top left) or i + m - n (bottom right).
 * Causal masks have window_left -1 and window_right 0. Rows that see nothing have O = 0 and LSE = -inf. */
typedef enum kw_attention_mask {
  KW_MASK_NONE = 0, /* both widths are -1 */
  KW_MASK_TOP_LEFT = 1,
  KW_MASK_BOTTOM_RIGHT = 2,
  KW_MASK_GENERIC = 3 /* of traits only: both alignments, all widths, and no mask. In traits, 1 and 2 mean causal */
} kw_attention_mask;

static inline const char* kw_mask_name(uint32_t mask) {
  static const char* const names[] = {"none", "top_left", "bottom_right", "generic"};
  return mask < 4u ? names[mask] : "unknown";
}

/* What is added to the scores. */
typedef enum kw_attention_bias {
  KW_BIAS_NONE = 0,
  KW_BIAS_ELEMENTWISE = 1, /* bias[request, head, query, key] is added to the score */
  KW_BIAS_ALIBI = 2        /* -slope[head] * |place(i) - j|, place as the mask has it, without one bottom right */
} kw_attention_bias;

static inline const char* kw_bias_name(uint32_t bias) {
  static const char* const names[] = {"none", "elementwise", "alibi"};
  return bias < 3u ? names[bias] : "unknown";
}

/* Factors of fp8 and bf8 operands, fp32: stored value * factor = value. */
typedef enum kw_attention_qscale {
  KW_QSCALE_NONE = 0,
  KW_QSCALE_PER_TENSOR = 1, /* descale_q, descale_k, descale_v: one number each */
  /* descale_q: batch x heads_q x ceil(max_seqlen_q / scale_block_q); descale_k and descale_v: batch x heads_kv x
   * ceil(max_seqlen_k / scale_block_k); dense */
  KW_QSCALE_BLOCK_SCALE = 2,
  KW_QSCALE_KV_BLOCK_SCALE = 3 /* descale_q: one number; descale_k and descale_v: pages x heads_kv, dense */
} kw_attention_qscale;

static inline const char* kw_qscale_name(uint32_t qscale) {
  static const char* const names[] = {"none", "per_tensor", "block_scale", "kv_block_scale"};
  return qscale < 4u ? names[qscale] : "unknown";
}

/* How the pages of a request's keys are found. Tables are int32 and on the device. */
typedef enum kw_attention_page_table {
  KW_PAGES_NONE = 0,  /* K and V are contiguous */
  KW_PAGES_BLOCK = 1, /* vLLM: page_table[request * page_table_stride + key / page_size]; kv_lengths is 1 */
  /* SGLang: page_table[page_indptr[request] + key / page_size]; the request has (page_indptr[request + 1] -
   * page_indptr[request] - 1) * page_size + last_page_lengths[request] keys, or none if it has no page; kv_lengths is 0
   */
  KW_PAGES_LIST = 2
} kw_attention_page_table;

static inline const char* kw_page_table_name(uint32_t table) {
  static const char* const names[] = {"none", "block", "list"};
  return table < 3u ? names[table] : "unknown";
}

/* Order of elements in a page; x elements take 16 bytes. */
typedef enum kw_attention_page_layout {
  KW_PAGE_LINEAR = 0, /* by strides, as other tensors */
  /* of one head: K is hdim_q / x, page_size, x; V is page_size / x, hdim_v, x; both dense. The row stride is 0 */
  KW_PAGE_VECTORIZED = 1
} kw_attention_page_layout;

static inline const char* kw_page_layout_name(uint32_t layout) {
  static const char* const names[] = {"linear", "vectorized"};
  return layout < 2u ? names[layout] : "unknown";
}

/* Which elements a rotary embedding turns together, out of the first rotary_dim of a row. With c and s of the row's
 * place: (a, b) becomes (a c - b s, a s + b c). */
typedef enum kw_attention_rope {
  KW_ROPE_NONE = 0,
  KW_ROPE_INTERLEAVED = 1, /* a = x[2 i], b = x[2 i + 1] */
  KW_ROPE_HALF = 2         /* a = x[i], b = x[i + rotary_dim / 2] */
} kw_attention_rope;

static inline const char* kw_rope_name(uint32_t rope) {
  static const char* const names[] = {"none", "interleaved", "half"};
  return rope < 3u ? names[rope] : "unknown";
}

/* Memory strides in elements, from one request, head and row to the next. The head dimension is contiguous. Strides of
 * tensors that are only read may be 0.
 *
 *   batch mode   row r of head h of request b is at b * request + h * head + r * row
 *   group mode   `request` is 0, and r counts the rows of all requests: those of request b are from cu_seqlens[b] on
 *   pages        of K and V: `request` leads from one page to the next, and r counts the rows of the page
 */
typedef struct kw_attention_strides {
  int64_t request, head, row;
} kw_attention_strides;

/* Forward, backward and their stages. The struct has no padding bytes, so it can be hashed as memory; what a problem
 * does not use is 0 (but window widths, which are -1).
 *
 * Tensors: Q and O have heads_q heads of hdim_q and hdim_v elements, K and V heads_kv heads of hdim_q and hdim_v; head
 * h of Q looks at head h / (heads_q / heads_kv) of K and V. Bias is a row of keys for each head and query, broadcast by
 * strides of 0. LSE and D are fp32, of which "per row" below means batch x heads_q x max_seqlen_q in batch mode, and
 * heads_q x total_q in group mode, dense.
 */
typedef struct kw_attention_problem {
  kw_problem base;
  uint32_t version;                    /* KW_ATTENTION_VERSION */
  uint32_t group;                      /* 0 or 1; 1 = group mode: requests have lengths of their own */
  uint32_t dtype_q, dtype_kv, dtype_o; /* kw_dtype; dQ is of dtype_q, dK and dV of dtype_kv, dO of dtype_o */
  uint32_t dtype_bias;                 /* of an elementwise bias, and of dbias; else 0. Slopes are fp32 */
  uint32_t mask;                       /* kw_attention_mask; not generic */
  uint32_t bias;                       /* kw_attention_bias */
  uint32_t lse;                        /* 0 or 1; 1 = LSE is written. Backward always reads it: 0 there */
  uint32_t sink;                       /* 0 or 1; 1 = each row's sum of exponentials has exp(sinks[head]) too */
  uint32_t dropout;                    /* 0 or 1; 1 = see dropout_p */
  uint32_t random_bytes;               /* 0 or 1; 1 = the random bytes of dropout are stored */
  uint32_t kv_lengths;                 /* 0 or 1; 1 = args.seqlens_k says how many keys of each request count */
  uint32_t qscale;                     /* kw_attention_qscale */
  uint32_t page_table;                 /* kw_attention_page_table; backward: none */
  uint32_t page_layout;                /* kw_attention_page_layout */
  uint32_t dbias;                      /* 0 or 1; backward: 1 = dbias is written */
  uint32_t deterministic;              /* 0 or 1; backward: 1 = sums have a fixed order */
  uint32_t num_splits;                 /* forward: parts of the keys; 1 = none; 0 = the dispatcher chooses. Else 1 */
  uint32_t leaves_splits;              /* 0 or 1; KW_OP_ATTENTION_PART: 1 = writes o_splits and lse_splits, else 0 */
  /* KW_OP_ATTENTION_DQ_DK_DV and _CONVERT_DQ: fp32 sums that dQ is left as, to be added up in order; 0 = dQ is written.
   * Else 0 */
  uint32_t dq_slices;
  uint32_t reserved;                  /* 0 */
  int64_t batch;                      /* >= 0; requests */
  int64_t heads_q, heads_kv;          /* >= 1; the first is a multiple of the second */
  int64_t hdim_q, hdim_v;             /* >= 1; of Q and K; of V and O */
  int64_t max_seqlen_q, max_seqlen_k; /* >= 0; batch mode: of every request; group mode and pages: of the longest */
  int64_t total_q, total_k;           /* >= 0; group mode: rows of Q, and of K where it has no pages; else 0 */
  int64_t window_left, window_right;  /* >= -1 */
  int64_t min_seqlen_q;               /* >= 0; group mode: requests with fewer queries are skipped: O stays; 0 = none */
  int64_t pages, page_size;           /* in the cache; keys of a page */
  int64_t page_table_stride;          /* KW_PAGES_BLOCK: entries from one request to the next */
  /* >= 0; ALiBi: from one request to the next; 0 = all have the same heads_q slopes */
  int64_t slopes_stride;
  int64_t scale_block_q; /* >= 0; KW_QSCALE_BLOCK_SCALE: rows of a block of Q */
  int64_t scale_block_k; /* >= 0; and of K and V */
  double scale;          /* of Q K^T */
  double soft_cap;       /* score = cap * tanh(score / cap); 0 = none */
  double dropout_p;      /* probability to be dropped; see kw_attention_keeps in attention/dropout.h */
  kw_attention_strides q, k, v, o;
  kw_attention_strides bias_strides;                   /* group mode: query rows count as rows of Q do */
  kw_attention_strides d_o, dq, dk, dv, dbias_strides; /* backward; dbias: batch x heads_q x rows x keys */
} kw_attention_problem;

/* Operands of one launch, on its device; null where a problem has none. Written operands overlap nothing else. int32
 * arrays of lengths hold numbers of rows.
 *
 *                reads                                     writes
 *   forward      q k v, bias, sinks, lengths, pages        o, lse, random_bytes
 *   part         the same                                  o, lse, random_bytes; or o_splits, lse_splits
 *   combine      o_splits lse_splits, lengths              o, lse
 *   backward     q k v o d_o lse, bias, lengths            dq dk dv dbias
 *   dot          o d_o, lengths                            d
 *   dq_dk_dv     q k v d_o lse d, bias, lengths            dk dv dbias; dq, or dq_sums (which it clears first)
 *   convert_dq   dq_sums, lengths                          dq
 *
 * Results of stages, fp32 and dense, "per row" as in kw_attention_problem:
 *   o_splits     num_splits x per row x hdim_v; need not be written where lse_splits is -inf
 *   lse_splits   num_splits x per row; -inf where the split sees nothing. The sink belongs to the first split
 *   d            per row: (1 - dropout_p) * sum over the row of dO * O
 *   dq_sums      dq_slices x per row x hdim_q; the sum over slices is dQ
 * A split is any contiguous part of a request's keys, split s before split s + 1. Lengths are read on the device: a
 * kernel that schedules by them does so in its launch, so that a captured graph may be replayed with other lengths.
 */
typedef struct kw_attention_args {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  const void* q;
  const void* k;                    /* or the cache of K */
  const void* v;                    /* or the cache of V */
  void* o;                          /* read by backward */
  const void* bias;                 /* elementwise bias, or slopes: fp32, [batch x] heads_q */
  const float* sinks;               /* heads_q scores, after scaling */
  float* lse;                       /* per row; natural logarithm; read by backward */
  void* random_bytes;               /* uint8; per row x max_seqlen_k */
  const int32_t* cu_seqlens_q;      /* group mode: batch + 1 first rows, ascending from 0; the last is total_q */
  const int32_t* cu_seqlens_k;      /* the same of K and V; null with pages */
  const int32_t* seqlens_k;         /* kv_lengths: batch numbers of keys, at most what K holds for the request */
  const int32_t* page_table;        /* see kw_attention_page_table */
  const int32_t* page_indptr;       /* KW_PAGES_LIST: batch + 1 first entries, ascending from 0 */
  const int32_t* last_page_lengths; /* KW_PAGES_LIST: batch numbers from 1 to page_size */
  const float* descale_q;           /* see kw_attention_qscale */
  const float* descale_k;
  const float* descale_v;
  const float* scale_o;  /* one number: stored O = O * scale_o; where dtype_o is fp8 or bf8 */
  uint64_t seed, offset; /* of dropout */
  float* o_splits;
  float* lse_splits;
  const void* d_o;
  float* d;
  void* dq;
  void* dk;
  void* dv;
  void* dbias;
  float* dq_sums;
} kw_attention_args;

/* New rows of K and V behind those that a cache holds: row j of request b stands at place seqlens_k[b] + j. With a
 * rotary embedding K is turned by its place, and Q too where rotates_q is 1: row i of Q also stands at seqlens_k[b] +
 * i. Batch mode: all requests append the same number of rows. No padding bytes; what is not used is 0. */
typedef struct kw_append_problem {
  kw_problem base;
  uint32_t version;                 /* KW_ATTENTION_VERSION */
  uint32_t dtype;                   /* kw_dtype; of q, k, v and the cache */
  uint32_t dtype_rotary;            /* of cos and sin; 0 without rotary embedding */
  uint32_t rope;                    /* kw_attention_rope */
  uint32_t rotates_q;               /* 0 or 1 */
  uint32_t page_table;              /* kw_attention_page_table; none or KW_PAGES_BLOCK */
  uint32_t page_layout;             /* kw_attention_page_layout */
  uint32_t reserved;                /* 0 */
  int64_t batch;                    /* >= 0 */
  int64_t heads_q;                  /* >= 0; 0 unless rotates_q is 1 */
  int64_t heads_kv, hdim_q, hdim_v; /* >= 1 */
  int64_t seqlen_q, seqlen_new;     /* >= 0; rows of q (0 unless rotates_q) and of k and v for each request */
  int64_t capacity;                 /* >= 0; rows that the cache can hold for a request */
  int64_t pages, page_size;
  int64_t page_table_stride;
  int64_t rotary_dim;    /* >= 0; even, at most hdim_q */
  int64_t rotary_places; /* >= 0; rows of cos and sin */
  kw_attention_strides q, q_out, k, v;
  kw_attention_strides k_cache, v_cache;
} kw_append_problem;

typedef struct kw_append_args {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  const void* q;
  void* q_out; /* may be q */
  const void* k;
  const void* v;
  void* k_cache;
  void* v_cache;
  const int32_t* seqlens_k;  /* batch numbers of rows that the cache holds before */
  const int32_t* page_table; /* see KW_PAGES_BLOCK */
  const void* cos;           /* rotary_places x rotary_dim / 2, dense */
  const void* sin;
} kw_append_args;

/* A set of the values that a kernel serves: bit v stands for value v, also of members that are 0 or 1. */
#define KW_SERVES(value) (1u << (value))
#define KW_SERVES_BOTH 3u

/* What selection may know about an attention kernel without parsing text. Sets are made with KW_SERVES. Members that a
 * family does not read are 0. */
typedef struct kw_attention_traits {
  uint32_t struct_size;
  uint32_t family; /* kw_attention_family */
  /* kw_dtype; append: all the same. combine: dtype_o. dot: dtype_o. convert_dq: dtype_q */
  uint32_t dtype_q, dtype_kv, dtype_o;
  uint32_t dtype_bias;         /* of an elementwise bias, or of cos and sin; 0 = none served */
  uint32_t hdim_q, hdim_v;     /* with padding the most, else exactly; 0 = any, or not read */
  uint32_t vector_q, vector_v; /* head dimensions are multiples of them, also with padding; 0 counts as 1 */
  /* 0 or 1; 0: lengths are multiples of tile_m0 and tile_n0, head dimensions exact */
  uint32_t pad_s, pad_sk, pad_d, pad_dv;
  uint32_t tile_m0, tile_n0, tile_k0, tile_n1, tile_k1; /* queries, keys, ... of a tile; 0 = none */
  uint32_t groups;                                      /* set of `group` */
  uint32_t masks;                                       /* set of kw_attention_mask */
  uint32_t biases;                                      /* set of kw_attention_bias */
  /* sets of 0 and 1; kv_lengths is 1 with a block table */
  uint32_t lses, sinks, dropouts, random_bytes, soft_caps, kv_lengths;
  uint32_t dbiases, deterministics; /* sets of 0 and 1 */
  uint32_t min_seqlens_q;           /* set of 0 and 1: does it skip short requests? */
  uint32_t qscales;                 /* set of kw_attention_qscale */
  uint32_t page_tables;             /* set of kw_attention_page_table */
  uint32_t page_layouts;            /* set of kw_attention_page_layout */
  uint32_t page_size;               /* the one that is served; 0 = any */
  uint32_t ropes;                   /* set of kw_attention_rope */
  /* parts of the keys: part 1 or more, combine the most that it adds up */
  uint32_t max_splits;
  /* set of leaves_splits where num_splits is 1; more splits are left to combine if bit 1 is set, else combined in the
   * same launch */
  uint32_t leaves_splits;
  uint32_t leaves_dq;      /* 0 = writes dQ; 1 = leaves one sum; 2 = a slice for each tile_n0 keys */
  uint32_t max_seqlen_q;   /* most queries of a request; 0 = any */
  uint32_t max_group;      /* most heads of Q for one of K and V; 0 = any */
  uint32_t threads;        /* of a workgroup; 0 on CPU */
  uint32_t blocks_per_cu;  /* workgroups that a compute unit holds; 0 = not known */
  uint32_t few_blocks;     /* 0 or 1; 1 = kept for problems whose larger tiles would leave compute units idle */
  uint32_t selection_rank; /* among kernels of equal estimates, lower ones first */
  uint32_t packs_heads;    /* 0 or 1; 1 = a tile's rows are the queries of all heads that share one of K and V */
  /* gradients: time of their products, in percent of one pass over the scores at the architecture's rate; 0 counts as
   * 100 */
  uint32_t work_percent;
} kw_attention_traits;

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_ATTENTION_H */
