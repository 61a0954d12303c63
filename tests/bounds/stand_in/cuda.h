/* The names of CUDA's driver that the launchers' host code is compiled with where there is no CUDA. Nothing is called.
 */
#ifndef KERNELWRIGHT_TESTS_BOUNDS_CUDA_H
#define KERNELWRIGHT_TESTS_BOUNDS_CUDA_H

#include <stdint.h>

typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef int CUresult;
typedef int CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
    CUtensorMapFloatOOBfill;
#ifdef __cplusplus
#define KERNELWRIGHT_ALIGNED alignas(64)
#else
#define KERNELWRIGHT_ALIGNED _Alignas(64)
#endif
typedef struct CUtensorMap {
  KERNELWRIGHT_ALIGNED uint64_t opaque[16];
} CUtensorMap;

enum {
  CUDA_SUCCESS,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
  CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
  CU_TENSOR_MAP_INTERLEAVE_NONE,
  CU_TENSOR_MAP_SWIZZLE_NONE,
  CU_TENSOR_MAP_SWIZZLE_128B,
  CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
};

#ifdef __cplusplus
CUresult cuTensorMapEncodeIm2col(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                 const cuuint64_t*, const int*, const int*, cuuint32_t, cuuint32_t, const cuuint32_t*,
                                 CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill);
CUresult cuTensorMapEncodeTiled(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
#endif

#endif
