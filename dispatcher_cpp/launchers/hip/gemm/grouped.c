/* Products of different shapes in one launch, or a few: see KW_HIP_GROUPS_PER_LAUNCH. */
#include <stdio.h>
#include <string.h>

#include "kernelwright/gemm/checks.h"
#include "kernelwright/gemm/groups.h"
#include "kernelwright/hip/gemm/launcher.h"
#include "kernelwright/widths.h"

static const kw_hip_gemm* gemm_of(const kw_kernel* kernel) { return (const kw_hip_gemm*)kernel->traits; }

static kw_status check(const kw_kernel* kernel, const kw_problem* problem, kw_hip_gemm_facts* facts, char* reason,
                       size_t bytes) {
  const kw_grouped_gemm_problem* p = (const kw_grouped_gemm_problem*)(const void*)problem;
  if (!kernel || !problem || problem->op != KW_OP_GROUPED_GEMM || problem->struct_size < sizeof *p) {
    snprintf(reason, bytes, "the problem is not a kw_grouped_gemm_problem of this ABI version.");
    return KW_INVALID_ARGUMENT;
  }
  if (p->group_count < 0 || (p->group_count > 0 && !p->groups)) {
    snprintf(reason, bytes, "%lld groups need an array of as many.", (long long)p->group_count);
    return KW_INVALID_ARGUMENT;
  }
  if (!kw_hip_gemm_read_facts(&gemm_of(kernel)->code, sizeof(kw_hip_grouped_arguments), facts)) {
    snprintf(reason, bytes, "the code object of this kernel is damaged.");
    return KW_LOAD_FAILED;
  }
  for (int64_t i = 0; i < p->group_count; ++i) {
    char text[224];
    const kw_gemm_problem one = kw_problem_of_group(p, &p->groups[i]);
    const kw_status status = kw_hip_check_conditions(gemm_of(kernel), &one, facts, text, sizeof text);
    if (status == KW_OK) continue;
    snprintf(reason, bytes, "group %lld: %s", (long long)i, text);
    return status;
  }
  return KW_OK;
}

kw_status kw_hip_grouped_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                  size_t reason_bytes) {
  kw_hip_gemm_facts facts;
  char unused[1];
  if (!reason || reason_bytes == 0) return check(kernel, problem, &facts, unused, sizeof unused);
  reason[0] = '\0';
  return check(kernel, problem, &facts, reason, reason_bytes);
}

kw_status kw_hip_grouped_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  (void)kernel;
  if (!problem || !bytes) return kw_hip_fail(KW_INVALID_ARGUMENT, "problem and bytes must not be null");
  *bytes = 0;
  return KW_OK;
}

/* FNV-1a over the groups, which have no padding bytes. */
static uint64_t digest_of(const kw_gemm_group* groups, int64_t count) {
  const unsigned char* bytes = (const unsigned char*)groups;
  uint64_t digest = 0xcbf29ce484222325u;
  for (uint64_t i = 0; i < (uint64_t)count * sizeof *groups; ++i) digest = (digest ^ bytes[i]) * 0x100000001b3u;
  return digest;
}

kw_status kw_hip_grouped_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  kw_hip_gemm_facts facts;
  char reason[256] = "";
  if (!plan) return kw_hip_fail(KW_INVALID_ARGUMENT, "plan must not be null");
  const kw_status status = check(kernel, problem, &facts, reason, sizeof reason);
  if (status != KW_OK) return kw_hip_fail(status, "%s", reason);
  const kw_grouped_gemm_problem* p = (const kw_grouped_gemm_problem*)(const void*)problem;
  const kw_hip_grouped_plan made = {.group_count = p->group_count,
                                    .digest = digest_of(p->groups, p->group_count),
                                    .block = facts.block_size,
                                    .row_bytes = facts.row_bytes,
                                    .alpha = (float)p->alpha,
                                    .beta = (float)p->beta};
  memcpy(plan, &made, sizeof made);
  return KW_OK;
}

static kw_status check_pointers(const kw_hip_grouped_plan* made, const kw_grouped_gemm_args* given, int64_t i) {
  const void* c = made->beta != 0 && given->c ? given->c[i] : NULL;
  const uintptr_t bits = (uintptr_t)given->a[i] | (uintptr_t)given->b[i] | (uintptr_t)given->d[i] | (uintptr_t)c;
  if (!given->a[i] || !given->b[i] || !given->d[i])
    return kw_hip_fail(KW_INVALID_ARGUMENT, "a, b and d of group %lld must not be null", (long long)i);
  if (made->beta != 0 && !c)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "beta is not 0, so c of group %lld must not be null", (long long)i);
  if (bits % made->row_bytes != 0)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "the pointers of group %lld must be aligned to %u bytes", (long long)i,
                       made->row_bytes);
  return KW_OK;
}

static int64_t tiles_of(const kw_gemm_traits* t, const kw_gemm_group* group) {
  const kw_gemm_problem one = {.m = group->m, .n = group->n, .batch = 1};
  return kw_hip_tiles(t, &one);
}

static kw_hip_group group_of(const kw_grouped_gemm_args* given, int64_t i, int32_t first, int reads_c, int* lost) {
  const kw_gemm_group* g = &given->groups[i];
  const kw_hip_group group = {.a = given->a[i],
                              .b = given->b[i],
                              .c = reads_c ? given->c[i] : NULL,
                              .d = given->d[i],
                              .m = kw_as_int32(g->m, lost),
                              .n = kw_as_int32(g->n, lost),
                              .k = kw_as_int32(g->k, lost),
                              .lda = kw_as_int32(g->lda, lost),
                              .ldb = kw_as_int32(g->ldb, lost),
                              .ldc = kw_as_int32(g->ldc, lost),
                              .first = first};
  return group;
}

static kw_status launch_groups(const kw_hip_gemm* gemm, const kw_hip_grouped_plan* made, kw_hip_grouped_arguments* x,
                               const kw_launch* where) {
  if (x->count == 0) return KW_OK;
  const int32_t most = (int32_t)gemm->workgroups;
  x->workgroups = gemm->traits.persistent && x->tiles > most ? most : x->tiles;
  x->alpha = made->alpha;
  x->beta = made->beta;
  return kw_hip_launch(&gemm->code, where, (uint32_t)x->workgroups, made->block, x, sizeof *x);
}

kw_status kw_hip_grouped_launch(const kw_kernel* kernel, const void* plan, const kw_launch* where, const void* args) {
  const kw_hip_grouped_plan* made = (const kw_hip_grouped_plan*)plan;
  const kw_grouped_gemm_args* given = (const kw_grouped_gemm_args*)args;
  if (!kernel || !made || !kw_hip_is_launch(where) || !given || given->struct_size < sizeof *given)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "kernel, plan, launch and args must be those of this ABI version");
  if (given->group_count != made->group_count || digest_of(given->groups, given->group_count) != made->digest)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "the groups are not those that were planned");
  if (made->group_count != 0 && (!given->a || !given->b || !given->d))
    return kw_hip_fail(KW_INVALID_ARGUMENT, "a, b and d must be arrays of pointers");
  const kw_hip_gemm* gemm = gemm_of(kernel);
  const int64_t most = (int64_t)(UINT32_MAX / made->block) < INT32_MAX ? UINT32_MAX / made->block : INT32_MAX;
  kw_hip_grouped_arguments x = {.count = 0};
  for (int64_t i = 0; i < made->group_count; ++i) {
    const int64_t tiles = tiles_of(&gemm->traits, &given->groups[i]);
    if (tiles == 0) continue;
    kw_status status = check_pointers(made, given, i);
    if (status == KW_OK && (x.count == KW_HIP_GROUPS_PER_LAUNCH || x.tiles > most - tiles)) {
      status = launch_groups(gemm, made, &x, where);
      x.count = x.tiles = 0;
    }
    if (status != KW_OK) return status;
    int lost = 0;
    x.groups[x.count++] = group_of(given, i, x.tiles, made->beta != 0, &lost);
    x.tiles = kw_as_int32(kw_add(x.tiles, tiles), &lost);
    if (lost)
      return kw_hip_fail(KW_UNSUPPORTED, "group %lld: a number does not fit into the argument of the kernel",
                         (long long)i);
  }
  return launch_groups(gemm, made, &x, where);
}
