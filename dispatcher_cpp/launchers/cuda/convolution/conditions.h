/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/convolution/rules/cuda.py by `kernelwright formulas`, and explained there. */
#ifndef LAUNCHERS_CUDA_CONVOLUTION_CONDITIONS_H
#define LAUNCHERS_CUDA_CONVOLUTION_CONDITIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernelwright/abi.h"
#include "kernelwright/convolution.h"
#include "kernelwright/convolution/checks.h"
#include "kernelwright/cuda/convolution/sizes.h"
#include "kernelwright/dtypes.h"
#include "kernelwright/epilogue.h"
#include "kernelwright/rules.h"

#define KW_CUDA_CONV_PAIR 2
#define KW_CUDA_CONV_LINE 8
#define KW_CUDA_CONV_ROWS 8

/* Whether memory strides of an image of these extents (along D, H, W) are multiples of 16 bytes. */
static inline bool kw_cuda_conv_aligned(const int64_t* strides, int64_t images, const int64_t* extent) {
  for (int64_t dim = 0; dim < 3; ++dim) {
    if (extent[dim] > 1 && strides[kw_add(2, dim)] % KW_CUDA_CONV_LINE != 0) {
      return false;
    }
  }
  return images <= 1 || strides[0] % KW_CUDA_CONV_LINE == 0;
}

/* TMA's strides end below 2^40 bytes. */
static inline kw_status kw_cuda_conv_strides_fit(const kw_conv_problem* p, char* reason, size_t bytes) {
  for (int64_t i = 0; i < 5; ++i) {
    if (p->stride_x[i] >= 549755813888 || p->stride_y[i] >= 549755813888) {
      snprintf(reason, bytes, "%s", "a stride in memory is 2^39 elements or more; TMA needs less");
      return KW_UNSUPPORTED;
    }
  }
  return KW_OK;
}

/* Images that TMA reads. */
static inline kw_status kw_cuda_conv_reads(const char* name, const int64_t* strides, const kw_conv_problem* p, const int64_t* extent, char* reason, size_t bytes) {
  if (kw_cuda_conv_aligned(strides, p->n, extent)) {
    return KW_OK;
  }
  snprintf(reason, bytes, "points of %s do not lie at multiples of 16 bytes, which TMA needs", name);
  return KW_UNSUPPORTED;
}

/* Images that are stored by two channels at a time. */
static inline kw_status kw_cuda_conv_stores(const char* name, const int64_t* strides, const kw_conv_problem* p, char* reason, size_t bytes) {
  if (p->c % KW_CUDA_CONV_PAIR == 0 && strides[0] % KW_CUDA_CONV_PAIR == 0 && strides[3] % KW_CUDA_CONV_PAIR == 0 && strides[4] % KW_CUDA_CONV_PAIR == 0) {
    return KW_OK;
  }
  snprintf(reason, bytes, "c or a stride of %s is odd; this kernel stores two channels at a time", name);
  return KW_UNSUPPORTED;
}

/* Images of a depthwise kernel, first what is read. */
static inline kw_status kw_cuda_conv_memory(const kw_conv_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  const int64_t outputs[] = {kw_conv_out(p, 0), kw_conv_out(p, 1), kw_conv_out(p, 2)};
  if (p->base.op == KW_OP_CONV_FORWARD) {
    if ((status = kw_cuda_conv_reads("x", p->stride_x, p, p->extent, reason, bytes)) != KW_OK) return status;
    return kw_cuda_conv_stores("y", p->stride_y, p, reason, bytes);
  }
  if (p->base.op == KW_OP_CONV_BACKWARD_DATA) {
    if ((status = kw_cuda_conv_reads("dy", p->stride_y, p, outputs, reason, bytes)) != KW_OK) return status;
    return kw_cuda_conv_stores("dx", p->stride_x, p, reason, bytes);
  }
  if ((status = kw_cuda_conv_reads("x", p->stride_x, p, p->extent, reason, bytes)) != KW_OK) return status;
  return kw_cuda_conv_reads("dy", p->stride_y, p, outputs, reason, bytes);
}

/* Of depthwise forward and backward data, or a few more: see depthwise.cpp. */
static inline int64_t kw_cuda_conv_workgroups(const kw_conv_problem* p) {
  const bool data = p->base.op == KW_OP_CONV_BACKWARD_DATA;
  const int64_t across = kw_parts(data ? kw_add(p->extent[2], 1) : kw_conv_out(p, 2), kw_mul(2, KW_CUDA_CONV_STRIP));
  const int64_t down = kw_parts(data ? kw_add(p->extent[1], 1) : kw_conv_out(p, 1), KW_CUDA_CONV_ROWS);
  return kw_mul(kw_mul(p->n, kw_parts(p->c, KW_CUDA_CONV_STEP)), kw_mul(across, down));
}

/* Problems of depthwise kernels. */
static inline kw_status kw_cuda_conv_depthwise_fits(const kw_conv_problem* p, char* reason, size_t bytes) {
  const int64_t points = p->filter[2];
  const int64_t stride = p->stride[2];
  const bool weight = p->base.op == KW_OP_CONV_WEIGHT_SLICES;
  if (p->extent[0] != 1 || p->filter[0] != 1 || p->pad_left[0] != 0 || p->pad_right[0] != 0) {
    snprintf(reason, bytes, "%s", "this kernel serves two dimensions");
    return KW_UNSUPPORTED;
  }
  if (p->filter[1] != points || (points != 3 && points != 5 && points != 7) || !kw_conv_everywhere(p->dilation, 1)) {
    snprintf(reason, bytes, "%s", "this kernel serves filters of 3x3, 5x5 and 7x7 points without dilation");
    return KW_UNSUPPORTED;
  }
  if (p->stride[1] != stride || stride > 2) {
    snprintf(reason, bytes, "%s", "this kernel serves strides of 1 and 2 in both dimensions");
    return KW_UNSUPPORTED;
  }
  for (int64_t dim = 1; dim < 3; ++dim) {
    if (p->extent[dim] > INT16_MAX || p->pad_left[dim] > INT16_MAX || p->pad_right[dim] > INT16_MAX) {
      snprintf(reason, bytes, "an extent or its padding exceeds %lld", (long long)(INT16_MAX));
      return KW_UNSUPPORTED;
    }
  }
  if (p->c > INT32_MAX / 2 || p->n > INT32_MAX / 2) {
    snprintf(reason, bytes, "c or n exceeds %lld", (long long)(INT32_MAX / 2));
    return KW_UNSUPPORTED;
  }
  if (weight && (p->c > INT32_MAX / 49 || !kw_fits_int32(kw_mul(p->n, kw_conv_out_points(p))))) {
    snprintf(reason, bytes, "weights, or outputs of all images, are more than %lld", (long long)(INT32_MAX));
    return KW_UNSUPPORTED;
  }
  if (!weight && !kw_fits_int32(kw_cuda_conv_workgroups(p))) {
    snprintf(reason, bytes, "%lld images of %lld channels need more workgroups than a launch can have", (long long)(p->n), (long long)(p->c));
    return KW_UNSUPPORTED;
  }
  return kw_cuda_conv_memory(p, reason, bytes);
}

/* What traits and memory say; of kernels that are not depthwise, the derived shape says more. */
static inline kw_status kw_cuda_conv_check(const kw_conv_traits* t, const kw_conv_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if ((status = kw_conv_traits_match(t, p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_cuda_conv_strides_fit(p, reason, bytes)) != KW_OK) return status;
  if (t->depthwise != 0 && (status = kw_cuda_conv_depthwise_fits(p, reason, bytes)) != KW_OK) return status;
  return KW_OK;
}

#endif /* LAUNCHERS_CUDA_CONVOLUTION_CONDITIONS_H */
