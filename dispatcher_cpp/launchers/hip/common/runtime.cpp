// Talks to the HIP runtime, which is opened on first use; knows the one architecture of its library.
#include "kernelwright/hip/common/runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef KW_HIP_TARGET
#error "define KW_HIP_TARGET as the architecture of the library"
#endif

namespace {

// Null, hipStreamLegacy and hipStreamPerThread: streams of whichever device is current.
constexpr uintptr_t kLastDefaultStream = 2;

// hipModuleLaunchKernel's `extra`: keys of a list of (key, value) pairs.
constexpr uintptr_t kLaunchBufferPointer = 1, kLaunchBufferSize = 2, kLaunchEnd = 3;

// hipDeviceProp_t has grown from 792 to 1472 bytes so far.
constexpr size_t kPropertiesBytes = 8192;

struct hip_api {
  int (*get_device)(int* device);
  int (*set_device)(int device);
  int (*get_device_count)(int* count);
  int (*stream_device)(void* stream, int* device);
  int (*get_properties)(void* properties, int device);
  const char* (*error_string)(int error);
  int (*module_load)(void** module, const void* image);
  int (*module_function)(void** function, void* module, const char* name);
  int (*launch)(void* function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x, uint32_t block_y,
                uint32_t block_z, uint32_t lds_bytes, void* stream, void** arguments, void** extra);
};

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
hip_api api_storage;
const hip_api* api_ready;  // published with release order once api_storage is complete
char runtime_path[4096];   // the file that is or will be opened, "" = not decided
thread_local char last_error[2048];

// A child of fork() has one thread. The lock is taken before, so that no other thread holds it in the child for ever.
void before_fork() { pthread_mutex_lock(&mutex); }
void after_fork() { pthread_mutex_unlock(&mutex); }

// glibc's own entry: unlike pthread_atfork it forgets the handlers when this library is unloaded.
extern "C" int __register_atfork(void (*)(), void (*)(), void (*)(), void*);
extern "C" KW_HIDDEN void* __dso_handle;

__attribute__((constructor)) void handle_forks() {
  __register_atfork(before_fork, after_fork, after_fork, &__dso_handle);
}

}  // namespace

kw_status kw_hip_fail(kw_status status, const char* format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(last_error, sizeof last_error, format, values);
  va_end(values);
  return status;
}

const char* kw_backend_last_error(void) { return last_error; }

kw_status kw_backend_set_num_threads(uint32_t threads) {
  (void)threads;
  return kw_hip_fail(KW_UNSUPPORTED, "a library for AMD GPUs has no CPU threads to set");
}

kw_status kw_backend_set_runtime(const char* path) {
  kw_status status = KW_OK;
  if (!path || !*path || strlen(path) >= sizeof runtime_path)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "set_runtime needs a path of 1 to %zu bytes", sizeof runtime_path - 1);
  pthread_mutex_lock(&mutex);
  if (*runtime_path && strcmp(path, runtime_path) != 0)
    status = kw_hip_fail(KW_INVALID_ARGUMENT,
                         "this library uses %s as its GPU runtime already and cannot change to %s; load a copy of its "
                         "file to use both in one process",
                         runtime_path, path);
  else
    memcpy(runtime_path, path, strlen(path) + 1);
  pthread_mutex_unlock(&mutex);
  return status;
}

namespace {

void* open_runtime(const char** name) {
  // Plain libamdhip64.so is left out on purpose: it may be a ROCm 5, whose structs differ.
  static const char* const names[] = {"libamdhip64.so.7", "libamdhip64.so.6"};
  const char* chosen = *runtime_path ? runtime_path : getenv("KERNELWRIGHT_HIP_LIBRARY");
  *name = chosen;
  if (chosen && *chosen) return dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
  for (const char* each : names) {
    void* library = dlopen(*name = each, RTLD_NOW | RTLD_LOCAL);
    if (library) return library;
  }
  return nullptr;
}

template <class Function>
bool resolve(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  return *function != nullptr;
}

kw_status load_api() {
  const char* name = nullptr;
  void* library = open_runtime(&name);
  if (!library) {
    const char* detail = dlerror();
    return kw_hip_fail(KW_RUNTIME_MISSING, "the HIP runtime (libamdhip64.so.7 or .6) cannot be loaded: %s",
                       detail ? detail : "not found");
  }
  hip_api* api = &api_storage;
  const bool complete = resolve(library, "hipGetDevice", &api->get_device) &&
                        resolve(library, "hipSetDevice", &api->set_device) &&
                        resolve(library, "hipGetDeviceCount", &api->get_device_count) &&
                        resolve(library, "hipStreamGetDevice", &api->stream_device) &&
                        resolve(library, "hipGetErrorString", &api->error_string) &&
                        resolve(library, "hipModuleLoadData", &api->module_load) &&
                        resolve(library, "hipModuleGetFunction", &api->module_function) &&
                        resolve(library, "hipModuleLaunchKernel", &api->launch) &&
                        (resolve(library, "hipGetDevicePropertiesR0600", &api->get_properties) ||
                         resolve(library, "hipGetDeviceProperties", &api->get_properties));
  if (!complete) {
    dlclose(library);
    return kw_hip_fail(KW_RUNTIME_MISSING, "the HIP runtime lacks a function that kernelwright needs");
  }
  if (name != runtime_path) snprintf(runtime_path, sizeof runtime_path, "%s", name);
  __atomic_store_n(&api_ready, api, __ATOMIC_RELEASE);
  return KW_OK;
}

kw_status get_api(const hip_api** api) {
  kw_status status = KW_OK;
  *api = __atomic_load_n(&api_ready, __ATOMIC_ACQUIRE);
  if (*api) return KW_OK;
  pthread_mutex_lock(&mutex);
  if (!api_ready) status = load_api();
  *api = api_ready;
  pthread_mutex_unlock(&mutex);
  return status;
}

kw_status hip_failed(const hip_api* api, const char* what, int error) {
  const char* text = api->error_string(error);
  return kw_hip_fail(KW_LAUNCH_FAILED, "%s: HIP error %d (%s)", what, error, text ? text : "no text");
}

// HIP would run the kernel on the stream's device, where neither its code nor its pointers are valid.
kw_status check_stream(const hip_api* api, const kw_launch* where) {
  static int known = 0;  // number of devices, 0 = not asked yet; every thread would write the same
  int count = __atomic_load_n(&known, __ATOMIC_RELAXED), device = where->device;
  if (reinterpret_cast<uintptr_t>(where->stream) <= kLastDefaultStream || count == 1) return KW_OK;
  if (!count) {
    const int error = api->get_device_count(&count);
    if (error) return hip_failed(api, "counting devices", error);
    __atomic_store_n(&known, count, __ATOMIC_RELAXED);
  }
  const int error = count == 1 ? 0 : api->stream_device(where->stream, &device);
  if (error)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "stream %p has no device: HIP error %d (%s)", where->stream, error,
                       api->error_string(error));
  if (device == where->device) return KW_OK;
  return kw_hip_fail(KW_INVALID_ARGUMENT,
                     "the stream is of device %d and the launch is on device %d; pass a stream of device %d", device,
                     where->device, where->device);
}

kw_status load_function(const hip_api* api, const kw_hip_code* code, void** slot) {
  void* module = nullptr;
  int error = api->module_load(&module, code->image);
  if (error) return hip_failed(api, "loading the code object of " KW_HIP_TARGET, error);
  void* function = nullptr;
  error = api->module_function(&function, module, code->function);
  if (error) return hip_failed(api, "finding the kernel in its code object", error);
  __atomic_store_n(slot, function, __ATOMIC_RELEASE);
  return KW_OK;
}

// The kernel's handle on a device, which is current.
kw_status get_function(const hip_api* api, const kw_hip_code* code, int32_t device, void** function) {
  void** slot = &code->functions[device];
  kw_status status = KW_OK;
  *function = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
  if (*function) return KW_OK;
  pthread_mutex_lock(&mutex);
  if (!*slot) status = load_function(api, code, slot);
  *function = *slot;
  pthread_mutex_unlock(&mutex);
  return status;
}

kw_status launch(const hip_api* api, const kw_hip_code* code, const kw_launch* where, const uint32_t* grid,
                 uint32_t block, void* arguments, size_t bytes) {
  void* function = nullptr;
  const kw_status status = get_function(api, code, where->device, &function);
  if (status != KW_OK) return status;
  void* extra[] = {reinterpret_cast<void*>(kLaunchBufferPointer), arguments, reinterpret_cast<void*>(kLaunchBufferSize),
                   &bytes, reinterpret_cast<void*>(kLaunchEnd)};
  const int error = api->launch(function, grid[0], grid[1], grid[2], block, 1, 1, 0, where->stream, nullptr, extra);
  return error ? hip_failed(api, "launching the kernel", error) : KW_OK;
}

}  // namespace

kw_status kw_hip_launch(const kw_hip_code* code, const kw_launch* where, uint32_t grid, uint32_t block, void* arguments,
                        size_t bytes) {
  const uint32_t flat[3] = {grid, 1, 1};
  return kw_hip_launch_grid(code, where, flat, block, arguments, bytes);
}

kw_status kw_hip_launch_grid(const kw_hip_code* code, const kw_launch* where, const uint32_t* grid, uint32_t block,
                             void* arguments, size_t bytes) {
  const hip_api* api = nullptr;
  int before = 0;
  if (where->device < 0 || where->device >= KW_HIP_MAX_DEVICES)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "device = %d; allowed: 0 to %d", where->device, KW_HIP_MAX_DEVICES - 1);
  kw_status status = get_api(&api);
  if (status != KW_OK) return status;
  status = check_stream(api, where);
  if (status != KW_OK) return status;
  int error = api->get_device(&before);
  if (error) return hip_failed(api, "asking for the current device", error);
  if (before == where->device) return launch(api, code, where, grid, block, arguments, bytes);
  error = api->set_device(where->device);
  if (error) return hip_failed(api, "making the device of the launch current", error);
  status = launch(api, code, where, grid, block, arguments, bytes);
  error = api->set_device(before);
  return status == KW_OK && error ? hip_failed(api, "making the device from before the launch current again", error)
                                  : status;
}

namespace {

// The architecture name inside hipDeviceProp_t, "" if there is none. Its offset differs between ROCm releases, so it is
// found by its form: a string that starts with gfx, behind the device name at the start.
const char* arch_name(const char* properties) {
  for (const char* at = properties + 1; at < properties + kPropertiesBytes - 64; ++at)
    if (at[-1] == '\0' && memcmp(at, "gfx", 3) == 0) return at;
  return "";
}

}  // namespace

kw_status kw_backend_check_device(int32_t device, char* reason, size_t reason_bytes) {
  char properties[kPropertiesBytes] = {0};
  const hip_api* api = nullptr;
  kw_status status = get_api(&api);
  if (status == KW_OK) {
    const int error = api->get_properties(properties, device);
    char name[64];
    snprintf(name, sizeof name, "%s", arch_name(properties));
    name[strcspn(name, ":")] = '\0';  // gfx942:sramecc+:xnack-
    if (error)
      status =
          kw_hip_fail(KW_INVALID_ARGUMENT, "device %d: HIP error %d (%s)", device, error, api->error_string(error));
    else if (strcmp(name, KW_HIP_TARGET) != 0)
      status = kw_hip_fail(KW_ARCH_MISMATCH, "device %d is %s, the library is for " KW_HIP_TARGET, device,
                           *name ? name : "no AMD GPU");
  }
  if (reason && reason_bytes) snprintf(reason, reason_bytes, "%s", status == KW_OK ? "" : last_error);
  return status;
}
