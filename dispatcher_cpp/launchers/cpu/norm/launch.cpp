// The host side of norm kernels: planning, launching. Compiled for any x86-64.
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

}  // namespace
}  // namespace kernelwright::cpu

using namespace kernelwright::cpu;

extern "C" {

kw_status kw_cpu_norm_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  return check_norm_problem(kernel, problem, reason, bytes);
}

kw_status kw_cpu_norm_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  norm_plan plan;
  const kw_status status = check_norm_problem(kernel, problem, nullptr, 0);
  if (status != KW_OK) return status;
  plan_norm(as_norm(problem), threads_allowed(), &plan);
  *bytes = plan.workspace_bytes;
  return KW_OK;
}

kw_status kw_cpu_norm_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  const kw_status status = check_norm_problem(kernel, problem, nullptr, 0);
  if (status == KW_OK) plan_norm(as_norm(problem), threads_allowed(), static_cast<norm_plan*>(plan));
  return status;
}

kw_status kw_cpu_norm_launch(const kw_kernel* kernel, const void* plan, const kw_launch* launch, const void* args) {
  kw_status status = check_launch(kernel, plan, launch, args);
  if (status != KW_OK) return status;
  const launch_scope scope(*launch);
  const norm_plan& p = *static_cast<const norm_plan*>(plan);
  const kw_norm_args& operands = *static_cast<const kw_norm_args*>(args);
  status = check_arguments(p, *launch, operands);
  if (status == KW_OK) norm_job(held_by<norm_kernel>(kernel), p, operands, launch->workspace).run();
  return status;
}

}  // extern "C"
