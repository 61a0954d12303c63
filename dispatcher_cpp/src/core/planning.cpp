// From problems to plans, and launches of these.
#include <stdlib.h>
#include <string.h>

#include "kernelwright/dispatcher.h"
#include "kernelwright/dispatcher/state.hpp"
#include "kernelwright/dispatcher/threads/thread_pool.hpp"

namespace kernelwright {
namespace {

// Walks through the stages of a problem, each formed after those before it are planned.
class Stages {
 public:
  Stages(const Operation& operation, const kw_problem& problem) : whole_(operation), problem_(problem) {}

  // The next stage; *operation is null where there is none.
  kw_status next(const Operation** operation, AnyProblem* stage) {
    *operation = nullptr;
    if (whole_.stage == nullptr) {
      if (index_++ != 0) return KW_OK;
      memcpy(stage->bytes, &problem_, whole_.problem_bytes);
      *operation = &whole_;
      return KW_OK;
    }
    if (!whole_.stage(problem_, index_, planned_, stage)) return KW_OK;
    *operation = find_operation(stage->base().op);
    if (*operation == nullptr || index_ == kMaxStages) {
      return fail(KW_INVALID_ARGUMENT, "%s: stage %u is of op %u; allowed: known operations, at most %u stages",
                  whole_.name, index_, stage->base().op, kMaxStages);
    }
    ++index_;
    return KW_OK;
  }
  // The stage that next() returned, with all choices made; it stays where it is.
  void planned(const kw_problem* problem) {
    if (index_ <= kMaxStages) planned_[index_ - 1] = problem;
  }

 private:
  const Operation& whole_;
  const kw_problem& problem_;
  uint32_t index_ = 0;
  const kw_problem* planned_[kMaxStages] = {};
};

// How kernels of a stage are selected: one that was asked for by name and is of another stage leaves this one to the
// predicted times. *selection stays where it is.
kw_status stage_selection(const kw_dispatcher& dispatcher, const Operation& whole, const Operation& stage,
                          const kw_problem& problem, Selection* selection) {
  *selection = dispatcher.selection;
  resolve({dispatcher.registry, dispatcher.device, *selection, stage, problem}, selection);
  if (whole.stage == nullptr || selection->provider != KW_SELECT_EXPLICIT) return KW_OK;
  KernelEntry* wanted = nullptr;
  if (kw_status status = dispatcher.registry.find(selection->kernel, &wanted)) return status;
  if (wanted->kernel->op != stage.op) selection->provider = KW_SELECT_ANALYTIC;
  return KW_OK;
}

// KW_NO_KERNEL if a kernel that was asked for by name has no part in the plan.
kw_status check_asked(const kw_dispatcher& dispatcher, const kw_plan& plan) {
  if (plan.operation->stage == nullptr || dispatcher.selection.provider != KW_SELECT_EXPLICIT) return KW_OK;
  KernelEntry* wanted = nullptr;
  if (kw_status status = dispatcher.registry.find(dispatcher.selection.kernel, &wanted)) return status;
  for (uint32_t i = 0; i < plan.stage_count; ++i) {
    if (plan.stages[i].entry == wanted) return KW_OK;
  }
  Text text;
  plan.operation->describe(*plan.problem, &text);
  const Operation* own = find_operation(wanted->kernel->op);
  return fail(KW_NO_KERNEL, "kernel %s was asked for, which serves %s problems; %s has no such stage",
              wanted->kernel->name, own == nullptr ? "unknown" : own->name, text.c_str());
}

// Under the lock.
kw_status plan_stages(const kw_dispatcher& dispatcher, kw_plan* plan) {
  Stages stages(*plan->operation, *plan->problem);
  for (;;) {
    const Operation* operation = nullptr;
    AnyProblem stage_problem;
    if (kw_status status = stages.next(&operation, &stage_problem)) return status;
    if (operation == nullptr) {
      const kw_status asked = check_asked(dispatcher, *plan);
      return asked != KW_OK ? asked : complete_plan(plan);
    }
    AnyProblem chosen = stage_problem;
    Selected selected;
    Selection selection;
    Text reason;
    if (kw_status status =
            stage_selection(dispatcher, *plan->operation, *operation, stage_problem.base(), &selection)) {
      return status;
    }
    const Question question = {dispatcher.registry, dispatcher.device, selection, *operation, stage_problem.base()};
    if (kw_status status = select_kernel(question, &chosen.base(), &selected, &reason)) return status;
    if (kw_status status = add_stage(plan, *operation, chosen.base(), selected.entry, reason.c_str())) return status;
    stages.planned(plan->stages[plan->stage_count - 1].problem);
  }
}

// A new plan that belongs to the caller. Under the lock; the problem is valid.
kw_status choose(const kw_dispatcher& dispatcher, const Operation& operation, const kw_problem& problem,
                 kw_plan** result) {
  kw_plan* plan = make_plan(operation, problem);
  if (plan == nullptr) return fail(KW_OUT_OF_MEMORY, "no memory for a plan");
  plan->device = dispatcher.device.ordinal;
  plan->device_check = dispatcher.device_check;
  if (kw_status status = plan_stages(dispatcher, plan)) {
    free_plan(plan);
    return status;
  }
  *result = plan;
  return KW_OK;
}

kw_status choose_uncached(kw_dispatcher* dispatcher, const Operation& operation, const kw_problem& problem,
                          const kw_plan** plan, kw_plan** own) {
  if (kw_status status = operation.validate(problem)) return status;
  if (own == nullptr) {
    return fail(KW_INVALID_ARGUMENT, "plans of %s problems are not cached; make this one with kw_plan_create",
                operation.name);
  }
  const Lock lock(dispatcher->mutex);
  if (kw_status status = choose(*dispatcher, operation, problem, own)) return status;
  *plan = *own;
  return KW_OK;
}

// A problem that is not in the cache.
kw_status plan_new(kw_dispatcher* dispatcher, const Operation& operation, const kw_problem& problem, const Key& key,
                   const kw_plan** plan, kw_plan** own) {
  if (kw_status status = operation.validate(problem)) return status;
  const Lock lock(dispatcher->mutex);
  *plan = dispatcher->plans.find(key);  // another thread may have been first
  if (*plan != nullptr) return KW_OK;
  const bool full = dispatcher->plans.size() >= dispatcher->plan_limit;
  if (full && own == nullptr) {
    return fail(KW_OUT_OF_MEMORY,
                "%u plans are cached, the plan_limit of this dispatcher; make this one with kw_plan_create, raise "
                "plan_limit, or call kw_dispatcher_clear_plans when no plan is in use",
                dispatcher->plan_limit);
  }
  kw_plan* made = nullptr;
  if (kw_status status = choose(*dispatcher, operation, problem, &made)) return status;
  *plan = made;
  if (full) {
    *own = made;
    return KW_OK;
  }
  const kw_status status = dispatcher->plans.insert(made);
  if (status != KW_OK) *plan = nullptr;
  return status;
}

// The plan for a problem, cached. Once the cache is full, a new one goes to *own, which is then the caller's to free,
// as does every plan of an operation without keys; without own it is refused.
kw_status plan_for(kw_dispatcher* dispatcher, const kw_problem* problem, const kw_plan** plan, kw_plan** own) {
  const Operation* operation = nullptr;  // enough of validation for a key; what is in the cache passed all of it
  if (kw_status status = operation_of(problem, &operation)) return status;
  if (operation->key == nullptr) return choose_uncached(dispatcher, *operation, *problem, plan, own);
  const Key key(*operation, *problem);
  *plan = dispatcher->plans.find(key);
  if (__builtin_expect(*plan != nullptr, 1)) return KW_OK;
  return plan_new(dispatcher, *operation, *problem, key, plan, own);
}

kw_status check_before_launch(const kw_plan& plan, LibraryEntry* library) {
  if (plan.device_check == KW_CHECK_NEVER) {
    return fail(KW_ARCH_MISMATCH, "this dispatcher only plans (KW_CHECK_NEVER); create one that checks the device");
  }
  if (kw_status status = ask_device(*library->library, plan.device)) return status;
  library->device_checked.release(true);
  return KW_OK;
}

kw_status check_workspace(const kw_launch& launch, uint64_t needed) {
  if (launch.workspace == nullptr) {
    return fail(KW_INVALID_ARGUMENT, "launch: workspace is null; allowed: %llu bytes, which this problem needs",
                static_cast<unsigned long long>(needed));
  }
  if (launch.workspace_bytes < needed) {
    return fail(KW_WORKSPACE_TOO_SMALL, "launch: workspace_bytes = %llu; allowed: %llu or more",
                static_cast<unsigned long long>(launch.workspace_bytes), static_cast<unsigned long long>(needed));
  }
  if (reinterpret_cast<uintptr_t>(launch.workspace) % 256 == 0) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "launch: workspace is not aligned to 256 bytes");
}

kw_status check_launch(const kw_plan& plan, const kw_launch* launch) {
  if (launch == nullptr) return fail(KW_INVALID_ARGUMENT, "launch is null; allowed: a pointer to kw_launch");
  if (kw_status status = check_size("launch", launch->struct_size, sizeof(kw_launch))) return status;
  if (launch->device == plan.device) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "launch: device = %d; allowed: %d, the device of the dispatcher", launch->device,
              plan.device);
}

// The caller's launch, on threads that it names or on those of the process.
kw_cpu_launch with_threads(const kw_launch& launch) {
  const bool named = launch.struct_size >= sizeof(kw_cpu_launch);
  kw_cpu_launch own = {launch, named ? reinterpret_cast<const kw_cpu_launch&>(launch).parallel : &process_threads()};
  own.base.struct_size = sizeof own;
  return own;
}

kw_status launch_stage(const kw_plan& plan, const Stage& stage, const kw_launch& launch, const void* args) {
  LibraryEntry* library = stage.entry->library;
  if (__builtin_expect(!library->device_checked.acquire(), 0)) {
    if (kw_status status = check_before_launch(plan, library)) return status;
  }
  const kw_kernel& kernel = *stage.entry->kernel;
  const kw_status status = kernel.launch(&kernel, stage.storage, &launch, args);
  if (__builtin_expect(status == KW_OK, 1)) return KW_OK;
  return fail(status, "kernel %s: %s: %s", kernel.name, kw_status_name(status), library->library->last_error());
}

// One stage after the other: results in front of the workspace, behind them what the running kernel asked for.
kw_status launch_stages(const kw_plan& plan, const kw_cpu_launch& launch, const void* args) {
  char* const workspace = static_cast<char*>(launch.base.workspace);
  void* scratch[kMaxStages] = {};
  const kw_problem* planned[kMaxStages] = {};
  for (uint32_t i = 0; i < plan.stage_count; ++i) {
    planned[i] = plan.stages[i].problem;
    if (plan.stages[i].scratch_bytes != 0) scratch[i] = workspace + plan.stages[i].scratch_offset;
  }
  kw_cpu_launch own = launch;
  for (uint32_t i = 0; i < plan.stage_count; ++i) {
    alignas(16) unsigned char stage_args[kMaxArgsBytes];
    const uint64_t bytes = plan.stages[i].workspace_bytes;
    own.base.workspace = bytes == 0 ? nullptr : workspace + plan.scratch_bytes;
    own.base.workspace_bytes = bytes;
    plan.operation->stage_args(*plan.problem, i, planned, args, scratch, stage_args);
    if (kw_status status = launch_stage(plan, plan.stages[i], own.base, stage_args)) return status;
  }
  return KW_OK;
}

kw_status explain_stage(const Question& question, kw_problem* chosen, bool* usable, Text* text) {
  Ranking ranking;
  if (kw_status status = ranking.fill(question)) return status;
  const Ranked* best = ranking.best();
  *usable = best != nullptr;
  if (best == nullptr) {
    text->add("\"chosen\":null,\"reason\":\"no kernel serves this problem\"");
  } else {
    Selected selected;
    Text reason;
    if (question.selection.provider == KW_SELECT_CALLBACK) {
      ranking.best_reason(question, &reason);
      if (best->open) question.operation.choose(chosen, best->choice);
    } else if (kw_status status = select_kernel(question, chosen, &selected, &reason)) {
      return status;
    }
    text->add("\"chosen\":").quoted(best->entry->kernel->identity).add(",\"reason\":").quoted(reason.c_str());
  }
  text->add(",\"ranked_by\":").quoted(ranking.ranked_by(question));
  ranking.to_json(question, &text->add(",\"kernels\":"));
  return KW_OK;
}

}  // namespace

kw_status ask_device(const kw_library& library, int32_t device) {
  char reason[kReasonBytes] = "";
  const kw_status status = library.check_device(device, reason, sizeof reason);
  reason[sizeof reason - 1] = '\0';
  if (status == KW_OK) return KW_OK;
  return fail(status, "library %s is for %s and cannot run on device %d: %s", library.name, library.arch->name, device,
              reason[0] != '\0' ? reason : kw_status_name(status));
}

kw_status explain(const kw_dispatcher& dispatcher, const Operation& whole, const kw_problem& problem, Text* text) {
  whole.to_json(problem, &text->add("{\"problem\":"));
  text->add(",\"selection\":").quoted(asked_name(dispatcher.selection)).add(',');
  if (whole.stage != nullptr) text->add("\"stages\":[");
  Stages stages(whole, problem);
  AnyProblem chosen[kMaxStages];
  bool usable = true;
  for (uint32_t i = 0; usable; ++i) {
    const Operation* operation = nullptr;
    AnyProblem stage_problem;
    if (kw_status status = stages.next(&operation, &stage_problem)) return status;
    if (operation == nullptr) break;
    chosen[i] = stage_problem;
    Selection selection;
    if (kw_status status = stage_selection(dispatcher, whole, *operation, stage_problem.base(), &selection))
      return status;
    if (whole.stage != nullptr) {
      text->add(i == 0 ? "{" : ",{").add("\"problem\":");
      operation->to_json(stage_problem.base(), text);
      text->add(',');
    }
    const Question question = {dispatcher.registry, dispatcher.device, selection, *operation, stage_problem.base()};
    if (kw_status status = explain_stage(question, &chosen[i].base(), &usable, text)) return status;
    if (whole.stage != nullptr) text->add('}');
    stages.planned(&chosen[i].base());
  }
  text->add(whole.stage != nullptr ? "]}" : "}");
  return KW_OK;
}

}  // namespace kernelwright

using namespace kernelwright;

kw_status kw_dispatcher_select(kw_dispatcher* dispatcher, const kw_problem* problem, const kw_plan** plan) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (plan == nullptr) return null_argument("plan");
  *plan = nullptr;
  return plan_for(dispatcher, problem, plan, nullptr);
}

kw_status kw_plan_create(kw_dispatcher* dispatcher, const kw_problem* problem, kw_plan** plan) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (plan == nullptr) return null_argument("plan");
  *plan = nullptr;
  const Operation* operation = nullptr;
  if (kw_status status = validate(problem, &operation)) return status;
  const Lock lock(dispatcher->mutex);
  return choose(*dispatcher, *operation, *problem, plan);
}

void kw_plan_destroy(kw_plan* plan) { free_plan(plan); }

kw_status kw_plan_get_info(const kw_plan* plan, kw_plan_info* info) {
  if (plan == nullptr) return null_argument("plan");
  if (kw_status status = check_info(info, "kw_plan_info")) return status;
  info->stage_count = plan->stage_count;
  info->workspace_bytes = plan->workspace_bytes;
  info->choices = plan->choices;
  info->reason = plan->reason;
  return KW_OK;
}

kw_status kw_plan_get_stage(const kw_plan* plan, uint32_t index, kw_stage_info* info) {
  if (plan == nullptr) return null_argument("plan");
  if (kw_status status = check_info(info, "kw_stage_info")) return status;
  if (index >= plan->stage_count) {
    return fail(KW_INVALID_ARGUMENT, "index = %u; allowed: below %u, the stages of this plan", index,
                plan->stage_count);
  }
  const Stage& stage = plan->stages[index];
  info->reserved = 0;
  info->kernel = stage.entry->kernel;
  info->library = stage.entry->library->library;
  info->scratch_offset = stage.scratch_offset;
  info->scratch_bytes = stage.scratch_bytes;
  info->workspace_bytes = stage.workspace_bytes;
  info->choices = stage.choices;
  info->reason = stage.reason;
  return KW_OK;
}

uint64_t kw_plan_workspace_size(const kw_plan* plan) { return plan == nullptr ? 0 : plan->workspace_bytes; }

kw_status kw_plan_launch(const kw_plan* plan, const kw_launch* launch, const void* args) {
  if (plan == nullptr) return null_argument("plan");
  if (kw_status status = check_launch(*plan, launch)) return status;
  if (kw_status status = plan->operation->validate_args(*plan->problem, args)) return status;
  if (plan->empty) return KW_OK;
  if (plan->workspace_bytes != 0) {
    if (kw_status status = check_workspace(*launch, plan->workspace_bytes)) return status;
  }
  if (kw_status status = check_operands(*plan, args, launch->workspace, plan->workspace_bytes)) return status;
  if (__builtin_expect(plan->operation->stage != nullptr, 0)) return launch_stages(*plan, with_threads(*launch), args);
  const Stage& only = plan->stages[0];
  if (only.entry->library->library->arch->backend != KW_BACKEND_CPU) return launch_stage(*plan, only, *launch, args);
  return launch_stage(*plan, only, with_threads(*launch).base, args);
}

kw_status kw_dispatcher_run(kw_dispatcher* dispatcher, const kw_problem* problem, const kw_launch* launch,
                            const void* args) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  const kw_plan* plan = nullptr;
  kw_plan* own = nullptr;
  if (kw_status status = plan_for(dispatcher, problem, &plan, &own)) return status;
  const kw_status status = kw_plan_launch(plan, launch, args);
  if (__builtin_expect(own != nullptr, 0)) free_plan(own);  // a launch takes copies of what it needs
  return status;
}
