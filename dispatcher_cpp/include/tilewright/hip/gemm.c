/* Which GEMM problems a CK Tile kernel serves, and how they are launched.
 *
 * The conditions are those of CK Tile's own UniversalGemmKernel::IsSupportedArgument plus what its device code takes
 * for granted: 32-bit byte offsets, rows at least as long as their extent, a minimal number of K tiles.
 */
#include <stdio.h>
#include <string.h>

#include "tilewright/hip/launcher.h"

/* K tiles that a pipeline may load beyond the end of K (never used, but their offsets must not wrap around). */
#define MAX_PREFETCH 8

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

static tw_status check_scalars(const tw_gemm_problem* p, char* reason, size_t bytes) {
  if (p->alpha != 1.0) {
    snprintf(reason, bytes, "alpha is %g, this kernel serves 1.", p->alpha);
    return TW_UNSUPPORTED;
  }
  if (p->beta != 0.0) {
    snprintf(reason, bytes, "beta is %g, this kernel serves 0.", p->beta);
    return TW_UNSUPPORTED;
  }
  if (p->split_k != 1) {
    snprintf(reason, bytes, "split_k is %u, this kernel serves 1.", p->split_k);
    return TW_UNSUPPORTED;
  }
  return TW_OK;
}

static void describe_operands(const tw_gemm_traits* t, const tw_gemm_problem* p, const tw_hip_gemm_facts* facts,
                              operand operands[3]) {
  const int64_t m_end = round_up(p->m, t->tile_m), n_end = round_up(p->n, t->tile_n);
  const int64_t ahead = (int64_t)t->tile_k * MAX_PREFETCH, k_end = round_up(p->k, t->tile_k) + ahead;
  const operand a_row = {"A", "k", p->k, p->m, p->lda, m_end, ahead, facts->vector_a, t->tile_k, t->pad_k, p->dtype_a};
  const operand a_col = {"A",       "m",      p->m,      p->k, p->lda, k_end, t->tile_m, facts->vector_a,
                         t->tile_m, t->pad_m, p->dtype_a};
  const operand b_row = {"B",       "n",      p->n,      p->k, p->ldb, k_end, t->tile_n, facts->vector_b,
                         t->tile_n, t->pad_n, p->dtype_b};
  const operand b_col = {"B", "k", p->k, p->n, p->ldb, n_end, ahead, facts->vector_b, t->tile_k, t->pad_k, p->dtype_b};
  const operand d = {"C", "n", p->n, p->m, p->ldc, m_end, t->tile_n, facts->vector_d, t->tile_n, t->pad_n, p->dtype_c};
  operands[0] = p->layout_a == TW_ROW_MAJOR ? a_row : a_col;
  operands[1] = p->layout_b == TW_ROW_MAJOR ? b_row : b_col;
  operands[2] = d;
}

/* Rows shorter than their extent would overlap, or let the bounds check of the last row hide a part of the others. */
static tw_status check_row(const operand* x, char* reason, size_t bytes) {
  if (x->stride >= x->contiguous) return TW_OK;
  snprintf(reason, bytes, "the leading dimension of %s is %lld, less than %s = %lld.", x->name, (long long)x->stride,
           x->contiguous_name, (long long)x->contiguous);
  return TW_INVALID_ARGUMENT;
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
  else if (x->stride * size % row_bytes != 0)
    snprintf(reason, bytes, "the leading dimension of %s is %lld: its rows are not aligned to %u bytes.", x->name,
             stride, row_bytes);
  else if (x->stride > limit || x->strided_end > (limit - x->overrun) / x->stride)
    snprintf(reason, bytes, "%s spans %lld rows of %lld elements: its byte offsets do not fit into 31 bits.", x->name,
             (long long)x->strided, stride);
  else
    return TW_OK;
  return TW_UNSUPPORTED;
}

static tw_status check_sizes(const tw_gemm_traits* t, const tw_gemm_problem* p, const tw_hip_gemm_facts* facts,
                             char* reason, size_t bytes) {
  operand operands[3];
  describe_operands(t, p, facts, operands);
  for (int i = 0; i < 3; ++i) {
    const tw_status status = check_row(&operands[i], reason, bytes);
    if (status != TW_OK) return status;
  }
  if (p->m == 0 || p->n == 0) return TW_OK;
  for (int i = 0; i < 3; ++i) {
    const tw_status status = check_operand(&operands[i], facts->row_bytes, reason, bytes);
    if (status != TW_OK) return status;
  }
  const int64_t loops = round_up(p->k, t->tile_k) / t->tile_k;
  const int64_t tiles = round_up(p->m, t->tile_m) / t->tile_m * (round_up(p->n, t->tile_n) / t->tile_n);
  if (loops < (int64_t)facts->min_k_loops)
    snprintf(reason, bytes, "k = %lld is %lld tiles of %u, this kernel's pipeline needs %u.", (long long)p->k,
             (long long)loops, t->tile_k, facts->min_k_loops);
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
  if (status == TW_OK) status = check_scalars(p, reason, bytes);
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

tw_status tw_hip_gemm_workspace_size(const tw_kernel* kernel, const tw_problem* problem, uint64_t* bytes) {
  (void)kernel;
  if (!problem || !bytes) return tw_hip_fail(TW_INVALID_ARGUMENT, "problem and bytes must not be null");
  *bytes = 0;
  return TW_OK;
}

tw_status tw_hip_gemm_make_plan(const tw_kernel* kernel, const tw_problem* problem, void* plan) {
  tw_hip_gemm_facts facts;
  char reason[256] = "";
  if (!plan) return tw_hip_fail(TW_INVALID_ARGUMENT, "plan must not be null");
  const tw_status status = check(kernel, problem, &facts, reason, sizeof reason);
  if (status != TW_OK) return tw_hip_fail(status, "%s", reason);
  const tw_gemm_traits* t = &gemm_of(kernel)->traits;
  const tw_gemm_problem* p = (const tw_gemm_problem*)(const void*)problem;
  const int64_t tiles = round_up(p->m, t->tile_m) / t->tile_m * (round_up(p->n, t->tile_n) / t->tile_n);
  const tw_hip_gemm_plan made = {
      .arguments = {.m = (int32_t)p->m,
                    .n = (int32_t)p->n,
                    .k = (int32_t)p->k,
                    .lda = (int32_t)p->lda,
                    .ldb = (int32_t)p->ldb,
                    .ldd = (int32_t)p->ldc,
                    .k_batch = 1},
      .grid = (uint32_t)tiles,
      .block = facts.block_size,
      .row_bytes = facts.row_bytes,
  };
  memcpy(plan, &made, sizeof made);
  return TW_OK;
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
  return tw_hip_launch(&gemm_of(kernel)->code, made->grid, made->block, &arguments, sizeof arguments, given->stream);
}
