#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernelwright/dispatcher/compat/gemm_state.hpp"
#include "kernelwright/dispatcher/gemm_lib.h"
#include "kernelwright/dispatcher/support/error.hpp"

using namespace kernelwright;

pthread_rwlock_t kernelwright::g_lock = PTHREAD_RWLOCK_INITIALIZER;
State* kernelwright::g_state = nullptr;

namespace {

constexpr const char* kFolder = "dispatcher_gemm_kernels";
constexpr const char* kInstalled = "../../kernelwright_kernels/gemm";  // of wheels, seen from kernelwright/dispatch

// A folder relative to that of this file.
void beside(const char* folder, Text* path) {
  Dl_info found;
  if (dladdr(reinterpret_cast<const void*>(&dispatcher_abi_version), &found) != 0 && found.dli_fname != nullptr) {
    const char* end = strrchr(found.dli_fname, '/');
    for (const char* at = found.dli_fname; end != nullptr && at <= end; ++at) path->add(*at);
  }
  path->add(folder);
}

const char* given(const char* argument, const char* variable) {
  if (argument != nullptr) return argument;
  const char* value = getenv(variable);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

kw_status load_kernels(State* state, const char* kernels) {
  if (kernels != nullptr) return load_kernel_files(kernels, &state->libraries);
  Text packaged, installed;
  beside(kFolder, &packaged);
  beside(kInstalled, &installed);
  const bool is_packaged = access(packaged.c_str(), F_OK) == 0 || access(installed.c_str(), F_OK) != 0;
  if (kw_status status = load_kernel_files(is_packaged ? packaged.c_str() : installed.c_str(), &state->libraries)) {
    Text why;
    why.add(kw_last_error());
    return fail(status, "%s; name kernel libraries in KERNELWRIGHT_GEMM_KERNELS", why.c_str());
  }
  return KW_OK;
}

// The device that is current in the calling thread, of the first GPU runtime that can be asked; 0 where there is none.
int32_t current_device(const Libraries& libraries) {
  for (const kw_library* library : libraries) {
    Memory memory;
    int32_t device = 0;
    if (library->arch->backend == KW_BACKEND_CPU || memory.open(library->arch->backend) != KW_OK) continue;
    if (memory.current_device(&device) == KW_OK) return device;
  }
  return 0;
}

kw_status fill(State* state, const char* kernels, const char* types) {
  if (kw_status status = load_kernels(state, given(kernels, "KERNELWRIGHT_GEMM_KERNELS"))) return status;
  if (kw_status status = make_target(state->libraries, current_device(state->libraries), &state->first)) return status;
  kw_dispatcher* const dispatcher = state->first.dispatcher;
  uint32_t backend = 0;
  if (kw_status status = common_backend(dispatcher, &backend)) return status;
  if (kw_status status = state->memory.open(backend)) return status;
  if (backend == KW_BACKEND_CPU) state->first.device = 0;
  types = given(types, "KERNELWRIGHT_GEMM_TYPES");
  if (kw_status status = types != nullptr ? parse_types(types, &state->types, &state->epilogue)
                                          : common_types(dispatcher, &state->types)) {
    return status;
  }
  if (state->epilogue.num_d == 0) common_epilogue(dispatcher, state->types, &state->epilogue);
  size_t bytes = 0;
  kw_dispatcher_export_json(dispatcher, nullptr, 0, &bytes);
  state->json = static_cast<char*>(malloc(bytes));
  if (state->json == nullptr) return fail(KW_OUT_OF_MEMORY, "no memory for %zu bytes of JSON", bytes);
  return kw_dispatcher_export_json(dispatcher, state->json, bytes, nullptr);
}

kw_status write_name(const char* text, char* name, int bytes) {
  const size_t needed = strlen(text) + 1;
  if (name == nullptr || bytes < 0 || static_cast<size_t>(bytes) < needed) {
    return fail(KW_BUFFER_TOO_SMALL, "the name takes %zu bytes, the buffer has %d", needed,
                name == nullptr ? 0 : bytes);
  }
  memcpy(name, text, needed);
  return KW_OK;
}

}  // namespace

kw_status kernelwright::make_target(const Libraries& libraries, int32_t device, Target* target) {
  kw_dispatcher_options options{};
  options.struct_size = sizeof options;
  options.device_check = KW_CHECK_ON_ADD;
  options.device = device;
  target->device = device;
  if (kw_status status = kw_dispatcher_create(&options, &target->dispatcher)) return status;
  return add_libraries(target->dispatcher, libraries);
}

kw_status State::here(Target* target) {
  int32_t device = 0;
  if (kw_status status = memory.current_device(&device)) return status;
  *target = first;
  if (device == first.device) return KW_OK;
  const Lock lock(mutex_);
  for (const Target& other : others_) {
    *target = other;
    if (other.device == device) return KW_OK;
  }
  kw_status status = make_target(libraries, device, target);
  if (status == KW_OK && !others_.push(*target)) status = fail(KW_OUT_OF_MEMORY, "no memory for device %d", device);
  if (status != KW_OK) kw_dispatcher_destroy(target->dispatcher);
  return status;
}

uint32_t dispatcher_abi_version(void) { return DISPATCHER_GEMM_LIB_ABI_VERSION; }

const char* dispatcher_last_error(void) { return kw_last_error(); }

int dispatcher_init_from(const char* kernels, const char* types) {
  pthread_rwlock_wrlock(&g_lock);
  kw_status status = KW_OK;
  if (g_state == nullptr) {
    State* state = make_object<State>();
    status = state == nullptr ? fail(KW_OUT_OF_MEMORY, "no memory") : fill(state, kernels, types);
    if (status == KW_OK) {
      g_state = state;
      fail(KW_OK, "%s", "");  // asking for a size left a sentence
    } else {
      destroy_object(state);
    }
  }
  pthread_rwlock_unlock(&g_lock);
  return status == KW_OK ? DISPATCHER_OK : DISPATCHER_ERROR;
}

int dispatcher_init(void) { return dispatcher_init_from(nullptr, nullptr); }

int dispatcher_initialize(void) { return dispatcher_init(); }

void dispatcher_cleanup(void) {
  pthread_rwlock_wrlock(&g_lock);
  destroy_object(g_state);
  g_state = nullptr;
  pthread_rwlock_unlock(&g_lock);
}

int dispatcher_get_kernel_count(void) {
  const Reading reading;
  return g_state == nullptr ? 0 : static_cast<int>(kw_dispatcher_kernel_count(g_state->first.dispatcher));
}

int dispatcher_get_kernel_name_at(int index, char* name, int bytes) {
  const Reading reading;
  const State* state = reading.state();
  if (state == nullptr) return DISPATCHER_ERROR;
  kw_kernel_info info{};
  info.struct_size = sizeof info;
  // A negative index becomes a large one, which is refused.
  kw_status status =
      kw_dispatcher_kernel_at(state->first.dispatcher, static_cast<uint64_t>(static_cast<int64_t>(index)), &info);
  if (status == KW_OK) status = write_name(info.kernel->name, name, bytes);
  return status == KW_OK ? DISPATCHER_OK : DISPATCHER_ERROR;
}

const char* dispatcher_export_registry_json(void) {
  const Reading reading;
  const State* state = reading.state();
  return state == nullptr ? nullptr : state->json;
}

int dispatcher_is_supported(int64_t m, int64_t n, int64_t k) {
  const Reading reading;
  State* state = reading.state();
  Target target{};
  Planned planned;
  return state != nullptr && state->here(&target) == KW_OK &&
         planned.make(target, packed_problem(state->types, m, n, k).base) == KW_OK;
}

int dispatcher_select_kernel(int64_t m, int64_t n, int64_t k, char* name, int bytes) {
  const Reading reading;
  State* state = reading.state();
  if (state == nullptr) return DISPATCHER_ERROR;
  Target target{};
  Planned planned;
  if (kw_status status = state->here(&target)) return code(status);
  if (kw_status status = planned.make(target, packed_problem(state->types, m, n, k).base)) return code(status);
  kw_stage_info info{};
  info.struct_size = sizeof info;
  kw_status status = kw_plan_get_stage(planned.get(), 0, &info);
  if (status == KW_OK) status = write_name(info.kernel->name, name, bytes);
  return code(status);
}
