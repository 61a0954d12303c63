/* A stand-in for the CUDA runtime and driver with two devices, and a launch as launch.hpp does it.
 *
 * Primary contexts are 0x10 + device, a program's own ones 0x20 + device, streams 0x1000 * (1 + device) + any number
 * below 0x1000. As of CUDA 12, cudaSetDevice makes the device's primary context, and the runtime works in the context
 * that is current for the driver, else on device 0, which makes its context. There is no cudaStreamGetDevice: it would
 * end a capture.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <string.h>

#include "kernelwright/cuda/common/runtime.h"

#define EXPORT __attribute__((visibility("default")))
#define CONTEXT(device) ((CUcontext)(uintptr_t)(0x10 + (device)))

EXPORT int fake_devices = 2;
EXPORT int fake_prepared[2];  /* calls of cudaFuncSetAttribute by device */
EXPORT int fake_contexts[2];  /* whether a device has its primary context */
EXPORT int fake_driver_calls; /* with a stream, of all threads */
static _Thread_local CUcontext stack[8];
static _Thread_local int depth;

static CUcontext top(void) { return depth ? stack[depth - 1] : NULL; }
static CUcontext primary(int device) {
  __atomic_store_n(&fake_contexts[device], 1, __ATOMIC_SEQ_CST);
  return CONTEXT(device);
}
static int device_of(CUcontext context) { return (int)((uintptr_t)context & 0xf); }
/* Where the runtime works. */
static int here(void) {
  if (!top()) cudaSetDevice(0);
  return device_of(top());
}

EXPORT cudaError_t cudaGetLastError(void) { return cudaSuccess; }
EXPORT const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorNoDevice ? "no CUDA-capable device is detected"
         : error                    ? "invalid device ordinal"
                                    : "no error";
}
EXPORT const char* cudaGetErrorName(cudaError_t error) { return error ? "cudaErrorInvalidDevice" : "cudaSuccess"; }
EXPORT cudaError_t cudaGetDeviceCount(int* count) {
  return *count = fake_devices, fake_devices ? cudaSuccess : cudaErrorNoDevice;
}
EXPORT cudaError_t cudaGetDevice(int* device) { return *device = top() ? device_of(top()) : 0, cudaSuccess; }
EXPORT cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= fake_devices) return cudaErrorInvalidDevice;
  if (!depth) ++depth;
  return stack[depth - 1] = primary(device), cudaSuccess;
}
EXPORT cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attribute, int device) {
  if (device < 0 || device >= fake_devices) return cudaErrorInvalidDevice;
  *value = attribute == cudaDevAttrMultiProcessorCount      ? 132 + device
           : attribute == cudaDevAttrComputeCapabilityMajor ? 9
                                                            : 0;
  return cudaSuccess;
}
EXPORT cudaError_t cudaFuncSetAttribute(const void* function, enum cudaFuncAttribute attribute, int value) {
  (void)function, (void)attribute, (void)value;
  __atomic_add_fetch(&fake_prepared[here()], 1, __ATOMIC_SEQ_CST);
  return cudaSuccess;
}

EXPORT uintptr_t fake_captured; /* the stream whose work goes into a graph; 0 = none */
EXPORT CUresult cuStreamIsCapturing(CUstream stream, int* status) {
  return *status = fake_captured != 0 && (uintptr_t)stream == fake_captured, CUDA_SUCCESS;
}

static CUresult stream_context(CUstream stream, CUcontext* context) {
  __atomic_add_fetch(&fake_driver_calls, 1, __ATOMIC_SEQ_CST);
  const uintptr_t number = (uintptr_t)stream >> 12;
  if (number < 1 || number > 2) return CUDA_ERROR_INVALID_CONTEXT;
  return *context = CONTEXT(number - 1), CUDA_SUCCESS;
}
static CUresult retain(CUcontext* context, CUdevice device) {
  if (device < 0 || device >= fake_devices) return CUDA_ERROR_INVALID_DEVICE;
  return *context = primary(device), CUDA_SUCCESS;
}
static CUresult get_current(CUcontext* context) { return *context = top(), CUDA_SUCCESS; }
static CUresult push(CUcontext context) { return stack[depth++] = context, CUDA_SUCCESS; }
static CUresult pop(CUcontext* context) {
  if (!depth) return CUDA_ERROR_INVALID_CONTEXT;
  return *context = stack[--depth], CUDA_SUCCESS;
}
static CUresult context_device(CUdevice* device) {
  if (!top()) return CUDA_ERROR_INVALID_CONTEXT;
  return *device = device_of(top()), CUDA_SUCCESS;
}

EXPORT cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                                    unsigned long long flags,
                                                    enum cudaDriverEntryPointQueryResult* result) {
  static const struct {
    const char* name;
    void* function;
  } known[] = {{"cuStreamGetCtx", (void*)stream_context}, {"cuDevicePrimaryCtxRetain", (void*)retain},
               {"cuCtxGetCurrent", (void*)get_current},   {"cuCtxPushCurrent", (void*)push},
               {"cuCtxPopCurrent", (void*)pop},           {"cuCtxGetDevice", (void*)context_device}};
  (void)version, (void)flags;
  *result = cudaDriverEntryPointSymbolNotFound;
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    if (strcmp(name, known[i].name) != 0) continue;
    *function = known[i].function;
    *result = cudaDriverEntryPointSuccess;
  }
  return cudaSuccess;
}

/* What a launch does, with *started = the device that was current when the kernel would start, or -1. */
EXPORT int fake_launch(const kw_launch* launch, int start_status, int* started) {
  static uint64_t prepared;
  int pushed = 0;
  *started = -1;
  kw_status status = kw_cuda_enter(launch, &pushed);
  if (status != KW_OK) return (int)status;
  status = kw_cuda_prepare((const void*)&prepared, 1024, launch->device, &prepared);
  if (status == KW_OK) *started = here(), status = (kw_status)start_status;
  return (int)kw_cuda_leave(pushed, status);
}

EXPORT const char* fake_last_error(void) { return kw_backend_last_error(); }
/* How many contexts this thread has pushed, and the current one; 0 = none. */
EXPORT int fake_depth(void) { return depth; }
EXPORT int fake_current(void) { return (int)(uintptr_t)top(); }
EXPORT void fake_make_current(int context) {
  depth = context != 0;
  stack[0] = (CUcontext)(uintptr_t)context;
}
EXPORT int fake_check_device(int device, char* reason, size_t bytes) {
  return (int)kw_backend_check_device(device, reason, bytes);
}
EXPORT int fake_multiprocessors(int device) {
  int count = 0;
  return kw_cuda_multiprocessors(device, &count) == KW_OK ? count : -1;
}
EXPORT int fake_encode(void) {
  CUtensorMap map;
  const uint64_t refused = kw_cuda_descriptors_refused();
  extern CUresult cuTensorMapEncodeTiled(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                         const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                         CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
  const CUresult result = cuTensorMapEncodeTiled(&map, 0, 0, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0);
  return result == CUDA_ERROR_NOT_FOUND && kw_cuda_descriptors_refused() == refused + 1 ? 0 : 1;
}
