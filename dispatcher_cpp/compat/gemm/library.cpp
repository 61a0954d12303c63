#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernelwright/dispatcher/compat/gemm_state.hpp"
#include "kernelwright/dispatcher/compat/kernel_files.hpp"
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

kw_status add_kernels(State* state, const char* kernels) {
  if (kernels != nullptr) return add_kernel_files(state->dispatcher, kernels);
  Text packaged, installed;
  beside(kFolder, &packaged);
  beside(kInstalled, &installed);
  const bool is_packaged = access(packaged.c_str(), F_OK) == 0 || access(installed.c_str(), F_OK) != 0;
  if (kw_status status = add_kernel_files(state->dispatcher, is_packaged ? packaged.c_str() : installed.c_str())) {
    Text why;
    why.add(kw_last_error());
    return fail(status, "%s; name kernel libraries in KERNELWRIGHT_GEMM_KERNELS", why.c_str());
  }
  return KW_OK;
}

kw_status fill(State* state, const char* kernels, const char* types) {
  kw_dispatcher_options options{};
  options.struct_size = sizeof options;
  options.device_check = KW_CHECK_ON_ADD;
  if (kw_status status = kw_dispatcher_create(&options, &state->dispatcher)) return status;
  if (kw_status status = add_kernels(state, given(kernels, "KERNELWRIGHT_GEMM_KERNELS"))) return status;
  uint32_t backend = 0;
  if (kw_status status = common_backend(state->dispatcher, &backend)) return status;
  if (kw_status status = state->memory.open(backend)) return status;
  types = given(types, "KERNELWRIGHT_GEMM_TYPES");
  if (kw_status status = types != nullptr ? parse_types(types, &state->types, &state->epilogue)
                                          : common_types(state->dispatcher, &state->types)) {
    return status;
  }
  if (state->epilogue.num_d == 0) common_epilogue(state->dispatcher, state->types, &state->epilogue);
  size_t bytes = 0;
  kw_dispatcher_export_json(state->dispatcher, nullptr, 0, &bytes);
  state->json = static_cast<char*>(malloc(bytes));
  if (state->json == nullptr) return fail(KW_OUT_OF_MEMORY, "no memory for %zu bytes of JSON", bytes);
  return kw_dispatcher_export_json(state->dispatcher, state->json, bytes, nullptr);
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
  return g_state == nullptr ? 0 : static_cast<int>(kw_dispatcher_kernel_count(g_state->dispatcher));
}

int dispatcher_get_kernel_name_at(int index, char* name, int bytes) {
  const Reading reading;
  const State* state = reading.state();
  if (state == nullptr) return DISPATCHER_ERROR;
  kw_kernel_info info{};
  info.struct_size = sizeof info;
  // A negative index becomes a large one, which is refused.
  kw_status status =
      kw_dispatcher_kernel_at(state->dispatcher, static_cast<uint64_t>(static_cast<int64_t>(index)), &info);
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
  const State* state = reading.state();
  Planned planned;
  return state != nullptr && planned.make(*state, packed_problem(state->types, m, n, k).base) == KW_OK;
}

int dispatcher_select_kernel(int64_t m, int64_t n, int64_t k, char* name, int bytes) {
  const Reading reading;
  const State* state = reading.state();
  if (state == nullptr) return DISPATCHER_ERROR;
  Planned planned;
  if (kw_status status = planned.make(*state, packed_problem(state->types, m, n, k).base)) return code(status);
  kw_stage_info info{};
  info.struct_size = sizeof info;
  kw_status status = kw_plan_get_stage(planned.get(), 0, &info);
  if (status == KW_OK) status = write_name(info.kernel->name, name, bytes);
  return code(status);
}
