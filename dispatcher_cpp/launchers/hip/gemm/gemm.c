/* How GEMM problems are planned and launched by CK Tile kernels. */
#include <stdio.h>
#include <string.h>

#include "kernelwright/hip/gemm/launcher.h"
#include "kernelwright/widths.h"

/* As the ABI promises. */
#define WORKSPACE_ALIGNMENT 256
/* K tiles that a stream-K workgroup has at least: shorter shares cost more to add up than they win. */
#define LEAST_SHARE 4

static const kw_hip_gemm* gemm_of(const kw_kernel* kernel) { return (const kw_hip_gemm*)kernel->traits; }

static kw_status check(const kw_kernel* kernel, const kw_problem* problem, kw_hip_gemm_facts* facts, char* reason,
                       size_t bytes) {
  if (!kernel || !problem || problem->op != KW_OP_GEMM || problem->struct_size < sizeof(kw_gemm_problem)) {
    snprintf(reason, bytes, "the problem is not a kw_gemm_problem of this ABI version.");
    return KW_INVALID_ARGUMENT;
  }
  if (!kw_hip_gemm_read_facts(&gemm_of(kernel)->code, sizeof(kw_hip_gemm_arguments), facts)) {
    snprintf(reason, bytes, "the code object of this kernel is damaged.");
    return KW_LOAD_FAILED;
  }
  return kw_hip_check_conditions(gemm_of(kernel), (const kw_gemm_problem*)(const void*)problem, facts, reason, bytes);
}

kw_status kw_hip_gemm_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t reason_bytes) {
  kw_hip_gemm_facts facts;
  char unused[1];
  if (!reason || reason_bytes == 0) return check(kernel, problem, &facts, unused, sizeof unused);
  reason[0] = '\0';
  return check(kernel, problem, &facts, reason, reason_bytes);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t blocks_of(int64_t vectors) { return kw_parts(vectors, KW_HIP_SUM_BLOCK); }

/* The accumulators of all slices, and a second kernel with a work-item per vector of C. */
static void plan_slices(const kw_gemm_problem* p, uint32_t slices, kw_hip_gemm_plan* made, int* lost) {
  const int64_t row = kw_hip_round_up(p->n, KW_HIP_SUM_VECTOR), matrix = kw_mul(p->m, row);
  const int64_t bytes = kw_mul(kw_mul3(slices, matrix, p->batch), sizeof(float));
  made->arguments.shares = kw_as_int32(slices, lost);
  made->grid = kw_as_uint32(kw_mul(made->grid, slices), lost);
  made->sum_grid = kw_as_uint32(kw_mul(blocks_of(kw_parts(matrix, KW_HIP_SUM_VECTOR)), p->batch), lost);
  made->workspace_bytes = (uint64_t)bytes;
  if (!kw_fits_int64(bytes)) *lost = 1;
}

/* Two tiles of accumulators per share, and a second kernel for each border between shares; nothing of that where all
 * borders of shares are those of tiles. */
static void plan_shares(const kw_hip_gemm* gemm, const kw_gemm_problem* p, kw_hip_gemm_plan* made, int* lost) {
  const kw_gemm_traits* t = &gemm->traits;
  const int64_t loops = kw_hip_loops(t, p), total = kw_mul(kw_hip_tiles(t, p), loops);
  const int64_t shares = least(gemm->workgroups, kw_parts(total, LEAST_SHARE));
  const int64_t tile = kw_mul(t->tile_m, t->tile_n);
  made->arguments.shares = kw_as_int32(shares, lost);
  made->grid = kw_as_uint32(shares, lost);
  if (total % shares == 0 && total / shares % loops == 0) return;
  made->sum_grid = kw_as_uint32(kw_mul(blocks_of(tile / KW_HIP_SUM_VECTOR), shares - 1), lost);
  made->workspace_bytes = (uint64_t)kw_mul(kw_mul3(2, shares, tile), sizeof(float));
}

static kw_hip_gemm_arguments arguments_of(const kw_gemm_problem* p, int* lost) {
  kw_hip_gemm_arguments x = {.stride_a = p->stride_a,
                             .stride_b = p->stride_b,
                             .stride_c = p->stride_c,
                             .m = kw_as_int32(p->m, lost),
                             .n = kw_as_int32(p->n, lost),
                             .k = kw_as_int32(p->k, lost),
                             .lda = kw_as_int32(p->lda, lost),
                             .ldb = kw_as_int32(p->ldb, lost),
                             .ldc = kw_as_int32(p->ldc, lost),
                             .batch = kw_as_int32(p->batch, lost),
                             .shares = 1,
                             .alpha = (float)p->alpha,
                             .beta = (float)p->beta,
                             .num_d = (uint8_t)p->num_d,
                             .d_op = (uint8_t)p->d_op,
                             .activation = (uint8_t)p->activation};
  for (uint32_t i = 0; i < p->num_d; ++i) {
    x.ld_multi_d[i] = kw_as_int32(p->ld_multi_d[i], lost);
    x.stride_multi_d[i] = p->stride_multi_d[i];
  }
  return x;
}

/* Sets *lost where an argument would lose a bit, which the checks before should have seen. */
static kw_hip_gemm_plan plan_of(const kw_hip_gemm* gemm, const kw_gemm_problem* p, const kw_hip_gemm_facts* facts,
                                int* lost) {
  kw_hip_gemm_plan made = {.arguments = arguments_of(p, lost),
                           .grid = kw_as_uint32(kw_hip_tiles(&gemm->traits, p), lost),
                           .block = facts->block_size,
                           .row_bytes = facts->row_bytes,
                           .num_d = p->num_d};
  if (made.grid == 0) return made;
  if (p->k == 0) {
    plan_slices(p, 0, &made, lost);
    return made;
  }
  if (gemm->traits.max_split_k > 1) plan_slices(p, p->split_k, &made, lost);
  if (gemm->traits.stream_k != KW_STREAM_K_NONE) plan_shares(gemm, p, &made, lost);
  if (gemm->traits.persistent) made.grid = (uint32_t)least(made.grid, gemm->workgroups);
  made.arguments.workgroups = kw_as_int32(made.grid, lost);
  return made;
}

kw_status kw_hip_gemm_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  kw_hip_gemm_plan made;
  if (!problem || !bytes) return kw_hip_fail(KW_INVALID_ARGUMENT, "problem and bytes must not be null");
  *bytes = 0;
  if (gemm_of(kernel)->traits.max_split_k == 1 && gemm_of(kernel)->traits.stream_k == KW_STREAM_K_NONE) return KW_OK;
  const kw_status status = kw_hip_gemm_make_plan(kernel, problem, &made);
  if (status == KW_OK) *bytes = made.workspace_bytes;
  return status;
}

kw_status kw_hip_gemm_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  kw_hip_gemm_facts facts;
  char reason[256] = "";
  if (!plan) return kw_hip_fail(KW_INVALID_ARGUMENT, "plan must not be null");
  const kw_status status = check(kernel, problem, &facts, reason, sizeof reason);
  if (status != KW_OK) return kw_hip_fail(status, "%s", reason);
  int lost = 0;
  const kw_hip_gemm_plan made = plan_of(gemm_of(kernel), (const kw_gemm_problem*)(const void*)problem, &facts, &lost);
  if (lost) return kw_hip_fail(KW_UNSUPPORTED, "a number of the problem does not fit into the argument of the kernel.");
  memcpy(plan, &made, sizeof made);
  return KW_OK;
}

static kw_status check_workspace(const kw_hip_gemm_plan* made, const kw_launch* given) {
  if (!given->workspace || given->workspace_bytes < made->workspace_bytes)
    return kw_hip_fail(KW_WORKSPACE_TOO_SMALL, "the workspace has %llu bytes, the parts of K take %llu",
                       given->workspace ? (unsigned long long)given->workspace_bytes : 0ull,
                       (unsigned long long)made->workspace_bytes);
  if ((uintptr_t)given->workspace % WORKSPACE_ALIGNMENT != 0)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "the workspace must be aligned to %d bytes", WORKSPACE_ALIGNMENT);
  return KW_OK;
}

static kw_status check_pointers(const kw_hip_gemm_plan* made, const kw_gemm_args* given) {
  const int reads = made->arguments.k != 0; /* matrices without elements may have any address */
  const uintptr_t bits = (uintptr_t)given->d | (reads ? (uintptr_t)given->a | (uintptr_t)given->b : 0);
  if (!given->d || (reads && (!given->a || !given->b)))
    return kw_hip_fail(KW_INVALID_ARGUMENT, "a, b and d must not be null");
  if (bits % made->row_bytes != 0)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "a, b and d must be aligned to %u bytes", made->row_bytes);
  if (made->arguments.beta != 0 && (!given->c || (uintptr_t)given->c % made->row_bytes != 0))
    return kw_hip_fail(KW_INVALID_ARGUMENT, "beta is not 0, so c must be a pointer aligned to %u bytes",
                       made->row_bytes);
  for (uint32_t i = 0; i < made->num_d; ++i)
    if (!given->multi_d[i]) return kw_hip_fail(KW_INVALID_ARGUMENT, "multi_d[%u] must not be null", i);
  return KW_OK;
}

kw_status kw_hip_gemm_launch(const kw_kernel* kernel, const void* plan, const kw_launch* where, const void* args) {
  const kw_hip_gemm_plan* made = (const kw_hip_gemm_plan*)plan;
  const kw_gemm_args* given = (const kw_gemm_args*)args;
  if (!kernel || !made || !kw_hip_is_launch(where) || !given || given->struct_size < sizeof *given)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "kernel, plan, launch and args must be those of this ABI version");
  if (made->grid == 0 && made->sum_grid == 0) return KW_OK;
  kw_status status = check_pointers(made, given);
  if (status == KW_OK && made->workspace_bytes != 0) status = check_workspace(made, where);
  if (status != KW_OK) return status;
  kw_hip_gemm_arguments x = made->arguments;
  x.a = given->a;
  x.b = given->b;
  x.c = given->c;
  x.d = given->d;
  x.partial = where->workspace;
  for (uint32_t i = 0; i < made->num_d; ++i) x.multi_d[i] = given->multi_d[i];
  const kw_hip_gemm* gemm = gemm_of(kernel);
  if (made->grid != 0) status = kw_hip_launch(&gemm->code, where, made->grid, made->block, &x, sizeof x);
  if (status != KW_OK || made->sum_grid == 0) return status;
  return kw_hip_launch(&gemm->sum, where, made->sum_grid, KW_HIP_SUM_BLOCK, &x, sizeof x);
}
