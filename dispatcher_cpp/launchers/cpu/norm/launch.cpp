// The host side of norm kernels: planning, launching. Compiled for any x86-64.
#include "launchers/cpu/common/calls.hpp"
#include "launchers/cpu/norm/conditions.hpp"
#include "launchers/cpu/norm/driver.hpp"

namespace kernelwright::cpu {
namespace {

kw_status check_arguments(const norm_plan& plan, const kw_launch& launch, const kw_norm_args& args) {
  const kw_norm_problem& p = plan.problem;
  const kw_status status = check_args_size(args.struct_size, sizeof args);
  if (status != KW_OK) return status;
  const char* missing = nullptr;
  if (kw_norm_lacks_operand(&p, &args, &missing)) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "%s is a null pointer, and the problem has it", missing);
  }
  return check_workspace(launch, plan.workspace_bytes);
}

struct norm_operation {
  using plan = norm_plan;
  static constexpr auto check = &check_norm_problem;

  static void make(const kw_kernel*, const kw_problem* problem, plan* made) {
    plan_norm(as_norm(problem), threads_allowed(), made);
  }

  static kw_status run(const kw_kernel* kernel, const plan& p, const kw_launch& launch, const void* args) {
    const kw_norm_args& operands = *static_cast<const kw_norm_args*>(args);
    const kw_status status = check_arguments(p, launch, operands);
    if (status == KW_OK) norm_job(held_by<norm_kernel>(kernel), p, operands, launch.workspace).run();
    return status;
  }
};

}  // namespace
}  // namespace kernelwright::cpu

KW_CPU_CALLS(norm, kernelwright::cpu::norm_operation)
