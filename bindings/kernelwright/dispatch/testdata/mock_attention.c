/* A kernel library for tests of attention: one naive fp32 kernel of each family, for every feature that the C ABI has
 * but 8-bit operands and vectorized pages. Sums are in double; nothing is fast. With MOCK_BACKEND and MOCK_ARCH it is
 * for another backend, whose memory is the host's. mock_appended has the first numbers of K's and V's cache after an
 * append.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernelwright/attention/checks.h"
#include "kernelwright/attention/dropout.h"

#ifndef MOCK_ARCH
#define MOCK_ARCH "x86_64_v3"
#define MOCK_BACKEND KW_BACKEND_CPU
#endif

typedef kw_attention_problem P;
typedef kw_attention_args A;

enum { MOCK_KEPT = 4096 };
__attribute__((visibility("default"))) float mock_appended[2][MOCK_KEPT];

static void keep(int which, const kw_append_problem* p, kw_attention_strides s, const void* cache) {
  const int64_t requests = p->page_table == KW_PAGES_NONE ? p->batch : p->pages, all = requests * s.request;
  memcpy(mock_appended[which], cache, sizeof(float) * (size_t)(all < MOCK_KEPT ? all : MOCK_KEPT));
}

static kw_status serves(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  if (problem->op == KW_OP_ATTENTION_APPEND)
    return kw_attention_append_traits_match(kernel->traits, (const kw_append_problem*)problem, reason, bytes);
  return kw_attention_traits_match(kernel->traits, (const P*)problem, reason, bytes);
}

static kw_status no_workspace(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  (void)kernel, (void)problem;
  *bytes = 0;
  return KW_OK;
}

static kw_status plan(const kw_kernel* kernel, const kw_problem* problem, void* storage) {
  (void)kernel;
  memcpy(storage, problem, problem->struct_size);
  return KW_OK;
}

/* One request: where its rows begin, and how many there are. */
typedef struct request {
  int64_t index, first_q, first_k, queries, keys;
} request;

static request request_of(const P* p, const A* a, int64_t b) {
  request r = {b, 0, 0, p->max_seqlen_q, p->max_seqlen_k};
  if (p->group) {
    r.first_q = a->cu_seqlens_q[b], r.queries = a->cu_seqlens_q[b + 1] - r.first_q;
    if (a->cu_seqlens_k) r.first_k = a->cu_seqlens_k[b], r.keys = a->cu_seqlens_k[b + 1] - r.first_k;
  }
  if (p->kv_lengths && a->seqlens_k) r.keys = a->seqlens_k[b];
  if (p->page_table == KW_PAGES_LIST) {
    const int64_t pages = a->page_indptr[b + 1] - a->page_indptr[b];
    r.keys = pages ? (pages - 1) * p->page_size + a->last_page_lengths[b] : 0;
  }
  return r;
}

/* Where row i of head h of a request begins in a tensor. */
static int64_t at(const P* p, kw_attention_strides s, const request* r, int64_t first, int64_t h, int64_t i) {
  return (p->group ? 0 : r->index) * s.request + h * s.head + (first + i) * s.row;
}

/* Likewise of K or V, which may be in pages. */
static int64_t key_at(const P* p, const A* a, kw_attention_strides s, const request* r, int64_t h, int64_t j) {
  if (p->page_table == KW_PAGES_NONE) return at(p, s, r, r->first_k, h, j);
  const int64_t entry =
      j / p->page_size + (p->page_table == KW_PAGES_LIST ? a->page_indptr[r->index] : r->index * p->page_table_stride);
  return a->page_table[entry] * s.request + h * s.head + j % p->page_size * s.row;
}

/* The row in LSE, D, and partial results. */
static int64_t row_of(const P* p, const request* r, int64_t h, int64_t i) {
  return p->group ? h * p->total_q + r->first_q + i : (r->index * p->heads_q + h) * p->max_seqlen_q + i;
}

static uint32_t random_byte(const P* p, const A* a, const request* r, int64_t h, int64_t i, int64_t j) {
  const uint64_t place = a->offset + 64 * (uint64_t)(r->index * p->heads_q + h) + (uint64_t)(j % 32 + 32 * (i / 8 % 2));
  uint32_t c[4] = {(uint32_t)place, (uint32_t)(place >> 32), (uint32_t)(i / 32), (uint32_t)(j / 32)};
  uint32_t key[2] = {(uint32_t)a->seed, (uint32_t)(a->seed >> 32)};
  for (int round = 0; round < 7; ++round) {
    const uint64_t x = 0xD2511F53ull * c[0], y = 0xCD9E8D57ull * c[2];
    const uint32_t next[4] = {(uint32_t)(y >> 32) ^ c[1] ^ key[0], (uint32_t)y, (uint32_t)(x >> 32) ^ c[3] ^ key[1],
                              (uint32_t)x};
    memcpy(c, next, sizeof c);
    key[0] += 0x9E3779B9u, key[1] += 0xBB67AE85u;
  }
  const int64_t drawn = 8 * (i / 16 % 2) + i % 8;
  return c[drawn / 4] >> (8 * (drawn % 4)) & 255u;
}

/* 0 where dropout drops, else what the probability is multiplied by. */
static double kept(const P* p, const A* a, const request* r, int64_t h, int64_t i, int64_t j) {
  if (!p->dropout) return 1;
  return random_byte(p, a, r, h, i, j) <= kw_attention_keeps(p) ? 1 / (1 - p->dropout_p) : 0;
}

/* The score of a query and a key; *slope is the derivative of the cap. -inf where the mask hides the key. */
static double score(const P* p, const A* a, const request* r, int64_t h, int64_t i, int64_t j, double* slope) {
  const float *q = (const float*)a->q + at(p, p->q, r, r->first_q, h, i),
              *k = (const float*)a->k + key_at(p, a, p->k, r, h / (p->heads_q / p->heads_kv), j);
  const int64_t place = i + (p->mask == KW_MASK_TOP_LEFT ? 0 : r->keys - r->queries);
  double s = 0;
  *slope = 1;
  if (p->window_left >= 0 && j < place - p->window_left) return -INFINITY;
  if (p->window_right >= 0 && j > place + p->window_right) return -INFINITY;
  for (int64_t x = 0; x < p->hdim_q; ++x) s += (double)q[x] * k[x];
  s *= p->scale;
  if (p->soft_cap != 0) {
    const double t = tanh(s / p->soft_cap);
    s = p->soft_cap * t, *slope = 1 - t * t;
  }
  if (p->bias == KW_BIAS_ELEMENTWISE) s += ((const float*)a->bias)[at(p, p->bias_strides, r, r->first_q, h, i) + j];
  if (p->bias == KW_BIAS_ALIBI)
    s -= (double)((const float*)a->bias)[r->index * p->slopes_stride + h] * fabs((double)(place - j));
  return s;
}

/* O (hdim_v numbers) and LSE of one row from the keys first to last - 1. */
static double part_of_row(const P* p, const A* a, const request* r, int64_t h, int64_t i, int64_t first, int64_t last,
                          int with_sink, float* o) {
  double top = with_sink ? a->sinks[h] : -INFINITY, total = 0, slope, sums[1024] = {0};
  for (int64_t j = first; j < last; ++j) top = fmax(top, score(p, a, r, h, i, j, &slope));
  if (top == -INFINITY) top = 0;
  if (with_sink) total = exp(a->sinks[h] - top);
  for (int64_t j = first; j < last; ++j) {
    const double e = exp(score(p, a, r, h, i, j, &slope) - top);
    const float* v = (const float*)a->v + key_at(p, a, p->v, r, h / (p->heads_q / p->heads_kv), j);
    total += e;
    if (p->random_bytes)
      ((uint8_t*)a->random_bytes)[row_of(p, r, h, i) * p->max_seqlen_k + j] = (uint8_t)random_byte(p, a, r, h, i, j);
    const double weight = e * kept(p, a, r, h, i, j);
    for (int64_t x = 0; weight != 0 && x < p->hdim_v; ++x) sums[x] += weight * v[x];
  }
  for (int64_t x = 0; x < p->hdim_v; ++x) o[x] = (float)(total == 0 ? 0 : sums[x] / total);
  return total == 0 ? -INFINITY : log(total) + top;
}

static kw_status part(const kw_kernel* kernel, const void* storage, const kw_launch* where, const void* arguments) {
  (void)kernel, (void)where;
  const P* p = storage;
  const A* a = arguments;
  for (int64_t b = 0; b < p->batch; ++b) {
    const request r = request_of(p, a, b);
    if (r.queries < p->min_seqlen_q) continue;
    for (int64_t h = 0; h < p->heads_q; ++h) {
      for (int64_t i = 0; i < r.queries; ++i) {
        for (uint32_t s = 0; s < p->num_splits; ++s) {
          const int64_t each = (r.keys + p->num_splits - 1) / p->num_splits, first = s * each;
          const int64_t last = first + each < r.keys ? first + each : r.keys, row = row_of(p, &r, h, i);
          const int64_t slot = s * kw_attention_rows(p) + row;
          float* o =
              p->leaves_splits ? a->o_splits + slot * p->hdim_v : (float*)a->o + at(p, p->o, &r, r.first_q, h, i);
          const double lse = part_of_row(p, a, &r, h, i, first, last, p->sink && s == 0, o);
          if (p->leaves_splits) a->lse_splits[slot] = (float)lse;
          if (!p->leaves_splits && p->lse) a->lse[row] = (float)lse;
        }
      }
    }
  }
  return KW_OK;
}

static kw_status combine(const kw_kernel* kernel, const void* storage, const kw_launch* where, const void* arguments) {
  (void)kernel, (void)where;
  const P* p = storage;
  const A* a = arguments;
  const int64_t rows = kw_attention_rows(p);
  for (int64_t b = 0; b < p->batch; ++b) {
    const request r = request_of(p, a, b);
    for (int64_t h = 0; r.queries >= p->min_seqlen_q && h < p->heads_q; ++h) {
      for (int64_t i = 0; i < r.queries; ++i) {
        const int64_t row = row_of(p, &r, h, i);
        float* o = (float*)a->o + at(p, p->o, &r, r.first_q, h, i);
        double top = -INFINITY, total = 0, sums[1024] = {0};
        for (uint32_t s = 0; s < p->num_splits; ++s) top = fmax(top, a->lse_splits[s * rows + row]);
        for (uint32_t s = 0; top > -INFINITY && s < p->num_splits; ++s) {
          const double weight = exp(a->lse_splits[s * rows + row] - top);
          const float* from = a->o_splits + (s * rows + row) * p->hdim_v;
          total += weight;
          for (int64_t x = 0; weight != 0 && x < p->hdim_v; ++x) sums[x] += weight * from[x];
        }
        for (int64_t x = 0; x < p->hdim_v; ++x) o[x] = (float)(total == 0 ? 0 : sums[x] / total);
        if (p->lse) a->lse[row] = (float)(total == 0 ? -INFINITY : log(total) + top);
      }
    }
  }
  return KW_OK;
}

static void rotate(const kw_append_problem* p, const kw_append_args* a, const float* from, float* to, int64_t place) {
  const int64_t half = p->rotary_dim / 2;
  float row[1024];
  memcpy(row, from, sizeof(float) * (size_t)p->hdim_q);
  for (int64_t x = 0; x < half; ++x) {
    const int64_t one = p->rope == KW_ROPE_HALF ? x : 2 * x, two = p->rope == KW_ROPE_HALF ? x + half : 2 * x + 1;
    const float c = ((const float*)a->cos)[place * half + x], s = ((const float*)a->sin)[place * half + x];
    const float u = row[one], w = row[two];
    row[one] = u * c - w * s, row[two] = u * s + w * c;
  }
  memcpy(to, row, sizeof(float) * (size_t)p->hdim_q);
}

static kw_status append(const kw_kernel* kernel, const void* storage, const kw_launch* where, const void* arguments) {
  (void)kernel, (void)where;
  const kw_append_problem* p = storage;
  const kw_append_args* a = arguments;
  for (int64_t b = 0; b < p->batch; ++b) {
    for (int64_t h = 0; h < p->heads_kv; ++h) {
      for (int64_t j = 0; j < p->seqlen_new; ++j) {
        const int64_t place = a->seqlens_k[b] + j;
        int64_t request = b, row = place;
        if (p->page_table == KW_PAGES_BLOCK)
          request = a->page_table[b * p->page_table_stride + place / p->page_size], row = place % p->page_size;
        const float* k = (const float*)a->k + b * p->k.request + h * p->k.head + j * p->k.row;
        const float* v = (const float*)a->v + b * p->v.request + h * p->v.head + j * p->v.row;
        const kw_attention_strides *kc = &p->k_cache, *vc = &p->v_cache;
        rotate(p, a, k, (float*)a->k_cache + request * kc->request + h * kc->head + row * kc->row, place);
        memcpy((float*)a->v_cache + request * vc->request + h * vc->head + row * vc->row, v,
               sizeof(float) * (size_t)p->hdim_v);
      }
    }
    for (int64_t h = 0; h < p->heads_q; ++h) {
      for (int64_t i = 0; i < p->seqlen_q; ++i) {
        const float* q = (const float*)a->q + b * p->q.request + h * p->q.head + i * p->q.row;
        rotate(p, a, q, (float*)a->q_out + b * p->q_out.request + h * p->q_out.head + i * p->q_out.row,
               a->seqlens_k[b] + i);
      }
    }
  }
  keep(0, p, p->k_cache, a->k_cache), keep(1, p, p->v_cache, a->v_cache);
  return KW_OK;
}

static kw_status dot(const kw_kernel* kernel, const void* storage, const kw_launch* where, const void* arguments) {
  (void)kernel, (void)where;
  const P* p = storage;
  const A* a = arguments;
  for (int64_t b = 0; b < p->batch; ++b) {
    const request r = request_of(p, a, b);
    for (int64_t h = 0; h < p->heads_q; ++h) {
      for (int64_t i = 0; i < r.queries; ++i) {
        const float *o = (const float*)a->o + at(p, p->o, &r, r.first_q, h, i),
                    *d_o = (const float*)a->d_o + at(p, p->d_o, &r, r.first_q, h, i);
        double sum = 0;
        for (int64_t x = 0; x < p->hdim_v; ++x) sum += (double)o[x] * d_o[x];
        a->d[row_of(p, &r, h, i)] = (float)(sum * (1 - p->dropout_p));
      }
    }
  }
  return KW_OK;
}

/* Adds `factor` times a row to another. */
static void add_row(float* to, const float* from, double factor, int64_t count) {
  for (int64_t x = 0; x < count; ++x) to[x] += (float)(factor * from[x]);
}

/* What one query gives to all gradients; dQ goes to two slices of sums in turn. */
static void gradients_of_row(const P* p, const A* a, const request* r, int64_t h, int64_t i) {
  const int64_t row = row_of(p, r, h, i), rows = kw_attention_rows(p), shared = h / (p->heads_q / p->heads_kv);
  const float *q = (const float*)a->q + at(p, p->q, r, r->first_q, h, i),
              *d_o = (const float*)a->d_o + at(p, p->d_o, r, r->first_q, h, i);
  float* const dbias = p->dbias ? (float*)a->dbias + at(p, p->dbias_strides, r, r->first_q, h, i) : NULL;
  if (dbias) memset(dbias, 0, sizeof(float) * (size_t)p->max_seqlen_k);
  for (int64_t j = 0; j < r->keys; ++j) {
    double slope, dp = 0;
    const double s = score(p, a, r, h, i, j, &slope), probability = s == -INFINITY ? 0 : exp(s - a->lse[row]);
    const double scale = kept(p, a, r, h, i, j);
    const float* v = (const float*)a->v + at(p, p->v, r, r->first_k, shared, j);
    for (int64_t x = 0; x < p->hdim_v; ++x) dp += (double)d_o[x] * v[x];
    double ds = probability * (dp * scale - a->d[row] / (1 - p->dropout_p));
    if (dbias) dbias[j] = (float)ds;
    ds *= slope * p->scale;
    add_row((float*)a->dv + at(p, p->dv, r, r->first_k, shared, j), d_o, probability * scale, p->hdim_v);
    add_row((float*)a->dk + at(p, p->dk, r, r->first_k, shared, j), q, ds, p->hdim_q);
    add_row(a->dq_sums + ((j / 32) * rows + row) * p->hdim_q,
            (const float*)a->k + at(p, p->k, r, r->first_k, shared, j), ds, p->hdim_q);
  }
}

static kw_status gradients(const kw_kernel* kernel, const void* storage, const kw_launch* where,
                           const void* arguments) {
  (void)kernel, (void)where;
  const P* p = storage;
  const A* a = arguments;
  memset(a->dq_sums, 0, sizeof(float) * (size_t)(p->dq_slices * kw_attention_rows(p) * p->hdim_q));
  for (int64_t b = 0; b < p->batch; ++b) {
    const request r = request_of(p, a, b);
    const int64_t rows = p->group ? a->cu_seqlens_k[b + 1] - r.first_k : p->max_seqlen_k; /* all, also unused ones */
    for (int64_t h = 0; h < p->heads_kv; ++h) {
      for (int64_t j = 0; j < rows; ++j) {
        memset((float*)a->dk + at(p, p->dk, &r, r.first_k, h, j), 0, sizeof(float) * (size_t)p->hdim_q);
        memset((float*)a->dv + at(p, p->dv, &r, r.first_k, h, j), 0, sizeof(float) * (size_t)p->hdim_v);
      }
    }
    for (int64_t h = 0; h < p->heads_q; ++h) {
      for (int64_t i = 0; i < r.queries; ++i) gradients_of_row(p, a, &r, h, i);
    }
  }
  return KW_OK;
}

static kw_status convert(const kw_kernel* kernel, const void* storage, const kw_launch* where, const void* arguments) {
  (void)kernel, (void)where;
  const P* p = storage;
  const A* a = arguments;
  for (int64_t b = 0; b < p->batch; ++b) {
    const request r = request_of(p, a, b);
    for (int64_t h = 0; h < p->heads_q; ++h) {
      for (int64_t i = 0; i < r.queries; ++i) {
        float* dq = (float*)a->dq + at(p, p->dq, &r, r.first_q, h, i);
        memset(dq, 0, sizeof(float) * (size_t)p->hdim_q);
        for (uint32_t s = 0; s < p->dq_slices; ++s)
          add_row(dq, a->dq_sums + (s * kw_attention_rows(p) + row_of(p, &r, h, i)) * p->hdim_q, 1, p->hdim_q);
      }
    }
  }
  return KW_OK;
}

/* Everything, so that one kernel of each family is enough. */
#define TRAITS(the_family, tables, lengths, splits, leaves) \
  {.struct_size = sizeof(kw_attention_traits),              \
   .family = the_family,                                    \
   .dtype_q = KW_FP32,                                      \
   .dtype_kv = KW_FP32,                                     \
   .dtype_o = KW_FP32,                                      \
   .dtype_bias = KW_FP32,                                   \
   .hdim_q = 1024,                                          \
   .hdim_v = 1024,                                          \
   .pad_s = 1,                                              \
   .pad_sk = 1,                                             \
   .pad_d = 1,                                              \
   .pad_dv = 1,                                             \
   .tile_m0 = 16,                                           \
   .tile_n0 = 32,                                           \
   .groups = KW_SERVES_BOTH,                                \
   .masks = KW_SERVES(KW_MASK_GENERIC),                     \
   .biases = 7,                                             \
   .lses = KW_SERVES_BOTH,                                  \
   .sinks = KW_SERVES_BOTH,                                 \
   .dropouts = KW_SERVES_BOTH,                              \
   .random_bytes = KW_SERVES_BOTH,                          \
   .soft_caps = KW_SERVES_BOTH,                             \
   .kv_lengths = lengths,                                   \
   .dbiases = KW_SERVES_BOTH,                               \
   .deterministics = KW_SERVES_BOTH,                        \
   .min_seqlens_q = KW_SERVES_BOTH,                         \
   .qscales = KW_SERVES(KW_QSCALE_NONE),                    \
   .page_tables = tables,                                   \
   .page_layouts = KW_SERVES(KW_PAGE_LINEAR),               \
   .ropes = 7,                                              \
   .max_splits = splits,                                    \
   .leaves_splits = leaves,                                 \
   .leaves_dq = 2}

#define KERNEL(id, the_family, digit, label, tables, lengths, splits, leaves, launches)               \
  static const kw_attention_traits id##_traits = TRAITS(the_family, tables, lengths, splits, leaves); \
  static const kw_kernel id = {.struct_size = sizeof(kw_kernel),                                      \
                               .abi_version = KW_ABI_VERSION,                                         \
                               .op = KW_ATTENTION_OP_OF(the_family),                                  \
                               .plan_bytes = sizeof(P),                                               \
                               .name = label,                                                         \
                               .arch = MOCK_ARCH,                                                     \
                               .identity = "a" digit DIGITS_62,                                       \
                               .spec_json = "{}",                                                     \
                               .features = "",                                                        \
                               .traits = &id##_traits,                                                \
                               .supports = serves,                                                    \
                               .workspace_size = no_workspace,                                        \
                               .plan = plan,                                                          \
                               .launch = launches}

#define DIGITS_62 "00112233445566778899aabbccddeeff00112233445566778899aabbccddee"
#define PAGED (KW_SERVES(KW_PAGES_BLOCK) | KW_SERVES(KW_PAGES_LIST))

KERNEL(k_fwd, KW_ATTENTION_FWD, "1", "fmha_fwd", KW_SERVES(KW_PAGES_NONE), KW_SERVES_BOTH, 1, KW_SERVES(0), part);
KERNEL(k_split, KW_ATTENTION_FWD_SPLITKV, "2", "fmha_fwd_splitkv", KW_SERVES(KW_PAGES_NONE) | PAGED, KW_SERVES_BOTH, 16,
       KW_SERVES(1), part);
KERNEL(k_paged, KW_ATTENTION_FWD_PAGEDKV, "3", "fmha_fwd_pagedkv", KW_SERVES(KW_PAGES_BLOCK), KW_SERVES_BOTH, 1,
       KW_SERVES(0), part);
KERNEL(k_prefill, KW_ATTENTION_BATCH_PREFILL, "4", "fmha_batch_prefill", PAGED, KW_SERVES_BOTH, 1, KW_SERVES(0), part);
KERNEL(k_combine, KW_ATTENTION_FWD_SPLITKV_COMBINE, "5", "fmha_combine", 7, KW_SERVES_BOTH, 16, KW_SERVES(0), combine);
KERNEL(k_append, KW_ATTENTION_FWD_APPENDKV, "6", "fmha_append", 3, KW_SERVES_BOTH, 1, KW_SERVES(0), append);
KERNEL(k_dot, KW_ATTENTION_BWD_DOT_DO_O, "7", "fmha_dot", 1, KW_SERVES_BOTH, 1, KW_SERVES(0), dot);
KERNEL(k_gradients, KW_ATTENTION_BWD_DQ_DK_DV, "8", "fmha_gradients", 1, KW_SERVES_BOTH, 1, KW_SERVES(0), gradients);
KERNEL(k_convert, KW_ATTENTION_BWD_CONVERT_DQ, "9", "fmha_convert", 1, KW_SERVES_BOTH, 1, KW_SERVES(0), convert);

static const kw_kernel* const kernels[] = {&k_fwd,    &k_split, &k_paged,     &k_prefill, &k_combine,
                                           &k_append, &k_dot,   &k_gradients, &k_convert};
static const kw_arch arch = {.struct_size = sizeof(kw_arch),
                             .backend = MOCK_BACKEND,
                             .name = MOCK_ARCH,
                             .compute_units = 4,
                             .wave_size = 1,
                             .lds_bytes = 1u << 20,
                             .clock_ghz = 2.0,
                             .memory_gbytes_per_s = 40.0,
                             .flops_per_clock_per_cu = {0, 32, 32, 32, 0, 0, 64, 0}};

static kw_status check_device(int32_t device, char* reason, size_t bytes) {
  (void)device, (void)reason, (void)bytes;
  return KW_OK;
}
static const char* last_error(void) { return ""; }
static kw_status set_num_threads(uint32_t threads) { return (void)threads, KW_OK; }
static kw_status set_runtime(const char* path) { return (void)path, KW_UNSUPPORTED; }

const kw_library* kw_library_get(void) {
  static const kw_library library = {
      sizeof(kw_library), KW_ABI_VERSION, "attention",     &arch,      kernels, sizeof kernels / sizeof kernels[0],
      check_device,       last_error,     set_num_threads, set_runtime};
  return &library;
}
