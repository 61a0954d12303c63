/* A stand-in for libamdhip64 and one gfx942 device, on which the kernels of kw_hip_gemm_arguments multiply fp16
 * matrices.
 *
 * Memory is the host's. A launch takes ten microseconds of the device's time, and is over when the call returns. While
 * a stream is captured, launches are written down; a graph does them again. FAKE_HIP_FAULT is "wrong" (one result is
 * off), "fail" (launches return an error) or "hang" (they do not return).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernelwright/hip/gemm/arguments.h"

#define EXPORT __attribute__((visibility("default")))
#define GCN_ARCH_NAME_AT 1160 /* offset of gcnArchName in hipDeviceProp_tR0600 */
#define PROPERTIES_BYTES 1472
#define MOST_LAUNCHES 4096
#define LAUNCH_MS 0.01f

enum { SUCCESS = 0, INVALID_VALUE = 1, INVALID_DEVICE = 101, LAUNCH_FAILURE = 719 };

typedef struct graph {
  int count;
  kw_hip_gemm_arguments launches[MOST_LAUNCHES];
} graph;

static graph* captured; /* where launches go; null = they are done */
static float now_ms;

static float from_half(uint16_t half) {
  const uint32_t sign = (uint32_t)(half >> 15) << 31, exponent = half >> 10 & 31, fraction = half & 1023;
  union {
    uint32_t bits;
    float value;
  } made = {sign | (exponent + 112) << 23 | fraction << 13};
  if (exponent != 0) return made.value; /* tests have no infinities */
  made.bits = sign | 0x38800000u | fraction << 13;
  return made.value - (sign ? -6.103515625e-05f : 6.103515625e-05f);
}

/* Rounds to nearest, ties to even; results of tests are in the range of normal numbers, or 0. */
static uint16_t to_half(float value) {
  union {
    float value;
    uint32_t bits;
  } given = {value};
  const uint32_t sign = given.bits >> 16 & 0x8000u, rest = given.bits & 0x7fffffffu;
  if (rest < 0x38800000u) return (uint16_t)sign;
  const uint32_t odd = rest >> 13 & 1;
  return (uint16_t)(sign | (((rest + 0xfffu + odd) >> 13) - (112u << 10)));
}

/* Rows of A, columns of B, rows of C: the layout rcr. */
static void multiply(const kw_hip_gemm_arguments* p) {
  const uint16_t *a = p->a, *b = p->b;
  uint16_t* d = p->d;
  const char* fault = getenv("FAKE_HIP_FAULT");
  for (int32_t row = 0; row < p->m; ++row) {
    for (int32_t column = 0; column < p->n; ++column) {
      float sum = 0;
      for (int32_t k = 0; k < p->k; ++k) {
        sum += from_half(a[(int64_t)row * p->lda + k]) * from_half(b[(int64_t)column * p->ldb + k]);
      }
      d[(int64_t)row * p->ldc + column] = to_half(p->alpha * sum);
    }
  }
  if (fault && strcmp(fault, "wrong") == 0) d[0] ^= 0x4000;
}

EXPORT int hipSetDevice(int ordinal) { return ordinal == 0 ? SUCCESS : INVALID_DEVICE; }

EXPORT int hipGetDevice(int* ordinal) {
  *ordinal = 0;
  return SUCCESS;
}

EXPORT int hipGetDeviceCount(int* count) {
  *count = 1;
  return SUCCESS;
}

EXPORT int hipStreamGetDevice(void* stream, int* ordinal) {
  *ordinal = 0;
  return stream == (void*)0x1000 ? SUCCESS : INVALID_VALUE;
}

EXPORT const char* hipGetErrorString(int error) { return error == LAUNCH_FAILURE ? "launch failure" : "other error"; }

EXPORT int hipGetDevicePropertiesR0600(void* properties, int ordinal) {
  memset(properties, 0, PROPERTIES_BYTES);
  strcpy((char*)properties + GCN_ARCH_NAME_AT, "gfx942:sramecc+:xnack-");
  return hipSetDevice(ordinal);
}

EXPORT int hipDeviceGetPCIBusId(char* place, int bytes, int ordinal) {
  strncpy(place, "0000:00:00.0", (size_t)bytes);
  return hipSetDevice(ordinal);
}

EXPORT int hipMalloc(void** address, size_t bytes) {
  *address = aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *address ? SUCCESS : INVALID_VALUE;
}

EXPORT int hipMemcpyHtoD(void* device, const void* host, size_t bytes) {
  memcpy(device, host, bytes);
  return SUCCESS;
}

EXPORT int hipMemcpyDtoH(void* host, const void* device, size_t bytes) {
  memcpy(host, device, bytes);
  return SUCCESS;
}

EXPORT int hipStreamCreateWithFlags(void** stream, unsigned flags) {
  *stream = (void*)0x1000;
  return flags == 1 ? SUCCESS : INVALID_VALUE; /* non-blocking */
}

EXPORT int hipStreamSynchronize(void* stream) { return stream == (void*)0x1000 ? SUCCESS : INVALID_VALUE; }

EXPORT int hipStreamBeginCapture(void* stream, int mode) {
  captured = calloc(1, sizeof *captured);
  return captured && mode == 2 ? hipStreamSynchronize(stream) : INVALID_VALUE; /* relaxed */
}

EXPORT int hipStreamEndCapture(void* stream, graph** made) {
  *made = captured;
  captured = NULL;
  return hipStreamSynchronize(stream);
}

EXPORT int hipGraphInstantiateWithFlags(graph** executable, graph* made, unsigned long long flags) {
  *executable = made;
  return flags == 0 ? SUCCESS : INVALID_VALUE;
}

EXPORT int hipGraphLaunch(graph* executable, void* stream) {
  for (int i = 0; i < executable->count; ++i) multiply(&executable->launches[i]);
  now_ms += LAUNCH_MS * (float)executable->count;
  return hipStreamSynchronize(stream);
}

EXPORT int hipEventCreateWithFlags(float** event, unsigned flags) {
  *event = calloc(1, sizeof **event);
  return *event && flags == 0 ? SUCCESS : INVALID_VALUE;
}

EXPORT int hipEventRecord(float* event, void* stream) {
  *event = now_ms;
  return hipStreamSynchronize(stream);
}

EXPORT int hipEventSynchronize(float* event) { return event ? SUCCESS : INVALID_VALUE; }

EXPORT int hipEventElapsedTime(float* ms, const float* start, const float* end) {
  *ms = *end - *start;
  return SUCCESS;
}

EXPORT int hipModuleLoadData(void** module, const void* image) {
  *module = (void*)0x10;
  return memcmp(image, "\177ELF", 4) == 0 ? SUCCESS : INVALID_VALUE;
}

EXPORT int hipModuleGetFunction(void** function, void* module, const char* name) {
  *function = (void*)0x20;
  return module == (void*)0x10 && name[0] != '\0' ? SUCCESS : INVALID_VALUE;
}

EXPORT int hipModuleLaunchKernel(void* function, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
                                 uint32_t bz, uint32_t lds_bytes, void* stream, void** arguments, void** extra) {
  const char* fault = getenv("FAKE_HIP_FAULT");
  if (fault && strcmp(fault, "fail") == 0) return LAUNCH_FAILURE;
  while (fault && strcmp(fault, "hang") == 0) pause();
  (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)lds_bytes;
  if (function != (void*)0x20 || arguments || *(const size_t*)extra[3] != sizeof(kw_hip_gemm_arguments)) {
    return INVALID_VALUE;
  }
  if (captured) {
    if (captured->count == MOST_LAUNCHES) return INVALID_VALUE;
    memcpy(&captured->launches[captured->count++], extra[1], sizeof(kw_hip_gemm_arguments));
  } else {
    multiply(extra[1]);
    now_ms += LAUNCH_MS;
  }
  return hipStreamSynchronize(stream);
}
