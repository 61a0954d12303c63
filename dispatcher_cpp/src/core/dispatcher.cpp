#include "kernelwright/dispatcher.h"

#include <stdlib.h>
#include <string.h>

#include "kernelwright/dispatcher/gemm/problem.hpp"
#include "kernelwright/dispatcher/state.hpp"
#include "kernelwright/dispatcher/support/error.hpp"

using namespace kernelwright;

namespace {

// Structs that callers fill only grow: a smaller one is an older caller's and cannot be served by version 1.
template <typename T>
kw_status check_options(const T* options, const char* name) {
  if (options == nullptr || options->struct_size == sizeof(T)) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "%s: struct_size = %u; allowed: %zu (dispatcher version %u)", name,
              options->struct_size, sizeof(T), KW_DISPATCHER_VERSION);
}

kw_status copy_text(const char* text, char** copy) {
  *copy = text == nullptr ? nullptr : strdup(text);
  return text != nullptr && *copy == nullptr ? fail(KW_OUT_OF_MEMORY, "no memory") : KW_OK;
}

kw_status ask_device(const kw_library& library, int32_t device) {
  char reason[kReasonBytes] = "";
  const kw_status status = library.check_device(device, reason, sizeof reason);
  reason[sizeof reason - 1] = '\0';
  if (status == KW_OK) return KW_OK;
  return fail(status, "library %s is for %s and cannot run on device %d: %s", library.name, library.arch->name, device,
              reason[0] != '\0' ? reason : kw_status_name(status));
}

kw_status add(kw_dispatcher* dispatcher, const kw_library* library, const kw_library_options* options) {
  const char* wanted = dispatcher->device.arch;
  if (wanted != nullptr && strcmp(wanted, library->arch->name) != 0) {
    return fail(KW_ARCH_MISMATCH, "library %s is for %s; allowed by this dispatcher: %s", library->name,
                library->arch->name, wanted);
  }
  const bool check = dispatcher->device_check == KW_CHECK_ON_ADD;
  if (check) {
    if (kw_status status = ask_device(*library, dispatcher->device.ordinal)) return status;
  }
  const Lock lock(dispatcher->mutex);
  if (kw_status status = dispatcher->registry.add(library, options == nullptr ? 0 : options->priority, check)) {
    return status;
  }
  dispatcher->plans.forget();
  return KW_OK;
}

// A new plan that belongs to the caller. Under the lock; the problem is valid.
kw_status choose(kw_dispatcher* dispatcher, const kw_problem& problem, kw_plan** result) {
  Vec<Ranked> ranking;
  if (kw_status status = rank(dispatcher->registry, dispatcher->device, dispatcher->selection, problem, &ranking)) {
    return status;
  }
  if (ranking.empty() || !ranking[0].usable) return no_kernel(dispatcher->selection, ranking, problem);
  KernelEntry* entry = ranking[0].entry;
  const kw_kernel& kernel = *entry->kernel;
  kw_plan* plan = make_plan(problem, entry);
  if (plan == nullptr) return fail(KW_OUT_OF_MEMORY, "no memory for a plan");
  Text reason;
  choice_reason(dispatcher->selection, ranking, &reason);
  plan->reason = reason.copy();
  plan->device = dispatcher->device.ordinal;
  plan->device_check = dispatcher->device_check;
  plan->split_k = ranking[0].split_k;
  kw_gemm_problem split = plan->problem;
  split.split_k = plan->split_k;
  const kw_problem* planned = plan->op == KW_OP_GROUPED_GEMM ? &plan->grouped.base : &split.base;
  kw_status status = plan->reason == nullptr ? KW_OUT_OF_MEMORY : KW_OK;
  if (status == KW_OK) status = kernel.workspace_size(&kernel, planned, &plan->workspace_bytes);
  if (status == KW_OK) status = kernel.plan(&kernel, planned, plan->storage);
  if (status != KW_OK) {
    free_plan(plan);
    return fail(status, "kernel %s cannot plan: %s: %s", kernel.name, kw_status_name(status),
                entry->library->library->last_error());
  }
  *result = plan;
  return KW_OK;
}

kw_status choose_grouped(kw_dispatcher* dispatcher, const kw_problem* problem, const kw_plan** plan, kw_plan** own) {
  if (kw_status status = validate(problem)) return status;
  if (own == nullptr) {
    return fail(KW_INVALID_ARGUMENT, "plans of grouped problems are not cached; make this one with kw_plan_create");
  }
  const Lock lock(dispatcher->mutex);
  if (kw_status status = choose(dispatcher, *problem, own)) return status;
  *plan = *own;
  return KW_OK;
}

// The plan for a problem, cached. Once the cache is full, a new one goes to *own, which is then the caller's to free,
// as that of a grouped problem always does; without own it is refused.
kw_status plan_for(kw_dispatcher* dispatcher, const kw_problem* problem, const kw_plan** plan, kw_plan** own) {
  if (problem != nullptr && problem->op == KW_OP_GROUPED_GEMM) return choose_grouped(dispatcher, problem, plan, own);
  // Enough of validation that the problem can be read as a GEMM; what is in the cache passed all of it.
  if (problem == nullptr || problem->op != KW_OP_GEMM || problem->struct_size != sizeof(kw_gemm_problem)) {
    return validate(problem);
  }
  const auto& gemm = *reinterpret_cast<const kw_gemm_problem*>(problem);
  const uint64_t hash = PlanCache::hash(gemm);
  *plan = dispatcher->plans.find(gemm, hash);
  if (*plan != nullptr) return KW_OK;
  if (kw_status status = validate(problem)) return status;
  const Lock lock(dispatcher->mutex);
  *plan = dispatcher->plans.find(gemm, hash);  // another thread may have been first
  if (*plan != nullptr) return KW_OK;
  const bool full = dispatcher->plans.size() >= dispatcher->plan_limit;
  if (full && own == nullptr) {
    return fail(KW_OUT_OF_MEMORY,
                "%u plans are cached, the plan_limit of this dispatcher; make this one with kw_plan_create, raise "
                "plan_limit, or call kw_dispatcher_clear_plans when no plan is in use",
                dispatcher->plan_limit);
  }
  kw_plan* made = nullptr;
  if (kw_status status = choose(dispatcher, *problem, &made)) return status;
  *plan = made;
  if (full) {
    *own = made;
    return KW_OK;
  }
  const kw_status status = dispatcher->plans.insert(made);
  if (status != KW_OK) *plan = nullptr;
  return status;
}

kw_status check_before_launch(const kw_plan& plan) {
  if (plan.device_check == KW_CHECK_NEVER) {
    return fail(KW_ARCH_MISMATCH, "this dispatcher only plans (KW_CHECK_NEVER); create one that checks the device");
  }
  if (kw_status status = ask_device(*plan.library->library, plan.device)) return status;
  plan.library->device_checked.release(true);
  return KW_OK;
}

void fill_info(const KernelEntry& entry, kw_kernel_info* info) {
  info->priority = entry.priority;
  info->kernel = entry.kernel;
  info->library = entry.library->library;
}

kw_status check_info(const kw_kernel_info* info) {
  return info == nullptr ? null_argument("info") : check_options(info, "kw_kernel_info");
}

kw_status write_json(const Text& text, char* buffer, size_t bytes, size_t* needed) {
  const kw_status status = text.write_to(buffer, bytes, needed);
  if (status == KW_OUT_OF_MEMORY) return fail(status, "no memory for JSON");
  if (status == KW_OK) return KW_OK;
  return fail(status, "buffer holds %zu bytes; needed: %zu", bytes, text.size() + 1);
}

kw_status check_selection(const kw_selection_options& options) {
  if (options.provider > KW_SELECT_CALLBACK) {
    return fail(KW_INVALID_ARGUMENT,
                "selection: provider = %u; allowed: 0 (analytic), 1 (first fit), 2 (explicit), "
                "3 (callback)",
                options.provider);
  }
  if (options.provider == KW_SELECT_CALLBACK && options.score == nullptr) {
    return fail(KW_INVALID_ARGUMENT, "selection: score is null; the callback provider needs it");
  }
  return KW_OK;
}

}  // namespace

uint32_t kw_dispatcher_version(void) { return KW_DISPATCHER_VERSION; }
uint32_t kw_dispatcher_abi_version(void) { return KW_ABI_VERSION; }

kw_status kw_dispatcher_create(const kw_dispatcher_options* options, kw_dispatcher** dispatcher) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  *dispatcher = nullptr;
  if (kw_status status = check_options(options, "kw_dispatcher_options")) return status;
  if (options != nullptr && options->device_check > KW_CHECK_NEVER) {
    return fail(KW_INVALID_ARGUMENT, "kw_dispatcher_options: device_check = %u; allowed: 0 to 2",
                options->device_check);
  }
  kw_dispatcher* made = make_object<kw_dispatcher>();
  if (made == nullptr) return fail(KW_OUT_OF_MEMORY, "no memory for a dispatcher");
  if (options != nullptr) {
    made->device_check = options->device_check;
    made->device.ordinal = options->device;
    made->device.compute_units = options->compute_units;
    if (options->plan_limit != 0) made->plan_limit = options->plan_limit;
    kw_status status = copy_text(options->arch, &made->device.arch);
    if (status == KW_OK) status = copy_text(options->features, &made->device.features);
    if (status != KW_OK) {
      destroy_object(made);
      return status;
    }
  }
  *dispatcher = made;
  return KW_OK;
}

void kw_dispatcher_destroy(kw_dispatcher* dispatcher) { destroy_object(dispatcher); }

kw_status kw_dispatcher_add_library(kw_dispatcher* dispatcher, const char* path, const kw_library_options* options) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (kw_status status = check_options(options, "kw_library_options")) return status;
  const kw_library* library = nullptr;
  if (kw_status status = open_library(path, &library)) return status;
  return add(dispatcher, library, options);
}

kw_status kw_dispatcher_add_descriptor(kw_dispatcher* dispatcher, const kw_library* library,
                                       const kw_library_options* options) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (library == nullptr) return null_argument("library");
  if (kw_status status = check_options(options, "kw_library_options")) return status;
  if (kw_status status = check_library(library, "descriptor")) return status;
  return add(dispatcher, library, options);
}

uint64_t kw_dispatcher_kernel_count(kw_dispatcher* dispatcher) {
  if (dispatcher == nullptr) return 0;
  const Lock lock(dispatcher->mutex);
  return dispatcher->registry.kernels().size();
}

kw_status kw_dispatcher_kernel_at(kw_dispatcher* dispatcher, uint64_t index, kw_kernel_info* info) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (kw_status status = check_info(info)) return status;
  const Lock lock(dispatcher->mutex);
  const auto& kernels = dispatcher->registry.kernels();
  if (index >= kernels.size()) {
    return fail(KW_INVALID_ARGUMENT, "index = %llu; allowed: below %zu", static_cast<unsigned long long>(index),
                kernels.size());
  }
  fill_info(*kernels[index], info);
  return KW_OK;
}

kw_status kw_dispatcher_find_kernel(kw_dispatcher* dispatcher, const char* kernel, kw_kernel_info* info) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (kw_status status = check_info(info)) return status;
  const Lock lock(dispatcher->mutex);
  KernelEntry* entry = nullptr;
  if (kw_status status = dispatcher->registry.find(kernel, &entry)) return status;
  fill_info(*entry, info);
  return KW_OK;
}

kw_status kw_dispatcher_set_priority(kw_dispatcher* dispatcher, const char* kernel, int32_t priority) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  const Lock lock(dispatcher->mutex);
  if (kw_status status = dispatcher->registry.set_priority(kernel, priority)) return status;
  dispatcher->plans.forget();
  return KW_OK;
}

kw_status kw_dispatcher_set_selection(kw_dispatcher* dispatcher, const kw_selection_options* options) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (options == nullptr) return null_argument("options");
  if (kw_status status = check_options(options, "kw_selection_options")) return status;
  if (kw_status status = check_selection(*options)) return status;
  const Lock lock(dispatcher->mutex);
  if (options->provider == KW_SELECT_EXPLICIT) {
    KernelEntry* entry = nullptr;
    if (kw_status status = dispatcher->registry.find(options->kernel, &entry)) return status;
  }
  Selection next;
  next.provider = options->provider;
  next.score = options->score;
  next.user = options->user;
  if (kw_status status = copy_text(options->kernel, &next.kernel)) return status;
  if (kw_status status = copy_text(options->label, &next.label)) {
    free(next.kernel);
    return status;
  }
  free(dispatcher->selection.kernel);
  free(dispatcher->selection.label);
  dispatcher->selection = next;
  dispatcher->plans.forget();
  return KW_OK;
}

kw_status kw_dispatcher_set_num_threads(kw_dispatcher* dispatcher, uint32_t threads) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  const Lock lock(dispatcher->mutex);
  for (const LibraryEntry* entry : dispatcher->registry.libraries()) {
    if (entry->library->arch->backend != KW_BACKEND_CPU) continue;
    if (kw_status status = entry->library->set_num_threads(threads)) {
      return fail(status, "library %s refuses %u threads: %s", entry->library->name, threads,
                  entry->library->last_error());
    }
  }
  return KW_OK;
}

kw_status kw_dispatcher_export_json(kw_dispatcher* dispatcher, char* buffer, size_t bytes, size_t* needed) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  Text text;
  {
    const Lock lock(dispatcher->mutex);
    dispatcher->registry.to_json(&text);
  }
  return write_json(text, buffer, bytes, needed);
}

kw_status kw_dispatcher_explain(kw_dispatcher* dispatcher, const kw_problem* problem, char* buffer, size_t bytes,
                                size_t* needed) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (kw_status status = validate(problem)) return status;
  Text text;
  {
    const Lock lock(dispatcher->mutex);
    Vec<Ranked> ranking;
    if (kw_status status = rank(dispatcher->registry, dispatcher->device, dispatcher->selection, *problem, &ranking)) {
      return status;
    }
    ranking_json(dispatcher->selection, ranking, *problem, &text);
  }
  return write_json(text, buffer, bytes, needed);
}

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
  if (kw_status status = validate(problem)) return status;
  const Lock lock(dispatcher->mutex);
  return choose(dispatcher, *problem, plan);
}

void kw_plan_destroy(kw_plan* plan) { free_plan(plan); }

kw_status kw_plan_get_info(const kw_plan* plan, kw_plan_info* info) {
  if (plan == nullptr) return null_argument("plan");
  if (info == nullptr) return null_argument("info");
  if (kw_status status = check_options(info, "kw_plan_info")) return status;
  info->split_k = plan->split_k;
  info->kernel = plan->entry->kernel;
  info->library = plan->library->library;
  info->workspace_bytes = plan->workspace_bytes;
  info->reason = plan->reason;
  return KW_OK;
}

uint64_t kw_plan_workspace_size(const kw_plan* plan) { return plan == nullptr ? 0 : plan->workspace_bytes; }

kw_status kw_plan_launch(const kw_plan* plan, const void* args) {
  if (plan == nullptr) return null_argument("plan");
  const bool grouped = plan->op == KW_OP_GROUPED_GEMM;
  if (kw_status status =
          grouped ? validate_args(plan->grouped, static_cast<const kw_grouped_gemm_args*>(args), plan->workspace_bytes)
                  : validate_args(plan->problem, static_cast<const kw_gemm_args*>(args), plan->workspace_bytes)) {
    return status;
  }
  if (!plan->library->device_checked.acquire()) {
    if (kw_status status = check_before_launch(*plan)) return status;
  }
  if (grouped ? plan->grouped.group_count == 0 : plan->problem.m == 0 || plan->problem.n == 0) return KW_OK;
  const kw_kernel& kernel = *plan->entry->kernel;
  const kw_status status = kernel.launch(&kernel, plan->storage, args);
  if (__builtin_expect(status == KW_OK, 1)) return KW_OK;
  return fail(status, "kernel %s: %s: %s", kernel.name, kw_status_name(status), plan->library->library->last_error());
}

kw_status kw_dispatcher_run(kw_dispatcher* dispatcher, const kw_problem* problem, const void* args) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  const kw_plan* plan = nullptr;
  kw_plan* own = nullptr;
  if (kw_status status = plan_for(dispatcher, problem, &plan, &own)) return status;
  const kw_status status = kw_plan_launch(plan, args);
  if (__builtin_expect(own != nullptr, 0)) free_plan(own);  // a launch takes copies of what it needs
  return status;
}

uint64_t kw_dispatcher_plan_count(kw_dispatcher* dispatcher) {
  if (dispatcher == nullptr) return 0;
  const Lock lock(dispatcher->mutex);
  return dispatcher->plans.size();
}

void kw_dispatcher_clear_plans(kw_dispatcher* dispatcher) {
  if (dispatcher == nullptr) return;
  const Lock lock(dispatcher->mutex);
  dispatcher->plans.clear();
}
