/* Stands in for libamdhip64.so and libcuda.so.1: device memory is host memory that nobody may touch from outside.
 *
 * fake_live() counts blocks that are allocated, fake_copies() copies; fake_fail_allocation(n) makes the n-th from now
 * fail. There are two devices: fake_used(n) counts allocations and copies while n was current, and memory may be copied
 * and freed only while its device is current. Threads may call anything.
 */
#define _POSIX_C_SOURCE 200112L
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static int live, copies, failing, used[2];
static int current_device(void);

enum { MOST = 256 };
static struct {
  char* begin; /* null = free */
  size_t bytes;
  int device;
} blocks[MOST];
static char lock; /* of the blocks */

static void enter(void) {
  while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE)) continue;
}
static void leave(void) { __atomic_clear(&lock, __ATOMIC_RELEASE); }

/* The block that holds an address, or -1. */
static int block_of(const void* pointer) {
  const char* at = pointer;
  for (int i = 0; i < MOST; ++i) {
    if (blocks[i].begin && at >= blocks[i].begin && at < blocks[i].begin + blocks[i].bytes) return i;
  }
  return -1;
}
static int any(const void* pointer) { return block_of(pointer) >= 0; }
/* The same, of the current device. */
static int find(const void* pointer) {
  const int block = block_of(pointer);
  return block >= 0 && blocks[block].device == current_device() ? block : -1;
}

static void* keep(char* pointer, size_t bytes) {
  enter();
  for (int i = 0; i < MOST; ++i) {
    if (blocks[i].begin) continue;
    blocks[i].begin = pointer, blocks[i].bytes = bytes, blocks[i].device = current_device();
    break;
  }
  leave();
  return pointer;
}

static void* take(size_t bytes) {
  void* pointer = NULL;
  if (__atomic_load_n(&failing, __ATOMIC_SEQ_CST) > 0 && __atomic_sub_fetch(&failing, 1, __ATOMIC_SEQ_CST) == 0)
    return NULL;
  if (posix_memalign(&pointer, 256, bytes) != 0) return NULL;
  memset(pointer, 0xff, bytes); /* NaN */
  __atomic_add_fetch(&live, 1, __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&used[current_device()], 1, __ATOMIC_SEQ_CST);
  return keep(pointer, bytes);
}

static int give(void* pointer) {
  enter();
  const int block = find(pointer);
  if (block >= 0) blocks[block].begin = NULL;
  leave();
  if (block < 0) return 1;
  free(pointer);
  __atomic_sub_fetch(&live, 1, __ATOMIC_SEQ_CST);
  return 0;
}

/* As addresses say: each is in a block of the current device, or in no block of any. */
static int copy(void* to, const void* from, size_t bytes) {
  enter();
  const int wrong = (find(to) < 0 && any(to)) || (find(from) < 0 && any(from)) || (find(to) < 0 && find(from) < 0);
  leave();
  if (wrong) return 1;
  __atomic_add_fetch(&used[current_device()], 1, __ATOMIC_SEQ_CST);
  memcpy(to, from, bytes);
  __atomic_add_fetch(&copies, 1, __ATOMIC_SEQ_CST);
  return 0;
}

EXPORT int fake_live(void) { return __atomic_load_n(&live, __ATOMIC_SEQ_CST); }
EXPORT int fake_copies(void) { return __atomic_load_n(&copies, __ATOMIC_SEQ_CST); }
EXPORT int fake_used(int device) { return __atomic_load_n(&used[device], __ATOMIC_SEQ_CST); }
EXPORT void fake_fail_allocation(int count) { __atomic_store_n(&failing, count, __ATOMIC_SEQ_CST); }

static _Thread_local int current, uses_cuda;

static int context_device(void); /* of CUDA */
static int current_device(void) { return uses_cuda ? context_device() : current; }

EXPORT int hipGetDevice(int* device) { return *device = current, 0; }
EXPORT int hipSetDevice(int device) { return device == 0 || device == 1 ? (current = device, 0) : 101; }
EXPORT int hipMalloc(void** pointer, size_t bytes) { return (*pointer = take(bytes)) != NULL ? 0 : 2; }
EXPORT int hipFree(void* pointer) { return give(pointer); }
/* 1: to the device, 2: from it, 4: as addresses say */
EXPORT int hipMemcpy(void* to, const void* from, size_t bytes, int kind) {
  enter();
  const int fits = kind == 1 ? find(to) >= 0 : kind == 2 ? find(from) >= 0 : kind == 4;
  leave();
  return fits ? copy(to, from, bytes) : 21;
}
EXPORT int hipDeviceSynchronize(void) { return 0; }

static int contexts[2], other_contexts[2]; /* primary ones, and those of a program, by device */
static _Thread_local int* current_context;

static int context_device(void) { return current_context == &contexts[1] || current_context == &other_contexts[1]; }

EXPORT void fake_use_other_context(int device) { current_context = &other_contexts[device]; }
EXPORT int fake_other_context_is_current(int device) { return current_context == &other_contexts[device]; }

EXPORT int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }
EXPORT int cuDeviceGet(int* device, int ordinal) { return ordinal == 0 || ordinal == 1 ? (*device = ordinal, 0) : 101; }
EXPORT int cuDevicePrimaryCtxRetain(void** result, int device) { return *result = &contexts[device], 0; }
EXPORT int cuCtxGetCurrent(void** context) { return *context = current_context, 0; }
EXPORT int cuCtxSetCurrent(void* wanted) {
  uses_cuda = 1;
  for (int i = 0; i < 2; ++i) {
    if (wanted == NULL || wanted == &contexts[i] || wanted == &other_contexts[i]) return current_context = wanted, 0;
  }
  return 201;
}
EXPORT int cuCtxGetDevice(int* device) { return *device = context_device(), current_context == NULL ? 201 : 0; }
EXPORT int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  void* pointer = take(bytes);
  *address = (uint64_t)(uintptr_t)pointer;
  return pointer != NULL ? 0 : 2;
}
EXPORT int cuMemFree_v2(uint64_t address) { return give((void*)(uintptr_t)address); }
EXPORT int cuMemcpy(uint64_t to, uint64_t from, size_t bytes) {
  return copy((void*)(uintptr_t)to, (const void*)(uintptr_t)from, bytes);
}
EXPORT int cuCtxSynchronize(void) { return 0; }
