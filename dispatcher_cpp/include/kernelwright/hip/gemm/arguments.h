/* What crosses from the host to a GEMM kernel, and what the kernel tells the host about itself.
 *
 * C99 and C++; the same bytes for a 64-bit host and for the GPU. The kernel gets plain numbers and builds CK Tile's own
 * views on the device, so no host ever sees a CK Tile header (whose argument structs change size with the C++ library,
 * and whose host-side constants assume waves of 64 lanes).
 */
#ifndef KERNELWRIGHT_HIP_GEMM_ARGUMENTS_H
#define KERNELWRIGHT_HIP_GEMM_ARGUMENTS_H

#include <stdint.h>

#define KW_HIP_MAX_MULTI_D 4

/* The kernel arguments, in kernarg order: of the kernel that multiplies and of the one that adds up what it left in the
 * workspace. Leading dimensions and extents count elements, strides the elements between matrices of a batch. C and D
 * share ldc and stride_c.
 *
 * split K: `shares` workgroups per tile, each leaves its slice of K in `partial`: per matrix of the batch and slice an
 * m by n matrix of accumulators, its rows rounded up to KW_HIP_SUM_VECTOR. stream-K: `shares` workgroups share the K
 * tiles of all tiles evenly; `partial` has two tiles of accumulators for each.
 */
typedef struct kw_hip_gemm_arguments {
  const void* a;
  const void* b;
  const void* c; /* read unless beta is 0 */
  void* d;
  void* partial;
  const void* multi_d[KW_HIP_MAX_MULTI_D];
  int64_t stride_a, stride_b, stride_c;
  int64_t stride_multi_d[KW_HIP_MAX_MULTI_D];
  int32_t m, n, k;
  int32_t lda, ldb, ldc;
  int32_t ld_multi_d[KW_HIP_MAX_MULTI_D];
  int32_t batch;
  int32_t shares;     /* 1: each workgroup has a whole tile; 0: K is empty */
  int32_t workgroups; /* of the launch; a persistent kernel's walk the tiles in steps of it */
  float alpha, beta;  /* 1 and 0 for integers */
  /* Read by kernels of any epilogue: D tensors that there are, kw_d_op, kw_activation. */
  uint8_t num_d, d_op, activation, reserved;
} kw_hip_gemm_arguments;

/* One product of a grouped launch. */
typedef struct kw_hip_group {
  const void* a;
  const void* b;
  const void* c;
  void* d;
  int32_t m, n, k;
  int32_t lda, ldb, ldc;
  int32_t first; /* tiles of all groups before this one */
  int32_t reserved;
} kw_hip_group;

/* Groups travel as kernel arguments, so that a launch copies and allocates nothing; more of them are launched in turns.
 */
#define KW_HIP_GROUPS_PER_LAUNCH 48

typedef struct kw_hip_grouped_arguments {
  int32_t count; /* of groups */
  int32_t tiles; /* of all groups */
  int32_t workgroups;
  float alpha, beta;
  int32_t reserved;
  kw_hip_group groups[KW_HIP_GROUPS_PER_LAUNCH];
} kw_hip_grouped_arguments;

#define KW_HIP_SUM_BLOCK 256 /* work-items per workgroup of the kernel that adds up */
#define KW_HIP_SUM_VECTOR 4  /* elements per work-item */

#define KW_HIP_GEMM_FACTS_MAGIC 0x3247574bu /* "KWG2" */

/* Constants that only the device pass of the compiler knows, kept in the code object beside the kernel. */
typedef struct kw_hip_gemm_facts {
  uint32_t magic;
  uint32_t arguments_bytes; /* of the kernel's argument struct as the device sees it */
  uint32_t block_size;      /* work-items per workgroup */
  uint32_t vector_a;        /* elements per global access: the contiguous extent must be a multiple of it */
  uint32_t vector_b;
  uint32_t vector_d;
  uint32_t min_k_loops; /* K tiles that the pipeline needs at least */
  uint32_t row_bytes;   /* pointers and rows must be aligned to this many bytes */
  uint32_t packed_k;    /* preshuffle: elements of K that a lane reads at once; else 0 */
  uint32_t reserved;
} kw_hip_gemm_facts;

#endif
