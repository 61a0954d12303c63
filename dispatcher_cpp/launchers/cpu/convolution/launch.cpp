// The host side of convolution kernels: planning, launching. Compiled for any x86-64.
#include "launchers/cpu/common/calls.hpp"
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

struct conv_operation {
  using plan = conv_plan;
  static constexpr auto check = &check_conv_problem;

  static void make(const kw_kernel* kernel, const kw_problem* problem, plan* made) {
    plan_conv(held_by<conv_kernel>(kernel), as_conv(problem), threads_allowed(), made);
  }

  static kw_status run(const kw_kernel* kernel, const plan& p, const kw_launch& launch, const void* args) {
    if (problem_of(p).n == 0 && kernel->op != KW_OP_CONV_WEIGHT_SLICES) return KW_OK;
    const kw_conv_args& operands = *static_cast<const kw_conv_args*>(args);
    const kw_status status = check_arguments(p, launch, operands);
    if (status == KW_OK) launch_conv(held_by<conv_kernel>(kernel), p, operands, launch.workspace);
    return status;
  }
};

}  // namespace
}  // namespace kernelwright::cpu

KW_CPU_CALLS(conv, kernelwright::cpu::conv_operation)
