/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/convolution/formulas/hopper.py by `kernelwright formulas`, and explained there. */
#ifndef KW_CONVOLUTION_HOPPER_H
#define KW_CONVOLUTION_HOPPER_H

#include <stdbool.h>

#include "kernelwright/dispatcher/convolution/formulas/problem.h"
#include "kernelwright/dispatcher/support/machine.h"
#include "kernelwright/dispatcher/support/numbers.h"

#define KW_CONVOLUTION_HOPPER_STEP 64.0
#define KW_CONVOLUTION_HOPPER_READ_ROWS_CLOCKS 14.38
#define KW_CONVOLUTION_HOPPER_READ_COLUMN_CLOCKS 0.25
#define KW_CONVOLUTION_HOPPER_INSTRUCTION_SLACK 0.9381
#define KW_CONVOLUTION_HOPPER_FILL_BYTES_PER_CLOCK 61.22
#define KW_CONVOLUTION_HOPPER_STEP_CLOCKS 61.43
#define KW_CONVOLUTION_HOPPER_READ_ROW_BYTES 32.0
#define KW_CONVOLUTION_HOPPER_SHARED_BYTES_PER_CLOCK 128.0
#define KW_CONVOLUTION_HOPPER_READ_SHARE 0.1
#define KW_CONVOLUTION_HOPPER_STORE_BYTES_PER_CLOCK 15.69
#define KW_CONVOLUTION_HOPPER_START_CLOCKS 725.5
#define KW_CONVOLUTION_HOPPER_MEMORY_SHARE 0.8475
#define KW_CONVOLUTION_HOPPER_OVERLAP 0.27
#define KW_CONVOLUTION_HOPPER_LAUNCH_US 1.287
#define KW_CONVOLUTION_HOPPER_HELPER_US 2.0
#define KW_CONVOLUTION_HOPPER_SLICE_US 0.02797
#define KW_CONVOLUTION_HOPPER_WEIGHT_STEP_CLOCKS 0.9123
#define KW_CONVOLUTION_HOPPER_WEIGHT_STORE 0.6013
#define KW_CONVOLUTION_HOPPER_DIRECT_PRODUCTS 64.0
#define KW_CONVOLUTION_HOPPER_DIRECT_ROWS 8.0
#define KW_CONVOLUTION_HOPPER_DIRECT_COLUMNS 14.0
#define KW_CONVOLUTION_HOPPER_DIRECT_START_CLOCKS 92.6
#define KW_CONVOLUTION_HOPPER_BOX_CLOCKS 695.2
#define KW_CONVOLUTION_HOPPER_BOX_POINT_CLOCKS 122.4
#define KW_CONVOLUTION_HOPPER_DIRECT_WAVES 0.8061
#define KW_CONVOLUTION_HOPPER_DIRECT_LAUNCH_US 0.5645
#define KW_CONVOLUTION_HOPPER_DIRECT_SLICE_US 0.0127
#define KW_CONVOLUTION_HOPPER_DIRECT_SLICE_BYTES_PER_US 8000000.0
#define KW_CONVOLUTION_HOPPER_SUM_BYTES 4.0
#define KW_CONVOLUTION_HOPPER_VECTOR_ELEMENTS 8.0

typedef struct kw_convolution_hopper_Kernel {
  double tile_m;
  double tile_n;
  double wave_m;
  bool depthwise;
} kw_convolution_hopper_Kernel;

typedef struct kw_convolution_hopper_Shape {
  double rows;
  double columns;
  double steps;
  double groups;
  double merged;
  double moved;
  double slice_bytes;
} kw_convolution_hopper_Shape;

static inline double kw_convolution_hopper_merged_groups(double groups, double c, double k) {
  double merged = 0;
  merged = kw_floor(KW_CONVOLUTION_HOPPER_STEP / kw_max(c, k));
  while (merged > 1.0 && kw_floor(groups / merged) * merged < groups) {
    merged -= 1.0;
  }
  return kw_max(merged, 1.0);
}

static inline kw_convolution_hopper_Shape kw_convolution_hopper_shape_of(KW_GIVEN(kw_convolution_problem_Problem) p) {
  double residues = 0;
  double steps = 0;
  const bool folded = p.fold_pitch > 0.0;
  const double channels = folded ? p.fold_pitch * p.filter_w : p.c;
  const double taps = kw_convolution_problem_filter_points(p) / (folded ? p.filter_w : 1.0);
  const double merged = kw_convolution_hopper_merged_groups(p.groups, channels / p.groups, p.k / p.groups);
  const double groups = p.groups / merged;
  const double c = channels / p.groups * merged;
  const double k = p.k / p.groups * merged;
  const double outputs = p.n * kw_convolution_problem_out_points(p);
  const double inputs = p.n * p.in_d * p.in_h * (folded ? p.out_w : p.in_w);
  const double moved = p.size * (inputs * channels + outputs * p.k * (p.residual ? 2.0 : 1.0) + p.k * c * taps);
  if (p.backward_data) {
    residues = kw_convolution_problem_strides(p) / (folded ? p.stride_w : 1.0);
    return KW_RECORD(kw_convolution_hopper_Shape, inputs, c, kw_max(1.0, taps / residues) * kw_ceil(k / KW_CONVOLUTION_HOPPER_STEP), groups, merged, moved, 0.0);
  }
  if (p.backward_weight) {
    steps = kw_ceil(kw_ceil(outputs / KW_CONVOLUTION_HOPPER_STEP) / p.split);
    return KW_RECORD(kw_convolution_hopper_Shape, k, taps * kw_ceil(c / KW_CONVOLUTION_HOPPER_STEP) * KW_CONVOLUTION_HOPPER_STEP, steps, groups, merged, moved, KW_CONVOLUTION_HOPPER_SUM_BYTES * p.k * taps * c);
  }
  return KW_RECORD(kw_convolution_hopper_Shape, outputs, k, taps * kw_ceil(c / KW_CONVOLUTION_HOPPER_STEP), groups, merged, moved, 0.0);
}

static inline double kw_convolution_hopper_step_clocks(KW_GIVEN(kw_convolution_hopper_Kernel) t, double size) {
  const double instructions = KW_CONVOLUTION_HOPPER_STEP / 16.0 * t.tile_m / 64.0;
  const double multiply = instructions * kw_max(t.tile_n / 2.0, KW_CONVOLUTION_HOPPER_READ_ROWS_CLOCKS + KW_CONVOLUTION_HOPPER_READ_COLUMN_CLOCKS * t.tile_n) / KW_CONVOLUTION_HOPPER_INSTRUCTION_SLACK;
  const double reads = instructions * (64.0 + t.tile_n) * KW_CONVOLUTION_HOPPER_READ_ROW_BYTES / KW_CONVOLUTION_HOPPER_SHARED_BYTES_PER_CLOCK;
  const double fill = (t.tile_m + t.tile_n) * KW_CONVOLUTION_HOPPER_STEP * size / KW_CONVOLUTION_HOPPER_FILL_BYTES_PER_CLOCK;
  return kw_max(multiply, fill) + KW_CONVOLUTION_HOPPER_STEP_CLOCKS + KW_CONVOLUTION_HOPPER_READ_SHARE * reads;
}

static inline double kw_convolution_hopper_helper_us(KW_GIVEN(kw_convolution_problem_Problem) p, KW_GIVEN(kw_convolution_hopper_Shape) s, double bandwidth) {
  double us = 0;
  us = 0.0;
  const bool copied = p.fold_pitch > 0.0 || kw_floor(p.c / KW_CONVOLUTION_HOPPER_VECTOR_ELEMENTS) * KW_CONVOLUTION_HOPPER_VECTOR_ELEMENTS < p.c;
  if (!p.backward_weight && (s.merged > 1.0 || copied)) {
    us += KW_CONVOLUTION_HOPPER_HELPER_US;
  }
  if (copied) {
    us += KW_CONVOLUTION_HOPPER_HELPER_US + s.moved / bandwidth;
  }
  if (p.backward_weight && (s.merged > 1.0 || p.split > 1.0)) {
    us += KW_CONVOLUTION_HOPPER_HELPER_US + KW_CONVOLUTION_HOPPER_SLICE_US * p.split + 2.0 * s.slice_bytes * p.split / bandwidth;
  }
  return us;
}

static inline kw_machine_Estimate kw_convolution_hopper_direct(KW_GIVEN(kw_convolution_problem_Problem) p, KW_GIVEN(kw_convolution_hopper_Shape) s, KW_GIVEN(kw_machine_Device) d, double bandwidth) {
  double compute_us = 0;
  const double taps = kw_convolution_problem_filter_points(p);
  const double products = p.n * kw_convolution_problem_out_points(p) * p.k * taps;
  const double memory_us = s.moved / bandwidth;
  if (!p.backward_weight) {
    compute_us = products / KW_CONVOLUTION_HOPPER_DIRECT_PRODUCTS / d.units / d.clocks_per_us;
    return KW_RECORD(kw_machine_Estimate, 1.0, 1.0, compute_us, 0.0, memory_us, kw_max(compute_us, memory_us) + KW_CONVOLUTION_HOPPER_LAUNCH_US, 1.0);
  }
  const double boxes = p.n * kw_ceil(p.out_h / KW_CONVOLUTION_HOPPER_DIRECT_ROWS) * kw_ceil(p.out_w / KW_CONVOLUTION_HOPPER_DIRECT_COLUMNS);
  const double full = p.n * p.out_h * p.out_w / (boxes * KW_CONVOLUTION_HOPPER_DIRECT_ROWS * KW_CONVOLUTION_HOPPER_DIRECT_COLUMNS);
  const double box_clocks = full * (KW_CONVOLUTION_HOPPER_BOX_CLOCKS + KW_CONVOLUTION_HOPPER_BOX_POINT_CLOCKS * taps);
  const double tiles = kw_ceil(p.c / KW_CONVOLUTION_HOPPER_STEP) * p.split;
  const double waves = KW_CONVOLUTION_HOPPER_DIRECT_WAVES * kw_ceil(tiles / d.units) + (1.0 - KW_CONVOLUTION_HOPPER_DIRECT_WAVES) * kw_max(1.0, tiles / d.units);
  const double summed_us = waves * (KW_CONVOLUTION_HOPPER_DIRECT_START_CLOCKS + kw_ceil(boxes / p.split) * box_clocks) / d.clocks_per_us;
  const double added = 2.0 * KW_CONVOLUTION_HOPPER_SUM_BYTES * p.c * taps * p.split / KW_CONVOLUTION_HOPPER_DIRECT_SLICE_BYTES_PER_US;
  const double launches = KW_CONVOLUTION_HOPPER_LAUNCH_US + KW_CONVOLUTION_HOPPER_HELPER_US + KW_CONVOLUTION_HOPPER_DIRECT_LAUNCH_US + KW_CONVOLUTION_HOPPER_DIRECT_SLICE_US * p.split;
  return KW_RECORD(kw_machine_Estimate, tiles, waves, summed_us, 0.0, memory_us, kw_max(summed_us, memory_us) + launches + added, 1.0);
}

static inline kw_machine_Estimate kw_convolution_hopper_estimate(KW_GIVEN(kw_convolution_problem_Problem) p, KW_GIVEN(kw_convolution_hopper_Kernel) t, KW_GIVEN(kw_machine_Device) d) {
  const double bandwidth = d.bytes_per_us * KW_CONVOLUTION_HOPPER_MEMORY_SHARE;
  const kw_convolution_hopper_Shape s = kw_convolution_hopper_shape_of(p);
  if (t.depthwise) {
    return kw_convolution_hopper_direct(p, s, d, bandwidth);
  }
  const double stored = p.backward_weight ? KW_CONVOLUTION_HOPPER_SUM_BYTES : p.size;
  const double tiles = kw_ceil(s.rows / t.tile_m) * kw_ceil(s.columns / t.tile_n) * s.groups * p.split;
  const double waves = kw_ceil(tiles / d.units);
  const double multiply = s.steps * (kw_convolution_hopper_step_clocks(t, p.size) * (p.backward_weight ? KW_CONVOLUTION_HOPPER_WEIGHT_STEP_CLOCKS : 1.0));
  const double share = p.backward_weight ? KW_CONVOLUTION_HOPPER_WEIGHT_STORE : 1.0;
  const double store = share * t.tile_m * t.tile_n * stored / KW_CONVOLUTION_HOPPER_STORE_BYTES_PER_CLOCK / t.wave_m;
  const bool pingpong = t.wave_m == 1.0;
  const double each = pingpong ? kw_max(multiply, (multiply + store) / 2.0) : multiply + store;
  const double compute_us = (KW_CONVOLUTION_HOPPER_START_CLOCKS + waves * each + (pingpong ? store : 0.0)) / d.clocks_per_us;
  const double filled = (t.tile_m + t.tile_n) * KW_CONVOLUTION_HOPPER_STEP * p.size / KW_CONVOLUTION_HOPPER_FILL_BYTES_PER_CLOCK;
  const double fill_us = waves * s.steps * filled / d.clocks_per_us;
  const double memory_us = s.moved / bandwidth;
  const double padded = tiles * s.steps * t.tile_m * t.tile_n * KW_CONVOLUTION_HOPPER_STEP;
  const double asked = kw_convolution_problem_work(p);
  const double useful = padded > asked ? asked / padded : 1.0;
  const double both = kw_max(compute_us, memory_us) + KW_CONVOLUTION_HOPPER_OVERLAP * kw_min(compute_us, memory_us);
  return KW_RECORD(kw_machine_Estimate, tiles, waves, compute_us, fill_us, memory_us, both + KW_CONVOLUTION_HOPPER_LAUNCH_US + kw_convolution_hopper_helper_us(p, s, bandwidth), useful);
}

#endif /* KW_CONVOLUTION_HOPPER_H */
