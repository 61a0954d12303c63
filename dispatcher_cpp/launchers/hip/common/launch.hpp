// What launchers of AMD kernels share: answers to those who ask, and what every launch checks.
#ifndef KERNELWRIGHT_HIP_LAUNCHERS_COMMON_LAUNCH_HPP
#define KERNELWRIGHT_HIP_LAUNCHERS_COMMON_LAUNCH_HPP

#include <stdio.h>
#include <string.h>

#include "kernelwright/hip/common/runtime.h"
#include "kernelwright/rules.h"
#include "launchers/common/descriptor.hpp"

namespace kernelwright::hip {

using kernelwright::as;
using kernelwright::held_by;

// Checks a problem and plans it, or says why not.
template <class Plan>
using planner = kw_status (*)(const kw_kernel* kernel, const kw_problem* problem, Plan* made, char* reason,
                              size_t bytes);

// A caller may want no reason.
template <class Plan>
kw_status supports(planner<Plan> plan_of, const kw_kernel* kernel, const kw_problem* problem, char* reason,
                   size_t bytes) {
  Plan unused_plan = {};
  char unused[1];
  if (!reason || bytes == 0) return plan_of(kernel, problem, &unused_plan, unused, sizeof unused);
  reason[0] = '\0';
  return plan_of(kernel, problem, &unused_plan, reason, bytes);
}

template <class Plan>
kw_status make_plan(planner<Plan> plan_of, const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  Plan made = {};
  char reason[256] = "";
  if (!plan) return kw_hip_fail(KW_INVALID_ARGUMENT, "plan must not be null");
  const kw_status status = plan_of(kernel, problem, &made, reason, sizeof reason);
  if (status != KW_OK) return kw_hip_fail(status, "%s", reason);
  memcpy(plan, &made, sizeof made);
  return KW_OK;
}

// `leaves` says whether the kernel can take a workspace at all: one that cannot has no need to be planned.
template <class Plan>
kw_status workspace_size(planner<Plan> plan_of, bool leaves, const kw_kernel* kernel, const kw_problem* problem,
                         uint64_t* bytes) {
  Plan made = {};
  if (!problem || !bytes) return kw_hip_fail(KW_INVALID_ARGUMENT, "problem and bytes must not be null");
  const kw_status status = leaves ? make_plan(plan_of, kernel, problem, &made) : KW_OK;
  *bytes = status == KW_OK ? made.workspace_bytes : 0;
  return status;
}

// `takes` says what the workspace is for, with its verb: "the slices take".
inline kw_status check_workspace(const kw_launch& where, uint64_t needed, const char* takes) {
  constexpr uint32_t alignment = 256;  // as the ABI promises
  if (needed == 0) return KW_OK;
  if (!where.workspace || where.workspace_bytes < needed)
    return kw_hip_fail(KW_WORKSPACE_TOO_SMALL, "the workspace has %llu bytes, %s %llu",
                       static_cast<unsigned long long>(where.workspace ? where.workspace_bytes : 0), takes,
                       static_cast<unsigned long long>(needed));
  if (reinterpret_cast<uintptr_t>(where.workspace) % alignment != 0)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "the workspace must be aligned to %u bytes", alignment);
  return KW_OK;
}

template <class Args>
kw_status check_launch(const kw_kernel* kernel, const void* plan, const kw_launch* where, const Args* args) {
  if (kernel && plan && where && where->struct_size >= sizeof *where && args && args->struct_size >= sizeof *args)
    return KW_OK;
  return kw_hip_fail(KW_INVALID_ARGUMENT, "kernel, plan, launch and args must be those of this ABI version");
}

// The bits of addresses, of which the lowest ones say how they are aligned.
template <class... Pointers>
uintptr_t bits_of(Pointers... pointers) {
  return (reinterpret_cast<uintptr_t>(pointers) | ... | uintptr_t(0));
}

}  // namespace kernelwright::hip

#endif  // KERNELWRIGHT_HIP_LAUNCHERS_COMMON_LAUNCH_HPP
