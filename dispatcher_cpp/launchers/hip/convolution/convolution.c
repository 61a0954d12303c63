/* How convolution problems are planned and launched by CK Tile kernels. */
#include <stdio.h>
#include <string.h>

#include "kernelwright/convolution/checks.h"
#include "kernelwright/hip/convolution/launcher.h"
#include "kernelwright/widths.h"
#include "launchers/hip/convolution/conditions.h"

/* As the ABI promises. */
#define WORKSPACE_ALIGNMENT 256

static const kw_hip_conv* conv_of(const kw_kernel* kernel) { return (const kw_hip_conv*)kernel->traits; }

static const kw_conv_problem* posed(const kw_problem* problem) { return (const kw_conv_problem*)(const void*)problem; }

static kw_status check(const kw_kernel* kernel, const kw_problem* problem, kw_hip_conv_facts* facts, char* reason,
                       size_t bytes) {
  if (!kernel || !problem || problem->op != kernel->op || problem->struct_size < sizeof(kw_conv_problem)) {
    snprintf(reason, bytes, "the problem is not a kw_conv_problem of this direction and ABI version");
    return KW_INVALID_ARGUMENT;
  }
  const kw_hip_code* code = &conv_of(kernel)->code;
  if (!kw_hip_read_facts(code, facts, sizeof *facts) || facts->magic != KW_HIP_CONV_FACTS_MAGIC ||
      facts->arguments_bytes != sizeof(kw_hip_conv_arguments)) {
    snprintf(reason, bytes, "the code object of this kernel is damaged");
    return KW_LOAD_FAILED;
  }
  const kw_hip_conv* conv = conv_of(kernel);
  return kw_hip_conv_check(&conv->traits, posed(problem), conv->evenly_spaced != 0, conv->sum.image != NULL,
                           facts->block_size, reason, bytes);
}

kw_status kw_hip_conv_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t reason_bytes) {
  kw_hip_conv_facts facts;
  char unused[1];
  if (!reason || reason_bytes == 0) return check(kernel, problem, &facts, unused, sizeof unused);
  reason[0] = '\0';
  return check(kernel, problem, &facts, reason, reason_bytes);
}

static kw_hip_conv_arguments arguments_of(const kw_conv_problem* p, int* lost) {
  kw_hip_conv_arguments x = {.groups = kw_as_int32(p->groups, lost),
                             .n = kw_as_int32(p->n, lost),
                             .c = kw_as_int32(p->c / p->groups, lost),
                             .k = kw_as_int32(p->k / p->groups, lost),
                             .image_x = kw_as_int32(p->stride_x[0], lost),
                             .image_y = kw_as_int32(p->stride_y[0], lost),
                             .shares = kw_as_int32(p->split_k, lost),
                             .alpha = (float)p->alpha,
                             .beta = (float)p->beta,
                             .activation = p->activation};
  for (int i = 0; i < KW_CONV_SPATIAL; ++i) {
    x.extent[i] = kw_as_int32(p->extent[i], lost);
    x.out[i] = kw_as_int32(kw_conv_out(p, i), lost);
    x.filter[i] = kw_as_int32(p->filter[i], lost);
    x.stride[i] = kw_as_int32(p->stride[i], lost);
    x.dilation[i] = kw_as_int32(p->dilation[i], lost);
    x.pad[i] = kw_as_int32(p->pad_left[i], lost);
    x.point_x[i] = kw_as_int32(p->stride_x[2 + i], lost);
    x.point_y[i] = kw_as_int32(p->stride_y[2 + i], lost);
  }
  return x;
}

/* KW_UNSUPPORTED: an argument would lose a bit, which the checks before should have seen. */
static kw_status plan_of(const kw_hip_conv* conv, const kw_conv_problem* p, const kw_hip_conv_facts* facts,
                         kw_hip_conv_plan* made) {
  int lost = 0;
  memset(made, 0, sizeof *made);
  made->arguments = arguments_of(p, &lost);
  made->grid = kw_as_uint32(kw_hip_conv_workgroups(&conv->traits, p), &lost);
  made->block = facts->block_size;
  made->aligned = (uint32_t)kw_hip_conv_alignment(&conv->traits);
  made->op = p->base.op;
  made->bias = p->bias != 0;
  made->residual = p->residual != 0;
  if (made->grid != 0 && conv->sum.image != NULL) {
    /* Without images there is nothing to multiply, and the kernel that adds slices up does the rest. */
    const int64_t slices = kw_conv_as_gemm(p).k == 0 ? 0 : p->split_k;
    const int64_t weights = kw_hip_conv_all_weights(p);
    const int64_t bytes = kw_mul3(slices, weights, sizeof(float));
    made->arguments.shares = kw_as_int32(slices, &lost);
    if (slices == 0) made->grid = 0;
    made->sum_grid = kw_as_uint32(kw_parts(weights, KW_HIP_CONV_SUM_BLOCK), &lost);
    made->workspace_bytes = (uint64_t)bytes;
    if (!kw_fits_int64(bytes)) lost = 1;
  }
  return lost ? KW_UNSUPPORTED : KW_OK;
}

kw_status kw_hip_conv_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  kw_hip_conv_plan made;
  if (!problem || !bytes) return kw_hip_fail(KW_INVALID_ARGUMENT, "problem and bytes must not be null");
  *bytes = 0;
  if (conv_of(kernel)->sum.image == NULL) return KW_OK;
  const kw_status status = kw_hip_conv_make_plan(kernel, problem, &made);
  if (status == KW_OK) *bytes = made.workspace_bytes;
  return status;
}

kw_status kw_hip_conv_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  kw_hip_conv_facts facts;
  char reason[256] = "";
  if (!plan) return kw_hip_fail(KW_INVALID_ARGUMENT, "plan must not be null");
  const kw_status status = check(kernel, problem, &facts, reason, sizeof reason);
  if (status != KW_OK) return kw_hip_fail(status, "%s", reason);
  kw_hip_conv_plan made;
  if (plan_of(conv_of(kernel), posed(problem), &facts, &made) != KW_OK)
    return kw_hip_fail(KW_UNSUPPORTED, "a number of the problem does not fit into the argument of the kernel");
  memcpy(plan, &made, sizeof made);
  return KW_OK;
}

static kw_status check_workspace(const kw_hip_conv_plan* made, const kw_launch* given) {
  if (!given->workspace || given->workspace_bytes < made->workspace_bytes)
    return kw_hip_fail(KW_WORKSPACE_TOO_SMALL, "the workspace has %llu bytes, the slices take %llu",
                       given->workspace ? (unsigned long long)given->workspace_bytes : 0ull,
                       (unsigned long long)made->workspace_bytes);
  if ((uintptr_t)given->workspace % WORKSPACE_ALIGNMENT != 0)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "the workspace must be aligned to %d bytes", WORKSPACE_ALIGNMENT);
  return KW_OK;
}

static kw_status check_pointers(const kw_hip_conv_plan* made, const kw_conv_args* given) {
  const int reads = made->grid != 0; /* tensors without elements may have any address */
  const uintptr_t bits = (uintptr_t)given->d | (reads ? (uintptr_t)given->a | (uintptr_t)given->b : 0);
  if (!given->d || (reads && (!given->a || !given->b)))
    return kw_hip_fail(KW_INVALID_ARGUMENT, "a, b and d must not be null");
  if (bits % made->aligned != 0)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "a, b and d must be aligned to %u bytes", made->aligned);
  if (made->bias && !given->bias) return kw_hip_fail(KW_INVALID_ARGUMENT, "bias must not be null");
  if (made->residual && !given->residual) return kw_hip_fail(KW_INVALID_ARGUMENT, "residual must not be null");
  return KW_OK;
}

kw_status kw_hip_conv_launch(const kw_kernel* kernel, const void* plan, const kw_launch* where, const void* args) {
  const kw_hip_conv_plan* made = (const kw_hip_conv_plan*)plan;
  const kw_conv_args* given = (const kw_conv_args*)args;
  if (!kernel || !made || !kw_hip_is_launch(where) || !given || given->struct_size < sizeof *given)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "kernel, plan, launch and args must be those of this ABI version");
  if (made->grid == 0 && made->sum_grid == 0) return KW_OK;
  const kw_hip_conv* conv = conv_of(kernel);
  kw_status status = check_pointers(made, given);
  if (status == KW_OK && made->workspace_bytes != 0) status = check_workspace(made, where);
  if (status != KW_OK) return status;
  /* The implicit GEMM of backward weight has dy first. */
  const int swapped = made->op == KW_OP_CONV_WEIGHT_SLICES;
  kw_hip_conv_arguments x = made->arguments;
  x.a = swapped ? given->b : given->a;
  x.b = swapped ? given->a : given->b;
  x.d = given->d;
  x.bias = made->bias ? given->bias : NULL;
  x.residual = made->residual ? given->residual : NULL;
  x.partial = where->workspace;
  if (made->grid != 0) status = kw_hip_launch(&conv->code, where, made->grid, made->block, &x, sizeof x);
  if (status != KW_OK || made->sum_grid == 0) return status;
  return kw_hip_launch(&conv->sum, where, made->sum_grid, KW_HIP_CONV_SUM_BLOCK, &x, sizeof x);
}
