/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/norm/formulas/processors.py by `kernelwright formulas`, and explained there. */
#ifndef KW_NORM_PROCESSORS_H
#define KW_NORM_PROCESSORS_H

#include <stdbool.h>

#include "kernelwright/dispatcher/support/machine.h"
#include "kernelwright/dispatcher/support/numbers.h"

#define KW_NORM_PROCESSORS_ADDITION_CLOCKS 4.0
#define KW_NORM_PROCESSORS_VECTOR_CLOCKS 1.0
#define KW_NORM_PROCESSORS_CONVERTED_CLOCKS 1.0
#define KW_NORM_PROCESSORS_QUANTISED_CLOCKS 1.0
#define KW_NORM_PROCESSORS_ROW_CLOCKS 60.0
#define KW_NORM_PROCESSORS_THREAD_ELEMENTS 32768.0
#define KW_NORM_PROCESSORS_FLOPS_PER_LANE 4.0

typedef struct kw_norm_processors_Problem {
  double rows;
  double columns;
  double passes;
  double bytes;
  bool converted;
  bool quantised;
} kw_norm_processors_Problem;

static inline double kw_norm_processors_row_clocks(KW_GIVEN(kw_norm_processors_Problem) p, double unroll, double lanes) {
  const double vectors = kw_ceil(p.columns / lanes);
  const double together = kw_floor(vectors / unroll) * unroll;
  const double work = KW_NORM_PROCESSORS_VECTOR_CLOCKS + (p.converted ? KW_NORM_PROCESSORS_CONVERTED_CLOCKS : 0.0);
  const double clocks = together * kw_max(work, KW_NORM_PROCESSORS_ADDITION_CLOCKS / unroll) + (vectors - together) * kw_max(work, KW_NORM_PROCESSORS_ADDITION_CLOCKS);
  return KW_NORM_PROCESSORS_ROW_CLOCKS + p.passes * clocks + (p.quantised ? p.columns * KW_NORM_PROCESSORS_QUANTISED_CLOCKS : 0.0);
}

static inline kw_machine_Estimate kw_norm_processors_estimate(KW_GIVEN(kw_norm_processors_Problem) p, double unroll, KW_GIVEN(kw_machine_Device) device) {
  const double lanes = kw_max(device.rate_fp32 / KW_NORM_PROCESSORS_FLOPS_PER_LANE, 1.0);
  const double threads = kw_max(kw_min(kw_min(device.units, p.rows), kw_ceil(p.rows * p.columns / KW_NORM_PROCESSORS_THREAD_ELEMENTS)), 1.0);
  const double compute = kw_ceil(p.rows / threads) * kw_norm_processors_row_clocks(p, unroll, lanes) / device.clocks_per_us;
  const double memory = p.bytes / device.bytes_per_us;
  return KW_RECORD(kw_machine_Estimate, p.rows, 1.0, compute, 0.0, memory, kw_max(compute, memory), 1.0);
}

#endif /* KW_NORM_PROCESSORS_H */
