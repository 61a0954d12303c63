/* Stands in for libamdhip64.so and libcuda.so.1: device memory is host memory that nobody may touch from outside.
 *
 * fake_live() counts blocks that are allocated, fake_copies() copies; fake_fail_allocation(n) makes the n-th from now
 * fail. Threads may call anything.
 */
#define _POSIX_C_SOURCE 200112L
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static int live, copies, failing;

static void* take(size_t bytes) {
  void* pointer = NULL;
  if (__atomic_load_n(&failing, __ATOMIC_SEQ_CST) > 0 && __atomic_sub_fetch(&failing, 1, __ATOMIC_SEQ_CST) == 0)
    return NULL;
  if (posix_memalign(&pointer, 256, bytes) != 0) return NULL;
  memset(pointer, 0xff, bytes); /* NaN */
  __atomic_add_fetch(&live, 1, __ATOMIC_SEQ_CST);
  return pointer;
}

static int give(void* pointer) {
  free(pointer);
  __atomic_sub_fetch(&live, 1, __ATOMIC_SEQ_CST);
  return 0;
}

static int copy(void* to, const void* from, size_t bytes) {
  memcpy(to, from, bytes);
  __atomic_add_fetch(&copies, 1, __ATOMIC_SEQ_CST);
  return 0;
}

EXPORT int fake_live(void) { return __atomic_load_n(&live, __ATOMIC_SEQ_CST); }
EXPORT int fake_copies(void) { return __atomic_load_n(&copies, __ATOMIC_SEQ_CST); }
EXPORT void fake_fail_allocation(int count) { __atomic_store_n(&failing, count, __ATOMIC_SEQ_CST); }

static _Thread_local int current; /* of two devices */

EXPORT int hipGetDevice(int* device) { return *device = current, 0; }
EXPORT int hipSetDevice(int device) { return device == 0 || device == 1 ? (current = device, 0) : 101; }
EXPORT int hipMalloc(void** pointer, size_t bytes) { return (*pointer = take(bytes)) != NULL ? 0 : 2; }
EXPORT int hipFree(void* pointer) { return give(pointer); }
EXPORT int hipMemcpy(void* to, const void* from, size_t bytes, int kind) {
  return kind == 1 || kind == 2 ? copy(to, from, bytes) : 21;
}
EXPORT int hipDeviceSynchronize(void) { return 0; }

static int context, other_context;
static _Thread_local void* current_context;

EXPORT void fake_use_other_context(void) { current_context = &other_context; }
EXPORT int fake_other_context_is_current(void) { return current_context == &other_context; }

EXPORT int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }
EXPORT int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
EXPORT int cuDevicePrimaryCtxRetain(void** result, int device) { return (void)device, *result = &context, 0; }
EXPORT int cuCtxGetCurrent(void** found) { return *found = current_context, 0; }
EXPORT int cuCtxSetCurrent(void* wanted) {
  if (wanted != NULL && wanted != &context && wanted != &other_context) return 201;
  return current_context = wanted, 0;
}
EXPORT int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  void* pointer = take(bytes);
  *address = (uint64_t)(uintptr_t)pointer;
  return pointer != NULL ? 0 : 2;
}
EXPORT int cuMemFree_v2(uint64_t address) { return give((void*)(uintptr_t)address); }
EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  return copy((void*)(uintptr_t)to, from, bytes);
}
EXPORT int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) { return copy(to, (void*)(uintptr_t)from, bytes); }
EXPORT int cuCtxSynchronize(void) { return 0; }
