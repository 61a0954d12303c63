/* What a convolution is to its CUDA kernels: the implicit GEMM in tiles, where filter points meet images, where results
 * go. Host code fills it in at plan time (launchers/cuda/convolution); kernels get it as a parameter.
 *
 * C99 and C++. Spatial axes stand in the order W, H, D here: that of TMA.
 */
#ifndef KERNELWRIGHT_CUDA_CONVOLUTION_SHAPE_H
#define KERNELWRIGHT_CUDA_CONVOLUTION_SHAPE_H

#include <stdint.h>

#include "kernelwright/cuda/convolution/sizes.h"

/* Largest stride: TMA's traversal stride, and the residues that the tables below have. */
#define KW_CUDA_CONV_STRIDES 8

/* x / divisor = high word of x * multiplier, shifted; for 0 <= x < 2^31. */
typedef struct kw_cuda_divider {
  uint32_t divisor, multiplier, shift;
} kw_cuda_divider;

/* Filter points along an axis that input points of one residue (modulo the stride) meet. Forward and backward weight
 * have one residue: every filter point. */
typedef struct kw_cuda_conv_taps {
  int16_t first, count; /* first filter point, and how many there are `step` apart */
  int16_t offset;       /* where the first one lies, in image points from the lower corner */
  int16_t reserved;
} kw_cuda_conv_taps;

typedef struct kw_cuda_conv_axis {
  kw_cuda_divider points;  /* outputs; backward data: input points of one residue */
  int32_t traverse, lower; /* output i starts at the image point i * traverse + lower */
  int32_t upper;           /* of the box that TMA walks through, from the far end of the image */
  int32_t extent;          /* of the image that TMA reads */
  int32_t residues;        /* backward data: the stride; else 1 */
  int32_t written;         /* points of the result; backward data: residue + i * residues beyond it is not stored */
  int32_t filter;
  int16_t step, move; /* from one filter point to the next, and what it moves in the image */
  kw_cuda_conv_taps taps[KW_CUDA_CONV_STRIDES];
} kw_cuda_conv_axis;

/* Groups of few channels are merged: `merged` of them form one product with a block-diagonal filter. Below, a group is
 * a merged one.
 *
 *                    rows                columns           sum over
 *   forward          output points       channels of y     filter points, blocks of channels of x
 *   backward data    points of residues  channels of x     filter points, blocks of channels of y
 *   backward weight  channels of y       64 for each       blocks of output points
 *                                        point and block
 */
typedef struct kw_cuda_conv_shape {
  kw_cuda_divider blocks_of_point; /* = blocks */
  kw_cuda_divider tiles_n, tiles_m,
      groups; /* a tile's number is ((part * groups + group) * tiles_m + m) * tiles_n + n */
  uint32_t tiles;
  int32_t rows, columns;
  int32_t images;
  int32_t c, k;             /* channels of a group in x and y */
  int32_t group_a, group_b; /* channels from one group to the next in the images that TMA reads */
  int32_t blocks;           /* of channels at one filter point */
  int32_t steps, of_slice;  /* backward weight: blocks of output points, in all and of one slice */
  int32_t merged;
  int32_t filter_points;
  int32_t volume;   /* TMA walks through three axes, else through two */
  int32_t matrix;   /* the first operand's images are a plain matrix: forward and backward data with filters of one
                     * point, stride 1 and no padding, and dy of backward weight */
  int32_t matrix_b; /* backward weight: so is x */
  kw_cuda_conv_axis axis[3];
  int64_t image, point[3]; /* memory strides of the result, forward and backward data */
  int64_t row;             /* of its rows, where they lie equally far apart; else 0 */
} kw_cuda_conv_shape;

#endif /* KERNELWRIGHT_CUDA_CONVOLUTION_SHAPE_H */
