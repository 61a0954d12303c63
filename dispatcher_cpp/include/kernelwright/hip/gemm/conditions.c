/* Which GEMM problems a CK Tile kernel serves.
 *
 * The conditions are those of CK Tile's own UniversalGemmKernel::IsSupportedArgument plus what its device code takes
 * for granted: 32-bit byte offsets, rows at least as long as their extent, a minimal number of K tiles.
 */
#include <stdio.h>

#include "kernelwright/gemm/checks.h"
#include "kernelwright/hip/gemm/launcher.h"

/* K tiles that a pipeline may load beyond the end of K (never used, but their offsets must not wrap around). */
#define MAX_PREFETCH 8
/* A, B, what the kernel writes, C and the D tensors. */
#define MAX_OPERANDS (4 + KW_MAX_D)

typedef struct operand {
  const char* name;
  const char* contiguous_name;
  int64_t contiguous, strided; /* extents along and across rows of memory */
  int64_t stride;
  int64_t strided_end; /* across rows, rounded up to what the kernel addresses */
  int64_t overrun;     /* along rows */
  uint32_t vector, tile, padded;
  uint32_t dtype;
} operand;

int kw_hip_gemm_read_facts(const kw_hip_code* code, size_t arguments_bytes, kw_hip_gemm_facts* facts) {
  return kw_hip_read_facts(code, facts, sizeof *facts) && facts->magic == KW_HIP_GEMM_FACTS_MAGIC &&
         facts->arguments_bytes == arguments_bytes;
}

int64_t kw_hip_round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

int64_t kw_hip_element_bytes(uint32_t dtype) {
  switch (dtype) {
    case KW_FP32:
    case KW_INT32:
      return 4;
    case KW_FP16:
    case KW_BF16:
      return 2;
    default:
      return 1;
  }
}

static const char* name_of(uint32_t dtype) {
  static const char* const names[] = {"?", "fp32", "fp16", "bf16", "fp8", "bf8", "int8", "int32"};
  return names[dtype < sizeof names / sizeof *names ? dtype : 0];
}

static const char* order_of(uint32_t layout) { return layout == KW_ROW_MAJOR ? "row-major" : "column-major"; }

static kw_status same_dtype(const char* field, uint32_t asked, uint32_t served, char* reason, size_t bytes) {
  if (asked == served) return KW_OK;
  snprintf(reason, bytes, "%s is %s, this kernel serves %s.", field, name_of(asked), name_of(served));
  return KW_UNSUPPORTED;
}

static kw_status same_layout(const char* field, uint32_t asked, uint32_t served, char* reason, size_t bytes) {
  if (asked == served) return KW_OK;
  snprintf(reason, bytes, "%s is %s, this kernel serves %s.", field, order_of(asked), order_of(served));
  return KW_UNSUPPORTED;
}

static kw_status check_kind(const kw_gemm_traits* t, const kw_gemm_problem* p, char* reason, size_t bytes) {
  kw_status status = same_dtype("dtype_a", p->dtype_a, t->dtype_a, reason, bytes);
  if (status == KW_OK) status = same_dtype("dtype_b", p->dtype_b, t->dtype_b, reason, bytes);
  if (status == KW_OK) status = same_dtype("dtype_c", p->dtype_c, t->dtype_c, reason, bytes);
  if (status == KW_OK) status = same_dtype("dtype_acc", p->dtype_acc, t->dtype_acc, reason, bytes);
  if (status == KW_OK) status = same_layout("layout_a", p->layout_a, t->layout_a, reason, bytes);
  if (status == KW_OK) status = same_layout("layout_b", p->layout_b, t->layout_b, reason, bytes);
  if (status == KW_OK) status = same_layout("layout_c", p->layout_c, t->layout_c, reason, bytes);
  return status;
}

static int splits(const kw_gemm_traits* t) { return t->max_split_k > 1; }

static kw_status check_scalars(const kw_gemm_traits* t, const kw_gemm_problem* p, char* reason, size_t bytes) {
  const int scales = t->dtype_acc == KW_FP32, plain = p->alpha == 1.0 && p->beta == 0.0 && p->num_d == 0;
  if (p->alpha != 1.0 && !scales)
    snprintf(reason, bytes, "alpha is %g, this kernel serves 1.", p->alpha);
  else if (p->beta != 0.0 && !scales)
    snprintf(reason, bytes, "beta is %g, this kernel serves 0.", p->beta);
  else if (p->split_k == 0 || p->split_k > t->max_split_k)
    snprintf(reason, bytes, "split_k is %u, this kernel serves 1%s.", p->split_k, splits(t) ? " to 1024" : "");
  else if (splits(t) && p->split_k == 1 && plain)
    snprintf(reason, bytes, "split_k is 1: a kernel without a workspace multiplies faster than this one.");
  else
    return KW_OK;
  return KW_UNSUPPORTED;
}

static int64_t matrix_tiles(const kw_gemm_traits* t, const kw_gemm_problem* p) {
  return kw_hip_round_up(p->m, t->tile_m) / t->tile_m * (kw_hip_round_up(p->n, t->tile_n) / t->tile_n);
}

int64_t kw_hip_tiles(const kw_gemm_traits* t, const kw_gemm_problem* p) { return matrix_tiles(t, p) * p->batch; }

int64_t kw_hip_loops(const kw_gemm_traits* t, const kw_gemm_problem* p) {
  return kw_hip_round_up(p->k, t->tile_k) / t->tile_k;
}

/* Permuted B: rows of whole warp tiles, as wide as one and as long as K. */
static operand permuted_b(const kw_gemm_traits* t, const kw_gemm_problem* p, const kw_hip_gemm_facts* facts) {
  const int64_t row = kw_hip_round_up(p->k, t->warp_tile_k) * t->warp_tile_n;
  const operand b = {"permuted B",
                     "k",
                     row,
                     p->n,
                     row,
                     kw_hip_round_up(p->n, t->tile_n) / t->warp_tile_n,
                     (int64_t)t->tile_k * t->warp_tile_n * MAX_PREFETCH,
                     facts->packed_k,
                     t->tile_k * t->warp_tile_n,
                     t->pad_k,
                     p->dtype_b};
  return b;
}

/* Returns how many there are: those of C and D only, which have one leading dimension, come as two. */
static int describe_operands(const kw_gemm_traits* t, const kw_gemm_problem* p, const kw_hip_gemm_facts* facts,
                             operand operands[MAX_OPERANDS]) {
  static const char* const names[KW_MAX_D] = {"D0", "D1", "D2", "D3"};
  const int64_t m_end = kw_hip_round_up(p->m, t->tile_m), n_end = kw_hip_round_up(p->n, t->tile_n);
  const int64_t ahead = (int64_t)t->tile_k * MAX_PREFETCH, k_end = kw_hip_round_up(p->k, t->tile_k) + ahead;
  const int64_t slice_row = kw_hip_round_up(p->n, KW_HIP_SUM_VECTOR);
  const operand a_row = {"A", "k", p->k, p->m, p->lda, m_end, ahead, facts->vector_a, t->tile_k, t->pad_k, p->dtype_a};
  const operand a_col = {"A",       "m",      p->m,      p->k, p->lda, k_end, t->tile_m, facts->vector_a,
                         t->tile_m, t->pad_m, p->dtype_a};
  const operand b_row = {"B",       "n",      p->n,      p->k, p->ldb, k_end, t->tile_n, facts->vector_b,
                         t->tile_n, t->pad_n, p->dtype_b};
  const operand b_col = {"B", "k", p->k, p->n, p->ldb, n_end, ahead, facts->vector_b, t->tile_k, t->pad_k, p->dtype_b};
  const operand own = {"C",       "n",      p->n,      p->m, p->ldc, m_end, t->tile_n, facts->vector_d,
                       t->tile_n, t->pad_n, p->dtype_c};
  const operand slice = {"a slice of C",  "n",       p->n,     p->m,        slice_row, m_end, t->tile_n,
                         facts->vector_d, t->tile_n, t->pad_n, p->dtype_acc};
  operands[0] = p->layout_a == KW_ROW_MAJOR ? a_row : a_col;
  operands[1] = t->b_format != 0 ? permuted_b(t, p, facts) : p->layout_b == KW_ROW_MAJOR ? b_row : b_col;
  operands[2] = splits(t) ? slice : own;
  operands[3] = own;
  for (uint32_t i = 0; i < p->num_d; ++i) { /* read element by element; one row for all is not stepped through */
    operand d = {names[i], "n", p->n, p->m, p->ld_multi_d[i], m_end, t->tile_n, 1, 1, 1, p->dtype_c};
    if (p->ld_multi_d[i] == 0) d.stride = d.contiguous, d.strided_end = 1;
    operands[4 + i] = d;
  }
  return 4 + (int)p->num_d;
}

/* Rows shorter than their extent would overlap, or let the bounds check of the last row hide a part of the others. */
static kw_status check_row(const operand* x, char* reason, size_t bytes) {
  if (x->stride >= x->contiguous) return KW_OK;
  snprintf(reason, bytes, "the leading dimension of %s is %lld, less than %s = %lld.", x->name, (long long)x->stride,
           x->contiguous_name, (long long)x->contiguous);
  return KW_INVALID_ARGUMENT;
}

static kw_status check_alignment(const operand* x, uint32_t row_bytes, char* reason, size_t bytes) {
  if (x->stride * kw_hip_element_bytes(x->dtype) % row_bytes == 0) return KW_OK;
  snprintf(reason, bytes, "the leading dimension of %s is %lld: its rows are not aligned to %u bytes.", x->name,
           (long long)x->stride, row_bytes);
  return KW_UNSUPPORTED;
}

static kw_status check_operand(const operand* x, uint32_t row_bytes, char* reason, size_t bytes) {
  const long long extent = x->contiguous, stride = x->stride;
  const int64_t size = kw_hip_element_bytes(x->dtype), limit = INT32_MAX / size;
  if (!x->padded && x->contiguous % x->tile != 0)
    snprintf(reason, bytes, "%s = %lld is not a multiple of the tile's %u, and this kernel does not pad %s.",
             x->contiguous_name, extent, x->tile, x->contiguous_name);
  else if (x->contiguous % x->vector != 0)
    snprintf(reason, bytes, "%s = %lld is not a multiple of %u, the vector in which %s is accessed.",
             x->contiguous_name, extent, x->vector, x->name);
  else if (check_alignment(x, row_bytes, reason, bytes) != KW_OK)
    return KW_UNSUPPORTED;
  else if (x->stride > limit || x->strided_end > (limit - x->overrun) / x->stride)
    snprintf(reason, bytes, "%s spans %lld rows of %lld elements: its byte offsets do not fit into 31 bits.", x->name,
             (long long)x->strided, stride);
  else
    return KW_OK;
  return KW_UNSUPPORTED;
}

/* The matrices of a batch begin at whole rows' alignments. */
static kw_status check_strides(const kw_gemm_problem* p, uint32_t row_bytes, char* reason, size_t bytes) {
  const int64_t strides[] = {p->stride_a, p->stride_b, p->stride_c};
  const uint32_t dtypes[] = {p->dtype_a, p->dtype_b, p->dtype_c};
  for (int i = 0; i < 3 && p->batch > 1; ++i) {
    if (strides[i] * kw_hip_element_bytes(dtypes[i]) % row_bytes == 0) continue;
    snprintf(reason, bytes, "stride_%c is %lld: the matrices of the batch are not aligned to %u bytes.", 'a' + i,
             (long long)strides[i], row_bytes);
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* Without K there is nothing to multiply, and the kernel that adds up slices does the rest. Grouped ones have none. */
static int finishes_alone(const kw_hip_gemm* gemm, const kw_gemm_problem* p) { return p->k == 0 && gemm->sum.image; }

static kw_status check_counts(const kw_hip_gemm* gemm, const kw_gemm_problem* p, const kw_hip_gemm_facts* facts,
                              char* reason, size_t bytes) {
  const kw_gemm_traits* t = &gemm->traits;
  const int64_t loops = kw_hip_loops(t, p), most = INT32_MAX / p->split_k, matrix = matrix_tiles(t, p);
  const int64_t tiles = matrix > most / p->batch ? INT64_MAX : matrix * p->batch * p->split_k;
  if (loops / p->split_k < (int64_t)facts->min_k_loops && !finishes_alone(gemm, p))
    snprintf(reason, bytes, "k = %lld is %lld tiles of %u for split_k = %u, each needs %u.", (long long)p->k,
             (long long)loops, t->tile_k, p->split_k, facts->min_k_loops);
  else if (tiles > (int64_t)(UINT32_MAX / facts->block_size) || tiles > INT32_MAX)
    snprintf(reason, bytes,
             "m = %lld by n = %lld is %lld tiles for each of %lld matrices, more than a launch can have.",
             (long long)p->m, (long long)p->n, (long long)matrix, (long long)p->batch);
  else if (t->stream_k != KW_STREAM_K_NONE && loops != 0 && tiles > INT32_MAX / loops)
    snprintf(reason, bytes, "%lld tiles of %lld K tiles each are more than stream-K can count.", (long long)tiles,
             (long long)loops);
  else
    return KW_OK;
  return KW_UNSUPPORTED;
}

static kw_status check_sizes(const kw_hip_gemm* gemm, const kw_gemm_problem* p, const kw_hip_gemm_facts* facts,
                             char* reason, size_t bytes) {
  operand operands[MAX_OPERANDS];
  const int count = describe_operands(&gemm->traits, p, facts, operands);
  for (int i = 0; i < count; ++i) {
    const kw_status status = check_row(&operands[i], reason, bytes);
    if (status != KW_OK) return status;
  }
  if (p->m == 0 || p->n == 0) return KW_OK;
  for (int i = 0; i < count; ++i) {
    if (i == 3) continue; /* C: only its rows' alignment matters, below */
    if (i < 2 && finishes_alone(gemm, p)) continue;
    const uint32_t aligned = i < 3 ? facts->row_bytes : 1;
    const kw_status status = check_operand(&operands[i], aligned, reason, bytes);
    if (status != KW_OK) return status;
  }
  kw_status status = check_alignment(&operands[3], facts->row_bytes, reason, bytes);
  if (status == KW_OK) status = check_strides(p, facts->row_bytes, reason, bytes);
  if (status == KW_OK) status = check_counts(gemm, p, facts, reason, bytes);
  return status;
}

/* Extents beyond 31 bits are refused first, so that nothing later can overflow 64 bits. */
static kw_status check_range(const kw_gemm_problem* p, char* reason, size_t bytes) {
  const int64_t values[] = {p->m, p->n, p->k, p->lda, p->ldb, p->ldc, p->batch};
  static const char* const names[] = {"m", "n", "k", "lda", "ldb", "ldc", "batch"};
  for (int i = 0; i < 7 + (int)p->num_d; ++i) {
    const int64_t value = i < 7 ? values[i] : p->ld_multi_d[i - 7];
    const char* name = i < 7 ? names[i] : "a leading dimension of D";
    if (value < 0) {
      snprintf(reason, bytes, "%s = %lld is negative.", name, (long long)value);
      return KW_INVALID_ARGUMENT;
    }
    if (value > INT32_MAX) {
      snprintf(reason, bytes, "%s = %lld does not fit into 31 bits.", name, (long long)value);
      return KW_UNSUPPORTED;
    }
  }
  if (p->stride_a < 0 || p->stride_b < 0 || p->stride_c < 0) {
    snprintf(reason, bytes, "a stride between the matrices of the batch is negative.");
    return KW_INVALID_ARGUMENT;
  }
  return KW_OK;
}

kw_status kw_hip_check_conditions(const kw_hip_gemm* gemm, const kw_gemm_problem* p, const kw_hip_gemm_facts* facts,
                                  char* reason, size_t bytes) {
  kw_status status = check_kind(&gemm->traits, p, reason, bytes);
  if (status == KW_OK) status = kw_gemm_variant_matches(&gemm->traits, p, reason, bytes);
  if (status == KW_OK) status = check_range(p, reason, bytes);
  if (status == KW_OK) status = check_scalars(&gemm->traits, p, reason, bytes);
  if (status == KW_OK) status = check_sizes(gemm, p, facts, reason, bytes);
  return status;
}
