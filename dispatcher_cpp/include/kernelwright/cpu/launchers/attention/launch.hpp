// One planned problem of any family.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_LAUNCH_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_LAUNCH_HPP

#include "kernelwright/cpu/launchers/attention/part_driver.hpp"

namespace kernelwright::cpu {

struct attention_plan {
  uint32_t op;  // kw_attention_op
  uint32_t reserved;
  uint64_t workspace_bytes;
  union {
    part_plan part;
  };
};
static_assert(sizeof(attention_plan) <= KW_CPU_ATTENTION_PLAN_BYTES, "the plan outgrew its storage");

inline void plan_attention(const attention_kernel& kernel, const kw_problem& problem, uint32_t threads,
                           attention_plan* plan) {
  plan->op = problem.op;
  const auto& p = reinterpret_cast<const kw_attention_problem&>(problem);
  plan->part = make_part_plan(kernel, p, threads);
  plan->workspace_bytes = plan->part.workspace_bytes;
}

inline void launch_attention(const attention_kernel& kernel, const attention_plan& plan, const void* args,
                             void* workspace) {
  const auto& operands = *static_cast<const kw_attention_args*>(args);
  part_job(kernel, plan.part, operands, workspace).run();
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_LAUNCH_HPP
