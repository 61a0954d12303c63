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
  void* d;         /* the result, or sums in fp32 */
  int32_t slices;  /* d are sums in fp32: slices of backward weight, or backward data before channels are unfolded */
  int32_t vectors; /* lines of the result lie at multiples of 16 bytes */
  const void *bias, *residual; /* or null */
  uint32_t activation;         /* of kernels that serve any */
  float alpha, beta;
} kw_cuda_conv_params;

/* Weights with lines of `line` channels: [group][k][filter point][line]. A line is cut into parts of `pitch` channels,
 * of which the first c are not 0. Merged groups are block-diagonal: the part that is the group's own has its channels.
 * Where `taps` is not 1, part i has those of tap i: folded filter points along W. */
typedef struct kw_cuda_conv_pack {
  const void* from;
  void* to;
  int64_t count; /* of all elements */
  int32_t c, k;  /* channels of an unmerged group */
  int32_t merged, filter_points, line, pitch, taps;
} kw_cuda_conv_pack;

/* Images of few channels whose points along W are folded into channels, see folding.hpp: a padded copy whose lines
 * along W have `line` elements, `pitch` for each point. */
typedef struct kw_cuda_conv_fold {
  const void* from;
  void* to;
  int64_t lines; /* along W, of all images */
  int32_t c, pitch, line, pad;
  int32_t extent[3];
  int64_t image, point[3];
} kw_cuda_conv_fold;

/* A matrix of images that TMA cannot walk through, see folding.hpp: a line for each output point, which has for each
 * of `groups` merged groups `line` elements, the last ones 0. Those of `merged` groups are [filter point][channel]. */
typedef struct kw_cuda_conv_gather {
  const void* from;
  void* to;
  int64_t rows; /* output points of all images */
  int32_t c, line, groups, merged;
  int32_t extent[3], out[3], filter[3], stride[3], dilation[3], pad[3];
  int64_t image, point[3];
} kw_cuda_conv_gather;

/* Backward data of folded or gathered images: dx = alpha * sum over filter points + beta * dx. `from` has for every
 * output point [group][filter point][channel]. An input point meets every `step`-th filter point at most. */
typedef struct kw_cuda_conv_unfold {
  const float* from;
  void* to;
  int64_t count; /* elements of dx */
  int32_t c, groups;
  int32_t extent[3], out[3], filter[3], stride[3], dilation[3], pad[3], step[3];
  int64_t image, point[3];
  float alpha, beta;
} kw_cuda_conv_unfold;

/* A dense copy of images, in which each of `groups` groups has `line` channels, the last ones 0. */
typedef struct kw_cuda_conv_pad {
  const void* from;
  void* to;
  int64_t points;
  int32_t channels, line, groups; /* channels of a group */
  int32_t extent[3];
  int64_t image, point[3];
} kw_cuda_conv_pad;

/* dw = alpha * sum of slices + beta * dw; slices are [slice][group][k][filter point][c] of merged groups, `pitch`
 * elements for each filter point of dw. `parts` threads share the slices of an element. */
typedef struct kw_cuda_conv_sum {
  const float* from;
  void* to;
  int64_t count; /* elements of dw */
  int64_t slice; /* elements of a slice */
  int32_t c, k;  /* channels of an unmerged group */
  int32_t merged, filter_points, pitch, slices, parts;
  float alpha, beta;
} kw_cuda_conv_sum;

/* KW_CUDA_CONV_STRIP of depthwise backward data with a stride of 2, which has an even number of them. */
#define KW_CUDA_CONV_EVEN_STRIP 8
/* Depthwise backward weight: floats from the sums of one filter point to those of the next, and warps that have some.
 */
#define KW_CUDA_CONV_DIRECT_LINE 66
#define KW_CUDA_CONV_DIRECT_WARPS 8
/* Most shared memory that a depthwise kernel takes: of a 7x7 filter with stride 2. */
#define KW_CUDA_CONV_DIRECT_BYTES (104 * 1024)
/* The same of backward weight: two boxes of x and dy of a 7x7 filter with stride 2. */
#define KW_CUDA_CONV_DIRECT_WEIGHT_BYTES (206 * 1024)

/* The parameter of a depthwise kernel, forward and backward data. A workgroup computes `rows` lines of `strips` strips
 * for 64 channels. Spatial entries stand in the order W, H. */
typedef struct kw_cuda_conv_direct {
  CUtensorMap x;                                /* what is read: x, or dy */
  const void *w, *bias, *residual;              /* the last two may be null */
  void* y;                                      /* what is written: y, or dx */
  kw_cuda_divider channel_blocks, across, down; /* of a workgroup's number; what is left is the image */
  int32_t channels, filter, stride;
  int32_t out[2];    /* extents of what is written */
  int32_t corner[2]; /* of the first workgroup's box in the image that is read */
  int32_t before[2]; /* points of the first workgroup that lie before the first one that is written */
  int32_t strips, rows;
  uint32_t box_bytes;
  int64_t image, point[2]; /* memory strides of what is written */
  uint32_t activation;     /* of kernels that serve any */
  float alpha, beta;
} kw_cuda_conv_direct;

/* The parameter of depthwise backward weight. A workgroup sums over `of_slice` boxes of outputs, `rows` lines of
 * `strips` strips each, for 64 channels. Spatial entries stand in the order W, H. */
typedef struct kw_cuda_conv_direct_weight {
  CUtensorMap x, dy;
  float* to;                                    /* slices as [slice][channel][filter point] */
  kw_cuda_divider channel_blocks, across, down; /* of a workgroup's number, and of a box's */
  int32_t channels, filter, stride;
  int32_t out[2], pad[2];
  int32_t strips, rows, boxes, of_slice;
  uint32_t x_bytes, dy_bytes;
} kw_cuda_conv_direct_weight;

#define KW_CUDA_CONV_HELPER_THREADS 256

/* What kw_kernel.traits points to. */
typedef struct kw_cuda_conv {
  kw_conv_traits traits;
  const void* function;
  const void *pack, *pad, *fold, *gather; /* functions that prepare operands; null if the kernel has none */
  const void *unfold, *sum;               /* functions that finish the result; likewise */
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
  uint32_t sums;                  /* the kernel writes sums in fp32 */
  int32_t taps, pitch;            /* points along W are folded into channels, see folding.hpp; else 0 */
  uint32_t gathers;               /* all filter points are, see folding.hpp */
  uint32_t vectors;               /* see kw_cuda_conv_params */
  kw_conv_problem asked;          /* `problem` is what the implicit GEMM computes, this one what its weights are of */
  kw_conv_problem original;       /* the caller's */
  uint64_t packed, padded_a, padded_b, slices, bytes;
} kw_cuda_conv_plan;

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_CUDA_CONVOLUTION_LAUNCHER_H */
