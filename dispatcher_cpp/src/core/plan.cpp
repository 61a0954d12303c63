#include "kernelwright/dispatcher/plan.hpp"

#include <stdlib.h>
#include <string.h>

#include "kernelwright/dispatcher.h"
#include "kernelwright/dispatcher/plan_cache.hpp"
#include "kernelwright/dispatcher/support/error.hpp"

namespace kernelwright {
namespace {

constexpr uint64_t kAlignment = 256;                  // of workspaces, so of everything in them
constexpr uint64_t kMostScratch = uint64_t{1} << 56;  // of a stage: sums of these cannot overflow
// What a kernel asks for may change while it is planned, with the affinity of its thread or the environment.
constexpr int kPlanAttempts = 8;

bool align(uint64_t* bytes) {
  if (*bytes > UINT64_MAX - kAlignment) return false;
  *bytes = (*bytes + kAlignment - 1) / kAlignment * kAlignment;
  return true;
}

kw_status no_memory() { return fail(KW_OUT_OF_MEMORY, "no memory for a plan"); }

kw_problem* copy_bytes(const kw_problem& problem, size_t bytes) {
  void* copy = malloc(bytes);
  if (copy != nullptr) memcpy(copy, &problem, bytes);
  return static_cast<kw_problem*>(copy);
}

void free_stage(Stage* stage) {
  free(stage->storage);
  free(stage->problem);
  free(stage->choices);
  free(stage->reason);
}

// The kernel's own part: its storage and the workspace that it asks for.
kw_status plan_kernel(const kw_problem& problem, Stage* stage) {
  const KernelEntry& entry = *stage->entry;
  const kw_kernel& kernel = *entry.kernel;
  const size_t bytes = (kernel.plan_bytes / 64 + 1) * 64;
  if (posix_memalign(&stage->storage, 64, bytes) != 0) stage->storage = nullptr;
  if (stage->storage == nullptr) return no_memory();
  memset(stage->storage, 0, bytes);
  const Lock lock(thread_limit_mutex);
  kw_status status = kernel.workspace_size(&kernel, &problem, &stage->workspace_bytes);
  for (int attempt = 0; status == KW_OK && attempt < kPlanAttempts; ++attempt) {
    uint64_t after = 0;
    status = kernel.plan(&kernel, &problem, stage->storage);
    if (status == KW_OK) status = kernel.workspace_size(&kernel, &problem, &after);
    if (status == KW_OK && after == stage->workspace_bytes) return KW_OK;
    stage->workspace_bytes = after;
  }
  if (status == KW_OK) {
    return fail(KW_UNSUPPORTED, "kernel %s cannot plan: it asks for another workspace each time", kernel.name);
  }
  return fail(status, "kernel %s cannot plan: %s: %s", kernel.name, kw_status_name(status),
              entry.library->library->last_error());
}

}  // namespace

Mutex thread_limit_mutex;

kw_plan* make_plan(const Operation& operation, const kw_problem& problem) {
  void* storage = nullptr;
  uint64_t words = 0;
  Key* key = nullptr;
  alignas(Key) unsigned char room[sizeof(Key)];
  if (operation.key != nullptr) {
    key = ::new (room, InPlace()) Key(operation, problem);
    words = key->count;
  }
  if (posix_memalign(&storage, alignof(kw_plan), sizeof(kw_plan) + words * sizeof(uint64_t)) != 0) return nullptr;
  memset(storage, 0, sizeof(kw_plan));
  kw_plan* plan = static_cast<kw_plan*>(storage);
  plan->operation = &operation;
  plan->key_words = static_cast<uint32_t>(words);
  if (key != nullptr) {
    plan->hash = key->hash;
    memcpy(plan->key, key->words, words * sizeof(uint64_t));
  }
  plan->problem = copy_bytes(problem, operation.problem_bytes);
  if (plan->problem == nullptr || (operation.copy != nullptr && operation.copy(problem, plan->problem) != KW_OK)) {
    free_plan(plan);
    return nullptr;
  }
  plan->empty = operation.is_empty(*plan->problem);
  return plan;
}

void free_plan(kw_plan* plan) {
  if (plan == nullptr) return;
  for (uint32_t i = 0; i < plan->stage_count; ++i) free_stage(&plan->stages[i]);
  free(plan->stages);
  if (plan->problem != nullptr && plan->operation->release != nullptr) plan->operation->release(plan->problem);
  free(plan->problem);
  free(plan->choices);
  free(plan->reason);
  free(plan->operands.operands);
  free(plan->operands.spans);
  free(plan);
}

kw_status add_stage(kw_plan* plan, const Operation& operation, const kw_problem& problem, KernelEntry* entry,
                    const char* reason) {
  void* grown = realloc(plan->stages, (plan->stage_count + 1) * sizeof(Stage));
  if (grown == nullptr) return no_memory();
  plan->stages = static_cast<Stage*>(grown);
  Stage& stage = *::new (&plan->stages[plan->stage_count], InPlace()) Stage();
  const uint32_t index = plan->stage_count++;
  stage.entry = entry;
  stage.problem = copy_bytes(problem, operation.problem_bytes);
  Text choices;
  if (operation.describe_choices != nullptr) operation.describe_choices(problem, &choices);
  stage.choices = choices.copy();
  stage.reason = strdup(reason);
  if (stage.problem == nullptr || stage.choices == nullptr || stage.reason == nullptr) return no_memory();
  if (kw_status status = plan_kernel(*stage.problem, &stage)) return status;
  if (plan->operation->stage == nullptr) return KW_OK;
  stage.scratch_bytes = plan->operation->scratch_bytes(*plan->problem, index, *stage.problem);
  stage.scratch_offset = plan->scratch_bytes;
  if (stage.scratch_bytes > kMostScratch) {
    return fail(KW_UNSUPPORTED, "%s: stage %u leaves results of more than 2^56 bytes; allowed: fewer slices or splits",
                plan->operation->name, index);
  }
  uint64_t end = 0;
  if (__builtin_add_overflow(plan->scratch_bytes, stage.scratch_bytes, &end) || !align(&end)) return no_memory();
  plan->scratch_bytes = end;
  return KW_OK;
}

namespace {

// Measured once: what a launch compares are addresses.
kw_status place_operands(kw_plan* plan) {
  const Operation& operation = *plan->operation;
  if (operation.version < 3 || operation.operands == nullptr || plan->empty) return KW_OK;
  OperandList& list = plan->operands;
  const size_t most = operation.operands(*plan->problem, nullptr) + 1;
  list.operands = static_cast<Operand*>(malloc(most * sizeof(Operand)));
  list.spans = static_cast<Span*>(malloc(most * sizeof(Span)));
  if (list.operands == nullptr || list.spans == nullptr) return no_memory();
  list.count = operation.operands(*plan->problem, list.operands);
  list_spans(&list);
  return KW_OK;
}

}  // namespace

kw_status check_operands(const kw_plan& plan, const void* args, const void* workspace, uint64_t workspace_bytes) {
  const OperandList& list = plan.operands;
  if (list.count == 0) return KW_OK;
  if (list.plain && !spans_cross(list, args, workspace, workspace_bytes)) return KW_OK;
  return check_apart(plan.operation->name, list.operands, list.count, args, workspace, workspace_bytes);
}

kw_status complete_plan(kw_plan* plan) {
  if (kw_status status = place_operands(plan)) return status;
  uint64_t largest = 0;
  Text choices, reason;
  for (uint32_t i = 0; i < plan->stage_count; ++i) {
    const Stage& stage = plan->stages[i];
    if (stage.workspace_bytes > largest) largest = stage.workspace_bytes;
    if (stage.choices[0] != '\0') choices.add(choices.size() == 0 ? "" : " ").add(stage.choices);
    reason.add(i == 0 ? "" : "; ");
    if (plan->stage_count > 1) reason.add(stage.entry->kernel->name).add(": ");
    reason.add(stage.reason);
  }
  plan->choices = choices.copy();
  plan->reason = reason.copy();
  if (plan->choices == nullptr || plan->reason == nullptr) return no_memory();
  if (__builtin_add_overflow(plan->scratch_bytes, largest, &plan->workspace_bytes)) return no_memory();
  return KW_OK;
}

}  // namespace kernelwright
