/* What a GPU kernel of a norm is launched with. Plain numbers, so that hosts and devices of all backends agree. */
#ifndef KERNELWRIGHT_NORM_GPU_ARGUMENTS_H
#define KERNELWRIGHT_NORM_GPU_ARGUMENTS_H

#include <stdint.h>

#define KW_NORM_SUM_BLOCK 256u  /* threads that add up slices */
#define KW_NORM_SUM_COLUMNS 32u /* of a workgroup of them */

/* Operands are those of kw_norm_args; strides and columns count elements. */
typedef struct kw_norm_gpu_arguments {
  const void *x, *weight, *bias, *residual, *dy;
  void *y, *sum;
  float* scales;
  void *dweight, *dbias;
  float* partial; /* of each slice: its sums for dweight, then those for dbias, of those that the problem has */
  int64_t rows;
  int64_t stride_x, stride_residual, stride_y, stride_sum, stride_dy;
  int64_t slices,
      rows_per_slice; /* backward: runs of rows whose gradients of weights are added up by one row of threads */
  int32_t columns;
  float epsilon;
  uint32_t has_weight, has_bias, has_residual;
  uint32_t wide_weights;  /* they are fp32 whatever the kernel's type */
  uint32_t whole_rows;    /* every vector of a row starts at a multiple of its size */
  uint32_t whole_weights; /* so do those of weight and bias */
} kw_norm_gpu_arguments;

#endif /* KERNELWRIGHT_NORM_GPU_ARGUMENTS_H */
