/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/gemm/formulas/tiles.py by `kernelwright formulas`, and explained there. */
#ifndef KW_GEMM_TILES_H
#define KW_GEMM_TILES_H

#include <stdbool.h>

#include "kernelwright/dispatcher/support/machine.h"
#include "kernelwright/dispatcher/support/numbers.h"
#include "kernelwright/dispatcher/support/products.h"

#define KW_GEMM_TILES_FILL_BYTES_PER_CLOCK 48.0

typedef struct kw_gemm_tiles_Kernel {
  double tile_m;
  double tile_n;
  double tile_k;
  bool stream_k;
  bool twice;
} kw_gemm_tiles_Kernel;

typedef struct kw_gemm_tiles_Cost {
  double tiles;
  double steps;
  double clocks;
  double fill;
  double volume;
} kw_gemm_tiles_Cost;

static inline kw_gemm_tiles_Cost kw_gemm_tiles_cost(KW_GIVEN(kw_products_Problem) p, KW_GIVEN(kw_gemm_tiles_Kernel) t, KW_GIVEN(kw_machine_Device) d) {
  const double tiles = kw_ceil(p.m / t.tile_m) * kw_ceil(p.n / t.tile_n) * p.split * p.batch;
  const double volume = t.tile_m * t.tile_n * t.tile_k;
  const double fill = (t.tile_m * p.size_a + t.tile_n * p.size_b) * t.tile_k;
  return KW_RECORD(kw_gemm_tiles_Cost, tiles, kw_ceil(kw_ceil(p.k / t.tile_k) / p.split), 2.0 * volume / d.rate, fill, volume);
}

static inline double kw_gemm_tiles_memory_bytes(KW_GIVEN(kw_products_Problem) p, KW_GIVEN(kw_gemm_tiles_Kernel) t, double running) {
  const double tiles_m = kw_ceil(p.m / t.tile_m);
  const double tiles_n = kw_ceil(p.n / t.tile_n);
  const double v = kw_max(1.0, kw_min(running / p.split, tiles_m * tiles_n));
  const double rounds = tiles_m * tiles_n / v * p.k;
  const kw_products_Panels panels = kw_products_shared_panels(v, tiles_m, tiles_n, p.m * p.size_a / tiles_m, p.n * p.size_b / tiles_n);
  const double sums = p.split > 1.0 ? 2.0 * KW_PRODUCTS_SUM_BYTES * p.split : 0.0;
  const double results = p.m * p.n * (p.size_c * (p.accumulates ? 2.0 : 1.0) + sums) * p.batch;
  return rounds * panels.a * p.read_a + rounds * panels.b * p.read_b + results + p.d_elements * p.size_c;
}

static inline kw_machine_Estimate kw_gemm_tiles_estimate(KW_GIVEN(kw_products_Problem) p, KW_GIVEN(kw_gemm_tiles_Kernel) t, KW_GIVEN(kw_machine_Device) d, double most_us) {
  double moved = 0;
  double left = 0;
  if (p.m == 0.0 || p.n == 0.0) {
    return KW_RECORD(kw_machine_Estimate, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0);
  }
  const kw_gemm_tiles_Cost c = kw_gemm_tiles_cost(p, t, d);
  const double waves = t.stream_k ? c.tiles / d.units : kw_ceil(c.tiles / d.units);
  const double steps = t.stream_k ? kw_ceil(c.tiles * c.steps / d.units) : waves * c.steps;
  const double compute_us = steps * c.clocks / d.clocks_per_us;
  const double fill_us = steps * c.fill / KW_GEMM_TILES_FILL_BYTES_PER_CLOCK / d.clocks_per_us;
  const double inside = kw_max(compute_us, fill_us);
  if (inside > most_us) {
    return KW_RECORD(kw_machine_Estimate, c.tiles, waves, compute_us, fill_us, 0.0, inside, 1.0);
  }
  moved = kw_gemm_tiles_memory_bytes(p, t, kw_min(d.units, c.tiles));
  left = 0.0;
  if (t.stream_k) {
    left = KW_PRODUCTS_SUM_BYTES * t.tile_m * t.tile_n * kw_min(d.units, c.tiles * c.steps);
    moved += 2.0 * left;
  } else {
    if (t.twice) {
      left = KW_PRODUCTS_SUM_BYTES * p.split * p.m * p.n * p.batch;
      if (p.split == 1.0) {
        moved += 2.0 * left;
      }
    }
  }
  const double memory_us = moved / d.bytes_per_us;
  const double second_us = left / d.bytes_per_us;
  const double once = kw_max(inside, memory_us);
  const double total_us = t.twice ? kw_max(inside, memory_us - second_us) + second_us + KW_PRODUCTS_SECOND_LAUNCH_US : once;
  const double padded = c.tiles * c.steps * c.volume;
  const double useful = padded > 0.0 ? p.m * p.n * p.k * p.batch / padded : 1.0;
  return KW_RECORD(kw_machine_Estimate, c.tiles, waves, compute_us, fill_us, memory_us, total_us, useful);
}

typedef struct kw_gemm_tiles_Grouped {
  double tiles;
  double clocks;
  double fill;
  double moved;
  double asked;
  double padded;
} kw_gemm_tiles_Grouped;

static inline kw_gemm_tiles_Grouped kw_gemm_tiles_add_group(KW_GIVEN(kw_gemm_tiles_Grouped) so_far, KW_GIVEN(kw_products_Problem) p, KW_GIVEN(kw_gemm_tiles_Kernel) t, KW_GIVEN(kw_machine_Device) d) {
  const kw_gemm_tiles_Cost c = kw_gemm_tiles_cost(p, t, d);
  const double steps = c.tiles * c.steps;
  return KW_RECORD(kw_gemm_tiles_Grouped, so_far.tiles + c.tiles, so_far.clocks + steps * c.clocks, so_far.fill + steps * c.fill, so_far.moved + kw_gemm_tiles_memory_bytes(p, t, kw_min(d.units, c.tiles)), so_far.asked + p.m * p.n * p.k, so_far.padded + steps * c.volume);
}

static inline kw_machine_Estimate kw_gemm_tiles_estimate_groups(KW_GIVEN(kw_gemm_tiles_Grouped) g, KW_GIVEN(kw_machine_Device) d) {
  if (g.tiles == 0.0) {
    return KW_RECORD(kw_machine_Estimate, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0);
  }
  const double waves = kw_ceil(g.tiles / d.units);
  const double waves_us = waves / g.tiles / d.clocks_per_us;
  const double compute_us = g.clocks * waves_us;
  const double fill_us = g.fill * waves_us / KW_GEMM_TILES_FILL_BYTES_PER_CLOCK;
  const double memory_us = g.moved / d.bytes_per_us;
  const double useful = g.padded > 0.0 ? g.asked / g.padded : 1.0;
  return KW_RECORD(kw_machine_Estimate, g.tiles, waves, compute_us, fill_us, memory_us, kw_max(kw_max(compute_us, fill_us), memory_us), useful);
}

#endif /* KW_GEMM_TILES_H */
