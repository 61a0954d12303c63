/* What a CUDA convolution kernel's object hands to the launchers, and the functions of its descriptor. */
#ifndef KERNELWRIGHT_CUDA_CONVOLUTION_LAUNCHER_H
#define KERNELWRIGHT_CUDA_CONVOLUTION_LAUNCHER_H

#include <cuda.h>

#include "kernelwright/convolution.h"
#include "kernelwright/cuda/common/runtime.h"
#include "kernelwright/cuda/convolution/shape.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The parameter of a kernel. a and b are the operands of the implicit GEMM: x and w, dy and w, or dy and x. */
typedef struct kw_cuda_conv_params {
  CUtensorMap a, b;
  kw_cuda_conv_shape shape;
  void* d;      /* the result, or slices of it in fp32 */
  int32_t slices; /* backward weight: d are slices */
  int32_t vectors; /* lines of the result lie at multiples of 16 bytes */
  const void* bias;
  const void* residual;
  float alpha, beta;
} kw_cuda_conv_params;

/* Weights of merged groups as block-diagonal ones, with lines of `line` channels: [group][k][filter point][line]. */
typedef struct kw_cuda_conv_pack {
  const void* from;
  void* to;
  int64_t count; /* of all elements */
  int32_t c, k;  /* channels of an unmerged group */
  int32_t merged, filter_points, line;
} kw_cuda_conv_pack;

/* A dense copy of images, in which each of `groups` groups has `line` channels, the last ones 0. */
typedef struct kw_cuda_conv_pad {
  const void* from;
  void* to;
  int64_t points;
  int32_t channels, line, groups; /* channels of a group */
  int32_t extent[3];
  int64_t image, point[3];
} kw_cuda_conv_pad;

/* dw = alpha * sum of slices + beta * dw; slices are [slice][group][k][filter point][c] of merged groups. */
typedef struct kw_cuda_conv_sum {
  const float* from;
  void* to;
  int64_t count; /* elements of dw */
  int64_t slice; /* elements of a slice */
  int32_t c, k;  /* channels of an unmerged group */
  int32_t merged, filter_points, slices;
  float alpha, beta;
} kw_cuda_conv_sum;

/* Outputs that a lane of a depthwise kernel computes side by side. */
#define KW_CUDA_CONV_STRIP 7
/* Most shared memory that a depthwise kernel takes: of a 7x7 filter with stride 2. */
#define KW_CUDA_CONV_DIRECT_BYTES (104 * 1024)

/* The parameter of a depthwise kernel. A workgroup computes `rows` lines of `strips` strips for 64 channels. Spatial
 * entries stand in the order W, H. */
typedef struct kw_cuda_conv_direct {
  CUtensorMap x;
  const void *w, *bias, *residual;
  void* y;
  kw_cuda_divider channel_blocks, across, down; /* of a workgroup's number; what is left is the image */
  int32_t channels, filter, stride, flipped;
  int32_t out[2], pad[2];
  int32_t strips, rows;
  uint32_t box_bytes;
  int64_t image, point[2]; /* memory strides of y */
  float alpha, beta;
} kw_cuda_conv_direct;

#define KW_CUDA_CONV_HELPER_THREADS 256

/* What kw_kernel.traits points to. */
typedef struct kw_cuda_conv {
  kw_conv_traits traits;
  const void* function;
  const void *pack, *pad, *sum; /* functions that prepare operands or finish the result; null if the kernel has none */
  uint32_t shared_bytes, threads;
  uint64_t* prepared; /* a bit for each device */
} kw_cuda_conv;

KW_HIDDEN kw_status kw_cuda_conv_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                          size_t reason_bytes);
KW_HIDDEN kw_status kw_cuda_conv_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes);
KW_HIDDEN kw_status kw_cuda_conv_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan);
KW_HIDDEN kw_status kw_cuda_conv_launch(const kw_kernel* kernel, const void* plan, const kw_launch* launch,
                                        const void* args);

/* What plan() leaves for launch(): TMA descriptors hold pointers, so they are made at launch. Offsets are of parts of
 * the workspace, in bytes. */
typedef struct kw_cuda_conv_plan {
  kw_conv_problem problem;
  kw_cuda_conv_shape shape;
  int32_t line;                   /* channels of a line of weights */
  uint32_t packs, pads_a, pads_b; /* is the copy needed? */
  uint32_t sums;
  uint32_t vectors; /* see kw_cuda_conv_params */
  uint64_t packed, padded_a, padded_b, slices, bytes;
} kw_cuda_conv_plan;

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_CUDA_CONVOLUTION_LAUNCHER_H */
