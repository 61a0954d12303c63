/* Grouped convolution: problems, arguments, and what a kernel's traits say.
 *
 * C99. Sizes are int64 and count elements unless a name says bytes; structs as in kernelwright/abi.h. x is the input, w
 * the weights, y the output, dx, dw and dy their gradients.
 *
 * Made of kernelwright.problems.convolution.description by `kernelwright headers`: edit that.
 */
#ifndef KERNELWRIGHT_CONVOLUTION_H
#define KERNELWRIGHT_CONVOLUTION_H

#include "kernelwright/abi.h"
#include "kernelwright/epilogue.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values of kw_problem.op: 16 to 31 are of this header. Callers ask for the first three.
 *
 * Backward weight sums over all output points, and may do so in slices: kernels serve its first stage,
 * KW_OP_CONV_WEIGHT_SLICES, and where that leaves slices, its second, KW_OP_CONV_SUM_SLICES. Both stages are described
 * by kw_conv_problem too.
 */
typedef enum kw_conv_op {
  KW_OP_CONV_FORWARD = 16,         /* y from x and w */
  KW_OP_CONV_BACKWARD_DATA = 17,   /* dx from dy and w */
  KW_OP_CONV_BACKWARD_WEIGHT = 18, /* dw from x and dy */
  KW_OP_CONV_WEIGHT_SLICES = 19,   /* dw, or split_k slices of it in fp32 where leaves_slices is 1 */
  KW_OP_CONV_SUM_SLICES = 20       /* dw from its slices */
} kw_conv_op;

static inline const char* kw_conv_op_name(uint32_t op) {
  switch (op) {
    case KW_OP_CONV_FORWARD:
      return "conv forward";
    case KW_OP_CONV_BACKWARD_DATA:
      return "conv backward data";
    case KW_OP_CONV_BACKWARD_WEIGHT:
      return "conv backward weight";
    case KW_OP_CONV_WEIGHT_SLICES:
      return "conv weight slices";
    case KW_OP_CONV_SUM_SLICES:
      return "conv sum of slices";
    default:
      return "unknown";
  }
}

/* Storage order, outermost first. x has N images of D, H and W points, each of G groups of C / G channels; y has K / G
 * channels in place of C / G. Weights are dense: G, K / G, filter points, C / G where channels are innermost; G, K / G,
 * C / G, filter points in KW_CONV_NGCHW. */
typedef enum kw_conv_layout {
  KW_CONV_NWGC = 0,
  KW_CONV_NHWGC = 1,
  KW_CONV_NDHWGC = 2,
  KW_CONV_NGCHW = 3
} kw_conv_layout;

static inline const char* kw_conv_layout_name(uint32_t layout) {
  static const char* const names[] = {"nwgc", "nhwgc", "ndhwgc", "ngchw"};
  return layout < 4u ? names[layout] : "unknown";
}

/* Entries of the arrays below that are indexed by spatial dimension: D, H, W. A problem of fewer dimensions has 1 in
 * front (extents, strides, dilations) or 0 (padding, memory strides). */
#define KW_CONV_SPATIAL 3

/* Entries of memory strides: from one image to the next, from one channel (of all groups) to the next, and along D, H
 * and W. In layouts with channels innermost the second is 1. */
#define KW_CONV_STRIDES 5

/* In each spatial dimension there are (extent + pad_left + pad_right - dilation * (filter - 1) - 1) / stride + 1 output
 * points. Output point p and filter point t meet at the input point q = p * stride + t * dilation - pad_left.
 *
 *   forward:          y[n,p,k] = act(alpha * sum over t, c of x[n,q,c] w[k,t,c] + beta * y[n,p,k] + bias + residual)
 *
 *   backward data:    dx[n,q,c] = alpha * sum over k and all p, t that meet at q of dy[n,p,k] w[k,t,c] + beta * dx
 *
 *   backward weight:  dw[k,t,c] = alpha * sum over n, p of dy[n,p,k] x[n,q,c] + beta * dw
 *
 * where x is 0 outside of its extents and c runs over the channels of the group of k. Every point of dx is written,
 * also where stride leaves it without a partner. The struct has no padding bytes, so it can be hashed as memory; what a
 * problem does not use is 0.
 */
typedef struct kw_conv_problem {
  kw_problem base;
  uint32_t dtype_x, dtype_w, dtype_y, dtype_acc; /* kw_dtype; of dx, dw and dy too */
  uint32_t layout;                               /* kw_conv_layout */
  uint32_t activation;                           /* kw_activation; forward only */
  uint32_t bias, residual;                       /* 0 or 1; has the epilogue these operands? forward only */
  /* backward weight: slices of the sum; 1 = none; 0 = the dispatcher chooses. Else 1 */
  uint32_t split_k;
  /* KW_OP_CONV_WEIGHT_SLICES: 1 = the result is split_k sums in fp32, one after another, each of dw's shape, without
   * alpha and beta; 0 = dw */
  uint32_t leaves_slices;
  int64_t groups;                     /* >= 1 */
  int64_t n;                          /* >= 0; images */
  int64_t c, k;                       /* >= 1; channels of x and y, of all groups */
  int64_t extent[KW_CONV_SPATIAL];    /* >= 1; of x */
  int64_t filter[KW_CONV_SPATIAL];    /* >= 1 */
  int64_t stride[KW_CONV_SPATIAL];    /* >= 1; of output points in x */
  int64_t dilation[KW_CONV_SPATIAL];  /* >= 1; distance of filter points in x */
  int64_t pad_left[KW_CONV_SPATIAL];  /* >= 0; zeros in front of x */
  int64_t pad_right[KW_CONV_SPATIAL]; /* >= 0; zeros behind x */
  int64_t stride_x[KW_CONV_STRIDES];  /* in memory, of x or dx */
  int64_t stride_y[KW_CONV_STRIDES];  /* of y or dy, and of the residual */
  double alpha, beta;
} kw_conv_problem;

/* Operands of one launch, on its device. d may hold an old result that beta scales; it overlaps nothing else.
 *
 *                      a             b      d
 *   forward            x             w      y
 *   backward data      dy            w      dx
 *   backward weight    x             dy     dw
 *   weight slices      x             dy     dw, or the slices
 *   sum of slices      the slices    null   dw
 */
typedef struct kw_conv_args {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  const void* a;
  const void* b;
  void* d;
  const void* bias;     /* k values of dtype_y; null if the problem has none */
  const void* residual; /* of y's shape, dtype and strides; null if the problem has none; may be y itself */
} kw_conv_args;

/* The problems that a kernel serves: all, or those whose addresses are simpler. */
typedef enum kw_conv_specialization {
  KW_CONV_ANY = 0,
  KW_CONV_FILTER_1X1_PAD_0 = 1,          /* filters of one point, no padding */
  KW_CONV_FILTER_1X1_STRIDE_1_PAD_0 = 2, /* and strides of 1: x and y are matrices */
  KW_CONV_FILTER_3X3 = 3                 /* three filter points in each dimension, one channel per group */
} kw_conv_specialization;

/* What selection may know about a convolution kernel without parsing text. */
typedef struct kw_conv_traits {
  uint32_t struct_size;
  uint32_t dtype_x, dtype_w, dtype_y, dtype_acc; /* kw_dtype */
  /* kw_conv_layout; one with channels innermost also serves those with fewer dimensions */
  uint32_t layout;
  uint32_t tile_m, tile_n, tile_k;
  uint32_t wave_m, wave_n, wave_k;
  uint32_t warp_tile_m, warp_tile_n, warp_tile_k;
  uint32_t pad_m, pad_n, pad_k;
  uint32_t vector_a, vector_b, vector_c; /* elements of an access: channel counts per group are multiples of them */
  uint32_t specialization;               /* kw_conv_specialization */
  uint32_t depthwise;                    /* 0 or 1; serves one channel in and one out per group, and nothing else */
  uint32_t filter[2], stride[2];         /* along H and W, of a depthwise kernel; 0 = any */
  uint32_t padding[2];                   /* on both sides, of a depthwise kernel whose filter is not 0 */
  uint32_t num_groups_to_merge;
  uint32_t max_split_k;
  uint32_t slices;         /* backward weight: leaves slices where split_k > 1; else adds them up itself */
  uint32_t stream_k;       /* kw_stream_k */
  uint32_t bias, residual; /* 0 or 1; exactly these and this activation are served, but see KW_ACTIVATION_ANY */
  uint32_t activation;     /* kw_activation */
} kw_conv_traits;

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_CONVOLUTION_H */
