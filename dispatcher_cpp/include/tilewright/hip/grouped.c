/* Products of different shapes in one launch, or a few: see TW_HIP_GROUPS_PER_LAUNCH. */
#include <stdio.h>
#include <string.h>

#include "tilewright/hip/launcher.h"
#include "tilewright/variant.h"

static const tw_hip_gemm* gemm_of(const tw_kernel* kernel) { return (const tw_hip_gemm*)kernel->traits; }

static tw_status check(const tw_kernel* kernel, const tw_problem* problem, tw_hip_gemm_facts* facts, char* reason,
                       size_t bytes) {
  const tw_grouped_gemm_problem* p = (const tw_grouped_gemm_problem*)(const void*)problem;
  if (!kernel || !problem || problem->op != TW_OP_GROUPED_GEMM || problem->struct_size < sizeof *p) {
    snprintf(reason, bytes, "the problem is not a tw_grouped_gemm_problem of this ABI version.");
    return TW_INVALID_ARGUMENT;
  }
  if (p->group_count < 0 || (p->group_count > 0 && !p->groups)) {
    snprintf(reason, bytes, "%lld groups need an array of as many.", (long long)p->group_count);
    return TW_INVALID_ARGUMENT;
  }
  if (!tw_hip_read_facts(&gemm_of(kernel)->code, sizeof(tw_hip_grouped_arguments), facts)) {
    snprintf(reason, bytes, "the code object of this kernel is damaged.");
    return TW_LOAD_FAILED;
  }
  for (int64_t i = 0; i < p->group_count; ++i) {
    char text[224];
    const tw_gemm_problem one = tw_problem_of_group(p, &p->groups[i]);
    const tw_status status = tw_hip_check_conditions(gemm_of(kernel), &one, facts, text, sizeof text);
    if (status == TW_OK) continue;
    snprintf(reason, bytes, "group %lld: %s", (long long)i, text);
    return status;
  }
  return TW_OK;
}

tw_status tw_hip_grouped_supports(const tw_kernel* kernel, const tw_problem* problem, char* reason,
                                  size_t reason_bytes) {
  tw_hip_gemm_facts facts;
  char unused[1];
  if (!reason || reason_bytes == 0) return check(kernel, problem, &facts, unused, sizeof unused);
  reason[0] = '\0';
  return check(kernel, problem, &facts, reason, reason_bytes);
}

tw_status tw_hip_grouped_workspace_size(const tw_kernel* kernel, const tw_problem* problem, uint64_t* bytes) {
  (void)kernel;
  if (!problem || !bytes) return tw_hip_fail(TW_INVALID_ARGUMENT, "problem and bytes must not be null");
  *bytes = 0;
  return TW_OK;
}

/* FNV-1a over the groups, which have no padding bytes. */
static uint64_t digest_of(const tw_gemm_group* groups, int64_t count) {
  const unsigned char* bytes = (const unsigned char*)groups;
  uint64_t digest = 0xcbf29ce484222325u;
  for (uint64_t i = 0; i < (uint64_t)count * sizeof *groups; ++i) digest = (digest ^ bytes[i]) * 0x100000001b3u;
  return digest;
}

tw_status tw_hip_grouped_make_plan(const tw_kernel* kernel, const tw_problem* problem, void* plan) {
  tw_hip_gemm_facts facts;
  char reason[256] = "";
  if (!plan) return tw_hip_fail(TW_INVALID_ARGUMENT, "plan must not be null");
  const tw_status status = check(kernel, problem, &facts, reason, sizeof reason);
  if (status != TW_OK) return tw_hip_fail(status, "%s", reason);
  const tw_grouped_gemm_problem* p = (const tw_grouped_gemm_problem*)(const void*)problem;
  const tw_hip_grouped_plan made = {.group_count = p->group_count,
                                    .digest = digest_of(p->groups, p->group_count),
                                    .block = facts.block_size,
                                    .row_bytes = facts.row_bytes,
                                    .alpha = (float)p->alpha,
                                    .beta = (float)p->beta};
  memcpy(plan, &made, sizeof made);
  return TW_OK;
}

static tw_status check_pointers(const tw_hip_grouped_plan* made, const tw_grouped_gemm_args* given, int64_t i) {
  const void* c = made->beta != 0 && given->c ? given->c[i] : NULL;
  const uintptr_t bits = (uintptr_t)given->a[i] | (uintptr_t)given->b[i] | (uintptr_t)given->d[i] | (uintptr_t)c;
  if (!given->a[i] || !given->b[i] || !given->d[i])
    return tw_hip_fail(TW_INVALID_ARGUMENT, "a, b and d of group %lld must not be null", (long long)i);
  if (made->beta != 0 && !c)
    return tw_hip_fail(TW_INVALID_ARGUMENT, "beta is not 0, so c of group %lld must not be null", (long long)i);
  if (bits % made->row_bytes != 0)
    return tw_hip_fail(TW_INVALID_ARGUMENT, "the pointers of group %lld must be aligned to %u bytes", (long long)i,
                       made->row_bytes);
  return TW_OK;
}

static int64_t tiles_of(const tw_gemm_traits* t, const tw_gemm_group* group) {
  const tw_gemm_problem one = {.m = group->m, .n = group->n, .batch = 1};
  return tw_hip_tiles(t, &one);
}

static tw_hip_group group_of(const tw_grouped_gemm_args* given, int64_t i, int32_t first, int reads_c) {
  const tw_gemm_group* g = &given->groups[i];
  const tw_hip_group group = {.a = given->a[i],
                              .b = given->b[i],
                              .c = reads_c ? given->c[i] : NULL,
                              .d = given->d[i],
                              .m = (int32_t)g->m,
                              .n = (int32_t)g->n,
                              .k = (int32_t)g->k,
                              .lda = (int32_t)g->lda,
                              .ldb = (int32_t)g->ldb,
                              .ldc = (int32_t)g->ldc,
                              .first = first};
  return group;
}

static tw_status launch_groups(const tw_hip_gemm* gemm, const tw_hip_grouped_plan* made, tw_hip_grouped_arguments* x,
                               void* stream) {
  if (x->count == 0) return TW_OK;
  const int32_t most = (int32_t)gemm->workgroups;
  x->workgroups = gemm->traits.persistent && x->tiles > most ? most : x->tiles;
  x->alpha = made->alpha;
  x->beta = made->beta;
  return tw_hip_launch(&gemm->code, (uint32_t)x->workgroups, made->block, x, sizeof *x, stream);
}

tw_status tw_hip_grouped_launch(const tw_kernel* kernel, const void* plan, const void* args) {
  const tw_hip_grouped_plan* made = (const tw_hip_grouped_plan*)plan;
  const tw_grouped_gemm_args* given = (const tw_grouped_gemm_args*)args;
  if (!kernel || !made || !given || given->struct_size < sizeof *given)
    return tw_hip_fail(TW_INVALID_ARGUMENT, "kernel, plan and args must be those of this ABI version");
  if (given->group_count != made->group_count || digest_of(given->groups, given->group_count) != made->digest)
    return tw_hip_fail(TW_INVALID_ARGUMENT, "the groups are not those that were planned");
  if (made->group_count != 0 && (!given->a || !given->b || !given->d))
    return tw_hip_fail(TW_INVALID_ARGUMENT, "a, b and d must be arrays of pointers");
  const tw_hip_gemm* gemm = gemm_of(kernel);
  const int64_t most = (int64_t)(UINT32_MAX / made->block) < INT32_MAX ? UINT32_MAX / made->block : INT32_MAX;
  tw_hip_grouped_arguments x = {.count = 0};
  for (int64_t i = 0; i < made->group_count; ++i) {
    const int64_t tiles = tiles_of(&gemm->traits, &given->groups[i]);
    if (tiles == 0) continue;
    tw_status status = check_pointers(made, given, i);
    if (status == TW_OK && (x.count == TW_HIP_GROUPS_PER_LAUNCH || x.tiles > most - tiles)) {
      status = launch_groups(gemm, made, &x, given->stream);
      x.count = x.tiles = 0;
    }
    if (status != TW_OK) return status;
    x.groups[x.count++] = group_of(given, i, x.tiles, made->beta != 0);
    x.tiles += (int32_t)tiles;
  }
  return launch_groups(gemm, made, &x, given->stream);
}
