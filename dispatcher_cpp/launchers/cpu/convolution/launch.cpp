// The host side of convolution kernels: planning, launching. Compiled for any x86-64.
#include "launchers/cpu/convolution/conditions.hpp"

namespace kernelwright::cpu {
namespace {

kw_status check_arguments(const conv_plan& plan, const kw_launch& launch, const kw_conv_args& args) {
  const kw_conv_problem& p = problem_of(plan);
  const kw_status status = check_args_size(args.struct_size, sizeof args);
  if (status != KW_OK) return status;
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
  return check_conv_problem(kernel, problem, reason, bytes);
}

kw_status kw_cpu_conv_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  conv_plan plan;
  const kw_status status = check_conv_problem(kernel, problem, nullptr, 0);
  if (status != KW_OK) return status;
  plan_conv(held_by<conv_kernel>(kernel), as_conv(problem), threads_allowed(), &plan);
  *bytes = plan.workspace_bytes;
  return KW_OK;
}

// Later calls of set_num_threads may lower the threads of this plan, not raise them: its workspace is for so many.
kw_status kw_cpu_conv_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  const kw_status status = check_conv_problem(kernel, problem, nullptr, 0);
  if (status == KW_OK) {
    plan_conv(held_by<conv_kernel>(kernel), as_conv(problem), threads_allowed(), static_cast<conv_plan*>(plan));
  }
  return status;
}

kw_status kw_cpu_conv_launch(const kw_kernel* kernel, const void* plan, const kw_launch* launch, const void* args) {
  kw_status status = check_launch(kernel, plan, launch, args);
  if (status != KW_OK) return status;
  const launch_scope scope(*launch);
  const conv_plan& p = *static_cast<const conv_plan*>(plan);
  if (problem_of(p).n == 0 && kernel->op != KW_OP_CONV_WEIGHT_SLICES) return KW_OK;
  const kw_conv_args& operands = *static_cast<const kw_conv_args*>(args);
  status = check_arguments(p, *launch, operands);
  if (status == KW_OK) launch_conv(held_by<conv_kernel>(kernel), p, operands, launch->workspace);
  return status;
}

}  // extern "C"
