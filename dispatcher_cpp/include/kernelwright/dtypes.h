/* Types of elements, and storage orders of matrices.
 *
 * Made of kernelwright.problems.shared by `kernelwright headers`: edit that. */
#ifndef KERNELWRIGHT_DTYPES_H
#define KERNELWRIGHT_DTYPES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Types of elements. The encoding of fp8 and bf8 is the kw_fp8_format of the architecture. */
typedef enum kw_dtype {
  KW_FP32 = 1,
  KW_FP16 = 2,
  KW_BF16 = 3,
  KW_FP8 = 4, /* e4m3 */
  KW_BF8 = 5, /* e5m2 */
  KW_INT8 = 6,
  KW_INT32 = 7
} kw_dtype;

static inline const char* kw_dtype_name(uint32_t dtype) {
  static const char* const names[] = {"fp32", "fp16", "bf16", "fp8", "bf8", "int8", "int32"};
  return dtype - 1u < 7u ? names[dtype - 1u] : "unknown";
}

/* Bytes of an element; 0 if the dtype is unknown. */
static inline uint32_t kw_dtype_bytes(uint32_t dtype) {
  static const uint32_t bytes[] = {4, 2, 2, 1, 1, 1, 4};
  return dtype - 1u < 7u ? bytes[dtype - 1u] : 0;
}

/* Storage order of one matrix. */
typedef enum kw_layout { KW_ROW_MAJOR = 0, KW_COL_MAJOR = 1 } kw_layout;

static inline const char* kw_layout_name(uint32_t layout) {
  static const char* const names[] = {"row-major", "column-major"};
  return layout < 2u ? names[layout] : "unknown";
}

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_DTYPES_H */
