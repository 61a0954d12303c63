// Products of different shapes in one launch, or a few: see KW_HIP_GROUPS_PER_LAUNCH.
#include "kernelwright/gemm/groups.h"
#include "launchers/hip/gemm/conditions.hpp"

namespace kernelwright::hip {
namespace {

kw_status check(const kw_kernel* kernel, const kw_problem* problem, kw_hip_gemm_facts* facts, char* reason,
                size_t bytes) {
  if (!kernel || !problem || problem->op != KW_OP_GROUPED_GEMM ||
      problem->struct_size < sizeof(kw_grouped_gemm_problem)) {
    snprintf(reason, bytes, "the problem is not a kw_grouped_gemm_problem of this ABI version.");
    return KW_INVALID_ARGUMENT;
  }
  const auto& p = as<kw_grouped_gemm_problem>(problem);
  if (p.group_count < 0 || (p.group_count > 0 && !p.groups)) {
    snprintf(reason, bytes, "%lld groups need an array of as many.", static_cast<long long>(p.group_count));
    return KW_INVALID_ARGUMENT;
  }
  const auto& gemm = held_by<kw_hip_gemm>(kernel);
  if (!read_facts(gemm, sizeof(kw_hip_grouped_arguments), facts)) {
    snprintf(reason, bytes, "the code object of this kernel is damaged.");
    return KW_LOAD_FAILED;
  }
  for (int64_t i = 0; i < p.group_count; ++i) {
    char text[224];
    const kw_status status = check_conditions(gemm, kw_problem_of_group(&p, &p.groups[i]), *facts, text, sizeof text);
    if (status == KW_OK) continue;
    snprintf(reason, bytes, "group %lld: %s", static_cast<long long>(i), text);
    return status;
  }
  return KW_OK;
}

// FNV-1a over the groups, which have no padding bytes.
uint64_t digest_of(const kw_gemm_group* groups, int64_t count) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(groups);
  uint64_t digest = 0xcbf29ce484222325u;
  for (uint64_t i = 0; i < static_cast<uint64_t>(count) * sizeof *groups; ++i)
    digest = (digest ^ bytes[i]) * 0x100000001b3u;
  return digest;
}

// No launch takes a workspace.
struct grouped_plan : kw_hip_grouped_plan {
  static constexpr uint64_t workspace_bytes = 0;
};

kw_status plan_of(const kw_kernel* kernel, const kw_problem* problem, grouped_plan* made, char* reason, size_t bytes) {
  kw_hip_gemm_facts facts;
  const kw_status status = check(kernel, problem, &facts, reason, bytes);
  if (status != KW_OK) return status;
  const auto& p = as<kw_grouped_gemm_problem>(problem);
  made->group_count = p.group_count;
  made->digest = digest_of(p.groups, p.group_count);
  made->block = facts.block_size;
  made->row_bytes = facts.row_bytes;
  made->alpha = static_cast<float>(p.alpha);
  made->beta = static_cast<float>(p.beta);
  return KW_OK;
}

kw_status check_pointers(const kw_hip_grouped_plan& made, const kw_grouped_gemm_args& given, int64_t i) {
  const void* c = made.beta != 0 && given.c ? given.c[i] : nullptr;
  const long long group = i;
  if (!given.a[i] || !given.b[i] || !given.d[i])
    return kw_hip_fail(KW_INVALID_ARGUMENT, "a, b and d of group %lld must not be null", group);
  if (made.beta != 0 && !c)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "beta is not 0, so c of group %lld must not be null", group);
  if (bits_of(given.a[i], given.b[i], given.d[i], c) % made.row_bytes != 0)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "the pointers of group %lld must be aligned to %u bytes", group,
                       made.row_bytes);
  return KW_OK;
}

kw_hip_group group_of(const kw_grouped_gemm_args& given, int64_t i, int32_t first, bool reads_c, int* lost) {
  const kw_gemm_group& g = given.groups[i];
  kw_hip_group group = {};
  group.a = given.a[i], group.b = given.b[i], group.d = given.d[i];
  group.c = reads_c ? given.c[i] : nullptr;
  group.m = kw_as_int32(g.m, lost), group.n = kw_as_int32(g.n, lost), group.k = kw_as_int32(g.k, lost);
  group.lda = kw_as_int32(g.lda, lost), group.ldb = kw_as_int32(g.ldb, lost), group.ldc = kw_as_int32(g.ldc, lost);
  group.first = first;
  return group;
}

kw_status launch_groups(const kw_hip_gemm& gemm, const kw_hip_grouped_plan& made, kw_hip_grouped_arguments* x,
                        const kw_launch* where) {
  if (x->count == 0) return KW_OK;
  const int32_t most = static_cast<int32_t>(gemm.workgroups);
  x->workgroups = gemm.traits.persistent && x->tiles > most ? most : x->tiles;
  x->alpha = made.alpha;
  x->beta = made.beta;
  return kw_hip_launch(&gemm.code, where, static_cast<uint32_t>(x->workgroups), made.block, x, sizeof *x);
}

kw_status check_groups(const kw_hip_grouped_plan& made, const kw_grouped_gemm_args& given) {
  if (given.group_count != made.group_count || digest_of(given.groups, given.group_count) != made.digest)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "the groups are not those that were planned");
  if (made.group_count != 0 && (!given.a || !given.b || !given.d))
    return kw_hip_fail(KW_INVALID_ARGUMENT, "a, b and d must be arrays of pointers");
  return KW_OK;
}

}  // namespace
}  // namespace kernelwright::hip

using namespace kernelwright::hip;

kw_status kw_hip_grouped_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                  size_t reason_bytes) {
  return supports(plan_of, kernel, problem, reason, reason_bytes);
}

kw_status kw_hip_grouped_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  return workspace_size(plan_of, false, kernel, problem, bytes);
}

kw_status kw_hip_grouped_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  return make_plan(plan_of, kernel, problem, plan);
}

kw_status kw_hip_grouped_launch(const kw_kernel* kernel, const void* plan, const kw_launch* where, const void* args) {
  const auto* given = static_cast<const kw_grouped_gemm_args*>(args);
  kw_status status = check_launch(kernel, plan, where, given);
  if (status != KW_OK) return status;
  const auto& made = *static_cast<const kw_hip_grouped_plan*>(plan);
  status = check_groups(made, *given);
  if (status != KW_OK) return status;
  const auto& gemm = held_by<kw_hip_gemm>(kernel);
  const int64_t most = kw_smaller(UINT32_MAX / made.block, INT32_MAX);
  kw_hip_grouped_arguments x = {};
  for (int64_t i = 0; i < made.group_count; ++i) {
    const int64_t tiles = matrix_tiles(gemm.traits, given->groups[i].m, given->groups[i].n);
    if (tiles == 0) continue;
    status = check_pointers(made, *given, i);
    if (status == KW_OK && (x.count == KW_HIP_GROUPS_PER_LAUNCH || x.tiles > most - tiles)) {
      status = launch_groups(gemm, made, &x, where);
      x.count = x.tiles = 0;
    }
    if (status != KW_OK) return status;
    int lost = 0;
    x.groups[x.count++] = group_of(*given, i, x.tiles, made.beta != 0, &lost);
    x.tiles = kw_as_int32(kw_add(x.tiles, tiles), &lost);
    if (lost)
      return kw_hip_fail(KW_UNSUPPORTED, "group %lld: a number does not fit into the argument of the kernel",
                         static_cast<long long>(i));
  }
  return launch_groups(gemm, made, &x, where);
}
