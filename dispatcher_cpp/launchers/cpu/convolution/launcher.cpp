// The host side of convolution kernels: which problems they serve, planning, launching. Compiled for any x86-64.
#include "kernelwright/convolution/checks.h"
#include "launchers/cpu/common/library.hpp"
#include "launchers/cpu/convolution/launch.hpp"

namespace kernelwright::cpu {
namespace {

constexpr size_t kReasonBytes = 256;
// Elements that a tensor, its padding included, or the weights may have: byte offsets then fit into int64.
constexpr int64_t kMaxElements = INT64_MAX / 64;

const conv_kernel& kernel_of(const kw_kernel* kernel) { return *static_cast<const conv_kernel*>(kernel->traits); }

const kw_conv_problem& as_conv(const kw_problem* problem) { return *reinterpret_cast<const kw_conv_problem*>(problem); }

kw_status invalid(char* reason, size_t bytes, const char* field, int64_t value, const char* allowed) {
  return fail(KW_INVALID_ARGUMENT, reason, bytes, "%s is %lld; allowed: %s", field, static_cast<long long>(value),
              allowed);
}

// What the drivers divide by and index with. The dispatcher says more about an invalid problem.
kw_status check_sizes(const kw_conv_problem& p, char* reason, size_t bytes) {
  if (p.groups < 1 || p.c < 1 || p.k < 1 || p.c % p.groups != 0 || p.k % p.groups != 0)
    return invalid(reason, bytes, "groups", p.groups, "a divisor of c and k");
  if (p.n < 0) return invalid(reason, bytes, "n", p.n, "0 or more");
  int64_t elements = kw_mul(larger(p.n, 1), larger(p.c, p.k)), weights = kw_mul(p.k, p.c / p.groups);
  for (int dim = 0; dim < 3; ++dim) {
    if (p.extent[dim] < 1) return invalid(reason, bytes, "extent", p.extent[dim], "1 or more");
    if (p.filter[dim] < 1) return invalid(reason, bytes, "filter", p.filter[dim], "1 or more");
    if (p.stride[dim] < 1) return invalid(reason, bytes, "stride", p.stride[dim], "1 or more");
    if (p.dilation[dim] < 1) return invalid(reason, bytes, "dilation", p.dilation[dim], "1 or more");
    if (p.pad_left[dim] < 0) return invalid(reason, bytes, "pad_left", p.pad_left[dim], "0 or more");
    if (p.pad_right[dim] < 0) return invalid(reason, bytes, "pad_right", p.pad_right[dim], "0 or more");
    const int64_t padded = kw_add(kw_add(p.pad_left[dim], p.pad_right[dim]), p.extent[dim]);
    const int64_t reach = kw_mul(p.dilation[dim], p.filter[dim] - 1);
    if (reach >= padded) return invalid(reason, bytes, "filter", p.filter[dim], "no more points than the padded image");
    elements = kw_mul(elements, padded), weights = kw_mul(weights, p.filter[dim]);
  }
  if (elements > kMaxElements || weights > kMaxElements)
    return invalid(reason, bytes, "elements", larger(elements, weights), "at most 2^57, with padding");
  const bool innermost = p.layout != KW_CONV_NGCHW;
  if (innermost && (p.stride_x[1] != 1 || p.stride_y[1] != 1))
    return invalid(reason, bytes, "the memory stride of channels", p.stride_x[1] != 1 ? p.stride_x[1] : p.stride_y[1],
                   "1");
  return KW_OK;
}

kw_status check_problem(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  if (kernel == nullptr || problem == nullptr) {
    return fail(KW_INVALID_ARGUMENT, reason, bytes, "kernel or problem is a null pointer");
  }
  if (problem->op != kernel->op || problem->struct_size < sizeof(kw_conv_problem)) {
    return fail(KW_UNSUPPORTED, reason, bytes, "op is %u with %u bytes, but this kernel serves %s (%u) with %zu",
                problem->op, problem->struct_size, kw_conv_op_name(kernel->op), kernel->op, sizeof(kw_conv_problem));
  }
  const kw_conv_problem& p = as_conv(problem);
  char why[kReasonBytes] = "";
  const kw_status status = check_sizes(p, reason, bytes);
  if (status != KW_OK) return status;
  const kw_status matches = kw_conv_traits_match(&kernel_of(kernel).traits, &p, why, sizeof(why));
  if (matches != KW_OK) return fail(matches, reason, bytes, "%s", why);
  if ((kernel_of(kernel).required_features & ~this_processor().features) != 0) {
    return fail(KW_UNSUPPORTED, reason, bytes, "the processor lacks %s, which this kernel needs", kernel->features);
  }
  conv_plan plan;
  plan_conv(kernel_of(kernel), p, threads_allowed(), &plan);
  if (plan.workspace_bytes <= kMostWorkspace) return KW_OK;
  return fail(KW_UNSUPPORTED, reason, bytes, "the workspace would have %llu bytes, more than a process has memory",
              static_cast<unsigned long long>(plan.workspace_bytes));
}

kw_status check_arguments(const conv_plan& plan, const kw_launch& launch, const kw_conv_args& args) {
  const kw_conv_problem& p = problem_of(plan);
  if (args.struct_size < sizeof(kw_conv_args)) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "args.struct_size is %u, below %zu", args.struct_size, sizeof(args));
  }
  const bool reads = p.n != 0;
  if ((reads && (args.a == nullptr || args.b == nullptr)) || args.d == nullptr) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "a, b or d is a null pointer");
  }
  if ((p.bias != 0 && args.bias == nullptr) || (p.residual != 0 && args.residual == nullptr)) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "bias or residual is a null pointer, and the problem has it");
  }
  return check_workspace(launch, plan.workspace_bytes);
}

}  // namespace
}  // namespace kernelwright::cpu

using namespace kernelwright::cpu;

extern "C" {

kw_status kw_cpu_conv_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  return check_problem(kernel, problem, reason, bytes);
}

kw_status kw_cpu_conv_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  conv_plan plan;
  const kw_status status = check_problem(kernel, problem, nullptr, 0);
  if (status != KW_OK) return status;
  plan_conv(kernel_of(kernel), as_conv(problem), threads_allowed(), &plan);
  *bytes = plan.workspace_bytes;
  return KW_OK;
}

// Later calls of set_num_threads may lower the threads of this plan, not raise them: its workspace is for so many.
kw_status kw_cpu_conv_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  const kw_status status = check_problem(kernel, problem, nullptr, 0);
  if (status == KW_OK) {
    plan_conv(kernel_of(kernel), as_conv(problem), threads_allowed(), static_cast<conv_plan*>(plan));
  }
  return status;
}

kw_status kw_cpu_conv_launch(const kw_kernel* kernel, const void* plan, const kw_launch* launch, const void* args) {
  kw_status status = check_launch(kernel, plan, launch, args);
  if (status != KW_OK) return status;
  const conv_plan& p = *static_cast<const conv_plan*>(plan);
  if (problem_of(p).n == 0 && kernel->op != KW_OP_CONV_WEIGHT_SLICES) return KW_OK;
  const kw_conv_args& operands = *static_cast<const kw_conv_args*>(args);
  status = check_arguments(p, *launch, operands);
  if (status == KW_OK) launch_conv(kernel_of(kernel), p, operands, launch->workspace);
  return status;
}

}  // extern "C"
