/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/norm/rules/checks.py by `kernelwright formulas`, and explained there. */
#ifndef KERNELWRIGHT_NORM_CHECKS_H
#define KERNELWRIGHT_NORM_CHECKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernelwright/abi.h"
#include "kernelwright/checks.h"
#include "kernelwright/dtypes.h"
#include "kernelwright/norm.h"
#include "kernelwright/rules.h"

#define KW_NORM_MAX_ELEMENTS 144115188075855872

/* Whether gradients are asked for. */
static inline bool kw_norm_is_backward(const kw_norm_problem* p) {
  return p->base.op == KW_OP_RMS_NORM_BACKWARD || p->base.op == KW_OP_LAYER_NORM_BACKWARD;
}

/* Whether the mean is taken off. */
static inline bool kw_norm_is_layer(const kw_norm_problem* p) {
  return p->base.op == KW_OP_LAYER_NORM || p->base.op == KW_OP_LAYER_NORM_BACKWARD;
}

/* Whether y has a scale for each row. */
static inline bool kw_norm_is_quantised(const kw_norm_problem* p) {
  return p->dtype_y == KW_INT8 || p->dtype_y == KW_FP8;
}

/* Whether a residual is added and the sum written. */
static inline bool kw_norm_writes_sum(const kw_norm_problem* p) {
  return p->residual != 0 && !kw_norm_is_backward(p);
}

/* The types that norms are defined for. */
static inline kw_status kw_norm_types_are_legal(const kw_norm_problem* p, char* reason, size_t bytes) {
  if (p->dtype_x != KW_FP32 && p->dtype_x != KW_FP16 && p->dtype_x != KW_BF16) {
    snprintf(reason, bytes, "dtype_x is %s; allowed: fp32, fp16, bf16", kw_dtype_name(p->dtype_x));
    return KW_INVALID_ARGUMENT;
  }
  if (p->dtype_w != p->dtype_x && p->dtype_w != KW_FP32) {
    snprintf(reason, bytes, "dtype_w is %s; allowed: dtype_x or fp32", kw_dtype_name(p->dtype_w));
    return KW_INVALID_ARGUMENT;
  }
  if (p->dtype_y != p->dtype_x && (kw_norm_is_backward(p) || !kw_norm_is_quantised(p))) {
    snprintf(reason, bytes, "dtype_y is %s; allowed: dtype_x; of forward int8 and fp8 too", kw_dtype_name(p->dtype_y));
    return KW_INVALID_ARGUMENT;
  }
  return KW_OK;
}

/* The distance of rows of an operand; name is that of the field. */
static inline kw_status kw_norm_rows_are_legal(const char* name, const kw_norm_problem* p, int64_t stride, bool used, bool written, char* reason, size_t bytes) {
  if (!used) {
    if (stride != 0) {
      snprintf(reason, bytes, "%s is %lld; allowed for an operand that the problem lacks: 0", name, (long long)(stride));
      return KW_INVALID_ARGUMENT;
    }
    return KW_OK;
  }
  if (written && p->rows > 1 && stride < p->columns) {
    snprintf(reason, bytes, "%s is %lld, so rows would overlap; allowed: %lld or more", name, (long long)(stride), (long long)(p->columns));
    return KW_INVALID_ARGUMENT;
  }
  if (kw_add(kw_mul(kw_larger((int64_t)p->rows - 1, 0), stride), p->columns) > KW_NORM_MAX_ELEMENTS) {
    snprintf(reason, bytes, "%s is %lld; allowed: rows that span at most %lld elements", name, (long long)(stride), (long long)(KW_NORM_MAX_ELEMENTS));
    return KW_INVALID_ARGUMENT;
  }
  return KW_OK;
}

/* What the ranges of fields do not say. */
static inline kw_status kw_norm_is_legal(const kw_norm_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if (p->bias != 0 && !kw_norm_is_layer(p)) {
    snprintf(reason, bytes, "%s", "bias is 1; allowed for rms norm: 0");
    return KW_INVALID_ARGUMENT;
  }
  if (!kw_finite_fp32(p->epsilon) || p->epsilon < 0.0) {
    snprintf(reason, bytes, "%s", "epsilon is negative or not finite; allowed: a finite number, 0 or more");
    return KW_INVALID_ARGUMENT;
  }
  if ((status = kw_norm_types_are_legal(p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_norm_rows_are_legal("stride_x", p, p->stride_x, true, false, reason, bytes)) != KW_OK) return status;
  if ((status = kw_norm_rows_are_legal("stride_residual", p, p->stride_residual, p->residual != 0, false, reason, bytes)) != KW_OK) return status;
  if ((status = kw_norm_rows_are_legal("stride_y", p, p->stride_y, true, true, reason, bytes)) != KW_OK) return status;
  if ((status = kw_norm_rows_are_legal("stride_sum", p, p->stride_sum, kw_norm_writes_sum(p), true, reason, bytes)) != KW_OK) return status;
  return kw_norm_rows_are_legal("stride_dy", p, p->stride_dy, kw_norm_is_backward(p), false, reason, bytes);
}

/* The kernel is built for these types. */
static inline kw_status kw_norm_traits_match(const kw_norm_traits* t, const kw_norm_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_dtype_matches("dtype_x", p->dtype_x, t->dtype_x, reason, bytes)) != KW_OK) return status;
  return kw_dtype_matches("dtype_y", p->dtype_y, t->dtype_y, reason, bytes);
}

#endif /* KERNELWRIGHT_NORM_CHECKS_H */
