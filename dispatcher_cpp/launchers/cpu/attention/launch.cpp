// The host side of attention kernels: planning, launching. Compiled for any x86-64.
#include "launchers/cpu/attention/conditions.hpp"
#include "launchers/cpu/attention/operands.hpp"
#include "launchers/cpu/attention/plan.hpp"

using namespace kernelwright::cpu;

extern "C" {

kw_status kw_cpu_attention_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  return check_attention_problem(kernel, problem, reason, bytes);
}

kw_status kw_cpu_attention_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  attention_plan plan;
  const kw_status status = check_attention_problem(kernel, problem, nullptr, 0);
  if (status != KW_OK) return status;
  plan_attention(held_by<attention_kernel>(kernel), *problem, threads_allowed(), &plan);
  *bytes = plan.workspace_bytes;
  return KW_OK;
}

// Later calls of set_num_threads may lower the threads of this plan, not raise them: its workspace is for so many.
kw_status kw_cpu_attention_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  const kw_status status = check_attention_problem(kernel, problem, nullptr, 0);
  if (status == KW_OK) {
    plan_attention(held_by<attention_kernel>(kernel), *problem, threads_allowed(), static_cast<attention_plan*>(plan));
  }
  return status;
}

kw_status kw_cpu_attention_launch(const kw_kernel* kernel, const void* plan, const kw_launch* launch,
                                  const void* args) {
  kw_status status = check_launch(kernel, plan, launch, args);
  if (status != KW_OK) return status;
  const launch_scope scope(*launch);
  const attention_plan& p = *static_cast<const attention_plan*>(plan);
  status = check_workspace(*launch, p.workspace_bytes);
  if (status != KW_OK) return status;
  status = p.op == KW_OP_ATTENTION_APPEND
               ? check_append_args(p.append.problem, *static_cast<const kw_append_args*>(args), launch->workspace)
               : check_attention_args(problem_of(p), *static_cast<const kw_attention_args*>(args));
  if (status == KW_OK) launch_attention(held_by<attention_kernel>(kernel), p, args, launch->workspace);
  return status;
}

}  // extern "C"
