// A plan: the stages of a problem, each with its kernel, and where the workspace of a launch goes.
#ifndef KERNELWRIGHT_DISPATCHER_PLAN_HPP
#define KERNELWRIGHT_DISPATCHER_PLAN_HPP

#include "kernelwright/dispatcher/operation.hpp"
#include "kernelwright/dispatcher/registry.hpp"
#include "kernelwright/dispatcher/support/lock.hpp"

namespace kernelwright {

struct Stage {
  KernelEntry* entry = nullptr;
  void* storage = nullptr;        // plan_bytes of the kernel, aligned to 64
  kw_problem* problem = nullptr;  // with all choices made
  uint64_t workspace_bytes = 0;   // of the kernel
  uint64_t scratch_bytes = 0;
  uint64_t scratch_offset = 0;
  char* choices = nullptr;
  char* reason = nullptr;
};

}  // namespace kernelwright

// Finding a plan reads its first 64 bytes, then its key.
struct alignas(64) kw_plan {
  uint64_t hash;
  const kernelwright::Operation* operation;
  kw_problem* problem;  // as the caller gave it; the plan's own copy
  kernelwright::Stage* stages;
  uint32_t stage_count;
  uint32_t key_words;
  int32_t device;
  uint32_t device_check;
  uint64_t workspace_bytes;
  uint64_t scratch_bytes;  // of all stages, in front of the workspace of the one that runs
  bool empty;
  kernelwright::OperandList operands;
  char* choices;
  char* reason;
  uint64_t key[1];  // key_words of them
};

namespace kernelwright {

// Held while a kernel is planned, and while the threads of CPU libraries change: they are set for the whole process,
// and a plan must have the workspace that it asked for. Taken behind a dispatcher's own.
extern Mutex thread_limit_mutex;

// Of a valid problem, without stages; null when memory ran out.
kw_plan* make_plan(const Operation& operation, const kw_problem& problem);
void free_plan(kw_plan* plan);
// Appends a stage for which entry was selected: plans it and places its results. problem has all choices made.
kw_status add_stage(kw_plan* plan, const Operation& operation, const kw_problem& problem, KernelEntry* entry,
                    const char* reason);
// After the last stage: texts, the workspace of the whole, and where operands are.
kw_status complete_plan(kw_plan* plan);
// Operands, or workspace_bytes of a workspace, that share memory: see check_apart. args are valid.
kw_status check_operands(const kw_plan& plan, const void* args, const void* workspace, uint64_t workspace_bytes);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_PLAN_HPP
