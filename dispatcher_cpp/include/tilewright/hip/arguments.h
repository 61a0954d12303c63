/* What crosses from the host to a GEMM kernel, and what the kernel tells the host about itself.
 *
 * C99 and C++; the same bytes for a 64-bit host and for the GPU. The kernel gets plain numbers and builds CK Tile's own
 * argument struct on the device, so no host ever sees a CK Tile header (whose argument structs change size with the C++
 * library, and whose host-side constants assume waves of 64 lanes).
 */
#ifndef TILEWRIGHT_HIP_ARGUMENTS_H
#define TILEWRIGHT_HIP_ARGUMENTS_H

#include <stdint.h>

/* The kernel arguments, in kernarg order. Leading dimensions and extents count elements. A kernel that shares K among
 * `slices` workgroups per tile gets the workspace as d: one m by ldd matrix of accumulators per slice. */
typedef struct tw_hip_gemm_arguments {
  const void* a;
  const void* b;
  void* d;
  int32_t m, n, k;
  int32_t lda, ldb, ldd;
  int32_t slices;
  int32_t reserved;
} tw_hip_gemm_arguments;

/* What such a kernel's second half gets: D = alpha * (slice 0 + slice 1 + ...) + beta * C, with C read unless beta is
 * 0. C and D share ldd. For integers alpha is 1 and beta 0. */
typedef struct tw_hip_sum_arguments {
  const void* slices;
  const void* c;
  void* d;
  int32_t m, n;
  int32_t ldd;
  int32_t slice_ldd; /* n rounded up to TW_HIP_SUM_VECTOR */
  int32_t count;
  float alpha, beta;
  int32_t reserved;
} tw_hip_sum_arguments;

#define TW_HIP_SUM_BLOCK 256 /* work-items per workgroup */
#define TW_HIP_SUM_VECTOR 4  /* elements per work-item */

#define TW_HIP_GEMM_FACTS_MAGIC 0x54574731u /* "TWG1" */

/* Constants that only the device pass of the compiler knows, kept in the code object beside the kernel. */
typedef struct tw_hip_gemm_facts {
  uint32_t magic;
  uint32_t arguments_bytes; /* sizeof(tw_hip_gemm_arguments) as the device sees it */
  uint32_t block_size;      /* work-items per workgroup */
  uint32_t vector_a;        /* elements per global access: the contiguous extent must be a multiple of it */
  uint32_t vector_b;
  uint32_t vector_d;
  uint32_t min_k_loops; /* K tiles that the pipeline needs at least */
  uint32_t row_bytes;   /* pointers and rows must be aligned to this many bytes */
} tw_hip_gemm_facts;

#endif
