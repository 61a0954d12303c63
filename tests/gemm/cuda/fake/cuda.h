/* What runtime.cpp uses of the CUDA driver's header. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdint.h>

typedef enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NOT_FOUND = 500
} CUresult;
typedef struct fake_context* CUcontext;
typedef struct fake_stream* CUstream;
typedef int CUdevice;
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef struct {
  uint64_t opaque[16];
} CUtensorMap;
typedef int CUtensorMapDataType;
typedef int CUtensorMapInterleave;
typedef int CUtensorMapSwizzle;
typedef int CUtensorMapL2promotion;
typedef int CUtensorMapFloatOOBfill;

#endif /* FAKE_CUDA_H */
