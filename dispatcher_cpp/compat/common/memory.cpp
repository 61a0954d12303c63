#include "kernelwright/dispatcher/compat/memory.hpp"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "kernelwright/dispatcher/support/error.hpp"

namespace kernelwright {

namespace {

constexpr size_t kAlignment = 256;
constexpr int kHipDefault = 4;  // hipMemcpyKind: the addresses say where memory is

uint64_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

}  // namespace

Memory::~Memory() {
  // The runtime stays mapped: kernel libraries use it too, and its threads may live on.
  library_ = nullptr;
}

kw_status Memory::open(uint32_t backend) {
  switch (backend) {
    case KW_BACKEND_CPU:
      return KW_OK;
    case KW_BACKEND_HIP:
      return open_hip();
    case KW_BACKEND_CUDA:
      return open_cuda();
    default:
      return fail(KW_UNSUPPORTED, "backend %u: allowed: 1 (CPU), 2 (HIP), 3 (CUDA)", backend);
  }
}

template <typename Function>
bool Memory::resolve(const char* name, Function* function) {
  void* symbol = dlsym(library_, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != nullptr;
}

kw_status Memory::open_hip() {
  // The names, and the variable that replaces them, are those of the kernel libraries: both must use one runtime.
  const char* chosen = getenv("KERNELWRIGHT_HIP_LIBRARY");
  if (chosen != nullptr && *chosen != '\0') {
    library_ = dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
  } else {
    library_ = dlopen("libamdhip64.so.7", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) library_ = dlopen("libamdhip64.so.6", RTLD_NOW | RTLD_LOCAL);
  }
  if (library_ == nullptr) return fail(KW_RUNTIME_MISSING, "the HIP runtime cannot be loaded: %s", dlerror());
  runtime_ = "HIP";
  if (!resolve("hipGetDevice", &get_device_) || !resolve("hipSetDevice", &set_device_) ||
      !resolve("hipMalloc", &allocate_hip_) || !resolve("hipFree", &release_hip_) ||
      !resolve("hipMemcpy", &copy_hip_) || !resolve("hipDeviceSynchronize", &finish_)) {
    return fail(KW_RUNTIME_MISSING, "the HIP runtime lacks a function: %s", dlerror());
  }
  int32_t device = 0;
  return current_device(&device);
}

kw_status Memory::open_cuda() {
  library_ = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) return fail(KW_RUNTIME_MISSING, "the CUDA driver cannot be loaded: %s", dlerror());
  runtime_ = "CUDA";
  int (*init)(unsigned) = nullptr;
  if (!resolve("cuInit", &init) || !resolve("cuDeviceGet", &get_handle_) ||
      !resolve("cuDevicePrimaryCtxRetain", &retain_) || !resolve("cuCtxGetCurrent", &get_context_) ||
      !resolve("cuCtxGetDevice", &get_context_device_) || !resolve("cuCtxSetCurrent", &set_context_) ||
      !resolve("cuMemAlloc_v2", &allocate_cuda_) || !resolve("cuMemFree_v2", &release_cuda_) ||
      !resolve("cuMemcpy", &copy_cuda_) || !resolve("cuCtxSynchronize", &finish_)) {
    return fail(KW_RUNTIME_MISSING, "the CUDA driver lacks a function: %s", dlerror());
  }
  if (kw_status status = check("cuInit", init(0))) return status;
  int32_t device = 0;
  return current_device(&device);
}

kw_status Memory::current_device(int32_t* device) const {
  *device = 0;
  if (get_device_ != nullptr) return check("hipGetDevice", get_device_(device));
  if (get_context_ == nullptr) return KW_OK;
  void* context = nullptr;
  if (kw_status status = check("cuCtxGetCurrent", get_context_(&context))) return status;
  // The driver's device handles are ordinals: its documentation calls them so, and the CUDA runtime relies on it.
  return context == nullptr ? KW_OK : check("cuCtxGetDevice", get_context_device_(device));
}

// The one that the CUDA runtime inside kernel libraries uses. It stays retained: the process may use it elsewhere.
kw_status Memory::primary_context(int32_t device, void** context) const {
  if (device < 0 || device >= kMaxDevices) {
    return fail(KW_INVALID_ARGUMENT, "device = %d; allowed: 0 to %d", device, kMaxDevices - 1);
  }
  *context = primary_[device].acquire();
  if (*context != nullptr) return KW_OK;
  int handle = 0;
  if (kw_status status = check("cuDeviceGet", get_handle_(&handle, device))) return status;
  if (kw_status status = check("cuDevicePrimaryCtxRetain", retain_(context, handle))) return status;
  primary_[device].release(*context);
  return KW_OK;
}

kw_status Memory::check(const char* what, int error) const {
  return error == 0 ? KW_OK : fail(KW_LAUNCH_FAILED, "%s: %s error %d", what, runtime_, error);
}

Entered::Entered(const Memory& memory, int32_t device) : memory_(memory) {
  if (memory.set_device_ != nullptr) {
    status_ = memory.check("hipGetDevice", memory.get_device_(&device_));
    if (status_ == KW_OK) status_ = memory.check("hipSetDevice", memory.set_device_(device));
  } else if (memory.set_context_ != nullptr) {
    status_ = memory.check("cuCtxGetCurrent", memory.get_context_(&context_));
    void* primary = nullptr;
    if (status_ == KW_OK) status_ = memory.primary_context(device, &primary);
    if (status_ == KW_OK) status_ = memory.check("cuCtxSetCurrent", memory.set_context_(primary));
  }
}

Entered::~Entered() {
  if (status_ != KW_OK) return;
  if (memory_.set_device_ != nullptr) memory_.set_device_(device_);
  if (memory_.set_context_ != nullptr) memory_.set_context_(context_);
}

kw_status Memory::allocate(size_t bytes, void** pointer) const {
  *pointer = nullptr;
  if (bytes == 0) return KW_OK;
  int error = 0;
  if (is_host()) {
    error = posix_memalign(pointer, kAlignment, bytes);
  } else if (allocate_hip_ != nullptr) {
    error = allocate_hip_(pointer, bytes);
  } else {
    uint64_t device = 0;
    error = allocate_cuda_(&device, bytes);
    *pointer = reinterpret_cast<void*>(static_cast<uintptr_t>(device));
  }
  if (error == 0) return KW_OK;
  *pointer = nullptr;
  return fail(KW_OUT_OF_MEMORY, "no memory for %zu bytes%s%s (error %d)", bytes, is_host() ? "" : " on the device of ",
              runtime_, error);
}

void Memory::release(void* pointer) const {
  if (pointer == nullptr) return;
  if (is_host()) {
    free(pointer);
  } else if (release_hip_ != nullptr) {
    release_hip_(pointer);
  } else {
    release_cuda_(address(pointer));
  }
}

kw_status Memory::copy_in(void* device, const void* given, size_t bytes) const {
  if (bytes == 0) return KW_OK;
  if (copy_hip_ != nullptr) return check("hipMemcpy to the device", copy_hip_(device, given, bytes, kHipDefault));
  return check("cuMemcpy to the device", copy_cuda_(address(device), address(given), bytes));
}

kw_status Memory::copy_out(void* given, const void* device, size_t bytes) const {
  if (bytes == 0) return KW_OK;
  if (copy_hip_ != nullptr) return check("hipMemcpy of results", copy_hip_(given, device, bytes, kHipDefault));
  return check("cuMemcpy of results", copy_cuda_(address(given), address(device), bytes));
}

kw_status Memory::finish() const { return finish_ == nullptr ? KW_OK : check("waiting for the device", finish_()); }

}  // namespace kernelwright
