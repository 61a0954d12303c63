// The functions of a descriptor, which CPU kernels of all operations have alike.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_COMMON_CALLS_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_COMMON_CALLS_HPP

#include "launchers/cpu/common/library.hpp"
#include "launchers/cpu/common/threads.hpp"

namespace kernelwright::cpu {

// `Operation` has the type `plan`; `check`, which says whether a kernel serves a problem; `make`, which plans a checked
// problem for as many threads as are allowed; and `run`, which checks arguments and computes.
template <class Operation>
struct calls {
  using plan_type = typename Operation::plan;

  static kw_status workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
    plan_type made;
    const kw_status status = plan(kernel, problem, &made);
    if (status == KW_OK) *bytes = made.workspace_bytes;
    return status;
  }

  // Later calls of set_num_threads may lower the threads of this plan, not raise them: its workspace is for so many.
  static kw_status plan(const kw_kernel* kernel, const kw_problem* problem, void* made) {
    const kw_status status = Operation::check(kernel, problem, nullptr, 0);
    if (status == KW_OK) Operation::make(kernel, problem, static_cast<plan_type*>(made));
    return status;
  }

  static kw_status launch(const kw_kernel* kernel, const void* plan, const kw_launch* where, const void* args) {
    const kw_status status = check_launch(kernel, plan, where, args);
    if (status != KW_OK) return status;
    const launch_scope scope(*where);
    return Operation::run(kernel, *static_cast<const plan_type*>(plan), *where, args);
  }
};

}  // namespace kernelwright::cpu

// The functions that descriptors of an operation's kernels name: kw_cpu_<op>_supports and so on.
#define KW_CPU_CALLS(op, operation)                                                                                  \
  extern "C" {                                                                                                       \
  kw_status kw_cpu_##op##_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) { \
    return operation::check(kernel, problem, reason, bytes);                                                         \
  }                                                                                                                  \
  kw_status kw_cpu_##op##_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {      \
    return kernelwright::cpu::calls<operation>::workspace_size(kernel, problem, bytes);                              \
  }                                                                                                                  \
  kw_status kw_cpu_##op##_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {                     \
    return kernelwright::cpu::calls<operation>::plan(kernel, problem, plan);                                         \
  }                                                                                                                  \
  kw_status kw_cpu_##op##_launch(const kw_kernel* kernel, const void* plan, const kw_launch* launch,                 \
                                 const void* args) {                                                                 \
    return kernelwright::cpu::calls<operation>::launch(kernel, plan, launch, args);                                  \
  }                                                                                                                  \
  }

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_COMMON_CALLS_HPP
