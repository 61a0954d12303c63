/* Which attention problems a CK Tile kernel serves: what its vectors, its 32-bit offsets, its pages and its grid take.
 */
#include <stdio.h>

#include "kernelwright/attention/checks.h"
#include "kernelwright/hip/attention/launcher.h"

#define ROTARY_VECTOR 16 /* elements of a rotary embedding that CK Tile reads at once, cosines and sines together */

typedef struct tensor {
  const char* name;
  const kw_attention_strides* strides;
  int64_t rows;
  uint32_t dtype;
} tensor;

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int fits(int64_t value) { return value >= 0 && value <= INT32_MAX; }

/* The product, or INT64_MAX where it has more bits; neither is negative. */
static int64_t times(int64_t a, int64_t b) { return a != 0 && b > INT64_MAX / a ? INT64_MAX : a * b; }

/* Strides are 32-bit numbers, and so are byte offsets within a request's rows of a head, a tile beyond the last one. */
static kw_status check_tensor(const kw_hip_attention* k, tensor one, char* reason, size_t bytes) {
  const int64_t all[] = {one.strides->request, one.strides->head, one.strides->row};
  const int64_t size = kw_dtype_bytes(one.dtype);
  for (int i = 0; i < 3; ++i) {
    if (!fits(all[i])) {
      snprintf(reason, bytes, "a stride of %s is %lld: it does not fit into 31 bits", one.name, (long long)all[i]);
      return KW_UNSUPPORTED;
    }
    if (all[i] * size % k->aligned != 0) {
      snprintf(reason, bytes, "a stride of %s is %lld elements: rows are not aligned to %u bytes", one.name,
               (long long)all[i], k->aligned);
      return KW_UNSUPPORTED;
    }
  }
  const int64_t tile = most(k->traits.tile_m0, k->traits.tile_n0);
  if (times(one.rows + tile, most(one.strides->row, 1)) <= INT32_MAX / size) return KW_OK;
  snprintf(reason, bytes, "%s has %lld rows of a head, %lld elements apart: byte offsets do not fit into 31 bits",
           one.name, (long long)one.rows, (long long)one.strides->row);
  return KW_UNSUPPORTED;
}

static kw_status check_tensors(const kw_hip_attention* k, const tensor* all, int count, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  for (int i = 0; i < count && status == KW_OK; ++i) status = check_tensor(k, all[i], reason, bytes);
  return status;
}

/* Counts, and parts that are addressed by 32-bit offsets. */
static kw_status check_range(const kw_attention_problem* p, char* reason, size_t bytes) {
  const int64_t counts[] = {p->batch,        p->heads_q,           p->heads_kv,     p->hdim_q,       p->hdim_v,
                            p->max_seqlen_q, p->max_seqlen_k,      p->total_q,      p->total_k,      p->pages,
                            p->page_size,    p->page_table_stride, p->min_seqlen_q, p->slopes_stride};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) {
    if (fits(counts[i])) continue;
    snprintf(reason, bytes, "a length of the problem is %lld: it does not fit into 31 bits", (long long)counts[i]);
    return KW_UNSUPPORTED;
  }
  const uint32_t op = p->base.op;
  const int64_t rows = times(p->heads_q, p->group ? p->total_q : times(p->batch, p->max_seqlen_q));
  const int splits = op == KW_OP_ATTENTION_COMBINE || (op == KW_OP_ATTENTION_PART && p->leaves_splits == 1);
  const int64_t parts =
      splits ? times(times(p->num_splits, rows), p->hdim_v) : times(times(most(p->dq_slices, 1), rows), p->hdim_q);
  const int slices = p->dq_slices != 0 && op != KW_OP_ATTENTION_PART;
  if ((!splits && !slices) || parts <= INT32_MAX / (int64_t)sizeof(float)) return KW_OK;
  snprintf(reason, bytes, "partial results have %lld elements: byte offsets do not fit into 31 bits", (long long)parts);
  return KW_UNSUPPORTED;
}

static kw_status check_grid(int64_t y, int64_t z, char* reason, size_t bytes) {
  if (y <= KW_HIP_MAX_GRID && z <= KW_HIP_MAX_GRID) return KW_OK;
  snprintf(reason, bytes, "%lld heads, requests or tiles are more than the %d that a grid can have",
           (long long)most(y, z), KW_HIP_MAX_GRID);
  return KW_UNSUPPORTED;
}

/* Tiles of keys lie in one page; places of keys are found by one multiplication. */
static kw_status check_pages(const kw_hip_attention* k, const kw_attention_problem* p, char* reason, size_t bytes) {
  const uint32_t family = k->traits.family, tile = k->traits.tile_n0;
  if (p->page_table == KW_PAGES_NONE) return KW_OK;
  if (family == KW_ATTENTION_BATCH_PREFILL) {
    if (p->k.request == p->page_size * p->k.row && p->v.request == p->page_size * p->v.row &&
        fits(times(p->pages, p->page_size)))
      return KW_OK;
    snprintf(reason, bytes, "the keys of neighbouring pages are not everywhere equally far apart in memory");
    return KW_UNSUPPORTED;
  }
  if (p->page_size > 0 && p->page_size % tile == 0) return KW_OK;
  snprintf(reason, bytes, "page_size is %lld, this kernel serves multiples of its tile of %u keys",
           (long long)p->page_size, tile);
  return KW_UNSUPPORTED;
}

/* Slices of dQ are tiles of keys of the kernel that made them. */
static kw_status check_slices(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  const int64_t tile = t->tile_n0, slices = tile == 0 ? 1 : kw_hip_tiles(most(p->max_seqlen_k, 1), tile);
  if (t->family != KW_ATTENTION_BWD_CONVERT_DQ || p->dq_slices == slices) return KW_OK;
  snprintf(reason, bytes, "dQ is left as %u sums, this kernel adds up %lld", p->dq_slices, (long long)slices);
  return KW_UNSUPPORTED;
}

kw_status kw_hip_attention_check(const kw_hip_attention* k, const kw_attention_problem* p, char* reason, size_t bytes) {
  const kw_attention_traits* t = &k->traits;
  const uint32_t op = p->base.op;
  kw_status status = kw_attention_traits_match(t, p, reason, bytes);
  if (status == KW_OK) status = check_range(p, reason, bytes);
  if (status == KW_OK) status = check_slices(t, p, reason, bytes);
  if (status != KW_OK) return status;
  const int64_t rows = p->max_seqlen_q;
  const int64_t keys = p->page_table == KW_PAGES_NONE            ? p->max_seqlen_k
                       : t->family == KW_ATTENTION_BATCH_PREFILL ? p->pages * p->page_size
                                                                 : p->page_size;
  const tensor part[] = {{"Q", &p->q, rows, p->dtype_q},
                         {"K", &p->k, keys, p->dtype_kv},
                         {"V", &p->v, keys, p->dtype_kv},
                         {"O", &p->o, rows, p->dtype_o},
                         {"dO", &p->d_o, rows, p->dtype_o}};
  const tensor gradients[] = {
      {"dQ", &p->dq, rows, p->dtype_q}, {"dK", &p->dk, keys, p->dtype_kv}, {"dV", &p->dv, keys, p->dtype_kv}};
  const tensor square[] = {{"bias", &p->bias_strides, rows, p->dtype_bias},
                           {"dbias", &p->dbias_strides, rows, p->dtype_bias}};
  if (kw_attention_reads_kv(op)) status = check_tensors(k, part, 3, reason, bytes);
  if (status == KW_OK && op != KW_OP_ATTENTION_CONVERT_DQ && op != KW_OP_ATTENTION_DQ_DK_DV)
    status = check_tensor(k, part[3], reason, bytes);
  if (status == KW_OK && (op == KW_OP_ATTENTION_DOT || op == KW_OP_ATTENTION_DQ_DK_DV))
    status = check_tensor(k, part[4], reason, bytes);
  if (status == KW_OK && op == KW_OP_ATTENTION_CONVERT_DQ) status = check_tensor(k, gradients[0], reason, bytes);
  if (status == KW_OK && op == KW_OP_ATTENTION_DQ_DK_DV) status = check_tensors(k, gradients + 1, 2, reason, bytes);
  if (status == KW_OK && kw_attention_reads_kv(op) && p->bias == KW_BIAS_ELEMENTWISE)
    status = check_tensors(k, square, p->dbias ? 2 : 1, reason, bytes);
  if (status == KW_OK && op == KW_OP_ATTENTION_PART) status = check_pages(k, p, reason, bytes);
  if (status == KW_OK && op == KW_OP_ATTENTION_PART && p->max_seqlen_k == 0 && !t->pad_sk) {
    snprintf(reason, bytes, "there are no keys; this kernel serves whole tiles of them");
    status = KW_UNSUPPORTED;
  }
  const int64_t tiles = t->tile_m0 == 0 ? 1 : kw_hip_tiles(rows, t->tile_m0);
  if (status == KW_OK) status = check_grid(most(p->heads_q, tiles), most(p->batch, tiles), reason, bytes);
  return status;
}

kw_status kw_hip_append_check(const kw_hip_attention* k, const kw_append_problem* p, char* reason, size_t bytes) {
  const kw_attention_traits* t = &k->traits;
  const int paged = p->page_table != KW_PAGES_NONE;
  const int64_t keys = paged ? p->page_size : p->capacity,
                together = p->seqlen_new < t->tile_n0 ? p->seqlen_new : t->tile_n0;
  const tensor all[] = {{"the new K", &p->k, p->seqlen_new, p->dtype},
                        {"the new V", &p->v, p->seqlen_new, p->dtype},
                        {"the cache of K", &p->k_cache, keys, p->dtype},
                        {"the cache of V", &p->v_cache, keys, p->dtype},
                        {"q", &p->q, p->seqlen_q, p->dtype},
                        {"q_out", &p->q_out, p->seqlen_q, p->dtype}};
  kw_status status = kw_append_traits_match(t, p, reason, bytes);
  if (status == KW_OK) status = check_tensors(k, all, p->rotates_q ? 6 : 4, reason, bytes);
  const int whole_q = t->pad_s || p->seqlen_q % t->tile_m0 == 0, whole_k = t->pad_sk || p->seqlen_new % t->tile_n0 == 0;
  if (status == KW_OK && !(whole_q && whole_k)) {
    snprintf(reason, bytes, "this kernel serves whole tiles of %u queries and %u new keys", t->tile_m0, t->tile_n0);
    status = KW_UNSUPPORTED;
  }
  if (status == KW_OK && paged && p->page_size < together) {
    snprintf(reason, bytes, "page_size is %lld: the %lld keys that are written at once lie in more than two pages",
             (long long)p->page_size, (long long)together);
    status = KW_UNSUPPORTED;
  }
  if (status == KW_OK && p->rope != KW_ROPE_NONE && p->rotary_dim % ROTARY_VECTOR != 0) {
    snprintf(reason, bytes, "rotary_dim is %lld, this kernel serves multiples of %d", (long long)p->rotary_dim,
             ROTARY_VECTOR);
    status = KW_UNSUPPORTED;
  }
  if (status == KW_OK) status = check_grid(most(p->heads_q, p->heads_kv), p->batch, reason, bytes);
  return status;
}
