// Which norms a kernel serves.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_NORM_CONDITIONS_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_NORM_CONDITIONS_HPP

#include "launchers/cpu/common/library.hpp"
#include "launchers/cpu/common/threads.hpp"
#include "launchers/cpu/norm/plan.hpp"

namespace kernelwright::cpu {

inline const kw_norm_problem& as_norm(const kw_problem* problem) {
  return *reinterpret_cast<const kw_norm_problem*>(problem);
}

inline kw_status check_norm_problem(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  if (kernel == nullptr || problem == nullptr) {
    return fail(KW_INVALID_ARGUMENT, reason, bytes, "kernel or problem is a null pointer");
  }
  kw_status status = check_op(*kernel, *problem, kw_norm_op_name(kernel->op), sizeof(kw_norm_problem), reason, bytes);
  if (status != KW_OK) return status;
  const kw_norm_problem& p = as_norm(problem);
  if (p.rows < 0 || p.columns < 1) {
    return fail(KW_INVALID_ARGUMENT, reason, bytes, "the problem is %lld x %lld; allowed: 0 x 1 and more",
                static_cast<long long>(p.rows), static_cast<long long>(p.columns));
  }
  char why[256] = "";
  status = kw_norm_is_legal(&p, why, sizeof why);
  if (status == KW_OK) status = kw_norm_traits_match(&held_by<norm_kernel>(kernel).traits, &p, why, sizeof why);
  if (status != KW_OK) return fail(status, reason, bytes, "%s", why);
  norm_plan plan;
  plan_norm(p, threads_allowed(), &plan);
  return check_needed(plan.workspace_bytes, reason, bytes);
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_NORM_CONDITIONS_HPP
