/* GEMM and grouped GEMM: problems, arguments, and what a kernel's traits say.
 *
 * C99. Sizes are int64 and count elements unless a name says bytes; structs as in kernelwright/abi.h.
 *
 * Made of kernelwright.problems.gemm.description by `kernelwright headers`: edit that.
 */
#ifndef KERNELWRIGHT_GEMM_H
#define KERNELWRIGHT_GEMM_H

#include "kernelwright/abi.h"
#include "kernelwright/epilogue.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values of kw_problem.op: 1 to 15 are of this header. */
typedef enum kw_gemm_op { KW_OP_GEMM = 1, KW_OP_GROUPED_GEMM = 2 } kw_gemm_op;

static inline const char* kw_gemm_op_name(uint32_t op) {
  static const char* const names[] = {"gemm", "grouped_gemm"};
  return op - 1u < 2u ? names[op - 1u] : "unknown";
}

/* Most D tensors of one problem. */
#define KW_MAX_D 4

/* How the D tensors are combined with the product. */
typedef enum kw_d_op { KW_D_ADD = 0, KW_D_MULTIPLY = 1 } kw_d_op;

static inline const char* kw_d_op_name(uint32_t op) {
  static const char* const names[] = {"add", "multiply"};
  return op < 2u ? names[op] : "unknown";
}

/* D[m,n] = act((alpha * sum_k A[m,k] B[k,n] + beta * C[m,n]) op D0[m,n] op D1[m,n] ...).
 *
 * C, D and the tensors D0 to D3 share dtype_c and layout_c; C and D share ldc too, and may be the same memory. A
 * leading dimension is the distance, in elements, between rows (row-major) or columns (column-major). batch such
 * products of one shape lie stride_* elements apart. The struct has no padding bytes, so it can be hashed as memory;
 * what a problem does not use is 0.
 */
typedef struct kw_gemm_problem {
  kw_problem base;
  uint32_t dtype_a, dtype_b, dtype_c, dtype_acc; /* kw_dtype */
  uint32_t layout_a, layout_b, layout_c;         /* kw_layout */
  /* slices of K that are summed; 1 = none; 0 = the dispatcher chooses, kernels never see it */
  uint32_t split_k;
  int64_t m, n, k; /* >= 0 */
  int64_t lda, ldb, ldc;
  double alpha, beta;
  int64_t batch;                        /* >= 1 */
  int64_t stride_a, stride_b, stride_c; /* from one product to the next; 0 for A or B: shared by all */
  uint32_t num_d;                       /* 0 to 4; D tensors */
  uint32_t d_op;                        /* kw_d_op */
  uint32_t activation;                  /* kw_activation */
  uint32_t reserved;                    /* 0 */
  int64_t ld_multi_d[KW_MAX_D];         /* 0: one line for all, e.g. a bias of n values where C is row-major */
  int64_t stride_multi_d[KW_MAX_D];     /* 0: shared by all of the batch */
  /* 0: B as layout_b says; else kw_gemm_traits.b_format of the kernel that shuffled it */
  uint64_t b_format;
} kw_gemm_problem;

/* Operands of one launch of a kw_gemm_problem, on its device. c may be null when beta is 0. */
typedef struct kw_gemm_args {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  const void* a;
  const void* b;
  const void* c;
  void* d;
  const void* multi_d[KW_MAX_D]; /* D0 to D3, as many as the problem has */
} kw_gemm_args;

/* One product of a grouped GEMM, in elements as in kw_gemm_problem. */
typedef struct kw_gemm_group {
  int64_t m, n, k; /* >= 0 */
  int64_t lda, ldb, ldc;
} kw_gemm_group;

/* group_count products D = alpha * A B + beta * C of different shapes. groups lies in host memory and is read during
 * the call only. */
typedef struct kw_grouped_gemm_problem {
  kw_problem base;
  uint32_t dtype_a, dtype_b, dtype_c, dtype_acc; /* kw_dtype */
  uint32_t layout_a, layout_b, layout_c;         /* kw_layout */
  uint32_t reserved;                             /* 0 */
  int64_t group_count;                           /* >= 0 */
  const kw_gemm_group* groups;
  double alpha, beta;
} kw_grouped_gemm_problem;

/* Operands of one launch of a kw_grouped_gemm_problem. groups are those of the problem; a, b, c and d are arrays in
 * host memory of group_count device pointers each, read during the call only. c may be null when beta is 0. */
typedef struct kw_grouped_gemm_args {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  int64_t group_count;
  const kw_gemm_group* groups;
  const void* const* a;
  const void* const* b;
  const void* const* c;
  void* const* d;
} kw_grouped_gemm_args;

/* What selection may know about a GEMM kernel without parsing text. */
typedef struct kw_gemm_traits {
  uint32_t struct_size;
  uint32_t dtype_a, dtype_b, dtype_c, dtype_acc; /* kw_dtype */
  uint32_t layout_a, layout_b, layout_c;         /* kw_layout */
  uint32_t tile_m, tile_n, tile_k;
  uint32_t wave_m, wave_n, wave_k;
  uint32_t warp_tile_m, warp_tile_n, warp_tile_k;
  uint32_t pad_m, pad_n, pad_k; /* 0 or 1 */
  uint32_t persistent;          /* 0 or 1 */
  uint32_t max_split_k;
  uint32_t num_d;                /* exactly so many, this d_op and activation are served, but see KW_ACTIVATION_ANY */
  uint32_t d_op;                 /* kw_d_op */
  uint32_t activation;           /* kw_activation */
  uint32_t batched;              /* 0 or 1; serves batch > 1 */
  uint32_t stream_k;             /* kw_stream_k */
  uint16_t cluster_m, cluster_n; /* tiles whose workgroups share operands; 0 = 1 */
  uint64_t b_format;             /* how kw_gemm_extension.shuffle_b orders B; 0 = it does not */
} kw_gemm_traits;

/* kw_kernel.extension of GEMM kernels whose traits have a b_format; null for the others. */
typedef struct kw_gemm_extension {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  /* Bytes that B of the problem takes shuffled, and shuffling it: both in host memory, b as layout_b and ldb say. The m
   * of the problem does not matter. */
  kw_status (*shuffle_b_bytes)(const kw_kernel*, const kw_problem*, uint64_t* bytes);
  kw_status (*shuffle_b)(const kw_kernel*, const kw_problem*, const void* b, void* shuffled);
} kw_gemm_extension;

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_GEMM_H */
