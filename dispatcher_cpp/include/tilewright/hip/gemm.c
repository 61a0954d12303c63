/* Which GEMM problems a CK Tile kernel serves, and how they are launched.
 *
 * The conditions are those of CK Tile's own UniversalGemmKernel::IsSupportedArgument plus what its device code takes
 * for granted: 32-bit byte offsets, rows at least as long as their extent, a minimal number of K tiles.
 */
#include <stdio.h>
#include <string.h>

#include "tilewright/hip/launcher.h"
#include "tilewright/variant.h"

/* K tiles that a pipeline may load beyond the end of K (never used, but their offsets must not wrap around). */
#define MAX_PREFETCH 8
/* As the ABI promises. */
#define WORKSPACE_ALIGNMENT 256

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

static const tw_hip_gemm* gemm_of(const tw_kernel* kernel) { return (const tw_hip_gemm*)kernel->traits; }

static int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

static int64_t size_of(uint32_t dtype) {
  switch (dtype) {
    case TW_FP32:
    case TW_INT32:
      return 4;
    case TW_FP16:
    case TW_BF16:
      return 2;
    default:
      return 1;
  }
}

static const char* name_of(uint32_t dtype) {
  static const char* const names[] = {"?", "fp32", "fp16", "bf16", "fp8", "bf8", "int8", "int32"};
  return names[dtype < sizeof names / sizeof *names ? dtype : 0];
}

static const char* order_of(uint32_t layout) { return layout == TW_ROW_MAJOR ? "row-major" : "column-major"; }

static tw_status same_dtype(const char* field, uint32_t asked, uint32_t served, char* reason, size_t bytes) {
  if (asked == served) return TW_OK;
  snprintf(reason, bytes, "%s is %s, this kernel serves %s.", field, name_of(asked), name_of(served));
  return TW_UNSUPPORTED;
}

static tw_status same_layout(const char* field, uint32_t asked, uint32_t served, char* reason, size_t bytes) {
  if (asked == served) return TW_OK;
  snprintf(reason, bytes, "%s is %s, this kernel serves %s.", field, order_of(asked), order_of(served));
  return TW_UNSUPPORTED;
}

static tw_status check_kind(const tw_gemm_traits* t, const tw_gemm_problem* p, char* reason, size_t bytes) {
  tw_status status = same_dtype("dtype_a", p->dtype_a, t->dtype_a, reason, bytes);
  if (status == TW_OK) status = same_dtype("dtype_b", p->dtype_b, t->dtype_b, reason, bytes);
  if (status == TW_OK) status = same_dtype("dtype_c", p->dtype_c, t->dtype_c, reason, bytes);
  if (status == TW_OK) status = same_dtype("dtype_acc", p->dtype_acc, t->dtype_acc, reason, bytes);
  if (status == TW_OK) status = same_layout("layout_a", p->layout_a, t->layout_a, reason, bytes);
  if (status == TW_OK) status = same_layout("layout_b", p->layout_b, t->layout_b, reason, bytes);
  if (status == TW_OK) status = same_layout("layout_c", p->layout_c, t->layout_c, reason, bytes);
  return status;
}

static int splits(const tw_gemm_traits* t) { return t->max_split_k > 1; }

static tw_status check_scalars(const tw_gemm_traits* t, const tw_gemm_problem* p, char* reason, size_t bytes) {
  const int scales = splits(t) && t->dtype_acc == TW_FP32, plain = p->alpha == 1.0 && p->beta == 0.0;
  if (p->alpha != 1.0 && !scales)
    snprintf(reason, bytes, "alpha is %g, this kernel serves 1.", p->alpha);
  else if (p->beta != 0.0 && !scales)
    snprintf(reason, bytes, "beta is %g, this kernel serves 0.", p->beta);
  else if (p->split_k == 0 || p->split_k > t->max_split_k)
    snprintf(reason, bytes, "split_k is %u, this kernel serves 1%s.", p->split_k, splits(t) ? " to 1024" : "");
  else if (splits(t) && p->split_k == 1 && plain)
    snprintf(reason, bytes, "split_k is 1: a kernel without a workspace multiplies faster than this one.");
  else
    return TW_OK;
  return TW_UNSUPPORTED;
}

static int64_t workgroups(const tw_gemm_traits* t, const tw_gemm_problem* p) {
  return round_up(p->m, t->tile_m) / t->tile_m * (round_up(p->n, t->tile_n) / t->tile_n) * p->split_k;
}

/* Rows of a slice of partial results. */
static int64_t slice_ldd(const tw_gemm_problem* p) { return round_up(p->n, TW_HIP_SUM_VECTOR); }

/* A, B, what the kernel writes, and C. */
static void describe_operands(const tw_gemm_traits* t, const tw_gemm_problem* p, const tw_hip_gemm_facts* facts,
                              operand operands[4]) {
  const int64_t m_end = round_up(p->m, t->tile_m), n_end = round_up(p->n, t->tile_n);
  const int64_t ahead = (int64_t)t->tile_k * MAX_PREFETCH, k_end = round_up(p->k, t->tile_k) + ahead;
  const operand a_row = {"A", "k", p->k, p->m, p->lda, m_end, ahead, facts->vector_a, t->tile_k, t->pad_k, p->dtype_a};
  const operand a_col = {"A",       "m",      p->m,      p->k, p->lda, k_end, t->tile_m, facts->vector_a,
                         t->tile_m, t->pad_m, p->dtype_a};
  const operand b_row = {"B",       "n",      p->n,      p->k, p->ldb, k_end, t->tile_n, facts->vector_b,
                         t->tile_n, t->pad_n, p->dtype_b};
  const operand b_col = {"B", "k", p->k, p->n, p->ldb, n_end, ahead, facts->vector_b, t->tile_k, t->pad_k, p->dtype_b};
  const operand own = {"C",       "n",      p->n,      p->m, p->ldc, m_end, t->tile_n, facts->vector_d,
                       t->tile_n, t->pad_n, p->dtype_c};
  const operand slice = {"a slice of C",  "n",       p->n,     p->m,        slice_ldd(p), m_end, t->tile_n,
                         facts->vector_d, t->tile_n, t->pad_n, p->dtype_acc};
  operands[0] = p->layout_a == TW_ROW_MAJOR ? a_row : a_col;
  operands[1] = p->layout_b == TW_ROW_MAJOR ? b_row : b_col;
  operands[2] = splits(t) ? slice : own;
  operands[3] = own;
}

/* Rows shorter than their extent would overlap, or let the bounds check of the last row hide a part of the others. */
static tw_status check_row(const operand* x, char* reason, size_t bytes) {
  if (x->stride >= x->contiguous) return TW_OK;
  snprintf(reason, bytes, "the leading dimension of %s is %lld, less than %s = %lld.", x->name, (long long)x->stride,
           x->contiguous_name, (long long)x->contiguous);
  return TW_INVALID_ARGUMENT;
}

static tw_status check_alignment(const operand* x, uint32_t row_bytes, char* reason, size_t bytes) {
  if (x->stride * size_of(x->dtype) % row_bytes == 0) return TW_OK;
  snprintf(reason, bytes, "the leading dimension of %s is %lld: its rows are not aligned to %u bytes.", x->name,
           (long long)x->stride, row_bytes);
  return TW_UNSUPPORTED;
}

static tw_status check_operand(const operand* x, uint32_t row_bytes, char* reason, size_t bytes) {
  const long long extent = x->contiguous, stride = x->stride;
  const int64_t size = size_of(x->dtype), limit = INT32_MAX / size;
  if (!x->padded && x->contiguous % x->tile != 0)
    snprintf(reason, bytes, "%s = %lld is not a multiple of the tile's %u, and this kernel does not pad %s.",
             x->contiguous_name, extent, x->tile, x->contiguous_name);
  else if (x->contiguous % x->vector != 0)
    snprintf(reason, bytes, "%s = %lld is not a multiple of %u, the vector in which %s is accessed.",
             x->contiguous_name, extent, x->vector, x->name);
  else if (check_alignment(x, row_bytes, reason, bytes) != TW_OK)
    return TW_UNSUPPORTED;
  else if (x->stride > limit || x->strided_end > (limit - x->overrun) / x->stride)
    snprintf(reason, bytes, "%s spans %lld rows of %lld elements: its byte offsets do not fit into 31 bits.", x->name,
             (long long)x->strided, stride);
  else
    return TW_OK;
  return TW_UNSUPPORTED;
}

static tw_status check_sizes(const tw_gemm_traits* t, const tw_gemm_problem* p, const tw_hip_gemm_facts* facts,
                             char* reason, size_t bytes) {
  operand operands[4];
  describe_operands(t, p, facts, operands);
  for (int i = 0; i < 4; ++i) {
    const tw_status status = check_row(&operands[i], reason, bytes);
    if (status != TW_OK) return status;
  }
  if (p->m == 0 || p->n == 0) return TW_OK;
  for (int i = 0; i < 3; ++i) {
    const tw_status status = check_operand(&operands[i], facts->row_bytes, reason, bytes);
    if (status != TW_OK) return status;
  }
  const tw_status aligned = check_alignment(&operands[3], facts->row_bytes, reason, bytes);
  if (aligned != TW_OK) return aligned;
  const int64_t loops = round_up(p->k, t->tile_k) / t->tile_k;
  const int64_t tiles = workgroups(t, p);
  if (loops / p->split_k < (int64_t)facts->min_k_loops)
    snprintf(reason, bytes, "k = %lld is %lld tiles of %u for split_k = %u, each needs %u.", (long long)p->k,
             (long long)loops, t->tile_k, p->split_k, facts->min_k_loops);
  else if (tiles > (int64_t)(UINT32_MAX / facts->block_size) || tiles > INT32_MAX)
    snprintf(reason, bytes, "m = %lld by n = %lld is %lld tiles, more than one launch can have.", (long long)p->m,
             (long long)p->n, (long long)tiles);
  else
    return TW_OK;
  return TW_UNSUPPORTED;
}

/* Extents beyond 31 bits are refused first, so that nothing later can overflow 64 bits. */
static tw_status check_range(const tw_gemm_problem* p, char* reason, size_t bytes) {
  const int64_t values[] = {p->m, p->n, p->k, p->lda, p->ldb, p->ldc};
  static const char* const names[] = {"m", "n", "k", "lda", "ldb", "ldc"};
  for (int i = 0; i < 6; ++i) {
    if (values[i] < 0) {
      snprintf(reason, bytes, "%s = %lld is negative.", names[i], (long long)values[i]);
      return TW_INVALID_ARGUMENT;
    }
    if (values[i] > INT32_MAX) {
      snprintf(reason, bytes, "%s = %lld does not fit into 31 bits.", names[i], (long long)values[i]);
      return TW_UNSUPPORTED;
    }
  }
  return TW_OK;
}

static tw_status check(const tw_kernel* kernel, const tw_problem* problem, tw_hip_gemm_facts* facts, char* reason,
                       size_t bytes) {
  if (!kernel || !problem || problem->op != TW_OP_GEMM || problem->struct_size < sizeof(tw_gemm_problem)) {
    snprintf(reason, bytes, "the problem is not a tw_gemm_problem of this ABI version.");
    return TW_INVALID_ARGUMENT;
  }
  const tw_hip_gemm* gemm = gemm_of(kernel);
  const tw_gemm_problem* p = (const tw_gemm_problem*)(const void*)problem;
  if (!tw_hip_read_facts(&gemm->code, facts)) {
    snprintf(reason, bytes, "the code object of this kernel is damaged.");
    return TW_LOAD_FAILED;
  }
  tw_status status = check_kind(&gemm->traits, p, reason, bytes);
  if (status == TW_OK) status = check_range(p, reason, bytes);
  if (status == TW_OK) status = tw_gemm_variant_matches(&gemm->traits, p, reason, bytes);
  if (status == TW_OK) status = check_scalars(&gemm->traits, p, reason, bytes);
  if (status == TW_OK) status = check_sizes(&gemm->traits, p, facts, reason, bytes);
  return status;
}

tw_status tw_hip_gemm_supports(const tw_kernel* kernel, const tw_problem* problem, char* reason, size_t reason_bytes) {
  tw_hip_gemm_facts facts;
  char unused[1];
  if (!reason || reason_bytes == 0) return check(kernel, problem, &facts, unused, sizeof unused);
  reason[0] = '\0';
  return check(kernel, problem, &facts, reason, reason_bytes);
}

/* The accumulators of all slices. */
static uint64_t workspace_of(const tw_gemm_problem* p) {
  return (uint64_t)p->split_k * (uint64_t)(p->m * slice_ldd(p)) * (uint64_t)size_of(p->dtype_acc);
}

tw_status tw_hip_gemm_workspace_size(const tw_kernel* kernel, const tw_problem* problem, uint64_t* bytes) {
  if (!problem || !bytes) return tw_hip_fail(TW_INVALID_ARGUMENT, "problem and bytes must not be null");
  *bytes = 0;
  if (!splits(&gemm_of(kernel)->traits)) return TW_OK;
  tw_hip_gemm_facts facts;
  char reason[256] = "";
  const tw_status status = check(kernel, problem, &facts, reason, sizeof reason);
  if (status != TW_OK) return tw_hip_fail(status, "%s", reason);
  *bytes = workspace_of((const tw_gemm_problem*)(const void*)problem);
  return TW_OK;
}

static void plan_sum(const tw_gemm_problem* p, tw_hip_gemm_plan* made) {
  const int64_t vectors = p->m * slice_ldd(p) / TW_HIP_SUM_VECTOR;
  made->arguments.ldd = (int32_t)slice_ldd(p);
  made->sum_grid = (uint32_t)(round_up(vectors, TW_HIP_SUM_BLOCK) / TW_HIP_SUM_BLOCK);
  made->workspace_bytes = workspace_of(p);
  made->sum = (tw_hip_sum_arguments){.m = (int32_t)p->m,
                                     .n = (int32_t)p->n,
                                     .ldd = (int32_t)p->ldc,
                                     .slice_ldd = (int32_t)slice_ldd(p),
                                     .count = (int32_t)p->split_k,
                                     .alpha = (float)p->alpha,
                                     .beta = (float)p->beta};
}

tw_status tw_hip_gemm_make_plan(const tw_kernel* kernel, const tw_problem* problem, void* plan) {
  tw_hip_gemm_facts facts;
  char reason[256] = "";
  if (!plan) return tw_hip_fail(TW_INVALID_ARGUMENT, "plan must not be null");
  const tw_status status = check(kernel, problem, &facts, reason, sizeof reason);
  if (status != TW_OK) return tw_hip_fail(status, "%s", reason);
  const tw_gemm_traits* t = &gemm_of(kernel)->traits;
  const tw_gemm_problem* p = (const tw_gemm_problem*)(const void*)problem;
  tw_hip_gemm_plan made = {
      .arguments = {.m = (int32_t)p->m,
                    .n = (int32_t)p->n,
                    .k = (int32_t)p->k,
                    .lda = (int32_t)p->lda,
                    .ldb = (int32_t)p->ldb,
                    .ldd = (int32_t)p->ldc,
                    .slices = (int32_t)p->split_k},
      .grid = (uint32_t)workgroups(t, p),
      .block = facts.block_size,
      .row_bytes = facts.row_bytes,
  };
  if (splits(t) && made.grid != 0) plan_sum(p, &made);
  memcpy(plan, &made, sizeof made);
  return TW_OK;
}

static tw_status launch_split(const tw_hip_gemm* gemm, const tw_hip_gemm_plan* made, const tw_gemm_args* given,
                              tw_hip_gemm_arguments* arguments) {
  tw_hip_sum_arguments sum = made->sum;
  if (!given->workspace || given->workspace_bytes < made->workspace_bytes)
    return tw_hip_fail(TW_WORKSPACE_TOO_SMALL, "the workspace has %llu bytes, the slices of K take %llu",
                       given->workspace ? (unsigned long long)given->workspace_bytes : 0ull,
                       (unsigned long long)made->workspace_bytes);
  if ((uintptr_t)given->workspace % WORKSPACE_ALIGNMENT != 0)
    return tw_hip_fail(TW_INVALID_ARGUMENT, "the workspace must be aligned to %d bytes", WORKSPACE_ALIGNMENT);
  if (sum.beta != 0 && (!given->c || (uintptr_t)given->c % made->row_bytes != 0))
    return tw_hip_fail(TW_INVALID_ARGUMENT, "beta is not 0, so c must be a pointer aligned to %u bytes",
                       made->row_bytes);
  arguments->d = given->workspace;
  sum.slices = given->workspace;
  sum.c = given->c;
  sum.d = given->d;
  const tw_status status =
      tw_hip_launch(&gemm->code, made->grid, made->block, arguments, sizeof *arguments, given->stream);
  if (status != TW_OK) return status;
  return tw_hip_launch(&gemm->sum, made->sum_grid, TW_HIP_SUM_BLOCK, &sum, sizeof sum, given->stream);
}

tw_status tw_hip_gemm_launch(const tw_kernel* kernel, const void* plan, const void* args) {
  const tw_hip_gemm_plan* made = (const tw_hip_gemm_plan*)plan;
  const tw_gemm_args* given = (const tw_gemm_args*)args;
  if (!kernel || !made || !given || given->struct_size < sizeof *given)
    return tw_hip_fail(TW_INVALID_ARGUMENT, "kernel, plan and args must be those of this ABI version");
  if (made->grid == 0) return TW_OK;
  const uintptr_t bits = (uintptr_t)given->a | (uintptr_t)given->b | (uintptr_t)given->d;
  if (!given->a || !given->b || !given->d) return tw_hip_fail(TW_INVALID_ARGUMENT, "a, b and d must not be null");
  if (bits % made->row_bytes != 0)
    return tw_hip_fail(TW_INVALID_ARGUMENT, "a, b and d must be aligned to %u bytes", made->row_bytes);
  tw_hip_gemm_arguments arguments = made->arguments;
  arguments.a = given->a;
  arguments.b = given->b;
  arguments.d = given->d;
  if (made->sum_grid != 0) return launch_split(gemm_of(kernel), made, given, &arguments);
  return tw_hip_launch(&gemm_of(kernel)->code, made->grid, made->block, &arguments, sizeof arguments, given->stream);
}
