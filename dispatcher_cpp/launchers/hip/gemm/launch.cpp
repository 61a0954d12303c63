// How GEMM problems are planned and launched by CK Tile kernels.
#include "launchers/hip/gemm/conditions.hpp"

namespace kernelwright::hip {
namespace {

// K tiles that a stream-K workgroup has at least: shorter shares cost more to add up than they win.
constexpr int64_t kLeastShare = 4;

kw_status check(const kw_kernel* kernel, const kw_problem* problem, kw_hip_gemm_facts* facts, char* reason,
                size_t bytes) {
  if (!kernel || !problem || problem->op != KW_OP_GEMM || problem->struct_size < sizeof(kw_gemm_problem)) {
    snprintf(reason, bytes, "the problem is not a kw_gemm_problem of this ABI version.");
    return KW_INVALID_ARGUMENT;
  }
  const auto& gemm = held_by<kw_hip_gemm>(kernel);
  if (!read_facts(gemm, sizeof(kw_hip_gemm_arguments), facts)) {
    snprintf(reason, bytes, "the code object of this kernel is damaged.");
    return KW_LOAD_FAILED;
  }
  return check_conditions(gemm, as<kw_gemm_problem>(problem), *facts, reason, bytes);
}

int64_t blocks_of(int64_t vectors) { return kw_parts(vectors, KW_HIP_SUM_BLOCK); }

// The accumulators of all slices, and a second kernel with a work-item per vector of C.
void plan_slices(const kw_gemm_problem& p, uint32_t slices, kw_hip_gemm_plan* made, int* lost) {
  const int64_t row = round_up(p.n, KW_HIP_SUM_VECTOR), matrix = kw_mul(p.m, row);
  const int64_t bytes = kw_mul(kw_mul3(slices, matrix, p.batch), sizeof(float));
  made->arguments.shares = kw_as_int32(slices, lost);
  made->grid = kw_as_uint32(kw_mul(made->grid, slices), lost);
  made->sum_grid = kw_as_uint32(kw_mul(blocks_of(kw_parts(matrix, KW_HIP_SUM_VECTOR)), p.batch), lost);
  made->workspace_bytes = static_cast<uint64_t>(bytes);
  if (!kw_fits_int64(bytes)) *lost = 1;
}

// Two tiles of accumulators per share, and a second kernel for each border between shares; nothing of that where all
// borders of shares are those of tiles.
void plan_shares(const kw_hip_gemm& gemm, const kw_gemm_problem& p, kw_hip_gemm_plan* made, int* lost) {
  const kw_gemm_traits& t = gemm.traits;
  const int64_t loops = k_tiles(t, p), total = kw_mul(all_tiles(t, p), loops);
  const int64_t shares = kw_smaller(gemm.workgroups, kw_parts(total, kLeastShare));
  const int64_t tile = kw_mul(t.tile_m, t.tile_n);
  made->arguments.shares = kw_as_int32(shares, lost);
  made->grid = kw_as_uint32(shares, lost);
  if (total % shares == 0 && total / shares % loops == 0) return;
  made->sum_grid = kw_as_uint32(kw_mul(blocks_of(tile / KW_HIP_SUM_VECTOR), shares - 1), lost);
  made->workspace_bytes = static_cast<uint64_t>(kw_mul(kw_mul3(2, shares, tile), sizeof(float)));
}

kw_hip_gemm_arguments arguments_of(const kw_gemm_problem& p, int* lost) {
  kw_hip_gemm_arguments x = {};
  x.stride_a = p.stride_a, x.stride_b = p.stride_b, x.stride_c = p.stride_c;
  x.m = kw_as_int32(p.m, lost), x.n = kw_as_int32(p.n, lost), x.k = kw_as_int32(p.k, lost);
  x.lda = kw_as_int32(p.lda, lost), x.ldb = kw_as_int32(p.ldb, lost), x.ldc = kw_as_int32(p.ldc, lost);
  x.batch = kw_as_int32(p.batch, lost);
  x.shares = 1;
  x.alpha = static_cast<float>(p.alpha), x.beta = static_cast<float>(p.beta);
  x.num_d = static_cast<uint8_t>(p.num_d), x.d_op = static_cast<uint8_t>(p.d_op);
  x.activation = static_cast<uint8_t>(p.activation);
  for (uint32_t i = 0; i < p.num_d; ++i) {
    x.ld_multi_d[i] = kw_as_int32(p.ld_multi_d[i], lost);
    x.stride_multi_d[i] = p.stride_multi_d[i];
  }
  return x;
}

// Sets *lost where an argument would lose a bit, which the checks before should have seen.
void fill_in(const kw_hip_gemm& gemm, const kw_gemm_problem& p, kw_hip_gemm_plan* made, int* lost) {
  made->arguments = arguments_of(p, lost);
  made->grid = kw_as_uint32(all_tiles(gemm.traits, p), lost);
  made->num_d = p.num_d;
  if (made->grid == 0) return;
  if (p.k == 0) return plan_slices(p, 0, made, lost);
  if (gemm.traits.max_split_k > 1) plan_slices(p, p.split_k, made, lost);
  if (gemm.traits.stream_k != KW_STREAM_K_NONE) plan_shares(gemm, p, made, lost);
  if (gemm.traits.persistent) made->grid = static_cast<uint32_t>(kw_smaller(made->grid, gemm.workgroups));
  made->arguments.workgroups = kw_as_int32(made->grid, lost);
}

kw_status plan_of(const kw_kernel* kernel, const kw_problem* problem, kw_hip_gemm_plan* made, char* reason,
                  size_t bytes) {
  kw_hip_gemm_facts facts;
  const kw_status status = check(kernel, problem, &facts, reason, bytes);
  if (status != KW_OK) return status;
  int lost = 0;
  made->block = facts.block_size;
  made->row_bytes = facts.row_bytes;
  fill_in(held_by<kw_hip_gemm>(kernel), as<kw_gemm_problem>(problem), made, &lost);
  if (!lost) return KW_OK;
  snprintf(reason, bytes, "a number of the problem does not fit into the argument of the kernel.");
  return KW_UNSUPPORTED;
}

kw_status check_pointers(const kw_hip_gemm_plan& made, const kw_gemm_args& given) {
  const bool reads = made.arguments.k != 0;  // matrices without elements may have any address
  const uintptr_t bits = reads ? bits_of(given.a, given.b, given.d) : bits_of(given.d);
  if (!given.d || (reads && (!given.a || !given.b)))
    return kw_hip_fail(KW_INVALID_ARGUMENT, "a, b and d must not be null");
  if (bits % made.row_bytes != 0)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "a, b and d must be aligned to %u bytes", made.row_bytes);
  if (made.arguments.beta != 0 && (!given.c || bits_of(given.c) % made.row_bytes != 0))
    return kw_hip_fail(KW_INVALID_ARGUMENT, "beta is not 0, so c must be a pointer aligned to %u bytes",
                       made.row_bytes);
  for (uint32_t i = 0; i < made.num_d; ++i)
    if (!given.multi_d[i]) return kw_hip_fail(KW_INVALID_ARGUMENT, "multi_d[%u] must not be null", i);
  return KW_OK;
}

}  // namespace
}  // namespace kernelwright::hip

using namespace kernelwright::hip;

kw_status kw_hip_gemm_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t reason_bytes) {
  return supports(plan_of, kernel, problem, reason, reason_bytes);
}

kw_status kw_hip_gemm_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  const kw_gemm_traits& t = held_by<kw_hip_gemm>(kernel).traits;
  return workspace_size(plan_of, t.max_split_k != 1 || t.stream_k != KW_STREAM_K_NONE, kernel, problem, bytes);
}

kw_status kw_hip_gemm_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  return make_plan(plan_of, kernel, problem, plan);
}

kw_status kw_hip_gemm_launch(const kw_kernel* kernel, const void* plan, const kw_launch* where, const void* args) {
  const auto* given = static_cast<const kw_gemm_args*>(args);
  kw_status status = check_launch(kernel, plan, where, given);
  if (status != KW_OK) return status;
  const auto& made = *static_cast<const kw_hip_gemm_plan*>(plan);
  if (made.grid == 0 && made.sum_grid == 0) return KW_OK;
  status = check_pointers(made, *given);
  if (status == KW_OK) status = check_workspace(*where, made.workspace_bytes, "the parts of K take");
  if (status != KW_OK) return status;
  kw_hip_gemm_arguments x = made.arguments;
  x.a = given->a;
  x.b = given->b;
  x.c = given->c;
  x.d = given->d;
  x.partial = where->workspace;
  for (uint32_t i = 0; i < made.num_d; ++i) x.multi_d[i] = given->multi_d[i];
  const auto& gemm = held_by<kw_hip_gemm>(kernel);
  if (made.grid != 0) status = kw_hip_launch(&gemm.code, where, made.grid, made.block, &x, sizeof x);
  if (status != KW_OK || made.sum_grid == 0) return status;
  return kw_hip_launch(&gemm.sum, where, made.sum_grid, KW_HIP_SUM_BLOCK, &x, sizeof x);
}
