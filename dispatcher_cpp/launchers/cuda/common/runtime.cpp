// Errors, device facts and the driver entry point that the kernels of one library share.
#include "kernelwright/cuda/common/runtime.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#if !defined(KW_CUDA_TARGET) || !defined(KW_CUDA_MAJOR) || !defined(KW_CUDA_MINOR) || !defined(KW_CUDA_MULTIPROCESSORS)
#error "define KW_CUDA_TARGET, _MAJOR, _MINOR and _MULTIPROCESSORS as the architecture of the library"
#endif

namespace {

thread_local char last_error[512];
thread_local uint64_t descriptors_refused = 0;

kw_status no_device(cudaError_t error) {
  cudaGetLastError();
  return kw_cuda_fail(KW_RUNTIME_MISSING, "no usable CUDA device: %s", cudaGetErrorString(error));
}

kw_status look_up(const char* name, void** function) {
  cudaDriverEntryPointQueryResult result;
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, function, 12000, cudaEnableDefault, &result);
  if (error == cudaSuccess && result == cudaDriverEntryPointSuccess) return KW_OK;
  cudaGetLastError();
  return kw_cuda_fail(KW_RUNTIME_MISSING, "the CUDA driver has no %s (needs 12.0 or later)", name);
}

}  // namespace

uint64_t kw_cuda_descriptors_refused(void) { return descriptors_refused; }

kw_status kw_cuda_fail(kw_status status, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(last_error, sizeof(last_error), format, args);
  va_end(args);
  return status;
}

const char* kw_backend_last_error(void) { return last_error; }

kw_status kw_backend_set_num_threads(uint32_t threads) {
  return kw_cuda_fail(KW_UNSUPPORTED, "set_num_threads(%u): a GPU library has no host threads to set", threads);
}

kw_status kw_backend_set_runtime(const char* path) {
  return kw_cuda_fail(KW_UNSUPPORTED, "set_runtime(%s): the CUDA runtime is a part of this library",
                      path ? path : "null");
}

kw_status kw_cuda_launch_failed(const kw_kernel* kernel, int error) {
  cudaGetLastError();  // or the next, innocent call reports it
  return kw_cuda_fail(KW_LAUNCH_FAILED, "%s: %s (%s)", kernel->name,
                      cudaGetErrorString(static_cast<cudaError_t>(error)),
                      cudaGetErrorName(static_cast<cudaError_t>(error)));
}

kw_status kw_cuda_workspace_too_small(const kw_kernel* kernel, uint64_t needed, uint64_t given) {
  return kw_cuda_fail(KW_WORKSPACE_TOO_SMALL, "%s: workspace has %llu bytes, this problem needs %llu", kernel->name,
                      static_cast<unsigned long long>(given), static_cast<unsigned long long>(needed));
}

kw_status kw_cuda_devices(int* count) {
  const cudaError_t error = cudaGetDeviceCount(count);
  return error == cudaSuccess ? KW_OK : no_device(error);
}

kw_status kw_cuda_multiprocessors(int device, int* multiprocessors) {
  static int known[KW_CUDA_MAX_DEVICES];  // 0 = not asked yet; every thread would write the same
  const bool cached = device >= 0 && device < KW_CUDA_MAX_DEVICES;
  *multiprocessors = cached ? __atomic_load_n(&known[device], __ATOMIC_RELAXED) : 0;
  if (*multiprocessors) return KW_OK;
  const cudaError_t error = cudaDeviceGetAttribute(multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return no_device(error);
  if (cached) __atomic_store_n(&known[device], *multiprocessors, __ATOMIC_RELAXED);
  return KW_OK;
}

int kw_cuda_reference_multiprocessors(void) { return KW_CUDA_MULTIPROCESSORS; }

kw_status kw_cuda_driver_function(const char* name, void** slot, void** function) {
  *function = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
  if (*function) return KW_OK;
  const kw_status status = look_up(name, function);
  if (status == KW_OK) __atomic_store_n(slot, *function, __ATOMIC_RELEASE);
  return status;
}

namespace {

// The driver's functions that contexts take. Their devices have the numbers of the runtime's.
struct context_calls {
  CUresult (*retain)(CUcontext*, CUdevice);
  CUresult (*current)(CUcontext*);
  CUresult (*push)(CUcontext);
  CUresult (*pop)(CUcontext*);
  CUresult (*device)(CUdevice*);
  CUresult (*of_stream)(CUstream, CUcontext*);
};

kw_status look_up_context_calls(context_calls* calls) {
  static const char* const names[] = {"cuDevicePrimaryCtxRetain", "cuCtxGetCurrent", "cuCtxPushCurrent",
                                      "cuCtxPopCurrent",          "cuCtxGetDevice",  "cuStreamGetCtx"};
  void* pointers[sizeof names / sizeof *names];
  static_assert(sizeof pointers == sizeof *calls, "a name for each function");
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    const kw_status status = look_up(names[i], &pointers[i]);
    if (status != KW_OK) return status;
  }
  memcpy(calls, pointers, sizeof pointers);
  return KW_OK;
}

// The table that launches share, or `own`, filled in, where no thread has finished it.
kw_status find_context_calls(context_calls* own, const context_calls** calls) {
  static context_calls shared;
  static const context_calls* finished = nullptr;
  static int claimed = 0;  // by the one thread that writes it
  *calls = __atomic_load_n(&finished, __ATOMIC_ACQUIRE);
  if (*calls) return KW_OK;
  const kw_status status = look_up_context_calls(own);
  if (status != KW_OK) return status;
  *calls = own;
  if (__atomic_exchange_n(&claimed, 1, __ATOMIC_RELAXED)) return KW_OK;
  shared = *own;
  __atomic_store_n(&finished, &shared, __ATOMIC_RELEASE);
  return KW_OK;
}

// The device of a stream, by its context: cudaStreamGetDevice would end a capture on it.
kw_status stream_device(const context_calls* calls, void* stream, int* device) {
  CUcontext context = nullptr;
  CUresult result = calls->of_stream(static_cast<CUstream>(stream), &context);
  if (result == CUDA_SUCCESS) result = calls->push(context);
  if (result == CUDA_SUCCESS) {
    result = calls->device(device);
    calls->pop(&context);
  }
  if (result == CUDA_SUCCESS) return KW_OK;
  return kw_cuda_fail(KW_INVALID_ARGUMENT, "stream %p has no device (CUresult %d)", stream, static_cast<int>(result));
}

// CUDA lets copies, memsets and captures go to a stream of another device, with pointers that are not valid there.
kw_status check_stream(const context_calls* calls, const kw_launch* launch) {
  static int known = 0;  // number of devices, 0 = not asked yet; every thread would write the same
  int count = __atomic_load_n(&known, __ATOMIC_RELAXED), device = launch->device;
  kw_status status = KW_OK;
  if (!count) {
    status = kw_cuda_devices(&count);
    if (status != KW_OK) return status;
    __atomic_store_n(&known, count, __ATOMIC_RELAXED);
  }
  // Default streams (null, cudaStreamLegacy, cudaStreamPerThread) are those of the current device.
  if (count == 1 || reinterpret_cast<uintptr_t>(launch->stream) <= reinterpret_cast<uintptr_t>(cudaStreamPerThread))
    return KW_OK;
  status = stream_device(calls, launch->stream, &device);
  if (status != KW_OK || device == launch->device) return status;
  return kw_cuda_fail(KW_INVALID_ARGUMENT,
                      "the stream is of device %d and the launch is on device %d; pass a stream of device %d", device,
                      launch->device, launch->device);
}

// The context of a device that the runtime works in. It stays retained: the process may use it elsewhere.
kw_status primary_context(const context_calls* calls, int device, CUcontext* context) {
  static CUcontext known[KW_CUDA_MAX_DEVICES];  // null = not asked yet; every thread would write the same
  const bool cached = device >= 0 && device < KW_CUDA_MAX_DEVICES;
  *context = cached ? __atomic_load_n(&known[device], __ATOMIC_ACQUIRE) : nullptr;
  if (*context) return KW_OK;
  int count = 0;
  const kw_status status = kw_cuda_devices(&count);  // starts the driver
  if (status != KW_OK) return status;
  if (device < 0 || device >= count) {
    return kw_cuda_fail(KW_RUNTIME_MISSING, "device %d cannot be used: %d CUDA device(s) are visible", device, count);
  }
  const CUresult result = calls->retain(context, device);
  if (result != CUDA_SUCCESS) {
    return kw_cuda_fail(KW_RUNTIME_MISSING, "device %d cannot be used: it gives no context (CUresult %d)", device,
                        static_cast<int>(result));
  }
  if (cached) __atomic_store_n(&known[device], *context, __ATOMIC_RELEASE);
  return KW_OK;
}

// Pushing and popping, since cudaSetDevice would make a context on the device that it goes back to.
kw_status make_current(const context_calls* calls, int device, int* pushed) {
  CUcontext wanted = nullptr, current = nullptr;
  CUdevice owner = -1;
  *pushed = 0;
  const kw_status status = primary_context(calls, device, &wanted);
  if (status != KW_OK) return status;
  CUresult result = calls->current(&current);
  if (result == CUDA_SUCCESS && current == wanted) return KW_OK;
  // A context of the program's own on the device is used as it is: its memory may be valid nowhere else.
  if (result == CUDA_SUCCESS && current) result = calls->device(&owner);
  if (result == CUDA_SUCCESS && current && owner == device) return KW_OK;
  if (result == CUDA_SUCCESS) result = calls->push(wanted);
  *pushed = result == CUDA_SUCCESS;
  if (*pushed) return KW_OK;
  return kw_cuda_fail(KW_RUNTIME_MISSING, "device %d cannot be made current (CUresult %d)", device,
                      static_cast<int>(result));
}

}  // namespace

kw_status kw_cuda_enter(const kw_launch* launch, int* pushed) {
  if (!launch || launch->struct_size < sizeof *launch) {
    return kw_cuda_fail(KW_INVALID_ARGUMENT, "launch has %u bytes; ABI %u needs %u", launch ? launch->struct_size : 0,
                        KW_ABI_VERSION, static_cast<unsigned>(sizeof *launch));
  }
  context_calls own;
  const context_calls* calls;
  int count = 0;
  kw_status status = find_context_calls(&own, &calls);
  if (status != KW_OK && kw_cuda_devices(&count) != KW_OK) return KW_RUNTIME_MISSING;  // which says more
  if (status == KW_OK) status = make_current(calls, launch->device, pushed);
  if (status != KW_OK) return status;
  status = check_stream(calls, launch);
  return status == KW_OK ? KW_OK : kw_cuda_leave(*pushed, status);
}

kw_status kw_cuda_leave(int pushed, kw_status status) {
  context_calls own;
  const context_calls* calls;
  CUcontext popped;
  if (!pushed || find_context_calls(&own, &calls) != KW_OK) return status;
  const CUresult result = calls->pop(&popped);
  if (status != KW_OK || result == CUDA_SUCCESS) return status;
  return kw_cuda_fail(KW_RUNTIME_MISSING, "the current device cannot be restored (CUresult %d)",
                      static_cast<int>(result));
}

kw_status kw_cuda_prepare(const void* kernel, int shared_bytes, int device, uint64_t* done) {
  const uint64_t bit = device < KW_CUDA_MAX_DEVICES ? uint64_t{1} << device : 0;
  if (__atomic_load_n(done, __ATOMIC_ACQUIRE) & bit) return KW_OK;
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return kw_cuda_fail(KW_LAUNCH_FAILED, "device %d refused %d bytes of shared memory: %s", device, shared_bytes,
                        cudaGetErrorString(error));
  }
  __atomic_fetch_or(done, bit, __ATOMIC_RELEASE);
  return KW_OK;
}

namespace {

kw_status say(kw_status status, char* reason, size_t bytes, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(last_error, sizeof(last_error), format, args);
  va_end(args);
  if (reason && bytes) snprintf(reason, bytes, "%s", last_error);
  return status;
}

}  // namespace

kw_status kw_backend_check_device(int32_t device, char* reason, size_t bytes) {
  int count = 0, major = 0, minor = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return say(KW_RUNTIME_MISSING, reason, bytes, "no usable CUDA driver or device: %s", cudaGetErrorString(error));
  }
  if (device < 0 || device >= count) {
    return say(KW_RUNTIME_MISSING, reason, bytes, "device %d does not exist: %d CUDA device(s) are visible", device,
               count);
  }
  error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return say(KW_RUNTIME_MISSING, reason, bytes, "device %d: %s", device, cudaGetErrorString(error));
  }
  if (major != KW_CUDA_MAJOR || minor != KW_CUDA_MINOR) {
    return say(KW_ARCH_MISMATCH, reason, bytes,
               "device %d has compute capability %d.%d; " KW_CUDA_TARGET " code needs %d.%d", device, major, minor,
               KW_CUDA_MAJOR, KW_CUDA_MINOR);
  }
  return KW_OK;
}

// CUTLASS calls the driver by this name (CUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL). Nothing links against libcuda, so
// the entry is looked up once; CUTLASS alone would look it up by name for each of the four descriptors of a launch.
extern "C" KW_HIDDEN CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                                     void* address, const cuuint64_t* dim, const cuuint64_t* strides,
                                                     const cuuint32_t* box, const cuuint32_t* element_strides,
                                                     CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                                     CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  static void* entry = nullptr;
  void* encode = nullptr;
  if (kw_cuda_driver_function("cuTensorMapEncodeTiled", &entry, &encode) != KW_OK) {
    ++descriptors_refused;
    return CUDA_ERROR_NOT_FOUND;
  }
  const CUresult status = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
      map, type, rank, address, dim, strides, box, element_strides, interleave, swizzle, promotion, fill);
  if (status != CUDA_SUCCESS) {
    ++descriptors_refused;
    kw_cuda_fail(KW_LAUNCH_FAILED, "TMA descriptor refused (CUresult %d): extents %llu x %llu, stride %llu bytes",
                 (int)status, static_cast<unsigned long long>(dim[0]), static_cast<unsigned long long>(dim[1]),
                 static_cast<unsigned long long>(strides[0]));
  }
  return status;
}
