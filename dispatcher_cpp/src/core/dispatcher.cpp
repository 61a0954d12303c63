#include "kernelwright/dispatcher.h"

#include <stdlib.h>
#include <string.h>

#include "kernelwright/dispatcher/state.hpp"
#include "kernelwright/dispatcher/support/error.hpp"

using namespace kernelwright;

namespace {

kw_status copy_text(const char* text, char** copy) {
  *copy = text == nullptr ? nullptr : strdup(text);
  return text != nullptr && *copy == nullptr ? fail(KW_OUT_OF_MEMORY, "no memory") : KW_OK;
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

void fill_info(const KernelEntry& entry, kw_kernel_info* info) {
  info->priority = entry.priority;
  info->kernel = entry.kernel;
  info->library = entry.library->library;
}

kw_status write_json(const Text& text, char* buffer, size_t bytes, size_t* needed) {
  const kw_status status = text.write_to(buffer, bytes, needed);
  if (status == KW_OUT_OF_MEMORY) return fail(status, "no memory for JSON");
  if (status == KW_OK) return KW_OK;
  return fail(status, "buffer holds %zu bytes; needed: %zu", bytes, text.size() + 1);
}

kw_status check_selection(const kw_selection_options& options) {
  if (options.provider > KW_SELECT_AUTO) {
    return fail(KW_INVALID_ARGUMENT,
                "selection: provider = %u; allowed: 0 (analytic), 1 (first fit), 2 (explicit), "
                "3 (callback), 4 (auto)",
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
  if (options != nullptr && options->device < 0) {
    return fail(KW_INVALID_ARGUMENT, "kw_dispatcher_options: device = %d; allowed: an ordinal from 0 on, 0 on CPU",
                options->device);
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
  const uint32_t digest_check =
      options == nullptr ? static_cast<uint32_t>(KW_DIGEST_OF_MANIFEST) : options->digest_check;
  if (digest_check > KW_DIGEST_UNCHECKED) {
    return fail(KW_INVALID_ARGUMENT,
                "kw_library_options: digest_check = %u; allowed: 0 (as the manifest says), 1 (any)", digest_check);
  }
  const kw_library* library = nullptr;
  if (kw_status status = open_library(path, digest_check, &library)) return status;
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
  if (kw_status status = check_info(info, "kw_kernel_info")) return status;
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
  if (kw_status status = check_info(info, "kw_kernel_info")) return status;
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
  const Lock lock(dispatcher->mutex), limit(thread_limit_mutex);
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
  const Operation* operation = nullptr;
  if (kw_status status = validate(problem, &operation)) return status;
  Text text;
  {
    const Lock lock(dispatcher->mutex);
    if (kw_status status = explain(*dispatcher, *operation, *problem, &text)) return status;
  }
  return write_json(text, buffer, bytes, needed);
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
