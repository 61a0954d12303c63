// The host side of attention kernels: planning, launching. Compiled for any x86-64.
#include "launchers/cpu/attention/conditions.hpp"
#include "launchers/cpu/attention/operands.hpp"
#include "launchers/cpu/attention/plan.hpp"
#include "launchers/cpu/common/calls.hpp"

namespace kernelwright::cpu {
namespace {
struct attention_operation {
  using plan = attention_plan;
  static constexpr auto check = &check_attention_problem;

  static void make(const kw_kernel* kernel, const kw_problem* problem, plan* made) {
    plan_attention(held_by<attention_kernel>(kernel), *problem, threads_allowed(), made);
  }

  static kw_status run(const kw_kernel* kernel, const plan& p, const kw_launch& launch, const void* args) {
    kw_status status = check_workspace(launch, p.workspace_bytes);
    if (status != KW_OK) return status;
    status = p.op == KW_OP_ATTENTION_APPEND
                 ? check_append_args(p.append.problem, *static_cast<const kw_append_args*>(args), launch.workspace)
                 : check_attention_args(problem_of(p), *static_cast<const kw_attention_args*>(args));
    if (status == KW_OK) launch_attention(held_by<attention_kernel>(kernel), p, args, launch.workspace);
    return status;
  }
};

}  // namespace
}  // namespace kernelwright::cpu

KW_CPU_CALLS(attention, kernelwright::cpu::attention_operation)
