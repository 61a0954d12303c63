#include "tilewright/dispatcher.h"

#include <stdlib.h>
#include <string.h>

#include "tilewright/dispatcher/error.hpp"
#include "tilewright/dispatcher/problem.hpp"
#include "tilewright/dispatcher/state.hpp"

using namespace tilewright;

namespace {

// Structs that callers fill only grow: a smaller one is an older caller's and cannot be served by version 1.
template <typename T>
tw_status check_options(const T* options, const char* name) {
  if (options == nullptr || options->struct_size == sizeof(T)) return TW_OK;
  return fail(TW_INVALID_ARGUMENT, "%s: struct_size = %u; allowed: %zu (dispatcher version %u)", name,
              options->struct_size, sizeof(T), TW_DISPATCHER_VERSION);
}

tw_status copy_text(const char* text, char** copy) {
  *copy = text == nullptr ? nullptr : strdup(text);
  return text != nullptr && *copy == nullptr ? fail(TW_OUT_OF_MEMORY, "no memory") : TW_OK;
}

tw_status ask_device(const tw_library& library, int32_t device) {
  char reason[kReasonBytes] = "";
  const tw_status status = library.check_device(device, reason, sizeof reason);
  reason[sizeof reason - 1] = '\0';
  if (status == TW_OK) return TW_OK;
  return fail(status, "library %s is for %s and cannot run on device %d: %s", library.name, library.arch->name, device,
              reason[0] != '\0' ? reason : tw_status_name(status));
}

tw_status add(tw_dispatcher* dispatcher, const tw_library* library, const tw_library_options* options) {
  const char* wanted = dispatcher->device.arch;
  if (wanted != nullptr && strcmp(wanted, library->arch->name) != 0) {
    return fail(TW_ARCH_MISMATCH, "library %s is for %s; allowed by this dispatcher: %s", library->name,
                library->arch->name, wanted);
  }
  const bool check = dispatcher->device_check == TW_CHECK_ON_ADD;
  if (check) {
    if (tw_status status = ask_device(*library, dispatcher->device.ordinal)) return status;
  }
  const Lock lock(dispatcher->mutex);
  if (tw_status status = dispatcher->registry.add(library, options == nullptr ? 0 : options->priority, check)) {
    return status;
  }
  dispatcher->plans.forget();
  return TW_OK;
}

// A new plan that belongs to the caller. Under the lock; the problem is valid.
tw_status choose(tw_dispatcher* dispatcher, const tw_problem& problem, tw_plan** result) {
  Vec<Ranked> ranking;
  if (tw_status status = rank(dispatcher->registry, dispatcher->device, dispatcher->selection, problem, &ranking)) {
    return status;
  }
  if (ranking.empty() || !ranking[0].usable) return no_kernel(dispatcher->selection, ranking, problem);
  KernelEntry* entry = ranking[0].entry;
  const tw_kernel& kernel = *entry->kernel;
  tw_plan* plan = make_plan(problem, entry);
  if (plan == nullptr) return fail(TW_OUT_OF_MEMORY, "no memory for a plan");
  Text reason;
  choice_reason(dispatcher->selection, ranking, &reason);
  plan->reason = reason.copy();
  plan->device = dispatcher->device.ordinal;
  plan->device_check = dispatcher->device_check;
  plan->split_k = ranking[0].split_k;
  tw_gemm_problem split = plan->problem;
  split.split_k = plan->split_k;
  const tw_problem* planned = plan->op == TW_OP_GROUPED_GEMM ? &plan->grouped.base : &split.base;
  tw_status status = plan->reason == nullptr ? TW_OUT_OF_MEMORY : TW_OK;
  if (status == TW_OK) status = kernel.workspace_size(&kernel, planned, &plan->workspace_bytes);
  if (status == TW_OK) status = kernel.plan(&kernel, planned, plan->storage);
  if (status != TW_OK) {
    free_plan(plan);
    return fail(status, "kernel %s cannot plan: %s: %s", kernel.name, tw_status_name(status),
                entry->library->library->last_error());
  }
  *result = plan;
  return TW_OK;
}

tw_status choose_grouped(tw_dispatcher* dispatcher, const tw_problem* problem, const tw_plan** plan, tw_plan** own) {
  if (tw_status status = validate(problem)) return status;
  if (own == nullptr) {
    return fail(TW_INVALID_ARGUMENT, "plans of grouped problems are not cached; make this one with tw_plan_create");
  }
  const Lock lock(dispatcher->mutex);
  if (tw_status status = choose(dispatcher, *problem, own)) return status;
  *plan = *own;
  return TW_OK;
}

// The plan for a problem, cached. Once the cache is full, a new one goes to *own, which is then the caller's to free,
// as that of a grouped problem always does; without own it is refused.
tw_status plan_for(tw_dispatcher* dispatcher, const tw_problem* problem, const tw_plan** plan, tw_plan** own) {
  if (problem != nullptr && problem->op == TW_OP_GROUPED_GEMM) return choose_grouped(dispatcher, problem, plan, own);
  // Enough of validation that the problem can be read as a GEMM; what is in the cache passed all of it.
  if (problem == nullptr || problem->op != TW_OP_GEMM || problem->struct_size != sizeof(tw_gemm_problem)) {
    return validate(problem);
  }
  const auto& gemm = *reinterpret_cast<const tw_gemm_problem*>(problem);
  const uint64_t hash = PlanCache::hash(gemm);
  *plan = dispatcher->plans.find(gemm, hash);
  if (*plan != nullptr) return TW_OK;
  if (tw_status status = validate(problem)) return status;
  const Lock lock(dispatcher->mutex);
  *plan = dispatcher->plans.find(gemm, hash);  // another thread may have been first
  if (*plan != nullptr) return TW_OK;
  const bool full = dispatcher->plans.size() >= dispatcher->plan_limit;
  if (full && own == nullptr) {
    return fail(TW_OUT_OF_MEMORY,
                "%u plans are cached, the plan_limit of this dispatcher; make this one with tw_plan_create, raise "
                "plan_limit, or call tw_dispatcher_clear_plans when no plan is in use",
                dispatcher->plan_limit);
  }
  tw_plan* made = nullptr;
  if (tw_status status = choose(dispatcher, *problem, &made)) return status;
  *plan = made;
  if (full) {
    *own = made;
    return TW_OK;
  }
  const tw_status status = dispatcher->plans.insert(made);
  if (status != TW_OK) *plan = nullptr;
  return status;
}

tw_status check_before_launch(const tw_plan& plan) {
  if (plan.device_check == TW_CHECK_NEVER) {
    return fail(TW_ARCH_MISMATCH, "this dispatcher only plans (TW_CHECK_NEVER); create one that checks the device");
  }
  if (tw_status status = ask_device(*plan.library->library, plan.device)) return status;
  plan.library->device_checked.release(true);
  return TW_OK;
}

void fill_info(const KernelEntry& entry, tw_kernel_info* info) {
  info->priority = entry.priority;
  info->kernel = entry.kernel;
  info->library = entry.library->library;
}

tw_status check_info(const tw_kernel_info* info) {
  return info == nullptr ? null_argument("info") : check_options(info, "tw_kernel_info");
}

tw_status write_json(const Text& text, char* buffer, size_t bytes, size_t* needed) {
  const tw_status status = text.write_to(buffer, bytes, needed);
  if (status == TW_OUT_OF_MEMORY) return fail(status, "no memory for JSON");
  if (status == TW_OK) return TW_OK;
  return fail(status, "buffer holds %zu bytes; needed: %zu", bytes, text.size() + 1);
}

tw_status check_selection(const tw_selection_options& options) {
  if (options.provider > TW_SELECT_CALLBACK) {
    return fail(TW_INVALID_ARGUMENT,
                "selection: provider = %u; allowed: 0 (analytic), 1 (first fit), 2 (explicit), "
                "3 (callback)",
                options.provider);
  }
  if (options.provider == TW_SELECT_CALLBACK && options.score == nullptr) {
    return fail(TW_INVALID_ARGUMENT, "selection: score is null; the callback provider needs it");
  }
  return TW_OK;
}

}  // namespace

uint32_t tw_dispatcher_version(void) { return TW_DISPATCHER_VERSION; }
uint32_t tw_dispatcher_abi_version(void) { return TW_ABI_VERSION; }

tw_status tw_dispatcher_create(const tw_dispatcher_options* options, tw_dispatcher** dispatcher) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  *dispatcher = nullptr;
  if (tw_status status = check_options(options, "tw_dispatcher_options")) return status;
  if (options != nullptr && options->device_check > TW_CHECK_NEVER) {
    return fail(TW_INVALID_ARGUMENT, "tw_dispatcher_options: device_check = %u; allowed: 0 to 2",
                options->device_check);
  }
  tw_dispatcher* made = make_object<tw_dispatcher>();
  if (made == nullptr) return fail(TW_OUT_OF_MEMORY, "no memory for a dispatcher");
  if (options != nullptr) {
    made->device_check = options->device_check;
    made->device.ordinal = options->device;
    made->device.compute_units = options->compute_units;
    if (options->plan_limit != 0) made->plan_limit = options->plan_limit;
    tw_status status = copy_text(options->arch, &made->device.arch);
    if (status == TW_OK) status = copy_text(options->features, &made->device.features);
    if (status != TW_OK) {
      destroy_object(made);
      return status;
    }
  }
  *dispatcher = made;
  return TW_OK;
}

void tw_dispatcher_destroy(tw_dispatcher* dispatcher) { destroy_object(dispatcher); }

tw_status tw_dispatcher_add_library(tw_dispatcher* dispatcher, const char* path, const tw_library_options* options) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (tw_status status = check_options(options, "tw_library_options")) return status;
  const tw_library* library = nullptr;
  if (tw_status status = open_library(path, &library)) return status;
  return add(dispatcher, library, options);
}

tw_status tw_dispatcher_add_descriptor(tw_dispatcher* dispatcher, const tw_library* library,
                                       const tw_library_options* options) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (library == nullptr) return null_argument("library");
  if (tw_status status = check_options(options, "tw_library_options")) return status;
  if (tw_status status = check_library(library, "descriptor")) return status;
  return add(dispatcher, library, options);
}

uint64_t tw_dispatcher_kernel_count(tw_dispatcher* dispatcher) {
  if (dispatcher == nullptr) return 0;
  const Lock lock(dispatcher->mutex);
  return dispatcher->registry.kernels().size();
}

tw_status tw_dispatcher_kernel_at(tw_dispatcher* dispatcher, uint64_t index, tw_kernel_info* info) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (tw_status status = check_info(info)) return status;
  const Lock lock(dispatcher->mutex);
  const auto& kernels = dispatcher->registry.kernels();
  if (index >= kernels.size()) {
    return fail(TW_INVALID_ARGUMENT, "index = %llu; allowed: below %zu", static_cast<unsigned long long>(index),
                kernels.size());
  }
  fill_info(*kernels[index], info);
  return TW_OK;
}

tw_status tw_dispatcher_find_kernel(tw_dispatcher* dispatcher, const char* kernel, tw_kernel_info* info) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (tw_status status = check_info(info)) return status;
  const Lock lock(dispatcher->mutex);
  KernelEntry* entry = nullptr;
  if (tw_status status = dispatcher->registry.find(kernel, &entry)) return status;
  fill_info(*entry, info);
  return TW_OK;
}

tw_status tw_dispatcher_set_priority(tw_dispatcher* dispatcher, const char* kernel, int32_t priority) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  const Lock lock(dispatcher->mutex);
  if (tw_status status = dispatcher->registry.set_priority(kernel, priority)) return status;
  dispatcher->plans.forget();
  return TW_OK;
}

tw_status tw_dispatcher_set_selection(tw_dispatcher* dispatcher, const tw_selection_options* options) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (options == nullptr) return null_argument("options");
  if (tw_status status = check_options(options, "tw_selection_options")) return status;
  if (tw_status status = check_selection(*options)) return status;
  const Lock lock(dispatcher->mutex);
  if (options->provider == TW_SELECT_EXPLICIT) {
    KernelEntry* entry = nullptr;
    if (tw_status status = dispatcher->registry.find(options->kernel, &entry)) return status;
  }
  Selection next;
  next.provider = options->provider;
  next.score = options->score;
  next.user = options->user;
  if (tw_status status = copy_text(options->kernel, &next.kernel)) return status;
  if (tw_status status = copy_text(options->label, &next.label)) {
    free(next.kernel);
    return status;
  }
  free(dispatcher->selection.kernel);
  free(dispatcher->selection.label);
  dispatcher->selection = next;
  dispatcher->plans.forget();
  return TW_OK;
}

tw_status tw_dispatcher_set_num_threads(tw_dispatcher* dispatcher, uint32_t threads) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  const Lock lock(dispatcher->mutex);
  for (const LibraryEntry* entry : dispatcher->registry.libraries()) {
    if (entry->library->arch->backend != TW_BACKEND_CPU) continue;
    if (tw_status status = entry->library->set_num_threads(threads)) {
      return fail(status, "library %s refuses %u threads: %s", entry->library->name, threads,
                  entry->library->last_error());
    }
  }
  return TW_OK;
}

tw_status tw_dispatcher_export_json(tw_dispatcher* dispatcher, char* buffer, size_t bytes, size_t* needed) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  Text text;
  {
    const Lock lock(dispatcher->mutex);
    dispatcher->registry.to_json(&text);
  }
  return write_json(text, buffer, bytes, needed);
}

tw_status tw_dispatcher_explain(tw_dispatcher* dispatcher, const tw_problem* problem, char* buffer, size_t bytes,
                                size_t* needed) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (tw_status status = validate(problem)) return status;
  Text text;
  {
    const Lock lock(dispatcher->mutex);
    Vec<Ranked> ranking;
    if (tw_status status = rank(dispatcher->registry, dispatcher->device, dispatcher->selection, *problem, &ranking)) {
      return status;
    }
    ranking_json(dispatcher->selection, ranking, *problem, &text);
  }
  return write_json(text, buffer, bytes, needed);
}

tw_status tw_dispatcher_select(tw_dispatcher* dispatcher, const tw_problem* problem, const tw_plan** plan) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (plan == nullptr) return null_argument("plan");
  *plan = nullptr;
  return plan_for(dispatcher, problem, plan, nullptr);
}

tw_status tw_plan_create(tw_dispatcher* dispatcher, const tw_problem* problem, tw_plan** plan) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (plan == nullptr) return null_argument("plan");
  *plan = nullptr;
  if (tw_status status = validate(problem)) return status;
  const Lock lock(dispatcher->mutex);
  return choose(dispatcher, *problem, plan);
}

void tw_plan_destroy(tw_plan* plan) { free_plan(plan); }

tw_status tw_plan_get_info(const tw_plan* plan, tw_plan_info* info) {
  if (plan == nullptr) return null_argument("plan");
  if (info == nullptr) return null_argument("info");
  if (tw_status status = check_options(info, "tw_plan_info")) return status;
  info->split_k = plan->split_k;
  info->kernel = plan->entry->kernel;
  info->library = plan->library->library;
  info->workspace_bytes = plan->workspace_bytes;
  info->reason = plan->reason;
  return TW_OK;
}

uint64_t tw_plan_workspace_size(const tw_plan* plan) { return plan == nullptr ? 0 : plan->workspace_bytes; }

tw_status tw_plan_launch(const tw_plan* plan, const void* args) {
  if (plan == nullptr) return null_argument("plan");
  const bool grouped = plan->op == TW_OP_GROUPED_GEMM;
  if (tw_status status =
          grouped ? validate_args(plan->grouped, static_cast<const tw_grouped_gemm_args*>(args), plan->workspace_bytes)
                  : validate_args(plan->problem, static_cast<const tw_gemm_args*>(args), plan->workspace_bytes)) {
    return status;
  }
  if (!plan->library->device_checked.acquire()) {
    if (tw_status status = check_before_launch(*plan)) return status;
  }
  if (grouped ? plan->grouped.group_count == 0 : plan->problem.m == 0 || plan->problem.n == 0) return TW_OK;
  const tw_kernel& kernel = *plan->entry->kernel;
  const tw_status status = kernel.launch(&kernel, plan->storage, args);
  if (__builtin_expect(status == TW_OK, 1)) return TW_OK;
  return fail(status, "kernel %s: %s: %s", kernel.name, tw_status_name(status), plan->library->library->last_error());
}

tw_status tw_dispatcher_run(tw_dispatcher* dispatcher, const tw_problem* problem, const void* args) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  const tw_plan* plan = nullptr;
  tw_plan* own = nullptr;
  if (tw_status status = plan_for(dispatcher, problem, &plan, &own)) return status;
  const tw_status status = tw_plan_launch(plan, args);
  if (__builtin_expect(own != nullptr, 0)) free_plan(own);  // a launch takes copies of what it needs
  return status;
}

uint64_t tw_dispatcher_plan_count(tw_dispatcher* dispatcher) {
  if (dispatcher == nullptr) return 0;
  const Lock lock(dispatcher->mutex);
  return dispatcher->plans.size();
}

void tw_dispatcher_clear_plans(tw_dispatcher* dispatcher) {
  if (dispatcher == nullptr) return;
  const Lock lock(dispatcher->mutex);
  dispatcher->plans.clear();
}
