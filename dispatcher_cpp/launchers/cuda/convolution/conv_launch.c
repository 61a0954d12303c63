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
  const int folds = plan->taps && p->base.op != KW_OP_CONV_BACKWARD_DATA;
  const int copies_a = (int)(weight ? plan->pads_b : plan->pads_a) || folds;
  const int copies_b = (int)(weight ? plan->pads_a : plan->packs) || (depthwise && !weight);
  if (status == KW_OK && p->n > 0) status = check_pointer(kernel, "a", args->a, !copies_a);
  if (status == KW_OK && p->n > 0) status = check_pointer(kernel, "b", args->b, !copies_b);
  if (status == KW_OK && p->bias) status = check_pointer(kernel, "bias", args->bias, 0);
  if (status == KW_OK && p->residual) status = check_pointer(kernel, "residual", args->residual, 0);
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
  if (conv->traits.depthwise && weight) return kw_cuda_conv_launch_direct_weight(kernel, plan, launch, args);
  if (conv->traits.depthwise) return kw_cuda_conv_launch_direct(kernel, p, launch, args);
  if (p->n > 0)
    status = kw_cuda_conv_prepare(kernel, plan, launch, &a, &b);
  else /* nothing reads them, but a descriptor needs some address */
    a = b = (const void*)((uintptr_t)args->d / KW_CUDA_CONV_ALIGNMENT * KW_CUDA_CONV_ALIGNMENT);
  kw_cuda_conv_params params;
  memset(&params, 0, sizeof params);
  params.shape = plan->shape;
  params.slices = (int32_t)plan->sums;
  params.d = plan->sums ? (char*)launch->workspace + plan->slices : args->d;
  params.vectors = (int32_t)vectors(plan, args);
  params.bias = p->bias ? args->bias : NULL;
  params.residual = p->residual ? args->residual : NULL;
  params.activation = p->activation;
  params.alpha = (float)p->alpha;
  params.beta = (float)p->beta;
  if (status == KW_OK) status = kw_cuda_conv_describe(kernel, plan, a, b, &params);
  if (status != KW_OK) return status;
  const uint32_t blocks =
      params.shape.tiles < (uint32_t)multiprocessors ? params.shape.tiles : (uint32_t)multiprocessors;
  status =
      kw_cuda_conv_start(kernel, conv->function, blocks, conv->threads, conv->shared_bytes, &params, launch->stream);
  if (status != KW_OK || !plan->sums) return status;
  return (weight ? kw_cuda_conv_sum_slices : kw_cuda_conv_unfold_sums)(kernel, plan, params.d, args->d, launch->stream);
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
