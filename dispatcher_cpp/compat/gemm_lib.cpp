#include "tilewright/dispatcher/gemm_lib.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tilewright/dispatcher/error.hpp"
#include "tilewright/dispatcher/gemm_types.hpp"
#include "tilewright/dispatcher/kernel_files.hpp"
#include "tilewright/dispatcher/memory.hpp"
#include "tilewright/dispatcher/problem.hpp"

using namespace tilewright;

namespace {

constexpr double kTimedSeconds = 0.1;
constexpr int kMostRepeats = 10;
constexpr const char* kFolder = "dispatcher_gemm_kernels";
constexpr const char* kInstalled = "../../tilewright_kernels/gemm";  // of wheels, seen from tilewright/dispatch

struct State {
  tw_dispatcher* dispatcher = nullptr;
  Memory memory;
  GemmTypes types{};
  char* json = nullptr;

  ~State() {
    tw_dispatcher_destroy(dispatcher);
    free(json);
  }
};

// Calls hold it for reading, so that cleaning up waits for them.
pthread_rwlock_t g_lock = PTHREAD_RWLOCK_INITIALIZER;
State* g_state = nullptr;

class Reading {
 public:
  Reading() { pthread_rwlock_rdlock(&g_lock); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() { pthread_rwlock_unlock(&g_lock); }
  // Null, with the reason left for dispatcher_last_error, before dispatcher_init().
  State* state() const {
    if (g_state == nullptr) fail(TW_INVALID_ARGUMENT, "not initialised; call dispatcher_init() first");
    return g_state;
  }
};

// The plan of a problem: the dispatcher's, or one of our own where its cache is full.
class Planned {
 public:
  Planned() = default;
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;
  ~Planned() { tw_plan_destroy(own_); }

  tw_status make(const State& state, const tw_gemm_problem& problem) {
    tw_status status = tw_dispatcher_select(state.dispatcher, &problem.base, &plan_);
    if (status == TW_OUT_OF_MEMORY) {
      status = tw_plan_create(state.dispatcher, &problem.base, &own_);
      plan_ = own_;
    }
    return status;
  }
  const tw_plan* get() const { return plan_; }

 private:
  const tw_plan* plan_ = nullptr;
  tw_plan* own_ = nullptr;
};

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

tw_status add_kernels(State* state, const char* kernels) {
  if (kernels != nullptr) return add_kernel_files(state->dispatcher, kernels);
  Text packaged, installed;
  beside(kFolder, &packaged);
  beside(kInstalled, &installed);
  const bool is_packaged = access(packaged.c_str(), F_OK) == 0 || access(installed.c_str(), F_OK) != 0;
  if (tw_status status = add_kernel_files(state->dispatcher, is_packaged ? packaged.c_str() : installed.c_str())) {
    Text why;
    why.add(tw_last_error());
    return fail(status, "%s; name kernel libraries in TILEWRIGHT_GEMM_KERNELS", why.c_str());
  }
  return TW_OK;
}

tw_status fill(State* state, const char* kernels, const char* types) {
  tw_dispatcher_options options{};
  options.struct_size = sizeof options;
  options.device_check = TW_CHECK_ON_ADD;
  if (tw_status status = tw_dispatcher_create(&options, &state->dispatcher)) return status;
  if (tw_status status = add_kernels(state, given(kernels, "TILEWRIGHT_GEMM_KERNELS"))) return status;
  uint32_t backend = 0;
  if (tw_status status = common_backend(state->dispatcher, &backend)) return status;
  if (tw_status status = state->memory.open(backend)) return status;
  types = given(types, "TILEWRIGHT_GEMM_TYPES");
  if (tw_status status =
          types != nullptr ? parse_types(types, &state->types) : common_types(state->dispatcher, &state->types)) {
    return status;
  }
  size_t bytes = 0;
  tw_dispatcher_export_json(state->dispatcher, nullptr, 0, &bytes);
  state->json = static_cast<char*>(malloc(bytes));
  if (state->json == nullptr) return fail(TW_OUT_OF_MEMORY, "no memory for %zu bytes of JSON", bytes);
  return tw_dispatcher_export_json(state->dispatcher, state->json, bytes, nullptr);
}

int code(tw_status status) {
  if (status == TW_OK) return DISPATCHER_OK;
  return status == TW_NO_KERNEL ? DISPATCHER_NO_KERNEL : DISPATCHER_ERROR;
}

tw_status write_name(const char* text, char* name, int bytes) {
  const size_t needed = strlen(text) + 1;
  if (name == nullptr || bytes < 0 || static_cast<size_t>(bytes) < needed) {
    return fail(TW_BUFFER_TOO_SMALL, "the name takes %zu bytes, the buffer has %d", needed,
                name == nullptr ? 0 : bytes);
  }
  memcpy(name, text, needed);
  return TW_OK;
}

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

tw_status launch(const State& state, const tw_plan* plan, const tw_gemm_args& args, float* time_ms) {
  if (tw_status status = tw_plan_launch(plan, &args)) return status;
  if (tw_status status = state.memory.finish()) return status;
  if (time_ms == nullptr) return TW_OK;
  int repeats = 0;
  double spent = 0;
  while (repeats == 0 || (repeats < kMostRepeats && spent < kTimedSeconds)) {
    const double start = now();
    if (tw_status status = tw_plan_launch(plan, &args)) return status;
    if (tw_status status = state.memory.finish()) return status;
    spent += now() - start;
    ++repeats;
  }
  *time_ms = static_cast<float>(spent / repeats * 1e3);
  return TW_OK;
}

size_t bytes_of(uint32_t dtype, int64_t rows, int64_t columns) {
  return static_cast<size_t>(rows) * static_cast<size_t>(columns) *
         dtype_bytes(dtype);  // the problem is valid: it fits
}

tw_status run_on_device(const State& state, const tw_plan* plan, const tw_gemm_problem& problem, tw_gemm_args args,
                        float* time_ms) {
  const Memory& memory = state.memory;
  const size_t a_bytes = bytes_of(problem.dtype_a, problem.m, problem.k);
  const size_t b_bytes = bytes_of(problem.dtype_b, problem.k, problem.n);
  const size_t c_bytes = bytes_of(problem.dtype_c, problem.m, problem.n);
  Buffer a(memory), b(memory), c(memory);
  if (tw_status status = a.allocate(a_bytes)) return status;
  if (tw_status status = b.allocate(b_bytes)) return status;
  if (tw_status status = c.allocate(c_bytes)) return status;
  if (tw_status status = memory.copy_in(a.get(), args.a, a_bytes)) return status;
  if (tw_status status = memory.copy_in(b.get(), args.b, b_bytes)) return status;
  void* const host = args.d;
  args.a = a.get();
  args.b = b.get();
  args.d = c.get();
  if (tw_status status = launch(state, plan, args, time_ms)) return status;
  return memory.copy_out(host, c.get(), c_bytes);
}

tw_status run(const State& state, const tw_gemm_problem& problem, const void* a, const void* b, void* c,
              float* time_ms) {
  Planned planned;
  if (tw_status status = planned.make(state, problem)) return status;
  tw_gemm_args args{};
  args.struct_size = sizeof args;
  args.a = a;
  args.b = b;
  args.d = c;
  if (tw_status status = validate_args(problem, &args, UINT64_C(0))) return status;
  if (tw_status status = state.memory.enter()) return status;
  Buffer workspace(state.memory);
  args.workspace_bytes = tw_plan_workspace_size(planned.get());
  if (tw_status status = workspace.allocate(args.workspace_bytes)) return status;
  args.workspace = workspace.get();
  if (state.memory.is_host()) return launch(state, planned.get(), args, time_ms);
  return run_on_device(state, planned.get(), problem, args, time_ms);
}

}  // namespace

uint32_t dispatcher_abi_version(void) { return DISPATCHER_GEMM_LIB_ABI_VERSION; }

const char* dispatcher_last_error(void) { return tw_last_error(); }

int dispatcher_init_from(const char* kernels, const char* types) {
  pthread_rwlock_wrlock(&g_lock);
  tw_status status = TW_OK;
  if (g_state == nullptr) {
    State* state = make_object<State>();
    status = state == nullptr ? fail(TW_OUT_OF_MEMORY, "no memory") : fill(state, kernels, types);
    if (status == TW_OK) {
      g_state = state;
      fail(TW_OK, "%s", "");  // asking for a size left a sentence
    } else {
      destroy_object(state);
    }
  }
  pthread_rwlock_unlock(&g_lock);
  return status == TW_OK ? DISPATCHER_OK : DISPATCHER_ERROR;
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
  return g_state == nullptr ? 0 : static_cast<int>(tw_dispatcher_kernel_count(g_state->dispatcher));
}

int dispatcher_get_kernel_name_at(int index, char* name, int bytes) {
  const Reading reading;
  const State* state = reading.state();
  if (state == nullptr) return DISPATCHER_ERROR;
  tw_kernel_info info{};
  info.struct_size = sizeof info;
  // A negative index becomes a large one, which is refused.
  tw_status status =
      tw_dispatcher_kernel_at(state->dispatcher, static_cast<uint64_t>(static_cast<int64_t>(index)), &info);
  if (status == TW_OK) status = write_name(info.kernel->name, name, bytes);
  return status == TW_OK ? DISPATCHER_OK : DISPATCHER_ERROR;
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
  return state != nullptr && planned.make(*state, packed_problem(state->types, m, n, k)) == TW_OK;
}

int dispatcher_select_kernel(int64_t m, int64_t n, int64_t k, char* name, int bytes) {
  const Reading reading;
  const State* state = reading.state();
  if (state == nullptr) return DISPATCHER_ERROR;
  Planned planned;
  if (tw_status status = planned.make(*state, packed_problem(state->types, m, n, k))) return code(status);
  tw_plan_info info{};
  info.struct_size = sizeof info;
  tw_status status = tw_plan_get_info(planned.get(), &info);
  if (status == TW_OK) status = write_name(info.kernel->name, name, bytes);
  return code(status);
}

int dispatcher_run_gemm(const void* a, const void* b, void* c, int64_t m, int64_t n, int64_t k, float* time_ms) {
  const Reading reading;
  const State* state = reading.state();
  tw_status status = TW_INVALID_ARGUMENT;
  if (state != nullptr) status = run(*state, packed_problem(state->types, m, n, k), a, b, c, time_ms);
  if (status != TW_OK && time_ms != nullptr) *time_ms = -1.0F;
  return code(status);
}
