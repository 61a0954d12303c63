/* What crosses from the host to a convolution kernel, and what the kernel tells the host about itself.
 *
 * C99 and C++; the same bytes for a 64-bit host and for the GPU, see kernelwright/hip/gemm/arguments.h.
 */
#ifndef KERNELWRIGHT_HIP_CONVOLUTION_ARGUMENTS_H
#define KERNELWRIGHT_HIP_CONVOLUTION_ARGUMENTS_H

#include <stdint.h>

#include "kernelwright/hip/convolution/sizes.h"

/* The kernel arguments, in kernarg order: of the kernel that multiplies and of the one that adds up slices. Strides
 * count elements; arrays are indexed by D, H and W, with 1 in front (0 for padding) where there are fewer dimensions. c
 * and k are the channels of one group.
 *
 * a, b and d are those of the implicit GEMM: x, w, y forward; dy, w, dx backward data; dy, x, dw backward weight. The
 * groups, and the tiles of each, are numbered along the one axis of the grid. Backward weight: `shares` workgroups per
 * tile; more than one leave fp32 slices in `partial`, each the size of dw, one after another.
 */
typedef struct kw_hip_conv_arguments {
  const void* a;
  const void* b;
  void* d;
  void* partial;
  const void* bias;
  const void* residual;
  int32_t groups, n, c, k;
  int32_t extent[3], out[3], filter[3], stride[3], dilation[3], pad[3];
  int32_t image_x, image_y;       /* from one image to the next */
  int32_t point_x[3], point_y[3]; /* from one point to the next along D, H and W */
  int32_t shares;
  float alpha;
  float beta;          /* 0 but where the slices are added up */
  uint32_t activation; /* kw_activation; read by kernels of any epilogue, as is whether bias and residual are null */
} kw_hip_conv_arguments;

#define KW_HIP_CONV_FACTS_MAGIC 0x3157434bu /* "KCW1" */

/* Constants that only the device pass of the compiler knows, kept in the code object beside the kernel. */
typedef struct kw_hip_conv_facts {
  uint32_t magic;
  uint32_t arguments_bytes; /* of the kernel's argument struct as the device sees it */
  uint32_t block_size;      /* work-items per workgroup */
  uint32_t min_k_loops;     /* K tiles that the pipeline needs at least */
} kw_hip_conv_facts;

#endif
