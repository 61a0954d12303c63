/* Which convolution problems a CUDA kernel serves, and what it needs besides: copies of operands, slices. */
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "kernelwright/convolution/checks.h"
#include "kernelwright/widths.h"

#define PART 256 /* parts of the workspace are aligned to so many bytes */
#define ELEMENT 2
#define MOST_BYTES (INT64_C(1) << 47) /* of a workspace: more than a GPU has memory */

static const kw_conv_problem* posed(const kw_problem* problem) { return (const kw_conv_problem*)(const void*)problem; }

static int64_t rounded(int64_t value, int64_t to) { return kw_mul(kw_parts(value, to), to); }

static int aligned(const kw_conv_problem* p, int of_x) {
  int64_t out[3];
  for (int dim = 0; dim < 3; ++dim) out[dim] = kw_conv_out(p, dim);
  return of_x ? kw_cuda_conv_aligned(p->stride_x, p->n, p->extent) : kw_cuda_conv_aligned(p->stride_y, p->n, out);
}

static uint64_t take(kw_cuda_conv_plan* plan, int64_t bytes) {
  const uint64_t at = plan->bytes;
  plan->bytes = (uint64_t)kw_add((int64_t)plan->bytes, rounded(bytes, PART));
  return at;
}

/* TMA starts at multiples of 16 bytes in im2col mode: else an illegal instruction (seen on H200). */
static int starts_aligned(const kw_cuda_conv_shape* s, int of_x) {
  return s->groups.divisor == 1 || (of_x ? s->c : s->k) % KW_CUDA_CONV_LINE == 0;
}

static int64_t image_bytes(const kw_conv_problem* p, const kw_cuda_conv_shape* s, int of_x) {
  int64_t points = p->n;
  for (int dim = 0; dim < 3; ++dim) points = kw_mul(points, of_x ? p->extent[dim] : kw_conv_out(p, dim));
  return kw_mul(kw_mul3(points, s->groups.divisor, kw_cuda_conv_padded(of_x ? s->c : s->k)), ELEMENT);
}

static void lay_out(kw_cuda_conv_plan* plan) {
  const kw_conv_problem* p = &plan->problem;
  kw_cuda_conv_shape* s = &plan->shape;
  const int weight = p->base.op == KW_OP_CONV_WEIGHT_SLICES, forward = p->base.op == KW_OP_CONV_FORWARD;
  const int64_t elements = p->k * (int64_t)s->filter_points;
  plan->line = (int32_t)rounded(s->c, KW_CUDA_CONV_LINE);
  plan->pads_a = (uint32_t)((plan->gathers && forward) || !aligned(p, forward) || !starts_aligned(s, forward));
  plan->pads_b = (uint32_t)(weight && (plan->gathers || !aligned(p, 1) || !starts_aligned(s, 1)));
  s->group_a = forward ? s->c : s->k;
  s->group_b = s->c;
  if (plan->pads_a) s->group_a = (int32_t)kw_cuda_conv_padded(s->group_a);
  if (plan->pads_b) s->group_b = (int32_t)kw_cuda_conv_padded(s->group_b);
  plan->packs = (uint32_t)(!weight && (s->merged > 1 || s->c % KW_CUDA_CONV_LINE || plan->taps));
  plan->sums = (uint32_t)(weight ? s->merged > 1 || p->split_k > 1 || plan->taps : !forward && (plan->taps || plan->gathers));
  if (plan->packs) plan->packed = take(plan, kw_mul3(elements, plan->line, ELEMENT));
  if (plan->pads_a) plan->padded_a = take(plan, image_bytes(p, s, forward));
  if (plan->pads_b) plan->padded_b = take(plan, image_bytes(p, s, 1));
  const int64_t folded = plan->taps || plan->gathers ? kw_mul(p->n, p->stride_x[0]) : 0;
  if (plan->taps && forward) plan->padded_a = take(plan, kw_mul(folded, ELEMENT));
  if (plan->taps && weight) plan->padded_b = take(plan, kw_mul(folded, ELEMENT));
  if (plan->sums && weight) plan->slices = take(plan, kw_mul(kw_mul3(elements, s->c, sizeof(float)), p->split_k));
  if (plan->sums && !weight) plan->slices = take(plan, kw_mul(folded, sizeof(float)));
  plan->vectors = weight ? p->c / p->groups % KW_CUDA_CONV_LINE == 0 && !plan->sums
                         : (uint32_t)(aligned(p, !forward) && (forward ? s->k : s->c) % KW_CUDA_CONV_LINE == 0);
}

static kw_status make(const kw_kernel* kernel, const kw_problem* problem, kw_cuda_conv_plan* plan, kw_reason reason) {
  const kw_conv_traits* t = (const kw_conv_traits*)kernel->traits;
  const kw_conv_problem* p = posed(problem);
  if (problem->op != kernel->op || problem->struct_size < sizeof *p)
    return kw_cuda_refuse(reason, "op is %u of %u bytes; this kernel serves %s (%u, %u bytes)", problem->op,
                          problem->struct_size, kw_conv_op_name(kernel->op), kernel->op, (unsigned)sizeof *p);
  memset(plan, 0, sizeof *plan);
  plan->problem = plan->asked = plan->posed = *p;
  kw_status status = kw_cuda_conv_check(t, p, reason.text, reason.bytes);
  if (t->depthwise) {
    if (status == KW_OK && p->base.op == KW_OP_CONV_WEIGHT_SLICES)
      plan->slices = take(plan, kw_mul(kw_mul3(p->split_k, p->c, kw_conv_filter_points(p)), sizeof(float)));
    return status;
  }
  if (status == KW_OK) kw_cuda_conv_fold_problem(plan);
  const int derived = status == KW_OK;
  if (derived) status = kw_cuda_conv_derive(t, &plan->problem, &plan->shape, reason);
  /* What no image is for TMA may be a matrix; if not, the reason is that of the image. */
  if (status == KW_UNSUPPORTED && derived && kw_cuda_conv_gather_problem(plan))
    status = kw_cuda_conv_derive(t, &plan->problem, &plan->shape, (kw_reason){reason.text, 0});
  if (status == KW_OK) lay_out(plan);
  if (status != KW_OK || plan->bytes <= (uint64_t)MOST_BYTES) return status;
  return kw_cuda_refuse(reason, "copies of operands and slices take %llu bytes; this kernel takes at most 2^47",
                        (unsigned long long)plan->bytes);
}

kw_status kw_cuda_conv_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  kw_cuda_conv_plan plan;
  return make(kernel, problem, &plan, (kw_reason){reason, reason ? bytes : 0});
}

kw_status kw_cuda_conv_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  char reason[256] = "";
  const kw_status status = make(kernel, problem, (kw_cuda_conv_plan*)plan, (kw_reason){reason, sizeof reason});
  return status == KW_OK ? KW_OK : kw_cuda_fail(status, "%s: %s", kernel->name, reason);
}

kw_status kw_cuda_conv_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  kw_cuda_conv_plan plan;
  const kw_status status = kw_cuda_conv_make_plan(kernel, problem, &plan);
  *bytes = status == KW_OK ? plan.bytes : 0;
  return status;
}
