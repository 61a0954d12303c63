/* What is launched before and after an implicit GEMM: copies of operands, sums of slices, unfolded gradients. */
#include <string.h>

#include "internal.h"
#include "kernelwright/convolution/checks.h"

/* A slice is summed by so many threads more until a multiprocessor has enough of them to hide memory's latency. */
#define SUM_THREADS (132 * 512)
#define MOST_PARTS 16
#define SLICES_OF_PART 4

/* A thread for each of `count` items. */
static kw_status start_helper(const kw_kernel* kernel, const void* function, int64_t count, void* params,
                              void* stream) {
  const int64_t blocks = (count + KW_CUDA_CONV_HELPER_THREADS - 1) / KW_CUDA_CONV_HELPER_THREADS;
  if (blocks == 0) return KW_OK;
  if (blocks > INT32_MAX)
    return kw_cuda_fail(KW_UNSUPPORTED, "%s: %lld elements are too many to copy", kernel->name, (long long)count);
  return kw_cuda_conv_start(kernel, function, (uint32_t)blocks, KW_CUDA_CONV_HELPER_THREADS, 0, params, stream);
}

static kw_status pad(const kw_kernel* kernel, const kw_cuda_conv_plan* plan, int of_x, const void* from, void* to,
                     void* stream) {
  const kw_cuda_conv* conv = (const kw_cuda_conv*)kernel->traits;
  const kw_conv_problem* p = &plan->problem;
  const int64_t channels = of_x ? plan->shape.c : plan->shape.k, *strides = of_x ? p->stride_x : p->stride_y;
  kw_cuda_conv_pad params = {.from = from, .to = to, .points = p->n, .channels = (int32_t)channels};
  params.line = (int32_t)kw_cuda_conv_padded(channels);
  params.groups = (int32_t)plan->shape.groups.divisor;
  params.image = strides[0];
  for (int axis = 0; axis < 3; ++axis) {
    params.extent[axis] = (int32_t)(of_x ? p->extent[2 - axis] : kw_conv_out(p, 2 - axis));
    params.point[axis] = strides[4 - axis];
    params.points *= params.extent[axis];
  }
  return start_helper(kernel, conv->pad, params.points * params.groups * (params.line / 8), &params, stream);
}

static kw_status pack(const kw_kernel* kernel, const kw_cuda_conv_plan* plan, const void* from, void* to,
                      void* stream) {
  const kw_cuda_conv* conv = (const kw_cuda_conv*)kernel->traits;
  const kw_conv_problem* p = &plan->asked;
  kw_cuda_conv_pack params = {.from = from,
                              .to = to,
                              .count = p->k * plan->shape.filter_points * plan->line,
                              .c = (int32_t)(p->c / p->groups),
                              .k = (int32_t)(p->k / p->groups),
                              .merged = plan->shape.merged,
                              .filter_points = plan->shape.filter_points,
                              .line = plan->line,
                              .pitch = plan->taps ? plan->pitch : (int32_t)(p->c / p->groups),
                              .taps = plan->taps ? plan->taps : 1};
  return start_helper(kernel, conv->pack, params.count, &params, stream);
}

kw_status kw_cuda_conv_add_slices(const kw_kernel* kernel, kw_cuda_conv_sum* params, void* stream) {
  const kw_cuda_conv* conv = (const kw_cuda_conv*)kernel->traits;
  const int64_t items = params->c % 4 == 0 ? params->count / 4 : params->count;
  params->parts = 1;
  while (params->parts < MOST_PARTS && items * params->parts < SUM_THREADS &&
         2 * params->parts * SLICES_OF_PART <= params->slices)
    params->parts *= 2;
  return start_helper(kernel, conv->sum, items * params->parts, params, stream);
}

kw_status kw_cuda_conv_sum_slices(const kw_kernel* kernel, const kw_cuda_conv_plan* plan, const void* from, void* to,
                                  void* stream) {
  const kw_conv_problem* p = &plan->asked;
  const int64_t lines = p->k * kw_conv_filter_points(p);
  kw_cuda_conv_sum params = {.from = (const float*)from,
                             .to = to,
                             .count = lines * (p->c / p->groups),
                             .slice = p->k * (int64_t)plan->shape.filter_points * plan->shape.c,
                             .c = (int32_t)(p->c / p->groups),
                             .k = (int32_t)(p->k / p->groups),
                             .merged = plan->shape.merged,
                             .filter_points = (int32_t)kw_conv_filter_points(p),
                             .pitch = plan->taps ? plan->pitch : plan->shape.c,
                             .slices = (int32_t)p->split_k,
                             .alpha = (float)p->alpha,
                             .beta = (float)p->beta};
  return kw_cuda_conv_add_slices(kernel, &params, stream);
}

/* Extents and memory strides of x as it was posed, along W, H, D. */
static void set_image(const kw_conv_problem* p, int32_t* extent, int64_t* image, int64_t* point) {
  *image = p->stride_x[0];
  for (int axis = 0; axis < 3; ++axis) {
    extent[axis] = (int32_t)p->extent[2 - axis];
    point[axis] = p->stride_x[4 - axis];
  }
}

static kw_status gather(const kw_kernel* kernel, const kw_cuda_conv_plan* plan, const void* from, void* to,
                        void* stream) {
  const kw_cuda_conv* conv = (const kw_cuda_conv*)kernel->traits;
  const kw_conv_problem* p = &plan->posed;
  kw_cuda_conv_gather params = {.from = from,
                                .to = to,
                                .rows = p->n * kw_conv_out_points(p),
                                .c = (int32_t)(p->c / p->groups),
                                .line = (int32_t)kw_cuda_conv_padded(plan->shape.c),
                                .groups = (int32_t)plan->shape.groups.divisor,
                                .merged = plan->shape.merged};
  set_image(p, params.extent, &params.image, params.point);
  for (int axis = 0; axis < 3; ++axis) {
    const int dim = 2 - axis;
    params.out[axis] = (int32_t)kw_conv_out(p, dim);
    params.filter[axis] = (int32_t)p->filter[dim];
    params.stride[axis] = (int32_t)p->stride[dim];
    params.dilation[axis] = (int32_t)p->dilation[dim];
    params.pad[axis] = (int32_t)p->pad_left[dim];
  }
  return start_helper(kernel, conv->gather, params.rows * params.groups * (params.line / 8), &params, stream);
}

static kw_status fold(const kw_kernel* kernel, const kw_cuda_conv_plan* plan, const void* from, void* to,
                      void* stream) {
  const kw_cuda_conv* conv = (const kw_cuda_conv*)kernel->traits;
  const kw_conv_problem* p = &plan->asked;
  kw_cuda_conv_fold params = {.from = from,
                              .to = to,
                              .lines = p->n * p->extent[0] * p->extent[1],
                              .c = (int32_t)p->c,
                              .pitch = plan->pitch,
                              .line = (int32_t)plan->problem.stride_x[3],
                              .pad = (int32_t)p->pad_left[2]};
  set_image(p, params.extent, &params.image, params.point);
  return start_helper(kernel, conv->fold, params.lines * (params.line / 8), &params, stream);
}

static int32_t common_divisor(int32_t a, int32_t b) {
  while (b) {
    const int32_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Of folded images only the filter points along W are left: the implicit GEMM had the others. */
kw_status kw_cuda_conv_unfold_sums(const kw_kernel* kernel, const kw_cuda_conv_plan* plan, const void* from, void* to,
                                   void* stream) {
  const kw_cuda_conv* conv = (const kw_cuda_conv*)kernel->traits;
  const kw_conv_problem* p = &plan->posed;
  kw_cuda_conv_unfold params = {.from = (const float*)from,
                                .to = to,
                                .count = p->n * p->extent[0] * p->extent[1] * p->extent[2] * p->c,
                                .c = (int32_t)(p->c / p->groups),
                                .groups = (int32_t)p->groups,
                                .alpha = (float)p->alpha,
                                .beta = (float)p->beta};
  set_image(p, params.extent, &params.image, params.point);
  for (int axis = 0; axis < 3; ++axis) {
    const int dim = 2 - axis, left = plan->gathers || axis == 0;
    params.out[axis] = left ? (int32_t)kw_conv_out(p, dim) : params.extent[axis];
    params.filter[axis] = left ? (int32_t)p->filter[dim] : 1;
    params.stride[axis] = left ? (int32_t)p->stride[dim] : 1;
    params.dilation[axis] = left ? (int32_t)p->dilation[dim] : 1;
    params.pad[axis] = left ? (int32_t)p->pad_left[dim] : 0;
    params.step[axis] = params.stride[axis] / common_divisor(params.stride[axis], params.dilation[axis]);
  }
  return start_helper(kernel, conv->unfold, params.count, &params, stream);
}

/* What the kernel reads: the operands of the implicit GEMM, or their copies. Backward weight has dy first. */
kw_status kw_cuda_conv_prepare(const kw_kernel* kernel, const kw_cuda_conv_plan* plan, const kw_launch* launch,
                               const void** a, const void** b) {
  const kw_conv_problem* p = &plan->problem;
  const int forward = p->base.op == KW_OP_CONV_FORWARD;
  char* memory = (char*)launch->workspace;
  kw_status status = KW_OK;
  if (plan->packs) {
    status = pack(kernel, plan, *b, memory + plan->packed, launch->stream);
    *b = memory + plan->packed;
  }
  if (status == KW_OK && plan->pads_a) {
    status = plan->gathers && forward ? gather(kernel, plan, *a, memory + plan->padded_a, launch->stream)
                                      : pad(kernel, plan, forward, *a, memory + plan->padded_a, launch->stream);
    *a = memory + plan->padded_a;
  }
  if (status == KW_OK && plan->pads_b) {
    status = (plan->gathers ? gather(kernel, plan, *b, memory + plan->padded_b, launch->stream)
                            : pad(kernel, plan, 1, *b, memory + plan->padded_b, launch->stream));
    *b = memory + plan->padded_b;
  }
  if (status == KW_OK && plan->taps && p->base.op != KW_OP_CONV_BACKWARD_DATA) {
    const void** x = forward ? a : b;
    void* copy = memory + (forward ? plan->padded_a : plan->padded_b);
    status = fold(kernel, plan, *x, copy, launch->stream);
    *x = copy;
  }
  return status;
}
