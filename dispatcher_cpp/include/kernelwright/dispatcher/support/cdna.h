/* clang-format off */
/* Made of codegen/kernelwright/codegen/formulas/cdna.py by `kernelwright formulas`, and explained there. */
#ifndef KW_CDNA_H
#define KW_CDNA_H

#include <stdbool.h>

#include "kernelwright/dispatcher/support/machine.h"
#include "kernelwright/dispatcher/support/numbers.h"
#include "kernelwright/dispatcher/support/products.h"

#define KW_CDNA_CDNA3_LAUNCH_US 2.679
#define KW_CDNA_CDNA3_MATRIX_SHARE 0.7766
#define KW_CDNA_CDNA3_LDS_BYTES_PER_CLOCK 494.0
#define KW_CDNA_CDNA3_FILL_BYTES_PER_CLOCK 41.93
#define KW_CDNA_CDNA3_UNHIDDEN 0.4495
#define KW_CDNA_CDNA3_STEP_CLOCKS 9.433
#define KW_CDNA_CDNA3_LATENCY_CLOCKS 333.2
#define KW_CDNA_CDNA3_BUSY 0.5116
#define KW_CDNA_CDNA3_ODD 1.027
#define KW_CDNA_CDNA3_TILE_CLOCKS 10.38
#define KW_CDNA_CDNA3_FIRST_BYTES_PER_CLOCK 64.14
#define KW_CDNA_CDNA3_STORE_BYTES_PER_CLOCK 9.213
#define KW_CDNA_CDNA3_MEMORY_SHARE 0.7423
#define KW_CDNA_CDNA3_CACHE_SHARE 9.01
#define KW_CDNA_CDNA3_OVERLAP 0.4698
#define KW_CDNA_CDNA4_LAUNCH_US 1.979
#define KW_CDNA_CDNA4_MATRIX_SHARE 0.9683
#define KW_CDNA_CDNA4_LDS_BYTES_PER_CLOCK 336.3
#define KW_CDNA_CDNA4_FILL_BYTES_PER_CLOCK 105.9
#define KW_CDNA_CDNA4_UNHIDDEN 0.5157
#define KW_CDNA_CDNA4_STEP_CLOCKS 96.2
#define KW_CDNA_CDNA4_LATENCY_CLOCKS 149.3
#define KW_CDNA_CDNA4_BUSY 0.4463
#define KW_CDNA_CDNA4_ODD 1.133
#define KW_CDNA_CDNA4_TILE_CLOCKS 351.1
#define KW_CDNA_CDNA4_FIRST_BYTES_PER_CLOCK 61.99
#define KW_CDNA_CDNA4_STORE_BYTES_PER_CLOCK 10.55
#define KW_CDNA_CDNA4_MEMORY_SHARE 0.8982
#define KW_CDNA_CDNA4_CACHE_SHARE 3.783
#define KW_CDNA_CDNA4_OVERLAP 0.003909
#define KW_CDNA_DIES 8.0
#define KW_CDNA_LANES 64.0
#define KW_CDNA_REGISTERS 512.0
#define KW_CDNA_SIMDS 4.0
#define KW_CDNA_ACCUMULATING_REGISTERS 128.0
#define KW_CDNA_ADDRESS_CLOCKS_PER_BYTE 0.0156
#define KW_CDNA_WAIT_CLOCKS_PER_BYTE 0.0647
#define KW_CDNA_POINT_STORE 3.71

typedef struct kw_cdna_Rates {
  double launch_us;
  double matrix_share;
  double lds;
  double fill;
  double unhidden;
  double step;
  double latency;
  double busy;
  double odd;
  double tile;
  double first;
  double store;
  double memory;
  double cache;
  double overlap;
} kw_cdna_Rates;

typedef struct kw_cdna_Kernel {
  double tile_m;
  double tile_n;
  double tile_k;
  double wave_m;
  double wave_n;
  double wave_k;
  bool shuffled;
  bool stream_k;
  bool twice;
  bool newer;
} kw_cdna_Kernel;

typedef struct kw_cdna_Implicit {
  double m;
  double n;
  double k;
  double groups;
  double split;
  double size;
  double moved;
  double shared;
} kw_cdna_Implicit;

typedef struct kw_cdna_More {
  double once;
  double shared;
  double step;
  double wait;
  double store;
} kw_cdna_More;

static inline kw_cdna_Rates kw_cdna_rates(bool newer) {
  if (newer) {
    return KW_RECORD(kw_cdna_Rates, KW_CDNA_CDNA4_LAUNCH_US, KW_CDNA_CDNA4_MATRIX_SHARE, KW_CDNA_CDNA4_LDS_BYTES_PER_CLOCK, KW_CDNA_CDNA4_FILL_BYTES_PER_CLOCK, KW_CDNA_CDNA4_UNHIDDEN, KW_CDNA_CDNA4_STEP_CLOCKS, KW_CDNA_CDNA4_LATENCY_CLOCKS, KW_CDNA_CDNA4_BUSY, KW_CDNA_CDNA4_ODD, KW_CDNA_CDNA4_TILE_CLOCKS, KW_CDNA_CDNA4_FIRST_BYTES_PER_CLOCK, KW_CDNA_CDNA4_STORE_BYTES_PER_CLOCK, KW_CDNA_CDNA4_MEMORY_SHARE, KW_CDNA_CDNA4_CACHE_SHARE, KW_CDNA_CDNA4_OVERLAP);
  }
  return KW_RECORD(kw_cdna_Rates, KW_CDNA_CDNA3_LAUNCH_US, KW_CDNA_CDNA3_MATRIX_SHARE, KW_CDNA_CDNA3_LDS_BYTES_PER_CLOCK, KW_CDNA_CDNA3_FILL_BYTES_PER_CLOCK, KW_CDNA_CDNA3_UNHIDDEN, KW_CDNA_CDNA3_STEP_CLOCKS, KW_CDNA_CDNA3_LATENCY_CLOCKS, KW_CDNA_CDNA3_BUSY, KW_CDNA_CDNA3_ODD, KW_CDNA_CDNA3_TILE_CLOCKS, KW_CDNA_CDNA3_FIRST_BYTES_PER_CLOCK, KW_CDNA_CDNA3_STORE_BYTES_PER_CLOCK, KW_CDNA_CDNA3_MEMORY_SHARE, KW_CDNA_CDNA3_CACHE_SHARE, KW_CDNA_CDNA3_OVERLAP);
}

static inline bool kw_cdna_power_of_two(double extent) {
  double rest = 0;
  rest = extent;
  while (rest > 1.0) {
    rest *= 0.5;
  }
  return rest == 1.0;
}

static inline double kw_cdna_step_clocks(KW_GIVEN(kw_products_Problem) p, KW_GIVEN(kw_cdna_Kernel) t, KW_GIVEN(kw_machine_Device) d, KW_GIVEN(kw_cdna_Rates) r, double busy, double more) {
  const double multiply = 2.0 * t.tile_m * t.tile_n * t.tile_k / (d.rate * r.matrix_share);
  const double stage = (t.tile_m * p.size_a + t.tile_n * p.size_b) * t.tile_k;
  const double through_a = t.tile_m * p.size_a * (t.wave_n + 1.0);
  const double through_b = t.shuffled ? 0.0 : t.tile_n * p.size_b * (t.wave_m + 1.0);
  const double through = (through_a + through_b) * t.tile_k / r.lds;
  const double fill = stage / r.fill;
  const double longest = kw_max(multiply, kw_max(through, fill));
  const double odd = kw_cdna_power_of_two(t.tile_m) && kw_cdna_power_of_two(t.tile_n) ? 1.0 : r.odd;
  const double clocks = longest + r.unhidden * (multiply + through + fill - longest) + r.step + more * stage;
  return clocks * (1.0 + r.busy * busy) * odd;
}

static inline double kw_cdna_workgroups(KW_GIVEN(kw_products_Problem) p, KW_GIVEN(kw_cdna_Kernel) t, KW_GIVEN(kw_machine_Device) d) {
  const double waves = t.wave_m * t.wave_n * t.wave_k;
  const double sums = t.tile_m * t.tile_n / (waves * KW_CDNA_LANES);
  const double by_registers = kw_floor(KW_CDNA_REGISTERS / (sums + KW_CDNA_ACCUMULATING_REGISTERS) * KW_CDNA_SIMDS / waves);
  const double by_lds = kw_floor(d.lds_bytes / ((t.tile_m * p.size_a + t.tile_n * p.size_b) * t.tile_k));
  return kw_max(1.0, kw_min(by_lds, by_registers));
}

static inline double kw_cdna_cached_bytes(KW_GIVEN(kw_products_Problem) p, KW_GIVEN(kw_cdna_Kernel) t, double running, double shared) {
  const double tiles_m = kw_ceil(p.m / t.tile_m);
  const double tiles_n = kw_ceil(p.n / t.tile_n);
  const double v = kw_max(1.0, kw_min(running / (p.split * p.batch * KW_CDNA_DIES), tiles_m * tiles_n));
  const kw_products_Panels panels = kw_products_shared_panels(v, tiles_m, tiles_n, p.m * p.size_a * shared / tiles_m, p.n * p.size_b / tiles_n);
  return tiles_m * tiles_n / v * p.k * (panels.a + panels.b) * p.batch;
}

static inline kw_machine_Estimate kw_cdna_launch(KW_GIVEN(kw_products_Problem) p, KW_GIVEN(kw_cdna_Kernel) t, KW_GIVEN(kw_machine_Device) d, double most_us, KW_GIVEN(kw_cdna_More) more) {
  double steps = 0;
  double results = 0;
  double left = 0;
  const kw_cdna_Rates r = kw_cdna_rates(t.newer);
  const double tiles = kw_ceil(p.m / t.tile_m) * kw_ceil(p.n / t.tile_n) * p.split * p.batch;
  const double whole_steps = kw_ceil(p.k / t.tile_k);
  const double waves = t.stream_k ? kw_max(1.0, tiles / d.units) : kw_ceil(tiles / d.units);
  steps = kw_ceil(whole_steps / p.split);
  if (t.stream_k) {
    steps = kw_ceil(tiles * steps / d.units) / waves;
  }
  const double places = kw_cdna_workgroups(p, t, d);
  const double together = kw_max(1.0, kw_min(places, waves));
  const double step = kw_cdna_step_clocks(p, t, d, r, tiles / (waves * d.units), more.step);
  const double stage = (t.tile_m * p.size_a + t.tile_n * p.size_b) * t.tile_k;
  const double each = t.tile_m * t.tile_n * p.size_c * (p.split > 1.0 || t.stream_k ? 2.0 : 1.0) / r.store * more.store;
  const double outside = waves / together * (r.tile + stage / r.first) + waves * each;
  const double latency = r.latency + more.wait * stage;
  const double compute_us = (steps * waves * step + outside) / d.clocks_per_us;
  const double fill_us = (steps * waves / together * (step + latency) + outside) / d.clocks_per_us;
  const double inside = kw_max(compute_us, fill_us);
  if (inside + r.launch_us > most_us) {
    return KW_RECORD(kw_machine_Estimate, tiles, waves, compute_us, fill_us, 0.0, inside + r.launch_us, 1.0);
  }
  const double sums = p.split > 1.0 ? 2.0 * KW_PRODUCTS_SUM_BYTES * p.split : 0.0;
  results = p.m * p.n * (p.size_c * (p.accumulates ? 2.0 : 1.0) + sums) * p.batch + p.d_elements * p.size_c;
  left = 0.0;
  if (t.stream_k) {
    left = KW_PRODUCTS_SUM_BYTES * t.tile_m * t.tile_n * kw_min(d.units, tiles * whole_steps);
    results += 2.0 * left;
  } else {
    if (t.twice) {
      left = KW_PRODUCTS_SUM_BYTES * p.split * p.m * p.n * p.batch;
      if (p.split == 1.0) {
        results += 2.0 * left;
      }
    }
  }
  const double bytes_per_us = d.bytes_per_us * r.memory;
  const double cached = kw_cdna_cached_bytes(p, t, kw_min(tiles, d.units * places), more.shared) + results;
  const double memory_us = kw_max((more.once + results - left) / bytes_per_us, cached / (d.bytes_per_us * r.cache));
  const double second_us = t.twice ? left / bytes_per_us + KW_PRODUCTS_SECOND_LAUNCH_US : 0.0;
  const double total_us = kw_max(inside, memory_us) + r.overlap * kw_min(inside, memory_us) + r.launch_us + second_us;
  const double padded = tiles * whole_steps / p.split * t.tile_m * t.tile_n * t.tile_k;
  const double useful = padded > 0.0 ? kw_min(1.0, p.m * p.n * p.k * p.batch / padded) : 1.0;
  return KW_RECORD(kw_machine_Estimate, tiles, waves, compute_us, fill_us, memory_us, total_us, useful);
}

static inline kw_machine_Estimate kw_cdna_estimate(KW_GIVEN(kw_products_Problem) p, KW_GIVEN(kw_cdna_Kernel) t, KW_GIVEN(kw_machine_Device) d, double most_us) {
  if (p.m == 0.0 || p.n == 0.0) {
    return KW_RECORD(kw_machine_Estimate, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0);
  }
  const double once = (p.m * p.size_a * p.read_a + p.n * p.size_b * p.read_b) * p.k;
  return kw_cdna_launch(p, t, d, most_us, KW_RECORD(kw_cdna_More, once, 1.0, 0.0, 0.0, 1.0));
}

static inline kw_machine_Estimate kw_cdna_implicit(KW_GIVEN(kw_cdna_Implicit) g, KW_GIVEN(kw_cdna_Kernel) t, KW_GIVEN(kw_machine_Device) d, double most_us) {
  const kw_products_Problem p = KW_RECORD(kw_products_Problem, g.m, g.n, g.k, g.groups, g.split, g.size, g.size, g.size, g.groups, g.groups, false, 0.0);
  const double results = g.m * g.n * g.size * g.groups;
  const double once = kw_max(0.0, g.moved - results);
  const kw_cdna_More more = KW_RECORD(kw_cdna_More, once, g.shared, KW_CDNA_ADDRESS_CLOCKS_PER_BYTE, KW_CDNA_WAIT_CLOCKS_PER_BYTE, KW_CDNA_POINT_STORE);
  return kw_cdna_launch(p, t, d, most_us, more);
}

#endif /* KW_CDNA_H */
