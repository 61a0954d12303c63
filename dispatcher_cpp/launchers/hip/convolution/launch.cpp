// How convolution problems are planned and launched by CK Tile kernels.
#include "launchers/hip/common/launch.hpp"

#include "kernelwright/convolution/checks.h"
#include "kernelwright/hip/convolution/launcher.h"
#include "launchers/hip/convolution/conditions.h"

namespace kernelwright::hip {
namespace {

kw_status check(const kw_kernel* kernel, const kw_problem* problem, kw_hip_conv_facts* facts, char* reason,
                size_t bytes) {
  if (!kernel || !problem || problem->op != kernel->op || problem->struct_size < sizeof(kw_conv_problem)) {
    snprintf(reason, bytes, "the problem is not a kw_conv_problem of this direction and ABI version");
    return KW_INVALID_ARGUMENT;
  }
  const auto& conv = held_by<kw_hip_conv>(kernel);
  if (!kw_hip_read_facts(&conv.code, facts, sizeof *facts) || facts->magic != KW_HIP_CONV_FACTS_MAGIC ||
      facts->arguments_bytes != sizeof(kw_hip_conv_arguments)) {
    snprintf(reason, bytes, "the code object of this kernel is damaged");
    return KW_LOAD_FAILED;
  }
  return kw_hip_conv_check(&conv.traits, &as<kw_conv_problem>(problem), conv.evenly_spaced != 0,
                           conv.sum.image != nullptr, facts->block_size, reason, bytes);
}

kw_hip_conv_arguments arguments_of(const kw_conv_problem& p, int* lost) {
  kw_hip_conv_arguments x = {};
  x.groups = kw_as_int32(p.groups, lost);
  x.n = kw_as_int32(p.n, lost);
  x.c = kw_as_int32(p.c / p.groups, lost);
  x.k = kw_as_int32(p.k / p.groups, lost);
  x.image_x = kw_as_int32(p.stride_x[0], lost);
  x.image_y = kw_as_int32(p.stride_y[0], lost);
  x.shares = kw_as_int32(p.split_k, lost);
  x.alpha = static_cast<float>(p.alpha);
  x.beta = static_cast<float>(p.beta);
  x.activation = p.activation;
  for (int i = 0; i < KW_CONV_SPATIAL; ++i) {
    x.extent[i] = kw_as_int32(p.extent[i], lost);
    x.out[i] = kw_as_int32(kw_conv_out(&p, i), lost);
    x.filter[i] = kw_as_int32(p.filter[i], lost);
    x.stride[i] = kw_as_int32(p.stride[i], lost);
    x.dilation[i] = kw_as_int32(p.dilation[i], lost);
    x.pad[i] = kw_as_int32(p.pad_left[i], lost);
    x.point_x[i] = kw_as_int32(p.stride_x[2 + i], lost);
    x.point_y[i] = kw_as_int32(p.stride_y[2 + i], lost);
  }
  return x;
}

// The second kernel adds slices up. Without images there is nothing to multiply, and it does the rest.
void plan_slices(const kw_conv_problem& p, kw_hip_conv_plan* made, int* lost) {
  const int64_t slices = kw_conv_as_gemm(&p).k == 0 ? 0 : p.split_k;
  const int64_t weights = kw_hip_conv_all_weights(&p);
  const int64_t bytes = kw_mul3(slices, weights, sizeof(float));
  made->arguments.shares = kw_as_int32(slices, lost);
  if (slices == 0) made->grid = 0;
  made->sum_grid = kw_as_uint32(kw_parts(weights, KW_HIP_CONV_SUM_BLOCK), lost);
  made->workspace_bytes = static_cast<uint64_t>(bytes);
  if (!kw_fits_int64(bytes)) *lost = 1;
}

// Refuses arguments that would lose a bit, too, which the checks before should have seen.
kw_status plan_of(const kw_kernel* kernel, const kw_problem* problem, kw_hip_conv_plan* made, char* reason,
                  size_t bytes) {
  kw_hip_conv_facts facts;
  const kw_status status = check(kernel, problem, &facts, reason, bytes);
  if (status != KW_OK) return status;
  const auto& conv = held_by<kw_hip_conv>(kernel);
  const auto& p = as<kw_conv_problem>(problem);
  int lost = 0;
  made->arguments = arguments_of(p, &lost);
  made->grid = kw_as_uint32(kw_hip_conv_workgroups(&conv.traits, &p), &lost);
  made->block = facts.block_size;
  made->aligned = static_cast<uint32_t>(kw_hip_conv_alignment(&conv.traits));
  made->op = p.base.op;
  made->bias = p.bias != 0;
  made->residual = p.residual != 0;
  if (made->grid != 0 && conv.sum.image != nullptr) plan_slices(p, made, &lost);
  if (!lost) return KW_OK;
  snprintf(reason, bytes, "a number of the problem does not fit into the argument of the kernel");
  return KW_UNSUPPORTED;
}

kw_status check_pointers(const kw_hip_conv_plan& made, const kw_conv_args& given) {
  const bool reads = made.grid != 0;  // tensors without elements may have any address
  const uintptr_t bits = reads ? bits_of(given.a, given.b, given.d) : bits_of(given.d);
  if (!given.d || (reads && (!given.a || !given.b)))
    return kw_hip_fail(KW_INVALID_ARGUMENT, "a, b and d must not be null");
  if (bits % made.aligned != 0)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "a, b and d must be aligned to %u bytes", made.aligned);
  if (made.bias && !given.bias) return kw_hip_fail(KW_INVALID_ARGUMENT, "bias must not be null");
  if (made.residual && !given.residual) return kw_hip_fail(KW_INVALID_ARGUMENT, "residual must not be null");
  return KW_OK;
}

}  // namespace
}  // namespace kernelwright::hip

using namespace kernelwright::hip;

kw_status kw_hip_conv_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t reason_bytes) {
  return supports(plan_of, kernel, problem, reason, reason_bytes);
}

kw_status kw_hip_conv_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  return workspace_size(plan_of, held_by<kw_hip_conv>(kernel).sum.image != nullptr, kernel, problem, bytes);
}

kw_status kw_hip_conv_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  return make_plan(plan_of, kernel, problem, plan);
}

kw_status kw_hip_conv_launch(const kw_kernel* kernel, const void* plan, const kw_launch* where, const void* args) {
  const auto* given = static_cast<const kw_conv_args*>(args);
  kw_status status = check_launch(kernel, plan, where, given);
  if (status != KW_OK) return status;
  const auto& made = *static_cast<const kw_hip_conv_plan*>(plan);
  if (made.grid == 0 && made.sum_grid == 0) return KW_OK;
  const auto& conv = held_by<kw_hip_conv>(kernel);
  status = check_pointers(made, *given);
  if (status == KW_OK) status = check_workspace(*where, made.workspace_bytes, "the slices take");
  if (status != KW_OK) return status;
  // The implicit GEMM of backward weight has dy first.
  const bool swapped = made.op == KW_OP_CONV_WEIGHT_SLICES;
  kw_hip_conv_arguments x = made.arguments;
  x.a = swapped ? given->b : given->a;
  x.b = swapped ? given->a : given->b;
  x.d = given->d;
  x.bias = made.bias ? given->bias : nullptr;
  x.residual = made.residual ? given->residual : nullptr;
  x.partial = where->workspace;
  if (made.grid != 0) status = kw_hip_launch(&conv.code, where, made.grid, made.block, &x, sizeof x);
  if (status != KW_OK || made.sum_grid == 0) return status;
  return kw_hip_launch(&conv.sum, where, made.sum_grid, KW_HIP_CONV_SUM_BLOCK, &x, sizeof x);
}
