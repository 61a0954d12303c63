/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/convolution/rules/hip.py by `kernelwright formulas`, and explained there. */
#ifndef LAUNCHERS_HIP_CONVOLUTION_CONDITIONS_H
#define LAUNCHERS_HIP_CONVOLUTION_CONDITIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernelwright/abi.h"
#include "kernelwright/convolution.h"
#include "kernelwright/convolution/checks.h"
#include "kernelwright/dtypes.h"
#include "kernelwright/epilogue.h"
#include "kernelwright/hip/convolution/sizes.h"
#include "kernelwright/rules.h"

#define KW_HIP_CONV_MAX_PREFETCH 8
#define KW_HIP_CONV_WORD 4

/* Bytes that addresses and strides in memory must be multiples of. */
static inline int64_t kw_hip_conv_alignment(const kw_conv_traits* t) {
  const int64_t size = kw_dtype_bytes(t->dtype_x);
  return kw_mul(kw_larger(kw_larger(t->vector_a, t->vector_b), t->vector_c), size) >= KW_HIP_CONV_WORD ? KW_HIP_CONV_WORD : size;
}

/* Elements of the weights of all groups. */
static inline int64_t kw_hip_conv_all_weights(const kw_conv_problem* p) {
  return kw_mul(kw_mul(p->k, kw_conv_filter_points(p)), p->c / p->groups);
}

/* Workgroups of a launch: tiles of all phases, slices and groups. */
static inline int64_t kw_hip_conv_workgroups(const kw_conv_traits* t, const kw_conv_problem* p) {
  int64_t rows = 0;
  int64_t phases = 0;
  const kw_conv_Gemm g = kw_conv_as_gemm(p);
  rows = g.m;
  phases = 1;
  if (p->base.op == KW_OP_CONV_BACKWARD_DATA) {
    rows = p->n;
    for (int64_t i = 0; i < 3; ++i) {
      phases = kw_mul(phases, p->stride[i]);
      rows = kw_mul(rows, kw_parts(p->extent[i], p->stride[i]));
    }
  }
  return kw_mul(kw_mul(kw_mul(kw_parts(rows, t->tile_m), kw_parts(g.n, t->tile_n)), phases), kw_mul(p->split_k, p->groups));
}

/* Channels per group are whole vectors. */
static inline kw_status kw_hip_conv_divides(const char* channels, int64_t count, int64_t vector, const char* operand, char* reason, size_t bytes) {
  if (count % vector == 0) {
    return KW_OK;
  }
  snprintf(reason, bytes, "%s per group = %lld is not a multiple of %lld, the vector in which %s is accessed", channels, (long long)(count), (long long)(vector), operand);
  return KW_UNSUPPORTED;
}

/* Operands are accessed in whole vectors. */
static inline kw_status kw_hip_conv_vectors_fit(const kw_conv_traits* t, const kw_conv_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  const int64_t c = p->c / p->groups;
  const int64_t k = p->k / p->groups;
  if (p->base.op == KW_OP_CONV_FORWARD) {
    if ((status = kw_hip_conv_divides("c", c, t->vector_a, "x", reason, bytes)) != KW_OK) return status;
    if ((status = kw_hip_conv_divides("c", c, t->vector_b, "w", reason, bytes)) != KW_OK) return status;
    return kw_hip_conv_divides("k", k, t->vector_c, "y", reason, bytes);
  }
  const bool data = p->base.op == KW_OP_CONV_BACKWARD_DATA;
  if ((status = kw_hip_conv_divides("k", k, t->vector_a, "dy", reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_conv_divides("c", c, t->vector_b, data ? "w" : "x", reason, bytes)) != KW_OK) return status;
  return kw_hip_conv_divides("c", c, t->vector_c, data ? "dx" : "dw", reason, bytes);
}

/* Elements from the first image to the end of ``images``, with points on all sides that lie beyond an image. */
static inline int64_t kw_hip_conv_span(const int64_t* strides, int64_t images, const int64_t* points, const int64_t* around, int64_t channels) {
  int64_t reached = 0;
  reached = kw_add(kw_mul(images, strides[0]), channels);
  for (int64_t i = 0; i < 3; ++i) {
    reached = kw_add(reached, kw_mul(kw_add(kw_larger((int64_t)points[i] - 1, 0), around[i]), strides[kw_add(2, i)]));
  }
  return reached;
}

/* Filter points along ``dim`` that lie beyond the last one, where tiles end ``beyond`` the filter's channels. */
static inline int64_t kw_hip_conv_more_taps(const kw_conv_traits* t, const kw_conv_problem* p, int64_t dim, int64_t channels, int64_t beyond) {
  int64_t row = 0;
  if (dim != 3 - kw_conv_dims(t->layout)) {
    return 0;
  }
  row = kw_larger(channels, 1);
  for (int64_t i = 0; i < 3; ++i) {
    if (i > dim) {
      row = kw_mul(row, kw_larger(p->filter[i] / p->stride[i], 1));
    }
  }
  return kw_add(beyond / row, 1);
}

/* Offsets of an image tensor, also of points that lie beyond it and are masked, fit into 31 bits of bytes. */
static inline kw_status kw_hip_conv_images_fit(const char* name, const int64_t* strides, const int64_t* points, const int64_t* around, int64_t channels, int64_t beyond, const kw_conv_traits* t, const kw_conv_problem* p, char* reason, size_t bytes) {
  const int64_t size = kw_dtype_bytes(t->dtype_x);
  const int64_t images = kw_add(p->n, beyond / kw_larger(kw_mul(kw_mul(points[0], points[1]), points[2]), 1));
  const int64_t aligned = kw_hip_conv_alignment(t);
  for (int64_t i = 0; i < 5; ++i) {
    if (i != 1 && kw_mul(strides[i], size) % aligned != 0) {
      snprintf(reason, bytes, "a stride of %s is %lld elements: points are not aligned to %lld bytes", name, (long long)(strides[i]), (long long)(aligned));
      return KW_UNSUPPORTED;
    }
  }
  if (strides[1] != 1) {
    snprintf(reason, bytes, "the channels of %s do not lie side by side", name);
    return KW_UNSUPPORTED;
  }
  const int64_t one_more = kw_mul(kw_add(images, 1), strides[0]);
  if (kw_bytes_fit_int32(kw_larger(one_more, kw_hip_conv_span(strides, images, points, around, kw_add(channels, beyond))), size)) {
    return KW_OK;
  }
  snprintf(reason, bytes, "%s spans %lld images of %lld elements: its byte offsets do not fit into 31 bits", name, (long long)(p->n), (long long)(strides[0]));
  return KW_UNSUPPORTED;
}

/* Offsets of the weights of a group, or of slices of their gradients, which are fp32. */
static inline kw_status kw_hip_conv_weights_fit(const kw_conv_traits* t, const kw_conv_problem* p, bool sums, int64_t beyond, char* reason, size_t bytes) {
  int64_t reached = 0;
  const int64_t size = p->base.op == KW_OP_CONV_WEIGHT_SLICES && sums ? 4 : kw_dtype_bytes(t->dtype_x);
  const int64_t row = kw_mul(kw_conv_filter_points(p), p->c / p->groups);
  const int64_t rows = p->k / p->groups;
  reached = kw_mul(kw_add(rows, beyond), kw_add(row, beyond));
  if (p->base.op == KW_OP_CONV_BACKWARD_DATA) {
    for (int64_t i = 0; i < 3; ++i) {
      reached = kw_add(reached, kw_mul(kw_mul(kw_hip_conv_more_taps(t, p, i, rows, beyond), p->stride[i]), row));
    }
  }
  if (kw_bytes_fit_int32(reached, size)) {
    return KW_OK;
  }
  snprintf(reason, bytes, "the weights of a group are %lld rows of %lld elements of %lld bytes: byte offsets do not fit into 31 bits", (long long)(rows), (long long)(row), (long long)(size));
  return KW_UNSUPPORTED;
}

/* Byte offsets within operands fit into 31 bits. */
static inline kw_status kw_hip_conv_spans_fit(const kw_conv_traits* t, const kw_conv_problem* p, bool sums, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  const int64_t beyond = kw_add(kw_add(t->tile_m, t->tile_n), kw_mul(KW_HIP_CONV_MAX_PREFETCH, t->tile_k));
  const bool data = p->base.op == KW_OP_CONV_BACKWARD_DATA;
  const int64_t outputs[] = {kw_conv_out(p, 0), kw_conv_out(p, 1), kw_conv_out(p, 2)};
  const int64_t c = p->c / p->groups;
  const int64_t k = p->k / p->groups;
  const int64_t around_x[] = {kw_add(kw_add(p->pad_left[0], p->pad_right[0]), kw_mul(kw_hip_conv_more_taps(t, p, 0, c, beyond), p->dilation[0])), kw_add(kw_add(p->pad_left[1], p->pad_right[1]), kw_mul(kw_hip_conv_more_taps(t, p, 1, c, beyond), p->dilation[1])), kw_add(kw_add(p->pad_left[2], p->pad_right[2]), kw_mul(kw_hip_conv_more_taps(t, p, 2, c, beyond), p->dilation[2]))};
  const int64_t around_y[] = {data ? kw_mul(kw_add(p->filter[0], kw_hip_conv_more_taps(t, p, 0, k, beyond)), p->dilation[0]) : 0, data ? kw_mul(kw_add(p->filter[1], kw_hip_conv_more_taps(t, p, 1, k, beyond)), p->dilation[1]) : 0, data ? kw_mul(kw_add(p->filter[2], kw_hip_conv_more_taps(t, p, 2, k, beyond)), p->dilation[2]) : 0};
  if ((status = kw_hip_conv_images_fit("x", p->stride_x, p->extent, around_x, c, beyond, t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_conv_images_fit("y", p->stride_y, outputs, around_y, k, beyond, t, p, reason, bytes)) != KW_OK) return status;
  return kw_hip_conv_weights_fit(t, p, sums, beyond, reason, bytes);
}

/* Whether the points of all images lie equally far apart in memory. */
static inline bool kw_hip_conv_even(const int64_t* strides, const int64_t* points) {
  int64_t step = 0;
  step = strides[4];
  for (int64_t i = 0; i < 3; ++i) {
    if (points[2 - i] != 1 && strides[4 - i] != step) {
      return false;
    }
    step = kw_mul(step, points[2 - i]);
  }
  return strides[0] == step;
}

/* The points of x and y lie equally far apart. */
static inline kw_status kw_hip_conv_spacing(const kw_conv_problem* p, char* reason, size_t bytes) {
  const int64_t outputs[] = {kw_conv_out(p, 0), kw_conv_out(p, 1), kw_conv_out(p, 2)};
  if (kw_hip_conv_even(p->stride_x, p->extent) && kw_hip_conv_even(p->stride_y, outputs)) {
    return KW_OK;
  }
  snprintf(reason, bytes, "%s", "the points of x or y are not everywhere equally far apart in memory");
  return KW_UNSUPPORTED;
}

/* A number that kernels have 31 bits for. */
static inline kw_status kw_hip_conv_too_wide(const char* what, char* reason, size_t bytes) {
  snprintf(reason, bytes, "%s does not fit into 31 bits", what);
  return KW_UNSUPPORTED;
}

/* Whether three counts and their product fit into 31 bits. */
static inline bool kw_hip_conv_product_fits(int64_t a, int64_t b, int64_t c) {
  return kw_fits_int32(a) && kw_fits_int32(b) && kw_fits_int32(c) && kw_fits_int32(kw_mul(kw_mul(a, b), c));
}

/* What the device multiplies in 32 bits to find points and filter points. */
static inline kw_status kw_hip_conv_steps_fit(const kw_conv_problem* p, char* reason, size_t bytes) {
  int64_t reach = 0;
  const int64_t row = kw_mul(kw_conv_filter_points(p), p->c / p->groups);
  for (int64_t i = 0; i < 3; ++i) {
    reach = kw_add(kw_add(kw_add(p->stride[i], p->pad_left[i]), kw_mul(p->stride[i], p->dilation[i])), kw_mul(p->filter[i], p->dilation[i]));
    if (!kw_fits_int32(reach)) {
      snprintf(reason, bytes, "%s", "what a filter reaches does not fit into 31 bits");
      return KW_UNSUPPORTED;
    }
    if (!kw_fits_int32(kw_mul(p->stride[i], kw_larger(p->stride_x[kw_add(2, i)], p->stride_y[kw_add(2, i)])))) {
      snprintf(reason, bytes, "%s", "the distance in memory of points that a stride leads to does not fit into 31 bits");
      return KW_UNSUPPORTED;
    }
    if (!kw_fits_int32(kw_mul(p->stride[i], row))) {
      snprintf(reason, bytes, "%s", "the distance in memory of the filter points of a stride does not fit into 31 bits");
      return KW_UNSUPPORTED;
    }
  }
  return KW_OK;
}

/* Counts of points beyond 31 bits are refused first, so that nothing later can overflow 64 bits. */
static inline kw_status kw_hip_conv_range_fits(const kw_conv_problem* p, char* reason, size_t bytes) {
  bool memory = false;
  int64_t points = 0;
  bool fit = false;
  bool padding = false;
  int64_t padded = 0;
  memory = true;
  for (int64_t i = 0; i < 5; ++i) {
    memory = memory && kw_fits_int32(p->stride_x[i]) && kw_fits_int32(p->stride_y[i]);
  }
  if (!memory) {
    return kw_hip_conv_too_wide("a stride in memory", reason, bytes);
  }
  if (!(kw_fits_int32(p->groups) && kw_fits_int32(p->c) && kw_fits_int32(p->k))) {
    return kw_hip_conv_too_wide("the number of groups or channels", reason, bytes);
  }
  const bool strides = kw_hip_conv_product_fits(p->stride[0], p->stride[1], p->stride[2]);
  if (!strides || !kw_hip_conv_product_fits(p->dilation[0], p->dilation[1], p->dilation[2])) {
    return kw_hip_conv_too_wide("strides or dilations", reason, bytes);
  }
  if (!kw_hip_conv_product_fits(p->filter[0], p->filter[1], p->filter[2])) {
    return kw_hip_conv_too_wide("the number of filter points", reason, bytes);
  }
  points = p->n;
  fit = kw_fits_int32(p->n);
  padding = true;
  for (int64_t i = 0; i < 3; ++i) {
    padded = kw_add(kw_add(p->extent[i], p->pad_left[i]), p->pad_right[i]);
    padding = padding && kw_fits_int32(p->extent[i]) && kw_fits_int32(p->pad_left[i]) && kw_fits_int32(p->pad_right[i]);
    points = kw_mul(points, padded);
    fit = fit && kw_fits_int32(padded);
  }
  if (!padding) {
    return kw_hip_conv_too_wide("an extent or its padding", reason, bytes);
  }
  if (!fit || !kw_fits_int32(points)) {
    return kw_hip_conv_too_wide("the number of points of all images", reason, bytes);
  }
  return kw_hip_conv_steps_fit(p, reason, bytes);
}

/* Extents of the implicit GEMM, workgroups and sums are counted in 32 bits. */
static inline kw_status kw_hip_conv_counts_fit(const kw_conv_traits* t, const kw_conv_problem* p, bool sums, int64_t block_size, char* reason, size_t bytes) {
  const kw_conv_Gemm g = kw_conv_as_gemm(p);
  const int64_t ahead = kw_mul(KW_HIP_CONV_MAX_PREFETCH, t->tile_k);
  if (!kw_fits_int32(kw_add(g.m, t->tile_m)) || !kw_fits_int32(kw_add(g.n, t->tile_n)) || !kw_fits_int32(kw_add(g.k, ahead))) {
    snprintf(reason, bytes, "the implicit GEMM is %lld x %lld x %lld: it does not fit into 31 bits", (long long)(g.m), (long long)(g.n), (long long)(g.k));
    return KW_UNSUPPORTED;
  }
  if (g.m != 0 && g.n != 0 && g.k == 0 && !sums) {
    snprintf(reason, bytes, "%s", "there is nothing to sum up; kernels that leave slices serve that");
    return KW_UNSUPPORTED;
  }
  const int64_t count = kw_hip_conv_workgroups(t, p);
  if (!kw_fits_int32(count) || !kw_fits_uint32(kw_mul(count, block_size))) {
    snprintf(reason, bytes, "%lld workgroups are more than a launch can have", (long long)(count));
    return KW_UNSUPPORTED;
  }
  const int64_t added = sums ? kw_hip_conv_all_weights(p) : 0;
  if (!kw_fits_uint32(kw_add(added, KW_HIP_CONV_SUM_BLOCK))) {
    snprintf(reason, bytes, "%lld weights are more than a launch can add up", (long long)(added));
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* What everything else divides by. */
static inline kw_status kw_hip_conv_divisors(const kw_conv_problem* p, char* reason, size_t bytes) {
  bool valid = false;
  valid = p->groups >= 1 && p->c % p->groups == 0 && p->k % p->groups == 0;
  for (int64_t i = 0; i < 3; ++i) {
    valid = valid && p->stride[i] >= 1 && p->dilation[i] >= 1 && p->filter[i] >= 1;
  }
  if (valid) {
    return KW_OK;
  }
  snprintf(reason, bytes, "%s", "groups divide c and k; filter, stride and dilation are at least 1");
  return KW_INVALID_ARGUMENT;
}

/* What is checked of a convolution but the struct itself. */
static inline kw_status kw_hip_conv_check(const kw_conv_traits* t, const kw_conv_problem* p, bool evenly_spaced, bool sums, int64_t block_size, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_conv_traits_match(t, p, reason, bytes)) != KW_OK) return status;
  if (p->beta != 0.0 && !sums) {
    snprintf(reason, bytes, "beta is %g, this kernel serves 0", p->beta);
    return KW_UNSUPPORTED;
  }
  if ((status = kw_hip_conv_divisors(p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_conv_range_fits(p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_conv_vectors_fit(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_hip_conv_spans_fit(t, p, sums, reason, bytes)) != KW_OK) return status;
  if (evenly_spaced && (status = kw_hip_conv_spacing(p, reason, bytes)) != KW_OK) return status;
  return kw_hip_conv_counts_fit(t, p, sums, block_size, reason, bytes);
}

#endif /* LAUNCHERS_HIP_CONVOLUTION_CONDITIONS_H */
