/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/gemm/formulas/hopper.py by `kernelwright formulas`, and explained there. */
#ifndef KW_GEMM_HOPPER_H
#define KW_GEMM_HOPPER_H

#include <stdbool.h>

#include "kernelwright/dispatcher/support/machine.h"
#include "kernelwright/dispatcher/support/numbers.h"
#include "kernelwright/dispatcher/support/products.h"

#define KW_GEMM_HOPPER_ROWS_OF_INSTRUCTION 64.0
#define KW_GEMM_HOPPER_BYTES_OF_INSTRUCTION 32.0
#define KW_GEMM_HOPPER_READ_ROWS_CLOCKS 13.99
#define KW_GEMM_HOPPER_READ_COLUMN_CLOCKS 0.25
#define KW_GEMM_HOPPER_INSTRUCTION_SLACK 0.8804
#define KW_GEMM_HOPPER_FILL_BYTES_PER_CLOCK 107.7
#define KW_GEMM_HOPPER_RECEIVE_BYTES_PER_CLOCK 130.7
#define KW_GEMM_HOPPER_STEP_CLOCKS 19.49
#define KW_GEMM_HOPPER_CLUSTER_STEP_CLOCKS 38.99
#define KW_GEMM_HOPPER_LATENCY_CLOCKS 2043.0
#define KW_GEMM_HOPPER_STORE_BYTES_PER_CLOCK 17.49
#define KW_GEMM_HOPPER_HIDDEN_STORE 0.2305
#define KW_GEMM_HOPPER_START_CLOCKS 553.9
#define KW_GEMM_HOPPER_REREAD_SHARE 1.86
#define KW_GEMM_HOPPER_MEMORY_SHARE 0.8784
#define KW_GEMM_HOPPER_IN_FLIGHT_BYTES 10250.0
#define KW_GEMM_HOPPER_OVERLAP 0.2718
#define KW_GEMM_HOPPER_LAUNCH_US 1.273
#define KW_GEMM_HOPPER_CUT_US 2.705
#define KW_GEMM_HOPPER_CUTTABLE_US 0.7752
#define KW_GEMM_HOPPER_SLICE_US 0.228
#define KW_GEMM_HOPPER_SLICE_ELEMENTS_PER_US 26330.0
#define KW_GEMM_HOPPER_STREAM_SLACK 1.25
#define KW_GEMM_HOPPER_EPILOGUE_ELEMENTS 16384.0
#define KW_GEMM_HOPPER_SWAPPED_SLACK 1.02
#define KW_GEMM_HOPPER_SHARED_SLACK 1.01
#define KW_GEMM_HOPPER_ANY_US 0.3
#define KW_GEMM_HOPPER_COPIED_SHARE 0.35
#define KW_GEMM_HOPPER_COPIED_WORKGROUPS 2.0
#define KW_GEMM_HOPPER_COPIED_START_CLOCKS 15000.0
#define KW_GEMM_HOPPER_INSTRUCTION_SHARE 0.03125
#define KW_GEMM_HOPPER_FILL_CLOCKS 0.009285051067780872
#define KW_GEMM_HOPPER_RECEIVE_CLOCKS 0.007651109410864576
#define KW_GEMM_HOPPER_STORE_CLOCKS 0.057175528873642086
#define KW_GEMM_HOPPER_SLICE_ELEMENT_US 3.79794910748196e-05

typedef struct kw_gemm_hopper_Kernel {
  double tile_m;
  double tile_n;
  double tile_k;
  double warp_tile_m;
  double warp_tile_n;
  double cluster_m;
  double cluster_n;
  bool pingpong;
  bool stream_k;
  bool cuttable;
  bool any_epilogue;
  bool copied;
} kw_gemm_hopper_Kernel;

typedef struct kw_gemm_hopper_Problem {
  double m;
  double n;
  double k;
  double batch;
  double split;
  double size;
  double size_c;
  double results;
} kw_gemm_hopper_Problem;

static inline double kw_gemm_hopper_shared_panels(double tile_m, double tile_n, double running, double tiles_m, double tiles_n) {
  double least = 0;
  double halved = 0;
  double rows = 0;
  double high = 0;
  double columns = 0;
  double needed = 0;
  least = running * (tile_m + tile_n);
  const double last = kw_min(tiles_m, running);
  halved = running;
  rows = 1.0;
  while (true) {
    high = kw_min(rows, tiles_m);
    columns = rows <= tiles_m ? halved : running / tiles_m;
    if (columns <= tiles_n) {
      needed = high * tile_m + kw_max(1.0, columns) * tile_n;
      if (needed > least) {
        return least;
      }
      least = needed;
    }
    if (high >= last) {
      return least;
    }
    rows *= 2.0;
    halved *= 0.5;
  }
}

static inline double kw_gemm_hopper_both(double inside, double memory_us) {
  return kw_max(inside, memory_us) + KW_GEMM_HOPPER_OVERLAP * kw_min(inside, memory_us);
}

static inline kw_machine_Estimate kw_gemm_hopper_copied(KW_GIVEN(kw_gemm_hopper_Problem) p, KW_GIVEN(kw_gemm_hopper_Kernel) t, KW_GIVEN(kw_machine_Device) d) {
  const double tiles = kw_ceil(p.m / t.tile_m) * kw_ceil(p.n / t.tile_n) * p.batch;
  const double places = KW_GEMM_HOPPER_COPIED_WORKGROUPS * d.units;
  const double waves = kw_ceil(tiles / places);
  const double steps = kw_ceil(p.k / t.tile_k);
  const double sharing = kw_min(KW_GEMM_HOPPER_COPIED_WORKGROUPS, kw_max(1.0, tiles / d.units));
  const double step = sharing * 2.0 * t.tile_m * t.tile_n * t.tile_k / (d.rate * KW_GEMM_HOPPER_COPIED_SHARE);
  const double compute_us = waves * (steps * step + KW_GEMM_HOPPER_COPIED_START_CLOCKS) / d.clocks_per_us;
  const double read = p.batch * steps * t.tile_k * p.size * (p.m * kw_ceil(p.n / t.tile_n) + p.n * kw_ceil(p.m / t.tile_m));
  const double once = (p.m + p.n) * p.k * p.size * p.batch + p.m * p.n * p.batch * p.size_c * p.results;
  const double memory_us = kw_max(once / (d.bytes_per_us * KW_GEMM_HOPPER_MEMORY_SHARE), read / (d.units * KW_GEMM_HOPPER_FILL_BYTES_PER_CLOCK * d.clocks_per_us));
  const double padded = tiles * t.tile_m * t.tile_n * steps * t.tile_k;
  const double useful = padded > 0.0 ? kw_min(1.0, p.m * p.n * p.k * p.batch / padded) : 1.0;
  const double total_us = kw_gemm_hopper_both(compute_us, memory_us) + KW_GEMM_HOPPER_LAUNCH_US;
  return KW_RECORD(kw_machine_Estimate, tiles, waves, compute_us, 0.0, memory_us, total_us, useful);
}

static inline kw_machine_Estimate kw_gemm_hopper_estimate(KW_GIVEN(kw_gemm_hopper_Problem) p, KW_GIVEN(kw_gemm_hopper_Kernel) t, KW_GIVEN(kw_machine_Device) d, double most_us) {
  if (p.m == 0.0 || p.n == 0.0) {
    return KW_RECORD(kw_machine_Estimate, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0);
  }
  if (t.copied) {
    return kw_gemm_hopper_copied(p, t, d);
  }
  const bool plain = t.warp_tile_m == KW_GEMM_HOPPER_ROWS_OF_INSTRUCTION && t.warp_tile_n == t.tile_n;
  const bool swapped = !plain && t.warp_tile_m == t.tile_m && t.warp_tile_n == KW_GEMM_HOPPER_ROWS_OF_INSTRUCTION;
  const double rows = swapped ? t.tile_n : t.tile_m;
  const double columns = swapped ? t.tile_m : t.tile_n;
  const double bytes_per_us = d.bytes_per_us * KW_GEMM_HOPPER_MEMORY_SHARE;
  const double tiles_m = kw_ceil(p.m / (t.tile_m * t.cluster_m)) * t.cluster_m;
  const double tiles_n = kw_ceil(p.n / (t.tile_n * t.cluster_n)) * t.cluster_n;
  const double tiles = tiles_m * tiles_n * p.split * p.batch;
  const double waves = t.stream_k ? kw_max(1.0, tiles / d.units) * KW_GEMM_HOPPER_STREAM_SLACK : kw_ceil(tiles / d.units);
  const double whole_steps = kw_ceil(p.k / t.tile_k);
  const double steps = p.split > 1.0 ? kw_ceil(whole_steps / p.split) : whole_steps;
  const double running = kw_min(tiles, d.units);
  const double slices = t.tile_k * p.size * KW_GEMM_HOPPER_INSTRUCTION_SHARE;
  const double multiply = 2.0 * KW_GEMM_HOPPER_ROWS_OF_INSTRUCTION * KW_GEMM_HOPPER_BYTES_OF_INSTRUCTION * columns / (p.size * d.rate);
  const double instruction = kw_max(multiply, KW_GEMM_HOPPER_READ_ROWS_CLOCKS + KW_GEMM_HOPPER_READ_COLUMN_CLOCKS * columns) * KW_GEMM_HOPPER_INSTRUCTION_SLACK;
  const double slack = (swapped ? KW_GEMM_HOPPER_SWAPPED_SLACK : 1.0) * (t.pingpong ? 1.0 : KW_GEMM_HOPPER_SHARED_SLACK);
  const double step = slices * rows / KW_GEMM_HOPPER_ROWS_OF_INSTRUCTION * instruction;
  const bool clustered = t.cluster_m * t.cluster_n > 1.0;
  const double waits = KW_GEMM_HOPPER_STEP_CLOCKS + (clustered ? KW_GEMM_HOPPER_CLUSTER_STEP_CLOCKS : 0.0);
  const double us_per_clock = 1.0 / d.clocks_per_us;
  const double least_us = (waves * (steps * (step + waits) * slack) + KW_GEMM_HOPPER_START_CLOCKS) * us_per_clock + KW_GEMM_HOPPER_LAUNCH_US;
  if (least_us > most_us) {
    return KW_RECORD(kw_machine_Estimate, tiles, waves, 0.0, 0.0, 0.0, least_us, 1.0);
  }
  const double stage = (t.tile_m + t.tile_n) * t.tile_k * p.size;
  const double stages = kw_max(1.0, kw_floor((d.lds_bytes - KW_GEMM_HOPPER_EPILOGUE_ELEMENTS * p.size_c) / stage));
  const double asked_for = (t.tile_m / t.cluster_n + t.tile_n / t.cluster_m) * t.tile_k * p.size;
  const double fetched = clustered ? asked_for : stage;
  const double fill = kw_max(fetched * KW_GEMM_HOPPER_FILL_CLOCKS + stage * KW_GEMM_HOPPER_RECEIVE_CLOCKS, KW_GEMM_HOPPER_LATENCY_CLOCKS / kw_max(1.0, stages - 1.0));
  const bool cut = p.split > 1.0 || t.stream_k;
  const double shown = t.pingpong && waves > 1.0 ? KW_GEMM_HOPPER_HIDDEN_STORE : 1.0;
  const double store = t.tile_m * t.tile_n * p.size_c * KW_GEMM_HOPPER_STORE_CLOCKS * shown * (cut ? 2.0 : 1.0);
  const double more = stages < 3.0 ? kw_min(step, fill) : 0.0;
  const double compute_us = (waves * (steps * (step + more + waits) * slack + store) + KW_GEMM_HOPPER_START_CLOCKS) * us_per_clock;
  const double fill_us = (waves * (steps * (fill + more + waits) * slack + store) + KW_GEMM_HOPPER_START_CLOCKS) * us_per_clock;
  const double inside = kw_max(compute_us, fill_us);
  const double sharing = (cut ? KW_GEMM_HOPPER_CUT_US : t.cuttable ? KW_GEMM_HOPPER_CUTTABLE_US : 0.0) + (t.any_epilogue ? KW_GEMM_HOPPER_ANY_US : 0.0);
  const double added = (p.split - 1.0) * (KW_GEMM_HOPPER_SLICE_US + t.tile_m * t.tile_n * KW_GEMM_HOPPER_SLICE_ELEMENT_US);
  const double once = (p.m + p.n) * p.k * p.size * p.batch;
  const double results = p.m * p.n * p.batch * p.size_c * p.results;
  const double read_once_us = kw_gemm_hopper_both(inside, (once + results) / bytes_per_us) + KW_GEMM_HOPPER_LAUNCH_US + sharing + added;
  if (read_once_us > most_us) {
    return KW_RECORD(kw_machine_Estimate, tiles, waves, compute_us, fill_us, 0.0, read_once_us, 1.0);
  }
  const double side = kw_max(1.0, p.split > 1.0 ? running / p.split : running);
  const double panels = kw_gemm_hopper_shared_panels(t.tile_m, t.tile_n, kw_min(side, tiles_m * tiles_n), tiles_m, tiles_n);
  const double again = p.batch * tiles_m * tiles_n / side * p.k * p.size * panels;
  const double in_flight = running * stages * stage;
  const double wanted = KW_GEMM_HOPPER_IN_FLIGHT_BYTES * d.units;
  const double reached = in_flight < wanted ? in_flight / wanted : 1.0;
  const double memory_us = (once + KW_GEMM_HOPPER_REREAD_SHARE * kw_max(0.0, again - once) + results) / (bytes_per_us * reached);
  const double padded = tiles * t.tile_m * t.tile_n * steps * t.tile_k;
  const double useful = padded > 0.0 ? kw_min(1.0, p.m * p.n * p.k * p.batch / padded) : 1.0;
  const double total_us = kw_gemm_hopper_both(inside, memory_us) + KW_GEMM_HOPPER_LAUNCH_US + sharing + added;
  return KW_RECORD(kw_machine_Estimate, tiles, waves, compute_us, fill_us, memory_us, total_us, useful);
}

#endif /* KW_GEMM_HOPPER_H */
