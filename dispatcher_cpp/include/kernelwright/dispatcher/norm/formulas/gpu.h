/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/norm/formulas/gpu.py by `kernelwright formulas`, and explained there. */
#ifndef KW_NORM_GPU_H
#define KW_NORM_GPU_H

#include <stdbool.h>

#include "kernelwright/dispatcher/support/machine.h"
#include "kernelwright/dispatcher/support/numbers.h"

#define KW_NORM_GPU_LATENCY_CLOCKS 900.0
#define KW_NORM_GPU_REDUCTION_CLOCKS 150.0
#define KW_NORM_GPU_ELEMENT_CLOCKS 6.0
#define KW_NORM_GPU_UNIT_LANES 128.0
#define KW_NORM_GPU_UNIT_THREADS 1536.0
#define KW_NORM_GPU_MOST_GROUPS 16.0
#define KW_NORM_GPU_CACHE_SHARE 0.3
#define KW_NORM_GPU_MEMORY_SHARE 0.85
#define KW_NORM_GPU_SUM_CLOCKS 3000.0

typedef struct kw_norm_gpu_Problem {
  double rows;
  double columns;
  double passes;
  double bytes;
  double item_bytes;
  double sums;
} kw_norm_gpu_Problem;

typedef struct kw_norm_gpu_Kernel {
  double rows;
  double threads;
  double vector;
  double unroll;
} kw_norm_gpu_Kernel;

static inline double kw_norm_gpu_group_clocks(KW_GIVEN(kw_norm_gpu_Problem) p, KW_GIVEN(kw_norm_gpu_Kernel) k) {
  const double elements = kw_ceil(p.columns / (k.threads * k.vector)) * k.vector;
  const double lanes = kw_max(k.rows * k.threads / KW_NORM_GPU_UNIT_LANES, 1.0);
  const double beyond = kw_max(elements / (k.vector * k.unroll) - 1.0, 0.0) * KW_NORM_GPU_LATENCY_CLOCKS;
  return KW_NORM_GPU_LATENCY_CLOCKS + p.passes * (KW_NORM_GPU_REDUCTION_CLOCKS + elements * KW_NORM_GPU_ELEMENT_CLOCKS * lanes) + beyond * p.passes;
}

static inline kw_machine_Estimate kw_norm_gpu_estimate(KW_GIVEN(kw_norm_gpu_Problem) p, KW_GIVEN(kw_norm_gpu_Kernel) k, KW_GIVEN(kw_machine_Device) device) {
  const double groups = kw_ceil(p.rows / k.rows);
  const double together = kw_max(kw_min(kw_floor(KW_NORM_GPU_UNIT_THREADS / (k.rows * k.threads)), KW_NORM_GPU_MOST_GROUPS), 1.0);
  const double clocks = kw_norm_gpu_group_clocks(p, k);
  const double work = clocks - KW_NORM_GPU_LATENCY_CLOCKS;
  const double turns = kw_ceil(groups / (device.units * together));
  const double compute = turns * kw_max(clocks, together * work) / device.clocks_per_us;
  const double again = kw_max(p.columns - k.threads * k.vector * k.unroll, 0.0) * p.rows * (p.passes - 1.0) * p.item_bytes;
  const double moved = p.bytes + again * KW_NORM_GPU_CACHE_SHARE + 2.0 * p.sums;
  const double memory = moved / (device.bytes_per_us * KW_NORM_GPU_MEMORY_SHARE);
  const double fill = (p.sums > 0.0 ? KW_NORM_GPU_SUM_CLOCKS : 0.0) / device.clocks_per_us;
  return KW_RECORD(kw_machine_Estimate, groups, turns, compute, fill, memory, kw_max(compute, memory) + fill, 1.0);
}

#endif /* KW_NORM_GPU_H */
