/* Which convolution problems a kernel may serve, as far as its traits tell: the checks that dispatcher and backends
 * share, and numbers that follow from a problem.
 *
 * C99. Functions that return a kw_status write one sentence into reason unless they return KW_OK; reason may be null
 * where bytes is 0.
 */
#ifndef KERNELWRIGHT_CONVOLUTION_CHECKS_H
#define KERNELWRIGHT_CONVOLUTION_CHECKS_H

#include <stdio.h>

#include "kernelwright/checks.h"
#include "kernelwright/convolution.h"

static inline const char* kw_conv_layout_name(uint32_t layout) {
  static const char* const names[] = {"nwgc", "nhwgc", "ndhwgc", "ngchw", "unknown"};
  return names[layout <= KW_CONV_NGCHW ? layout : 4];
}

/* Spatial dimensions of a known layout. */
static inline uint32_t kw_conv_dims(uint32_t layout) { return layout == KW_CONV_NGCHW ? 2 : layout + 1; }

/* "conv forward"; of the stages too. */
static inline const char* kw_conv_op_name(uint32_t op) {
  static const char* const names[] = {"conv forward",       "conv backward data", "conv backward weight",
                                      "conv weight slices", "conv sum of slices", "unknown"};
  return names[op >= KW_OP_CONV_FORWARD && op <= KW_OP_CONV_SUM_SLICES ? op - KW_OP_CONV_FORWARD : 5];
}

/* Output points along a spatial dimension of a valid problem. */
static inline int64_t kw_conv_out(const kw_conv_problem* p, int dim) {
  const int64_t padded = p->extent[dim] + p->pad_left[dim] + p->pad_right[dim];
  return (padded - p->dilation[dim] * (p->filter[dim] - 1) - 1) / p->stride[dim] + 1;
}

static inline int64_t kw_conv_filter_points(const kw_conv_problem* p) {
  return p->filter[0] * p->filter[1] * p->filter[2];
}
static inline int64_t kw_conv_out_points(const kw_conv_problem* p) {
  return kw_conv_out(p, 0) * kw_conv_out(p, 1) * kw_conv_out(p, 2);
}

/* The implicit GEMM of one group. Backward data is counted without the points that a stride leaves out. */
typedef struct kw_conv_gemm {
  int64_t m, n, k;
} kw_conv_gemm;

static inline kw_conv_gemm kw_conv_as_gemm(const kw_conv_problem* p) {
  const int64_t c = p->c / p->groups, k = p->k / p->groups, points = kw_conv_filter_points(p);
  const int64_t outputs = p->n * kw_conv_out_points(p);
  kw_conv_gemm g = {outputs, k, c * points};
  if (p->base.op == KW_OP_CONV_BACKWARD_DATA) {
    g.n = c;
    g.k = k * points;
  } else if (p->base.op != KW_OP_CONV_FORWARD) {
    g.m = k;
    g.n = c * points;
    g.k = outputs;
  }
  return g;
}

/* KW_UNSUPPORTED: the kernel is built for another dtype. */
static inline kw_status kw_conv_dtypes_match(const kw_conv_traits* t, const kw_conv_problem* p, char* reason,
                                             size_t bytes) {
  static const char* const names[] = {"dtype_x", "dtype_w", "dtype_y", "dtype_acc"};
  const uint32_t asked[] = {p->dtype_x, p->dtype_w, p->dtype_y, p->dtype_acc};
  const uint32_t built[] = {t->dtype_x, t->dtype_w, t->dtype_y, t->dtype_acc};
  return kw_dtypes_match(4, names, asked, built, reason, bytes);
}

/* KW_UNSUPPORTED: the kernel is built for another layout. Images with channels innermost and fewer dimensions are those
 * of a kernel with more, with extents of 1 in front. */
static inline kw_status kw_conv_layouts_match(const kw_conv_traits* t, const kw_conv_problem* p, char* reason,
                                              size_t bytes) {
  if (t->layout == p->layout || (t->layout <= KW_CONV_NDHWGC && p->layout < t->layout)) return KW_OK;
  snprintf(reason, bytes, "layout is %s, this kernel serves %s", kw_conv_layout_name(p->layout),
           kw_conv_layout_name(t->layout));
  return KW_UNSUPPORTED;
}

/* KW_UNSUPPORTED: bias, residual or activation are not what the kernel is built for. */
static inline kw_status kw_conv_epilogue_matches(const kw_conv_traits* t, const kw_conv_problem* p, char* reason,
                                                 size_t bytes) {
  if (p->bias != t->bias)
    snprintf(
        reason, bytes,
        p->bias ? "the problem has a bias, this kernel adds none" : "the problem has no bias, this kernel adds one");
  else if (p->residual != t->residual)
    snprintf(reason, bytes,
             p->residual ? "the problem has a residual, this kernel adds none"
                         : "the problem has no residual, this kernel adds one");
  else if (p->activation != t->activation)
    snprintf(reason, bytes, "activation is %s, this kernel does %s", kw_activation_name(p->activation),
             kw_activation_name(t->activation));
  else
    return KW_OK;
  return KW_UNSUPPORTED;
}

/* Is every entry of an array along D, H and W this value? */
static inline int kw_conv_all(const int64_t* values, int64_t wanted) {
  return values[0] == wanted && values[1] == wanted && values[2] == wanted;
}

/* KW_UNSUPPORTED: filter, strides, padding or channels per group are not what the kernel is built for. */
static inline kw_status kw_conv_shape_matches(const kw_conv_traits* t, const kw_conv_problem* p, char* reason,
                                              size_t bytes) {
  const int depthwise = p->c == p->groups && p->k == p->groups;
  const uint32_t dims = kw_conv_dims(p->layout);
  const char* why = NULL;
  if (t->depthwise && !depthwise) why = "this kernel serves one channel in and out per group";
  if (t->specialization == KW_CONV_FILTER_1X1_PAD_0 || t->specialization == KW_CONV_FILTER_1X1_STRIDE_1_PAD_0) {
    if (!kw_conv_all(p->filter, 1) || !kw_conv_all(p->pad_left, 0) || !kw_conv_all(p->pad_right, 0))
      why = "this kernel serves filters of one point without padding";
  }
  if (t->specialization == KW_CONV_FILTER_1X1_STRIDE_1_PAD_0 && !kw_conv_all(p->stride, 1))
    why = "this kernel serves strides of 1";
  for (uint32_t dim = 3 - dims; t->specialization == KW_CONV_FILTER_3X3 && dim < 3; ++dim) {
    if (p->filter[dim] != 3 || !depthwise) why = "this kernel serves filters of 3 points and one channel per group";
  }
  for (uint32_t i = 0; i < 2; ++i) {
    const uint32_t dim = i + 1;
    if (t->filter[i] != 0 && (p->filter[dim] != t->filter[i] || p->pad_left[dim] != t->padding[i] ||
                              p->pad_right[dim] != t->padding[i] || p->dilation[dim] != 1))
      why = "this kernel serves one filter with one padding and no dilation";
    if (t->stride[i] != 0 && p->stride[dim] != t->stride[i]) why = "this kernel serves one stride";
  }
  if (why == NULL) return KW_OK;
  snprintf(reason, bytes, "%s", why);
  return KW_UNSUPPORTED;
}

/* KW_UNSUPPORTED: the kernel does not sum in so many slices. A split_k of 0 is the dispatcher's to choose. */
static inline kw_status kw_conv_split_k_matches(const kw_conv_traits* t, const kw_conv_problem* p, char* reason,
                                                size_t bytes) {
  const uint32_t leaves = p->split_k > 1 && t->slices ? 1 : 0;
  if (p->split_k < 1 || p->split_k > t->max_split_k)
    snprintf(reason, bytes, "split_k is %u, this kernel serves 1%s", p->split_k, t->max_split_k > 1 ? " or more" : "");
  else if (p->base.op == KW_OP_CONV_WEIGHT_SLICES && p->leaves_slices != leaves)
    snprintf(reason, bytes, "leaves_slices is %u, this kernel serves %u", p->leaves_slices, leaves);
  else
    return KW_OK;
  return KW_UNSUPPORTED;
}

/* All of the above but split_k: what holds before the dispatcher has chosen. */
static inline kw_status kw_conv_variant_matches(const kw_conv_traits* t, const kw_conv_problem* p, char* reason,
                                                size_t bytes) {
  kw_status status = kw_conv_epilogue_matches(t, p, reason, bytes);
  if (status == KW_OK) status = kw_conv_shape_matches(t, p, reason, bytes);
  return status;
}

/* All of the above: what a backend checks of a problem before its own conditions. */
static inline kw_status kw_conv_traits_match(const kw_conv_traits* t, const kw_conv_problem* p, char* reason,
                                             size_t bytes) {
  kw_status status = kw_conv_dtypes_match(t, p, reason, bytes);
  if (status == KW_OK) status = kw_conv_layouts_match(t, p, reason, bytes);
  if (status == KW_OK) status = kw_conv_variant_matches(t, p, reason, bytes);
  if (status == KW_OK) status = kw_conv_split_k_matches(t, p, reason, bytes);
  return status;
}

#endif /* KERNELWRIGHT_CONVOLUTION_CHECKS_H */
