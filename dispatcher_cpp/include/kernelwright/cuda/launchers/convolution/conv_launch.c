/* How a convolution is launched: copies of operands, the kernel, the sum of its slices. */
#include <cuda_runtime_api.h>
#include <string.h>

#include "internal.h"
#include "kernelwright/convolution/checks.h"

kw_status kw_cuda_conv_start(const kw_kernel* kernel, const void* function, uint32_t blocks, uint32_t threads,
                             uint32_t shared_bytes, void* params, void* stream) {
  cudaLaunchAttribute overlaps; /* kernels wait for the one before themselves: see tile.hpp */
  cudaLaunchConfig_t config;
  void* parameters[] = {params};
  memset(&config, 0, sizeof config);
  memset(&overlaps, 0, sizeof overlaps);
  overlaps.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlaps.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &overlaps;
  config.numAttrs = 1;
  config.gridDim.x = blocks;
  config.gridDim.y = config.gridDim.z = 1;
  config.blockDim.x = threads;
  config.blockDim.y = config.blockDim.z = 1;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = (cudaStream_t)stream;
  const cudaError_t error = cudaLaunchKernelExC(&config, function, parameters);
  return error == cudaSuccess ? KW_OK : kw_cuda_launch_failed(kernel, (int)error);
}

/* A thread for each of `count` items. */
static kw_status start_helper(const kw_kernel* kernel, const void* function, int64_t count, void* params,
                              void* stream) {
  const int64_t blocks = (count + KW_CUDA_CONV_HELPER_THREADS - 1) / KW_CUDA_CONV_HELPER_THREADS;
  if (blocks == 0) return KW_OK;
  if (blocks > INT32_MAX)
    return kw_cuda_fail(KW_UNSUPPORTED, "%s: %lld elements are too many to copy", kernel->name, (long long)count);
  return kw_cuda_conv_start(kernel, function, (uint32_t)blocks, KW_CUDA_CONV_HELPER_THREADS, 0, params, stream);
}

static kw_status check_pointer(const kw_kernel* kernel, const char* name, const void* pointer, int needs_tma) {
  if (!pointer) return kw_cuda_fail(KW_INVALID_ARGUMENT, "%s: %s is null", kernel->name, name);
  if (!needs_tma || (uintptr_t)pointer % KW_CUDA_CONV_ALIGNMENT == 0) return KW_OK;
  return kw_cuda_fail(KW_INVALID_ARGUMENT, "%s: %s is %p; TMA needs addresses that are multiples of %d bytes",
                      kernel->name, name, pointer, KW_CUDA_CONV_ALIGNMENT);
}

static kw_status check_args(const kw_kernel* kernel, const kw_cuda_conv_plan* plan, const kw_conv_args* args) {
  const kw_conv_problem* p = &plan->problem;
  if (!args || args->struct_size < sizeof *args)
    return kw_cuda_fail(KW_INVALID_ARGUMENT, "args has %u bytes; ABI %u needs %u", args ? args->struct_size : 0u,
                        KW_ABI_VERSION, (unsigned)sizeof *args);
  kw_status status = check_pointer(kernel, "d", args->d, 0);
  const int depthwise = ((const kw_conv_traits*)kernel->traits)->depthwise != 0;
  const int weight = p->base.op == KW_OP_CONV_WEIGHT_SLICES; /* whose implicit GEMM has dy, args->b, first */
  const int copies_a = (int)(weight ? plan->pads_b : plan->pads_a);
  const int copies_b = (int)(weight ? plan->pads_a : plan->packs) || depthwise;
  if (status == KW_OK && p->n > 0) status = check_pointer(kernel, "a", args->a, !copies_a);
  if (status == KW_OK && p->n > 0) status = check_pointer(kernel, "b", args->b, !copies_b);
  if (status == KW_OK && p->bias) status = check_pointer(kernel, "bias", args->bias, 0);
  if (status == KW_OK && p->residual) status = check_pointer(kernel, "residual", args->residual, 0);
  return status;
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
  const kw_conv_problem* p = &plan->problem;
  kw_cuda_conv_pack params = {.from = from,
                              .to = to,
                              .count = p->k * plan->shape.filter_points * plan->line,
                              .c = (int32_t)(p->c / p->groups),
                              .k = (int32_t)(p->k / p->groups),
                              .merged = plan->shape.merged,
                              .filter_points = plan->shape.filter_points,
                              .line = plan->line};
  return start_helper(kernel, conv->pack, params.count, &params, stream);
}

static kw_status sum(const kw_kernel* kernel, const kw_cuda_conv_plan* plan, const void* from, void* to, void* stream) {
  const kw_cuda_conv* conv = (const kw_cuda_conv*)kernel->traits;
  const kw_conv_problem* p = &plan->problem;
  const int64_t lines = p->k * plan->shape.filter_points;
  kw_cuda_conv_sum params = {.from = (const float*)from,
                             .to = to,
                             .count = lines * (p->c / p->groups),
                             .slice = lines * plan->shape.c,
                             .c = (int32_t)(p->c / p->groups),
                             .k = (int32_t)(p->k / p->groups),
                             .merged = plan->shape.merged,
                             .filter_points = plan->shape.filter_points,
                             .slices = (int32_t)p->split_k,
                             .alpha = (float)p->alpha,
                             .beta = (float)p->beta};
  return start_helper(kernel, conv->sum, params.c % 4 == 0 ? params.count / 4 : params.count, &params, stream);
}

/* What the kernel reads: the operands of the implicit GEMM, or their copies. Backward weight has dy first. */
static kw_status prepare(const kw_kernel* kernel, const kw_cuda_conv_plan* plan, const kw_launch* launch,
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
    status = pad(kernel, plan, forward, *a, memory + plan->padded_a, launch->stream);
    *a = memory + plan->padded_a;
  }
  if (status == KW_OK && plan->pads_b) {
    status = pad(kernel, plan, 1, *b, memory + plan->padded_b, launch->stream);
    *b = memory + plan->padded_b;
  }
  return status;
}

static uint32_t vectors(const kw_cuda_conv_plan* plan, const kw_conv_args* args) {
  const uintptr_t bits = (uintptr_t)args->d | (plan->problem.residual ? (uintptr_t)args->residual : 0);
  return plan->vectors && bits % KW_CUDA_CONV_ALIGNMENT == 0;
}

/* The device of the launch is current. */
static kw_status launch_here(const kw_kernel* kernel, const kw_cuda_conv_plan* plan, const kw_launch* launch,
                             const kw_conv_args* args) {
  const kw_cuda_conv* conv = (const kw_cuda_conv*)kernel->traits;
  const kw_conv_problem* p = &plan->problem;
  const int weight = p->base.op == KW_OP_CONV_WEIGHT_SLICES;
  const void *a = weight ? args->b : args->a, *b = weight ? args->a : args->b;
  int multiprocessors = 0;
  kw_status status = kw_cuda_multiprocessors(launch->device, &multiprocessors);
  if (status == KW_OK)
    status = kw_cuda_prepare(conv->function, (int)conv->shared_bytes, launch->device, conv->prepared);
  if (status != KW_OK) return status;
  if (conv->traits.depthwise) return kw_cuda_conv_launch_direct(kernel, p, launch, args);
  if (p->n > 0)
    status = prepare(kernel, plan, launch, &a, &b);
  else /* nothing reads them, but a descriptor needs some address */
    a = b = (const void*)((uintptr_t)args->d / KW_CUDA_CONV_ALIGNMENT * KW_CUDA_CONV_ALIGNMENT);
  kw_cuda_conv_params params;
  memset(&params, 0, sizeof params);
  params.shape = plan->shape;
  params.slices = (int32_t)plan->sums;
  params.d = plan->sums ? (char*)launch->workspace + plan->slices : args->d;
  params.vectors = (int32_t)vectors(plan, args);
  params.bias = args->bias;
  params.residual = args->residual;
  params.alpha = (float)p->alpha;
  params.beta = (float)p->beta;
  if (status == KW_OK) status = kw_cuda_conv_describe(kernel, plan, a, b, &params);
  if (status != KW_OK) return status;
  const uint32_t blocks =
      params.shape.tiles < (uint32_t)multiprocessors ? params.shape.tiles : (uint32_t)multiprocessors;
  status =
      kw_cuda_conv_start(kernel, conv->function, blocks, conv->threads, conv->shared_bytes, &params, launch->stream);
  if (status != KW_OK || !plan->sums) return status;
  return sum(kernel, plan, params.d, args->d, launch->stream);
}

kw_status kw_cuda_conv_launch(const kw_kernel* kernel, const void* plan, const kw_launch* launch, const void* args) {
  const kw_cuda_conv_plan* made = (const kw_cuda_conv_plan*)plan;
  int pushed = 0;
  if (made->problem.n == 0 && made->problem.base.op != KW_OP_CONV_WEIGHT_SLICES) return KW_OK;
  kw_status status = check_args(kernel, made, (const kw_conv_args*)args);
  if (status == KW_OK) status = kw_cuda_enter(launch, &pushed);
  if (status != KW_OK) return status;
  if (made->bytes > launch->workspace_bytes)
    status = kw_cuda_workspace_too_small(kernel, made->bytes, launch->workspace_bytes);
  else
    status = launch_here(kernel, made, launch, (const kw_conv_args*)args);
  return kw_cuda_leave(pushed, status);
}
