// One planned problem of any family.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_PLAN_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_PLAN_HPP

#include "launchers/cpu/attention/append_driver.hpp"
#include "launchers/cpu/attention/gradient_driver.hpp"
#include "launchers/cpu/attention/lines_driver.hpp"
#include "launchers/cpu/attention/part_driver.hpp"
#include "launchers/cpu/attention/written_rows.hpp"

namespace kernelwright::cpu {

struct attention_plan {
  uint32_t op;  // kw_attention_op
  uint32_t reserved;
  uint64_t workspace_bytes;
  union {
    part_plan part;
    gradient_plan gradient;
    lines_plan lines;
    append_plan append;
  };
};
static_assert(sizeof(attention_plan) <= KW_CPU_ATTENTION_PLAN_BYTES, "the plan outgrew its storage");

inline void plan_attention(const attention_kernel& kernel, const kw_problem& problem, uint32_t threads,
                           attention_plan* plan) {
  const auto& p = reinterpret_cast<const kw_attention_problem&>(problem);
  plan->op = problem.op;
  plan->workspace_bytes = 0;
  switch (problem.op) {
    case KW_OP_ATTENTION_PART:
      plan->part = make_part_plan(kernel, p, threads);
      plan->workspace_bytes = plan->part.workspace_bytes;
      return;
    case KW_OP_ATTENTION_DQ_DK_DV:
      plan->gradient = make_gradient_plan(kernel, p, threads);
      plan->workspace_bytes = plan->gradient.workspace_bytes;
      return;
    case KW_OP_ATTENTION_APPEND:
      plan->append = make_append_plan(reinterpret_cast<const kw_append_problem&>(problem), threads);
      plan->workspace_bytes = bytes_of_rows(plan->append.problem);
      return;
    default:
      plan->lines = make_lines_plan(p, threads);
  }
}

inline const kw_attention_problem& problem_of(const attention_plan& plan) {
  if (plan.op == KW_OP_ATTENTION_PART) return plan.part.problem;
  return plan.op == KW_OP_ATTENTION_DQ_DK_DV ? plan.gradient.problem : plan.lines.problem;
}

inline void launch_attention(const attention_kernel& kernel, const attention_plan& plan, const void* args,
                             void* workspace) {
  if (plan.op == KW_OP_ATTENTION_APPEND) {
    return append_job(kernel, plan.append, *static_cast<const kw_append_args*>(args)).run();
  }
  const auto& operands = *static_cast<const kw_attention_args*>(args);
  switch (plan.op) {
    case KW_OP_ATTENTION_PART:
      return part_job(kernel, plan.part, operands, workspace).run();
    case KW_OP_ATTENTION_DQ_DK_DV:
      return gradient_job(kernel, plan.gradient, operands, workspace).run();
    default:
      return lines_job(kernel, plan.lines, operands).run();
  }
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_PLAN_HPP
