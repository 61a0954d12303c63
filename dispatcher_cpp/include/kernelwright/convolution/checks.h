/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/convolution/rules/checks.py by `kernelwright formulas`, and explained there. */
#ifndef KERNELWRIGHT_CONVOLUTION_CHECKS_H
#define KERNELWRIGHT_CONVOLUTION_CHECKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernelwright/abi.h"
#include "kernelwright/checks.h"
#include "kernelwright/convolution.h"
#include "kernelwright/dtypes.h"
#include "kernelwright/epilogue.h"
#include "kernelwright/rules.h"


/* Spatial dimensions of a layout. */
static inline int64_t kw_conv_dims(uint32_t layout) {
  return layout == KW_CONV_NWGC ? 1 : layout == KW_CONV_NDHWGC ? 3 : 2;
}

/* Output points along a spatial dimension. */
static inline int64_t kw_conv_out(const kw_conv_problem* p, int64_t dim) {
  const int64_t padded = kw_add(kw_add(p->extent[dim], p->pad_left[dim]), p->pad_right[dim]);
  return kw_add((padded - kw_mul(p->dilation[dim], (int64_t)p->filter[dim] - 1) - 1) / p->stride[dim], 1);
}

/* Of all dimensions. */
static inline int64_t kw_conv_filter_points(const kw_conv_problem* p) {
  return kw_mul(kw_mul(p->filter[0], p->filter[1]), p->filter[2]);
}

/* Of one image. */
static inline int64_t kw_conv_out_points(const kw_conv_problem* p) {
  return kw_mul(kw_mul(kw_conv_out(p, 0), kw_conv_out(p, 1)), kw_conv_out(p, 2));
}

typedef struct kw_conv_Gemm {
  int64_t m;
  int64_t n;
  int64_t k;
} kw_conv_Gemm;

/* The implicit GEMM of a group; backward data without the points that a stride leaves out. */
static inline kw_conv_Gemm kw_conv_as_gemm(const kw_conv_problem* p) {
  const int64_t c = p->c / p->groups;
  const int64_t k = p->k / p->groups;
  const int64_t outputs = kw_mul(p->n, kw_conv_out_points(p));
  if (p->base.op == KW_OP_CONV_FORWARD) {
    return KW_RECORD(kw_conv_Gemm, outputs, k, kw_mul(c, kw_conv_filter_points(p)));
  }
  if (p->base.op == KW_OP_CONV_BACKWARD_DATA) {
    return KW_RECORD(kw_conv_Gemm, outputs, c, kw_mul(k, kw_conv_filter_points(p)));
  }
  return KW_RECORD(kw_conv_Gemm, k, kw_mul(c, kw_conv_filter_points(p)), outputs);
}

/* Whether every entry of an array along D, H and W is this value. */
static inline bool kw_conv_everywhere(const int64_t* values, int64_t wanted) {
  return values[0] == wanted && values[1] == wanted && values[2] == wanted;
}

/* The kernel is built for these types. */
static inline kw_status kw_conv_dtypes_match(const kw_conv_traits* t, const kw_conv_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_dtype_matches("dtype_x", p->dtype_x, t->dtype_x, reason, bytes)) != KW_OK) return status;
  if ((status = kw_dtype_matches("dtype_w", p->dtype_w, t->dtype_w, reason, bytes)) != KW_OK) return status;
  if ((status = kw_dtype_matches("dtype_y", p->dtype_y, t->dtype_y, reason, bytes)) != KW_OK) return status;
  return kw_dtype_matches("dtype_acc", p->dtype_acc, t->dtype_acc, reason, bytes);
}

/* Images with channels innermost and fewer dimensions are those of a kernel with more, with extents of 1. */
static inline kw_status kw_conv_layouts_match(const kw_conv_traits* t, const kw_conv_problem* p, char* reason, size_t bytes) {
  const bool innermost = t->layout != KW_CONV_NGCHW && p->layout != KW_CONV_NGCHW;
  if (t->layout == p->layout || (innermost && kw_conv_dims(p->layout) < kw_conv_dims(t->layout))) {
    return KW_OK;
  }
  snprintf(reason, bytes, "layout is %s, this kernel serves %s", kw_conv_layout_name(p->layout), kw_conv_layout_name(t->layout));
  return KW_UNSUPPORTED;
}

/* Bias, residual and activation are what the kernel is built for. */
static inline kw_status kw_conv_epilogue_matches(const kw_conv_traits* t, const kw_conv_problem* p, char* reason, size_t bytes) {
  const bool any_epilogue = t->activation == KW_ACTIVATION_ANY;
  if ((p->bias != 0) != (t->bias != 0) && !(any_epilogue && t->bias != 0)) {
    if (p->bias != 0) {
      snprintf(reason, bytes, "%s", "the problem has a bias, this kernel adds none");
      return KW_UNSUPPORTED;
    }
    snprintf(reason, bytes, "%s", "the problem has no bias, this kernel adds one");
    return KW_UNSUPPORTED;
  }
  if ((p->residual != 0) != (t->residual != 0) && !(any_epilogue && t->residual != 0)) {
    if (p->residual != 0) {
      snprintf(reason, bytes, "%s", "the problem has a residual, this kernel adds none");
      return KW_UNSUPPORTED;
    }
    snprintf(reason, bytes, "%s", "the problem has no residual, this kernel adds one");
    return KW_UNSUPPORTED;
  }
  if (!any_epilogue && p->activation != t->activation) {
    snprintf(reason, bytes, "activation is %s, this kernel does %s", kw_activation_name(p->activation), kw_activation_name(t->activation));
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* A filter and stride along H and W that a depthwise kernel fixes are those of the problem. */
static inline kw_status kw_conv_plane_matches(const kw_conv_traits* t, const kw_conv_problem* p, char* reason, size_t bytes) {
  int64_t dim = 0;
  int64_t padding = 0;
  bool padded = false;
  bool same = false;
  for (int64_t i = 0; i < 2; ++i) {
    dim = 2 - i;
    if (t->stride[1 - i] != 0 && p->stride[dim] != t->stride[1 - i]) {
      snprintf(reason, bytes, "%s", "this kernel serves one stride");
      return KW_UNSUPPORTED;
    }
    padding = t->padding[1 - i];
    padded = p->pad_left[dim] == padding && p->pad_right[dim] == padding;
    same = p->filter[dim] == t->filter[1 - i] && padded && p->dilation[dim] == 1;
    if (t->filter[1 - i] != 0 && !same) {
      snprintf(reason, bytes, "%s", "this kernel serves one filter with one padding and no dilation");
      return KW_UNSUPPORTED;
    }
  }
  return KW_OK;
}

/* Filter, strides, padding and channels per group are what the kernel is built for. */
static inline kw_status kw_conv_shape_matches(const kw_conv_traits* t, const kw_conv_problem* p, char* reason, size_t bytes) {
  bool three = false;
  kw_status status = KW_OK;
  const bool depthwise = p->c == p->groups && p->k == p->groups;
  three = depthwise;
  for (int64_t dim = 3 - kw_conv_dims(p->layout); dim < 3; ++dim) {
    three = three && p->filter[dim] == 3;
  }
  const bool point = kw_conv_everywhere(p->filter, 1) && kw_conv_everywhere(p->pad_left, 0) && kw_conv_everywhere(p->pad_right, 0);
  const bool matrices = t->specialization == KW_CONV_FILTER_1X1_STRIDE_1_PAD_0;
  if ((status = kw_conv_plane_matches(t, p, reason, bytes)) != KW_OK) return status;
  if (t->specialization == KW_CONV_FILTER_3X3 && !three) {
    snprintf(reason, bytes, "%s", "this kernel serves filters of 3 points and one channel per group");
    return KW_UNSUPPORTED;
  }
  if (matrices && !kw_conv_everywhere(p->stride, 1)) {
    snprintf(reason, bytes, "%s", "this kernel serves strides of 1");
    return KW_UNSUPPORTED;
  }
  if ((matrices || t->specialization == KW_CONV_FILTER_1X1_PAD_0) && !point) {
    snprintf(reason, bytes, "%s", "this kernel serves filters of one point without padding");
    return KW_UNSUPPORTED;
  }
  if (t->depthwise != 0 && !depthwise) {
    snprintf(reason, bytes, "%s", "this kernel serves one channel in and out per group");
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* The kernel sums in so many slices. A split_k of 0 is the dispatcher's to choose. */
static inline kw_status kw_conv_split_k_matches(const kw_conv_traits* t, const kw_conv_problem* p, char* reason, size_t bytes) {
  if (p->split_k < 1 || p->split_k > t->max_split_k) {
    snprintf(reason, bytes, "split_k is %lld, this kernel serves 1%s", (long long)(p->split_k), t->max_split_k > 1 ? " or more" : "");
    return KW_UNSUPPORTED;
  }
  const int64_t leaves = p->split_k > 1 && t->slices != 0 ? 1 : 0;
  if (p->base.op == KW_OP_CONV_WEIGHT_SLICES && p->leaves_slices != leaves) {
    snprintf(reason, bytes, "leaves_slices is %lld, this kernel serves %lld", (long long)(p->leaves_slices), (long long)(leaves));
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* All of the above but types, layout and split_k: what holds before the dispatcher has chosen. */
static inline kw_status kw_conv_variant_matches(const kw_conv_traits* t, const kw_conv_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_conv_epilogue_matches(t, p, reason, bytes)) != KW_OK) return status;
  return kw_conv_shape_matches(t, p, reason, bytes);
}

/* All of the above: what a backend checks of a problem before its own conditions. */
static inline kw_status kw_conv_traits_match(const kw_conv_traits* t, const kw_conv_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_conv_dtypes_match(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_conv_layouts_match(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_conv_variant_matches(t, p, reason, bytes)) != KW_OK) return status;
  return kw_conv_split_k_matches(t, p, reason, bytes);
}

#endif /* KERNELWRIGHT_CONVOLUTION_CHECKS_H */
