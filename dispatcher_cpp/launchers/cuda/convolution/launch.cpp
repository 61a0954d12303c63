// How a convolution is planned and launched: copies of operands, the kernel, the sum of its slices.
#include "launchers/cuda/convolution/conditions.h"
#include "launchers/cuda/convolution/depthwise.hpp"
#include "launchers/cuda/convolution/descriptors.hpp"
#include "launchers/cuda/convolution/folding.hpp"
#include "launchers/cuda/convolution/helpers.hpp"
#include "launchers/cuda/convolution/shape.hpp"
#include "launchers/cuda/convolution/start.hpp"

namespace kernelwright::cuda::launchers {
namespace {

constexpr int64_t kPart = 256;  // parts of the workspace are aligned to so many bytes
constexpr int64_t kElement = 2;
constexpr uint64_t kMostBytes = uint64_t{1} << 47;  // of a workspace: more than a GPU has memory

bool aligned(const kw_conv_problem& p, bool of_x) {
  const int64_t out[3] = {kw_conv_out(&p, 0), kw_conv_out(&p, 1), kw_conv_out(&p, 2)};
  return of_x ? kw_cuda_conv_aligned(p.stride_x, p.n, p.extent) : kw_cuda_conv_aligned(p.stride_y, p.n, out);
}

uint64_t take(kw_cuda_conv_plan* plan, int64_t bytes) {
  const uint64_t at = plan->bytes;
  plan->bytes = static_cast<uint64_t>(kw_add(static_cast<int64_t>(plan->bytes), round_up(bytes, kPart)));
  return at;
}

// TMA starts at multiples of 16 bytes in im2col mode: else an illegal instruction (seen on H200).
bool starts_aligned(const kw_cuda_conv_shape& s, bool of_x) {
  return s.groups.divisor == 1 || (of_x ? s.c : s.k) % KW_CUDA_CONV_LINE == 0;
}

int64_t image_bytes(const kw_conv_problem& p, const kw_cuda_conv_shape& s, bool of_x) {
  int64_t points = p.n;
  for (int dim = 0; dim < 3; ++dim) points = kw_mul(points, of_x ? p.extent[dim] : kw_conv_out(&p, dim));
  return kw_mul(kw_mul3(points, s.groups.divisor, padded(of_x ? s.c : s.k)), kElement);
}

// Which copies and sums there are, and where in the workspace.
void lay_out(kw_cuda_conv_plan* plan) {
  const kw_conv_problem& p = plan->problem;
  kw_cuda_conv_shape& s = plan->shape;
  const bool weight = p.base.op == KW_OP_CONV_WEIGHT_SLICES, forward = p.base.op == KW_OP_CONV_FORWARD;
  const bool folds = plan->taps != 0, gathers = plan->gathers != 0;
  const int64_t elements = p.k * s.filter_points, folded = folds || gathers ? kw_mul(p.n, p.stride_x[0]) : 0;
  plan->line = static_cast<int32_t>(round_up(s.c, KW_CUDA_CONV_LINE));
  plan->pads_a = (gathers && forward) || !aligned(p, forward) || !starts_aligned(s, forward);
  plan->pads_b = weight && (gathers || !aligned(p, true) || !starts_aligned(s, true));
  s.group_a = forward ? s.c : s.k;
  s.group_b = s.c;
  if (plan->pads_a) s.group_a = static_cast<int32_t>(padded(s.group_a));
  if (plan->pads_b) s.group_b = static_cast<int32_t>(padded(s.group_b));
  plan->packs = !weight && (s.merged > 1 || s.c % KW_CUDA_CONV_LINE != 0 || folds);
  plan->sums = weight ? s.merged > 1 || p.split_k > 1 || folds : !forward && (folds || gathers);
  if (plan->packs) plan->packed = take(plan, kw_mul3(elements, plan->line, kElement));
  if (plan->pads_a) plan->padded_a = take(plan, image_bytes(p, s, forward));
  if (plan->pads_b) plan->padded_b = take(plan, image_bytes(p, s, true));
  if (folds && forward) plan->padded_a = take(plan, kw_mul(folded, kElement));
  if (folds && weight) plan->padded_b = take(plan, kw_mul(folded, kElement));
  if (plan->sums && weight) plan->slices = take(plan, kw_mul(kw_mul3(elements, s.c, sizeof(float)), p.split_k));
  if (plan->sums && !weight) plan->slices = take(plan, kw_mul(folded, sizeof(float)));
  plan->vectors = weight ? p.c / p.groups % KW_CUDA_CONV_LINE == 0 && !plan->sums
                         : aligned(p, !forward) && (forward ? s.k : s.c) % KW_CUDA_CONV_LINE == 0;
}

kw_status plan_of(const kw_kernel* kernel, const kw_problem* problem, kw_cuda_conv_plan* plan, reason why) {
  const auto& t = held_by<kw_conv_traits>(kernel);
  const auto& p = as<kw_conv_problem>(problem);
  if (problem->op != kernel->op || problem->struct_size < sizeof p)
    return refuse(why, "op is %u of %u bytes; this kernel serves %s (%u, %u bytes)", problem->op, problem->struct_size,
                  kw_conv_op_name(kernel->op), kernel->op, static_cast<unsigned>(sizeof p));
  *plan = {};
  plan->problem = plan->asked = plan->original = p;
  kw_status status = kw_cuda_conv_check(&t, &p, why.text, why.bytes);
  if (status != KW_OK) return status;
  if (t.depthwise) {
    if (p.base.op == KW_OP_CONV_WEIGHT_SLICES)
      plan->slices = take(plan, kw_mul(kw_mul3(p.split_k, p.c, kw_conv_filter_points(&p)), sizeof(float)));
    return KW_OK;
  }
  fold_problem(plan);
  status = derive_shape(t, plan->problem, &plan->shape, why);
  // What no image is for TMA may be a matrix; if not, the reason is that of the image.
  if (status == KW_UNSUPPORTED && gather_problem(plan))
    status = derive_shape(t, plan->problem, &plan->shape, {why.text, 0});
  if (status != KW_OK) return status;
  lay_out(plan);
  if (plan->bytes <= kMostBytes) return KW_OK;
  return refuse(why, "copies of operands and slices take %llu bytes; this kernel takes at most 2^47",
                static_cast<unsigned long long>(plan->bytes));
}

kw_status check_pointer(const kw_kernel* kernel, const char* name, const void* pointer, bool needs_tma) {
  if (!pointer) return kw_cuda_fail(KW_INVALID_ARGUMENT, "%s: %s is null", kernel->name, name);
  if (!needs_tma || reinterpret_cast<uintptr_t>(pointer) % kAligned == 0) return KW_OK;
  return kw_cuda_fail(KW_INVALID_ARGUMENT, "%s: %s is %p; TMA needs addresses that are multiples of %u bytes",
                      kernel->name, name, pointer, kAligned);
}

kw_status check_args(const kw_kernel* kernel, const kw_cuda_conv_plan& plan, const kw_conv_args* args) {
  const kw_conv_problem& p = plan.problem;
  kw_status status = check_size(args);
  if (status == KW_OK) status = check_pointer(kernel, "d", args->d, false);
  if (status != KW_OK) return status;
  const bool depthwise = held_by<kw_conv_traits>(kernel).depthwise != 0;
  const bool weight = p.base.op == KW_OP_CONV_WEIGHT_SLICES;  // whose implicit GEMM has dy, args->b, first
  const bool folds = plan.taps && p.base.op != KW_OP_CONV_BACKWARD_DATA;
  const bool copies_a = (weight ? plan.pads_b : plan.pads_a) || folds;
  const bool copies_b = (weight ? plan.pads_a : plan.packs) || (depthwise && !weight);
  if (p.n > 0) status = check_pointer(kernel, "a", args->a, !copies_a);
  if (status == KW_OK && p.n > 0) status = check_pointer(kernel, "b", args->b, !copies_b);
  if (status == KW_OK && p.bias) status = check_pointer(kernel, "bias", args->bias, false);
  if (status == KW_OK && p.residual) status = check_pointer(kernel, "residual", args->residual, false);
  return status;
}

bool writes_vectors(const kw_cuda_conv_plan& plan, const kw_conv_args& args) {
  const auto bits =
      reinterpret_cast<uintptr_t>(args.d) | (plan.problem.residual ? reinterpret_cast<uintptr_t>(args.residual) : 0);
  return plan.vectors && bits % kAligned == 0;
}

kw_status launch_implicit_gemm(const kw_kernel* kernel, const kw_cuda_conv_plan& plan, const kw_launch& launch,
                               const kw_conv_args& args) {
  const auto& conv = held_by<kw_cuda_conv>(kernel);
  const kw_conv_problem& p = plan.problem;
  const bool weight = p.base.op == KW_OP_CONV_WEIGHT_SLICES;
  const void *a = weight ? args.b : args.a, *b = weight ? args.a : args.b;
  int multiprocessors = 0;
  kw_status status = kw_cuda_multiprocessors(launch.device, &multiprocessors);
  if (p.n == 0) a = b = unread(args);
  if (status == KW_OK && p.n > 0) status = prepare_operands(kernel, plan, launch, &a, &b);
  if (status != KW_OK) return status;
  kw_cuda_conv_params params = {};
  params.shape = plan.shape;
  params.slices = static_cast<int32_t>(plan.sums);
  params.d = plan.sums ? static_cast<char*>(launch.workspace) + plan.slices : args.d;
  params.vectors = writes_vectors(plan, args);
  params.bias = p.bias ? args.bias : nullptr;
  params.residual = p.residual ? args.residual : nullptr;
  params.activation = p.activation;
  params.alpha = static_cast<float>(p.alpha);
  params.beta = static_cast<float>(p.beta);
  status = describe_operands(kernel, plan, a, b, &params);
  if (status != KW_OK) return status;
  const auto blocks = static_cast<uint32_t>(kw_smaller(params.shape.tiles, multiprocessors));
  status = kw_cuda_conv_start(kernel, conv.function, blocks, conv.threads, conv.shared_bytes, &params, launch.stream);
  if (status != KW_OK || !plan.sums) return status;
  return (weight ? sum_slices : unfold_sums)(kernel, plan, params.d, args.d, launch.stream);
}

// The device of the launch is current.
kw_status launch_here(const kw_kernel* kernel, const kw_cuda_conv_plan& plan, const kw_launch& launch,
                      const kw_conv_args& args) {
  if (plan.bytes > launch.workspace_bytes)
    return kw_cuda_workspace_too_small(kernel, plan.bytes, launch.workspace_bytes);
  const auto& conv = held_by<kw_cuda_conv>(kernel);
  const kw_status status =
      kw_cuda_prepare(conv.function, static_cast<int>(conv.shared_bytes), launch.device, conv.prepared);
  if (status != KW_OK) return status;
  if (!conv.traits.depthwise) return launch_implicit_gemm(kernel, plan, launch, args);
  return plan.problem.base.op == KW_OP_CONV_WEIGHT_SLICES ? launch_depthwise_weight(kernel, plan, launch, args)
                                                          : launch_depthwise(kernel, plan.problem, launch, args);
}

}  // namespace
}  // namespace kernelwright::cuda::launchers

using namespace kernelwright::cuda::launchers;

kw_status kw_cuda_conv_supports(const kw_kernel* kernel, const kw_problem* problem, char* text, size_t bytes) {
  kw_cuda_conv_plan plan;
  return plan_of(kernel, problem, &plan, {text, text ? bytes : 0});
}

kw_status kw_cuda_conv_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  char text[256] = "";
  const kw_status status = plan_of(kernel, problem, static_cast<kw_cuda_conv_plan*>(plan), {text, sizeof text});
  return status == KW_OK ? KW_OK : kw_cuda_fail(status, "%s: %s", kernel->name, text);
}

kw_status kw_cuda_conv_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  kw_cuda_conv_plan plan;
  const kw_status status = kw_cuda_conv_make_plan(kernel, problem, &plan);
  *bytes = status == KW_OK ? plan.bytes : 0;
  return status;
}

kw_status kw_cuda_conv_launch(const kw_kernel* kernel, const void* plan, const kw_launch* launch, const void* args) {
  const auto& made = *static_cast<const kw_cuda_conv_plan*>(plan);
  const auto* given = static_cast<const kw_conv_args*>(args);
  int pushed = 0;
  if (made.problem.n == 0 && made.problem.base.op != KW_OP_CONV_WEIGHT_SLICES) return KW_OK;
  kw_status status = check_args(kernel, made, given);
  if (status == KW_OK) status = kw_cuda_enter(launch, &pushed);
  if (status != KW_OK) return status;
  return kw_cuda_leave(pushed, launch_here(kernel, made, *launch, *given));
}
