/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/convolution/formulas/tiles.py by `kernelwright formulas`, and explained there. */
#ifndef KW_CONVOLUTION_TILES_H
#define KW_CONVOLUTION_TILES_H

#include <stdbool.h>

#include "kernelwright/dispatcher/convolution/formulas/problem.h"
#include "kernelwright/dispatcher/support/machine.h"
#include "kernelwright/dispatcher/support/numbers.h"

#define KW_CONVOLUTION_TILES_FILL_BYTES_PER_CLOCK 48.0
#define KW_CONVOLUTION_TILES_SECOND_LAUNCH_US 4.0
#define KW_CONVOLUTION_TILES_SPARE_DIMENSION 1.01

typedef struct kw_convolution_tiles_Kernel {
  double tile_m;
  double tile_n;
  double tile_k;
  double merged;
  double spare_dimensions;
  bool depthwise;
  bool leaves_slices;
} kw_convolution_tiles_Kernel;

static inline kw_convolution_problem_Gemm kw_convolution_tiles_multiplied(KW_GIVEN(kw_convolution_problem_Problem) p, double merged) {
  const kw_convolution_problem_Gemm g = kw_convolution_problem_gemm(p);
  const double m = p.backward_data ? p.n * kw_convolution_problem_in_points(p) : g.m;
  const double k = p.backward_data ? kw_max(1.0, g.k / kw_convolution_problem_strides(p)) : g.k;
  if (p.backward_weight) {
    return KW_RECORD(kw_convolution_problem_Gemm, m * merged, g.n * merged, k);
  }
  return KW_RECORD(kw_convolution_problem_Gemm, m, g.n * merged, k * merged);
}

static inline double kw_convolution_tiles_spare(double dimensions) {
  double factor = 0;
  factor = 1.0;
  while (dimensions > 0.0) {
    factor *= KW_CONVOLUTION_TILES_SPARE_DIMENSION;
    dimensions -= 1.0;
  }
  return factor;
}

static inline kw_machine_Estimate kw_convolution_tiles_estimate(KW_GIVEN(kw_convolution_problem_Problem) p, KW_GIVEN(kw_convolution_tiles_Kernel) t, KW_GIVEN(kw_machine_Device) d) {
  double direct_us = 0;
  const double memory_us = kw_convolution_problem_moved_bytes(p) / d.bytes_per_us;
  const double behind_us = t.leaves_slices ? KW_CONVOLUTION_TILES_SECOND_LAUNCH_US : 0.0;
  const double slower = kw_convolution_tiles_spare(t.spare_dimensions);
  const kw_convolution_problem_Gemm whole = kw_convolution_tiles_multiplied(p, 1.0);
  const double asked = p.groups * whole.m * whole.n * whole.k;
  if (t.depthwise) {
    direct_us = 2.0 * asked / kw_max(d.rate_fp32, 1.0) / d.units / d.clocks_per_us * slower;
    return KW_RECORD(kw_machine_Estimate, 1.0, 1.0, direct_us, 0.0, memory_us, kw_max(direct_us, memory_us) + behind_us, 1.0);
  }
  const kw_convolution_problem_Gemm g = kw_convolution_tiles_multiplied(p, t.merged);
  const double steps = kw_ceil(kw_ceil(g.k / t.tile_k) / p.split);
  const double tiles = kw_ceil(p.groups / t.merged) * kw_ceil(g.m / t.tile_m) * kw_ceil(g.n / t.tile_n) * p.split;
  const double waves = kw_ceil(tiles / d.units);
  const double each = 2.0 * t.tile_m * t.tile_n * t.tile_k / d.rate;
  const double compute_us = waves * steps * each / d.clocks_per_us * slower;
  const double lines = (t.tile_m + t.tile_n) * p.size * t.tile_k;
  const double fill_us = waves * steps * lines / KW_CONVOLUTION_TILES_FILL_BYTES_PER_CLOCK / d.clocks_per_us;
  const double padded = tiles * steps * t.tile_m * t.tile_n * t.tile_k;
  const double useful = padded > asked ? asked / padded : 1.0;
  return KW_RECORD(kw_machine_Estimate, tiles, waves, compute_us, fill_us, memory_us, kw_max(kw_max(compute_us, fill_us), memory_us) + behind_us, useful);
}

#endif /* KW_CONVOLUTION_TILES_H */
