/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/gemm/rules/cuda.py by `kernelwright formulas`, and explained there. */
#ifndef LAUNCHERS_CUDA_GEMM_CONDITIONS_H
#define LAUNCHERS_CUDA_GEMM_CONDITIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernelwright/abi.h"
#include "kernelwright/dtypes.h"
#include "kernelwright/epilogue.h"
#include "kernelwright/gemm.h"
#include "kernelwright/gemm/checks.h"
#include "kernelwright/rules.h"

#define KW_CUDA_GEMM_ALIGNMENT 16
#define KW_CUDA_GEMM_STRIDE_LIMIT 1099511627776

/* Extents are counted in 31 bits. */
static inline kw_status kw_cuda_gemm_extent_fits(const char* field, int64_t extent, char* reason, size_t bytes) {
  if (extent >= 0 && extent <= INT32_MAX) {
    return KW_OK;
  }
  snprintf(reason, bytes, "%s is %lld; this kernel takes 0 to %lld", field, (long long)(extent), (long long)(INT32_MAX));
  return KW_UNSUPPORTED;
}

/* Lines lie at multiples of 16 bytes. */
static inline kw_status kw_cuda_gemm_lines_fit(KW_GIVEN(kw_gemm_Matrix) x, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  const int64_t size = kw_dtype_bytes(x.dtype);
  if ((status = kw_gemm_check_leading(x, reason, bytes)) != KW_OK) return status;
  if (x.ld >= KW_CUDA_GEMM_STRIDE_LIMIT / size) {
    snprintf(reason, bytes, "%s is %lld; TMA needs strides below 2^40 bytes", x.ld_name, (long long)(x.ld));
    return KW_UNSUPPORTED;
  }
  if (kw_mul(x.ld, size) % KW_CUDA_GEMM_ALIGNMENT != 0) {
    snprintf(reason, bytes, "%s is %lld; TMA needs multiples of 16 bytes, that is of %lld %s elements", x.ld_name, (long long)(x.ld), (long long)(KW_CUDA_GEMM_ALIGNMENT / size), kw_dtype_name(x.dtype));
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* Matrices of a batch begin at multiples of 16 bytes. */
static inline kw_status kw_cuda_gemm_batch_stride_fits(const char* field, int64_t stride, uint32_t dtype, char* reason, size_t bytes) {
  const int64_t size = kw_dtype_bytes(dtype);
  if (stride >= 0 && stride < KW_CUDA_GEMM_STRIDE_LIMIT / size && kw_mul(stride, size) % KW_CUDA_GEMM_ALIGNMENT == 0) {
    return KW_OK;
  }
  snprintf(reason, bytes, "%s is %lld; TMA needs multiples of 16 bytes, that is of %lld %s elements, from 0 to 2^40 bytes", field, (long long)(stride), (long long)(KW_CUDA_GEMM_ALIGNMENT / size), kw_dtype_name(dtype));
  return KW_UNSUPPORTED;
}

/* TMA stores whole 16 bytes: at a ragged n it writes zeros behind the row (seen on H200). Reads are cut exactly. */
static inline kw_status kw_cuda_gemm_stored_row_fits(int64_t n, uint32_t dtype, char* reason, size_t bytes) {
  const int64_t step = KW_CUDA_GEMM_ALIGNMENT / kw_dtype_bytes(dtype);
  if (n % step == 0) {
    return KW_OK;
  }
  snprintf(reason, bytes, "n is %lld; TMA stores rows of C in 16 bytes, that is in %lld %s elements", (long long)(n), (long long)(step), kw_dtype_name(dtype));
  return KW_UNSUPPORTED;
}

/* Integers are scaled by integers. */
static inline kw_status kw_cuda_gemm_scalar_fits(const char* field, double value, uint32_t dtype, char* reason, size_t bytes) {
  if (dtype != KW_INT32 || (kw_is_whole(value) && value >= INT32_MIN && value <= INT32_MAX)) {
    return KW_OK;
  }
  snprintf(reason, bytes, "%s is %g; an int32 result takes whole 32-bit factors only", field, value);
  return KW_UNSUPPORTED;
}

/* Without a K extent there is nothing but C. */
static inline kw_status kw_cuda_gemm_k_fits(const kw_gemm_problem* p, char* reason, size_t bytes) {
  if (p->k > 0) {
    return KW_OK;
  }
  if (p->num_d > 0 || p->activation != KW_ACTIVATION_NONE) {
    snprintf(reason, bytes, "%s", "k is 0; a kernel with D tensors or an activation needs a K extent");
    return KW_UNSUPPORTED;
  }
  if (p->beta == 0.0 || p->beta == 1.0) {
    return KW_OK;
  }
  snprintf(reason, bytes, "k is 0 and beta is %g; without a K extent this kernel serves beta 0 and 1", p->beta);
  return KW_UNSUPPORTED;
}

/* C is written, so its products lie apart. */
static inline kw_status kw_cuda_gemm_products_apart(const kw_gemm_problem* p, char* reason, size_t bytes) {
  const int64_t matrix = kw_add(kw_mul((int64_t)p->m - 1, p->ldc), p->n);
  const int64_t row = kw_add(kw_mul((int64_t)p->batch - 1, p->stride_c), p->n);
  if (p->stride_c >= matrix || p->ldc >= row) {
    return KW_OK;
  }
  snprintf(reason, bytes, "stride_c is %lld: products of %lld x %lld with ldc %lld would overlap", (long long)(p->stride_c), (long long)(p->m), (long long)(p->n), (long long)(p->ldc));
  return KW_UNSUPPORTED;
}

/* A stride of 0 shares A or B among all products. */
static inline kw_status kw_cuda_gemm_batches_fit(const kw_gemm_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if (p->batch == 1) {
    return KW_OK;
  }
  if ((status = kw_cuda_gemm_extent_fits("batch", p->batch, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_gemm_batch_stride_fits("stride_a", p->stride_a, p->dtype_a, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_gemm_batch_stride_fits("stride_b", p->stride_b, p->dtype_b, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_gemm_batch_stride_fits("stride_c", p->stride_c, p->dtype_c, reason, bytes)) != KW_OK) return status;
  return kw_cuda_gemm_products_apart(p, reason, bytes);
}

/* A D tensor; one line for all has no leading dimension. */
static inline kw_status kw_cuda_gemm_tensor_fits(const kw_gemm_problem* p, int64_t index, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if (p->ld_multi_d[index] != 0 && (status = kw_cuda_gemm_lines_fit(kw_gemm_matrix_d(p, index), reason, bytes)) != KW_OK) return status;
  return kw_cuda_gemm_batch_stride_fits("stride_multi_d", p->stride_multi_d[index], p->dtype_c, reason, bytes);
}

/* All D tensors. */
static inline kw_status kw_cuda_gemm_tensors_fit(const kw_gemm_problem* p, char* reason, size_t bytes) {
  kw_status refused = KW_OK;
  for (int64_t i = 0; i < p->num_d; ++i) {
    refused = kw_cuda_gemm_tensor_fits(p, i, reason, bytes);
    if (refused != KW_OK) {
      return refused;
    }
  }
  return KW_OK;
}

/* Without a K extent neither A nor B is read. */
static inline kw_status kw_cuda_gemm_operands_fit(const kw_gemm_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_cuda_gemm_k_fits(p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_gemm_stored_row_fits(p->n, p->dtype_c, reason, bytes)) != KW_OK) return status;
  if (p->k > 0 && (status = kw_cuda_gemm_lines_fit(kw_gemm_matrix_a(p), reason, bytes)) != KW_OK) return status;
  if (p->k > 0 && (status = kw_cuda_gemm_lines_fit(kw_gemm_matrix_b(p), reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_gemm_lines_fit(kw_gemm_matrix_c(p), reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_gemm_batches_fit(p, reason, bytes)) != KW_OK) return status;
  return kw_cuda_gemm_tensors_fit(p, reason, bytes);
}

/* All but what traits say. */
static inline kw_status kw_cuda_gemm_sizes_fit(const kw_gemm_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  const bool empty = p->m == 0 || p->n == 0;
  if ((status = kw_cuda_gemm_extent_fits("m", p->m, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_gemm_extent_fits("n", p->n, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_gemm_extent_fits("k", p->k, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_gemm_scalar_fits("alpha", p->alpha, p->dtype_acc, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_gemm_scalar_fits("beta", p->beta, p->dtype_acc, reason, bytes)) != KW_OK) return status;
  if (!empty && (status = kw_cuda_gemm_operands_fit(p, reason, bytes)) != KW_OK) return status;
  return KW_OK;
}

/* What is checked of a GEMM but the struct itself. */
static inline kw_status kw_cuda_gemm_check(const kw_gemm_traits* t, const kw_gemm_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_gemm_traits_match(t, p, reason, bytes)) != KW_OK) return status;
  return kw_cuda_gemm_sizes_fit(p, reason, bytes);
}

/* Products begin anywhere, not before the first one. */
static inline kw_status kw_cuda_gemm_stride_fits(const char* field, int64_t stride, char* reason, size_t bytes) {
  if (stride >= 0 && stride < KW_CUDA_GEMM_STRIDE_LIMIT) {
    return KW_OK;
  }
  snprintf(reason, bytes, "%s is %lld; this kernel takes 0 to %lld", field, (long long)(stride), (long long)(KW_CUDA_GEMM_STRIDE_LIMIT - 1));
  return KW_UNSUPPORTED;
}

/* A stride of 0 shares A, B or a D tensor among all products. */
static inline kw_status kw_cuda_gemm_copied_strides_fit(const kw_gemm_problem* p, char* reason, size_t bytes) {
  kw_status refused = KW_OK;
  kw_status status = KW_OK;
  if (p->batch == 1) {
    return KW_OK;
  }
  for (int64_t i = 0; i < p->num_d; ++i) {
    refused = kw_cuda_gemm_stride_fits("stride_multi_d", p->stride_multi_d[i], reason, bytes);
    if (refused != KW_OK) {
      return refused;
    }
  }
  if ((status = kw_cuda_gemm_extent_fits("batch", p->batch, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_gemm_stride_fits("stride_a", p->stride_a, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_gemm_stride_fits("stride_b", p->stride_b, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_gemm_stride_fits("stride_c", p->stride_c, reason, bytes)) != KW_OK) return status;
  return kw_cuda_gemm_products_apart(p, reason, bytes);
}

/* Lines of any length at any place, as long as addresses are numbers. */
static inline kw_status kw_cuda_gemm_copied_lines_fit(const kw_gemm_problem* p, char* reason, size_t bytes) {
  kw_status refused = KW_OK;
  kw_status status = KW_OK;
  for (int64_t i = 0; i < p->num_d; ++i) {
    refused = kw_cuda_gemm_stride_fits("ld_multi_d", p->ld_multi_d[i], reason, bytes);
    if (refused != KW_OK) {
      return refused;
    }
  }
  if ((status = kw_cuda_gemm_stride_fits("lda", p->lda, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_gemm_stride_fits("ldb", p->ldb, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_gemm_stride_fits("ldc", p->ldc, reason, bytes)) != KW_OK) return status;
  if ((status = kw_gemm_check_all_leading(p, reason, bytes)) != KW_OK) return status;
  return kw_cuda_gemm_copied_strides_fit(p, reason, bytes);
}

/* What is checked of a GEMM whose operands threads copy, but the struct itself. */
static inline kw_status kw_cuda_gemm_check_copied(const kw_gemm_traits* t, const kw_gemm_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  const bool empty = p->m == 0 || p->n == 0;
  if ((status = kw_gemm_traits_match(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_gemm_extent_fits("m", p->m, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_gemm_extent_fits("n", p->n, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_gemm_extent_fits("k", p->k, reason, bytes)) != KW_OK) return status;
  if (!empty && (status = kw_cuda_gemm_copied_lines_fit(p, reason, bytes)) != KW_OK) return status;
  return KW_OK;
}

#endif /* LAUNCHERS_CUDA_GEMM_CONDITIONS_H */
