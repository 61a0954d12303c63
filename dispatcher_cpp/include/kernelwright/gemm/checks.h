/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/gemm/rules/checks.py by `kernelwright formulas`, and explained there. */
#ifndef KERNELWRIGHT_GEMM_CHECKS_H
#define KERNELWRIGHT_GEMM_CHECKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernelwright/abi.h"
#include "kernelwright/checks.h"
#include "kernelwright/dtypes.h"
#include "kernelwright/epilogue.h"
#include "kernelwright/gemm.h"
#include "kernelwright/rules.h"


/* The kernel is built for these types. */
static inline kw_status kw_gemm_dtypes_match(const kw_gemm_traits* t, const kw_gemm_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_dtype_matches("dtype_a", p->dtype_a, t->dtype_a, reason, bytes)) != KW_OK) return status;
  if ((status = kw_dtype_matches("dtype_b", p->dtype_b, t->dtype_b, reason, bytes)) != KW_OK) return status;
  if ((status = kw_dtype_matches("dtype_c", p->dtype_c, t->dtype_c, reason, bytes)) != KW_OK) return status;
  return kw_dtype_matches("dtype_acc", p->dtype_acc, t->dtype_acc, reason, bytes);
}

/* The kernel is built for another storage order of the matrix; name is that of the problem's field. */
static inline kw_status kw_gemm_layout_matches(const char* name, uint32_t asked, uint32_t built, char* reason, size_t bytes) {
  if (asked == built) {
    return KW_OK;
  }
  snprintf(reason, bytes, "%s is %s, this kernel serves %s", name, kw_layout_name(asked), kw_layout_name(built));
  return KW_UNSUPPORTED;
}

/* The kernel is built for these storage orders. */
static inline kw_status kw_gemm_layouts_match(const kw_gemm_traits* t, const kw_gemm_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_gemm_layout_matches("layout_a", p->layout_a, t->layout_a, reason, bytes)) != KW_OK) return status;
  if ((status = kw_gemm_layout_matches("layout_b", p->layout_b, t->layout_b, reason, bytes)) != KW_OK) return status;
  return kw_gemm_layout_matches("layout_c", p->layout_c, t->layout_c, reason, bytes);
}

/* Batch, D tensors, activation and the order of B are what the kernel is built for. */
static inline kw_status kw_gemm_variant_matches(const kw_gemm_traits* t, const kw_gemm_problem* p, char* reason, size_t bytes) {
  if (p->batch < 1 || (p->batch > 1 && !(t->batched != 0))) {
    snprintf(reason, bytes, "batch is %lld, this kernel serves 1%s", (long long)(p->batch), t->batched != 0 ? " or more" : "");
    return KW_UNSUPPORTED;
  }
  const bool any_epilogue = t->activation == KW_ACTIVATION_ANY;
  if (any_epilogue && p->num_d > t->num_d) {
    snprintf(reason, bytes, "the problem has %lld D tensors, this kernel takes at most %lld", (long long)(p->num_d), (long long)(t->num_d));
    return KW_UNSUPPORTED;
  }
  if (!any_epilogue && p->num_d != t->num_d) {
    snprintf(reason, bytes, "the problem has %lld D tensors, this kernel takes %lld", (long long)(p->num_d), (long long)(t->num_d));
    return KW_UNSUPPORTED;
  }
  if (!any_epilogue && p->num_d != 0 && p->d_op != t->d_op) {
    snprintf(reason, bytes, "d_op is %s, this kernel does %s", kw_d_op_name(p->d_op), kw_d_op_name(t->d_op));
    return KW_UNSUPPORTED;
  }
  if (!any_epilogue && p->activation != t->activation) {
    snprintf(reason, bytes, "activation is %s, this kernel does %s", kw_activation_name(p->activation), kw_activation_name(t->activation));
    return KW_UNSUPPORTED;
  }
  if (p->b_format == t->b_format) {
    return KW_OK;
  }
  if (p->b_format == 0) {
    snprintf(reason, bytes, "%s", "B is not shuffled, and this kernel reads it in its own order: shuffle_b");
    return KW_UNSUPPORTED;
  }
  if (t->b_format == 0) {
    snprintf(reason, bytes, "%s", "B is shuffled, and this kernel reads it as it is");
    return KW_UNSUPPORTED;
  }
  snprintf(reason, bytes, "%s", "B is shuffled for another kernel: shuffle it for this one");
  return KW_UNSUPPORTED;
}

/* The kernel sums K in so many slices. A split_k of 0 is the dispatcher's to choose. */
static inline kw_status kw_gemm_split_k_matches(const kw_gemm_traits* t, const kw_gemm_problem* p, char* reason, size_t bytes) {
  if (p->split_k >= 1 && p->split_k <= t->max_split_k) {
    return KW_OK;
  }
  if (t->max_split_k > 1) {
    snprintf(reason, bytes, "split_k is %lld, this kernel serves 1 to %lld", (long long)(p->split_k), (long long)(t->max_split_k));
    return KW_UNSUPPORTED;
  }
  snprintf(reason, bytes, "split_k is %lld, this kernel serves 1", (long long)(p->split_k));
  return KW_UNSUPPORTED;
}

/* All of the above: what a backend checks of a single problem before its own conditions. */
static inline kw_status kw_gemm_traits_match(const kw_gemm_traits* t, const kw_gemm_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_gemm_dtypes_match(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_gemm_layouts_match(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_gemm_variant_matches(t, p, reason, bytes)) != KW_OK) return status;
  return kw_gemm_split_k_matches(t, p, reason, bytes);
}

typedef struct kw_gemm_Matrix {
  const char* name;
  const char* ld_name;
  const char* row_extent;
  const char* column_extent;
  uint32_t layout;
  uint32_t dtype;
  int64_t ld;
  int64_t rows;
  int64_t columns;
} kw_gemm_Matrix;

/* Elements of one line. */
static inline int64_t kw_gemm_line(KW_GIVEN(kw_gemm_Matrix) x) {
  return x.layout == KW_ROW_MAJOR ? x.columns : x.rows;
}

/* The name of that extent. */
static inline const char* kw_gemm_line_name(KW_GIVEN(kw_gemm_Matrix) x) {
  return x.layout == KW_ROW_MAJOR ? x.column_extent : x.row_extent;
}

/* How many lines there are. */
static inline int64_t kw_gemm_lines(KW_GIVEN(kw_gemm_Matrix) x) {
  return x.layout == KW_ROW_MAJOR ? x.rows : x.columns;
}

/* A. */
static inline kw_gemm_Matrix kw_gemm_matrix_a(const kw_gemm_problem* p) {
  return KW_RECORD(kw_gemm_Matrix, "A", "lda", "m", "k", p->layout_a, p->dtype_a, p->lda, p->m, p->k);
}

/* B. */
static inline kw_gemm_Matrix kw_gemm_matrix_b(const kw_gemm_problem* p) {
  return KW_RECORD(kw_gemm_Matrix, "B", "ldb", "k", "n", p->layout_b, p->dtype_b, p->ldb, p->k, p->n);
}

/* C. */
static inline kw_gemm_Matrix kw_gemm_matrix_c(const kw_gemm_problem* p) {
  return KW_RECORD(kw_gemm_Matrix, "C", "ldc", "m", "n", p->layout_c, p->dtype_c, p->ldc, p->m, p->n);
}

/* The D tensor `index`, below KW_MAX_D. One line for all (ld 0) is a matrix of one line. */
static inline kw_gemm_Matrix kw_gemm_matrix_d(const kw_gemm_problem* p, int64_t index) {
  const char* name = index == 0 ? "D0" : index == 1 ? "D1" : index == 2 ? "D2" : "D3";
  const char* first = index == 0 ? "ld_multi_d[0]" : "ld_multi_d[1]";
  const char* ld_name = index < 2 ? first : index == 2 ? "ld_multi_d[2]" : "ld_multi_d[3]";
  const bool by_rows = p->layout_c == KW_ROW_MAJOR;
  const bool shared = p->ld_multi_d[index] == 0;
  const int64_t ld = shared ? kw_larger(by_rows ? p->n : p->m, 1) : p->ld_multi_d[index];
  const int64_t rows = shared && by_rows ? 1 : p->m;
  const int64_t columns = shared && !by_rows ? 1 : p->n;
  return KW_RECORD(kw_gemm_Matrix, name, ld_name, "m", "n", p->layout_c, p->dtype_c, ld, rows, columns);
}

/* Lines do not overlap, and the bounds check of the last one hides no part of the others. */
static inline kw_status kw_gemm_check_leading(KW_GIVEN(kw_gemm_Matrix) x, char* reason, size_t bytes) {
  if (x.ld >= kw_gemm_line(x)) {
    return KW_OK;
  }
  const char* kind = x.layout == KW_ROW_MAJOR ? "row" : "column";
  snprintf(reason, bytes, "%s is %lld, below %s, the %lld elements of a %s of %s", x.ld_name, (long long)(x.ld), kw_gemm_line_name(x), (long long)(kw_gemm_line(x)), kind, x.name);
  return KW_INVALID_ARGUMENT;
}

/* The same of the D tensors. */
static inline kw_status kw_gemm_check_d_leading(const kw_gemm_problem* p, char* reason, size_t bytes) {
  kw_status refused = KW_OK;
  for (int64_t i = 0; i < kw_smaller(p->num_d, 4); ++i) {
    refused = kw_gemm_check_leading(kw_gemm_matrix_d(p, i), reason, bytes);
    if (refused != KW_OK) {
      return refused;
    }
  }
  return KW_OK;
}

/* The same of every matrix of a problem; B is left out where it is shuffled. */
static inline kw_status kw_gemm_check_all_leading(const kw_gemm_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_gemm_check_leading(kw_gemm_matrix_a(p), reason, bytes)) != KW_OK) return status;
  if (p->b_format == 0 && (status = kw_gemm_check_leading(kw_gemm_matrix_b(p), reason, bytes)) != KW_OK) return status;
  if ((status = kw_gemm_check_leading(kw_gemm_matrix_c(p), reason, bytes)) != KW_OK) return status;
  return kw_gemm_check_d_leading(p, reason, bytes);
}

#endif /* KERNELWRIGHT_GEMM_CHECKS_H */
