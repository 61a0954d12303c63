// The host side of norm kernels: which problems they serve, planning, launching. Compiled for any x86-64.
#include "launchers/cpu/common/library.hpp"
#include "launchers/cpu/norm/driver.hpp"

namespace kernelwright::cpu {
namespace {

constexpr size_t kReasonBytes = 256;

const norm_kernel& kernel_of(const kw_kernel* kernel) { return *static_cast<const norm_kernel*>(kernel->traits); }

const kw_norm_problem& as_norm(const kw_problem* problem) { return *reinterpret_cast<const kw_norm_problem*>(problem); }

kw_status check_problem(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  if (kernel == nullptr || problem == nullptr) {
    return fail(KW_INVALID_ARGUMENT, reason, bytes, "kernel or problem is a null pointer");
  }
  if (problem->op != kernel->op || problem->struct_size < sizeof(kw_norm_problem)) {
    return fail(KW_UNSUPPORTED, reason, bytes, "op is %u with %u bytes, but this kernel serves %s (%u) with %zu",
                problem->op, problem->struct_size, kw_norm_op_name(kernel->op), kernel->op, sizeof(kw_norm_problem));
  }
  const kw_norm_problem& p = as_norm(problem);
  if (p.rows < 0 || p.columns < 1) {
    return fail(KW_INVALID_ARGUMENT, reason, bytes, "the problem is %lld x %lld; allowed: 0 x 1 and more",
                static_cast<long long>(p.rows), static_cast<long long>(p.columns));
  }
  char why[kReasonBytes] = "";
  kw_status status = kw_norm_is_legal(&p, why, sizeof why);
  if (status == KW_OK) status = kw_norm_traits_match(&kernel_of(kernel).traits, &p, why, sizeof why);
  if (status != KW_OK) return fail(status, reason, bytes, "%s", why);
  norm_plan plan;
  plan_norm(p, threads_allowed(), &plan);
  if (plan.workspace_bytes <= kMostWorkspace) return KW_OK;
  return fail(KW_UNSUPPORTED, reason, bytes, "the workspace would have %llu bytes, more than a process has memory",
              static_cast<unsigned long long>(plan.workspace_bytes));
}

kw_status check_arguments(const norm_plan& plan, const kw_launch& launch, const kw_norm_args& args) {
  const kw_norm_problem& p = plan.problem;
  if (args.struct_size < sizeof(kw_norm_args)) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "args.struct_size is %u, below %zu", args.struct_size, sizeof(args));
  }
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
  return check_problem(kernel, problem, reason, bytes);
}

kw_status kw_cpu_norm_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  norm_plan plan;
  const kw_status status = check_problem(kernel, problem, nullptr, 0);
  if (status != KW_OK) return status;
  plan_norm(as_norm(problem), threads_allowed(), &plan);
  *bytes = plan.workspace_bytes;
  return KW_OK;
}

kw_status kw_cpu_norm_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  const kw_status status = check_problem(kernel, problem, nullptr, 0);
  if (status == KW_OK) plan_norm(as_norm(problem), threads_allowed(), static_cast<norm_plan*>(plan));
  return status;
}

kw_status kw_cpu_norm_launch(const kw_kernel* kernel, const void* plan, const kw_launch* launch, const void* args) {
  kw_status status = check_launch(kernel, plan, launch, args);
  if (status != KW_OK) return status;
  const norm_plan& p = *static_cast<const norm_plan*>(plan);
  const kw_norm_args& operands = *static_cast<const kw_norm_args*>(args);
  status = check_arguments(p, *launch, operands);
  if (status == KW_OK) norm_job(kernel_of(kernel), p, operands, launch->workspace).run();
  return status;
}

}  // extern "C"
