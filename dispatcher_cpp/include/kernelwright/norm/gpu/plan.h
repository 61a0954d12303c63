/* How a norm is launched on a GPU: what launchers of all backends remember between plan and launch. */
#ifndef KERNELWRIGHT_NORM_GPU_PLAN_H
#define KERNELWRIGHT_NORM_GPU_PLAN_H

#include "kernelwright/norm.h"

typedef struct kw_norm_gpu_plan {
  kw_norm_problem problem;
  int64_t slices, rows_per_slice;
  uint64_t workspace_bytes;
  uint32_t grid, block; /* workgroups, 0 = there are no rows; threads of one */
  uint32_t sum_grid;    /* of the kernel that adds slices up; 0 = none */
  uint32_t reserved;
} kw_norm_gpu_plan;

#endif /* KERNELWRIGHT_NORM_GPU_PLAN_H */
