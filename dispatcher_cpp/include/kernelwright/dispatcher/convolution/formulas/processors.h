/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/convolution/formulas/processors.py by `kernelwright formulas`, and explained there. */
#ifndef KW_CONVOLUTION_PROCESSORS_H
#define KW_CONVOLUTION_PROCESSORS_H

#include <stdbool.h>

#include "kernelwright/dispatcher/convolution/formulas/problem.h"
#include "kernelwright/dispatcher/convolution/formulas/tiles.h"
#include "kernelwright/dispatcher/support/machine.h"
#include "kernelwright/dispatcher/support/numbers.h"

#define KW_CONVOLUTION_PROCESSORS_LATENCY_CLOCKS 4.3
#define KW_CONVOLUTION_PROCESSORS_VECTOR_CLOCKS 0.18
#define KW_CONVOLUTION_PROCESSORS_WEIGHT_LATENCY_CLOCKS 10.0
#define KW_CONVOLUTION_PROCESSORS_WEIGHT_VECTOR_CLOCKS 0.75
#define KW_CONVOLUTION_PROCESSORS_SLOW_DOT 3.7
#define KW_CONVOLUTION_PROCESSORS_LINES_ON_THEIR_WAY 16.0
#define KW_CONVOLUTION_PROCESSORS_LINE_CLOCKS 17.0
#define KW_CONVOLUTION_PROCESSORS_ANY_EPILOGUE 1.01
#define KW_CONVOLUTION_PROCESSORS_STORE_CLOCKS 0.16
#define KW_CONVOLUTION_PROCESSORS_BOX_BYTE_CLOCKS 7.8e-07
#define KW_CONVOLUTION_PROCESSORS_PACK_CLOCKS 5.0
#define KW_CONVOLUTION_PROCESSORS_WEIGHT_CLOCKS 0.43
#define KW_CONVOLUTION_PROCESSORS_SUM_CLOCKS 1.0
#define KW_CONVOLUTION_PROCESSORS_GRADIENT_CLOCKS 3.0
#define KW_CONVOLUTION_PROCESSORS_FILL_CLOCKS 3.0
#define KW_CONVOLUTION_PROCESSORS_MULTIPLICATIONS_PER_THREAD 1048576.0
#define KW_CONVOLUTION_PROCESSORS_TASKS_PER_THREAD 4.0
#define KW_CONVOLUTION_PROCESSORS_ENOUGH_TILES 256.0
#define KW_CONVOLUTION_PROCESSORS_SLAB_UNITS 98304.0
#define KW_CONVOLUTION_PROCESSORS_TURNED_CHANNELS 256.0
#define KW_CONVOLUTION_PROCESSORS_LINE 16.0

typedef struct kw_convolution_processors_Kernel {
  double rows;
  double columns;
  double unit;
  double tile_m;
  double tile_n;
  double spare_dimensions;
  bool depthwise;
  bool slow_dots;
  bool any_epilogue;
} kw_convolution_processors_Kernel;

typedef struct kw_convolution_processors_Block {
  double rows;
  double columns;
  double lanes;
  double latency;
  double vector;
  double dot;
  double threads;
} kw_convolution_processors_Block;

static inline double kw_convolution_processors_block_clocks(KW_GIVEN(kw_convolution_processors_Block) b, double rows, double vectors) {
  if (rows <= 0.0 || vectors <= 0.0) {
    return 0.0;
  }
  return kw_max(kw_max(rows * vectors / 2.0 * b.dot, (rows + vectors) / 2.0), b.latency) + b.vector * vectors;
}

static inline double kw_convolution_processors_row_clocks(KW_GIVEN(kw_convolution_processors_Block) b, double rows, double columns) {
  const double whole = kw_floor(columns / b.columns);
  const double rest = kw_ceil((columns - whole * b.columns) / b.lanes);
  return whole * kw_convolution_processors_block_clocks(b, rows, b.columns / b.lanes) + kw_convolution_processors_block_clocks(b, rows, rest);
}

static inline double kw_convolution_processors_busiest(double tasks, double threads, double most, double mean) {
  return kw_min(1.0, kw_max(kw_ceil(tasks / threads) / tasks * most / mean, 1.0 / threads));
}

static inline double kw_convolution_processors_wanted_tasks(double threads) {
  return threads > 1.0 ? KW_CONVOLUTION_PROCESSORS_TASKS_PER_THREAD * threads : 1.0;
}

static inline double kw_convolution_processors_pitch_of(double units) {
  if (units < KW_CONVOLUTION_PROCESSORS_LINE) {
    return units;
  }
  const double lines = kw_ceil(units / KW_CONVOLUTION_PROCESSORS_LINE);
  return KW_CONVOLUTION_PROCESSORS_LINE * (kw_floor(lines / 2.0) * 2.0 == lines ? lines + 1.0 : lines);
}

static inline bool kw_convolution_processors_pointwise(KW_GIVEN(kw_convolution_problem_Problem) p) {
  return kw_convolution_problem_filter_points(p) == 1.0 && kw_convolution_problem_strides(p) == 1.0 && kw_convolution_problem_in_points(p) == kw_convolution_problem_out_points(p);
}

static inline double kw_convolution_processors_sweep_clocks(KW_GIVEN(kw_convolution_problem_Problem) p, KW_GIVEN(kw_convolution_processors_Kernel) t, KW_GIVEN(kw_convolution_processors_Block) b) {
  double line = 0;
  double lines = 0;
  double clocks = 0;
  const bool back = p.backward_data;
  const double channels = (back ? p.k : p.c) / p.groups;
  const double columns = (back ? p.c : p.k) / p.groups;
  const double units = kw_ceil(channels / t.unit);
  const double taps = kw_convolution_problem_filter_points(p) / (back ? kw_convolution_problem_strides(p) : 1.0);
  line = back ? kw_ceil(p.in_w / p.stride_w) : p.out_w;
  lines = p.n * kw_convolution_problem_out_points(p) / p.out_w;
  if (back) {
    lines = p.n * kw_convolution_problem_in_points(p) / p.in_w * kw_min(p.stride_w, p.filter_w);
  }
  if (kw_convolution_processors_pointwise(p)) {
    line = p.n * kw_convolution_problem_in_points(p);
    lines = 1.0;
  }
  const double half = kw_floor((b.rows + 1.0) / 2.0);
  const double runs = kw_floor(line / half);
  const double rest = line - runs * half;
  const double edge = rest > 0.0 ? 0.5 * kw_convolution_processors_row_clocks(b, kw_max(2.0 * rest, 1.0), columns) : 0.0;
  const double steps = lines * (runs / 2.0 * kw_convolution_processors_row_clocks(b, b.rows, columns) + edge);
  const double panels = kw_ceil(columns / b.columns);
  const double blocks = lines * kw_ceil(line / half) / 2.0 * panels * p.groups;
  const double vectors = b.rows * kw_min(b.columns, columns) / b.lanes;
  clocks = steps * units * taps * p.groups + blocks * KW_CONVOLUTION_PROCESSORS_LINE_CLOCKS * kw_max(0.0, vectors - KW_CONVOLUTION_PROCESSORS_LINES_ON_THEIR_WAY);
  const double outputs = lines * line;
  const double wanted = kw_convolution_processors_wanted_tasks(b.threads);
  const double asked = kw_min(outputs, kw_max(kw_min(t.tile_m, outputs * p.groups / wanted), 4.0 * b.rows));
  const double box = kw_max(1.0, kw_min(asked, KW_CONVOLUTION_PROCESSORS_SLAB_UNITS / kw_convolution_processors_pitch_of(units)));
  const double boxes = kw_ceil(outputs / box);
  const double slabs = boxes * p.groups;
  const double parts = kw_min(panels, kw_max(kw_ceil(columns / kw_max(t.tile_n, b.columns)), kw_ceil(wanted / slabs)));
  clocks *= kw_convolution_processors_busiest(slabs * parts, b.threads, kw_ceil(panels / parts) * parts, panels);
  const double bytes_of_box = box * (units + columns / parts) * 4.0;
  const double weights = kw_convolution_problem_filter_points(p) * p.groups * units * columns;
  clocks += outputs * p.groups * columns * (KW_CONVOLUTION_PROCESSORS_STORE_CLOCKS + KW_CONVOLUTION_PROCESSORS_BOX_BYTE_CLOCKS * bytes_of_box) / b.threads;
  return clocks + weights * (KW_CONVOLUTION_PROCESSORS_PACK_CLOCKS / b.lanes + KW_CONVOLUTION_PROCESSORS_WEIGHT_CLOCKS * boxes) / b.threads;
}

static inline double kw_convolution_processors_weight_clocks(KW_GIVEN(kw_convolution_problem_Problem) p, KW_GIVEN(kw_convolution_processors_Block) b) {
  double clocks = 0;
  const double c = p.c / p.groups;
  const double k = p.k / p.groups;
  const double pitch = kw_convolution_processors_pitch_of(c);
  const bool merged = pitch == c && p.dilation_w == 1.0;
  const double run = c * (merged ? p.filter_w : 1.0);
  const double taps = kw_convolution_problem_filter_points(p) / (merged ? p.filter_w : 1.0);
  const bool turned = c <= KW_CONVOLUTION_PROCESSORS_TURNED_CHANNELS && 11.0 * kw_ceil(k / b.lanes) * run < 10.0 * kw_ceil(run / b.lanes) * k;
  const double rows = turned ? run : k;
  const double columns = turned ? k : run;
  const double panels_m = kw_ceil(rows / b.rows);
  const double panels_n = kw_ceil(columns / b.columns);
  const double each = turned ? kw_ceil(rows / panels_m) : b.rows;
  const double whole = kw_floor(rows / each);
  const double outputs = p.n * kw_convolution_problem_out_points(p);
  const double steps = whole * kw_convolution_processors_row_clocks(b, each, columns) + kw_convolution_processors_row_clocks(b, rows - whole * each, columns);
  const double boxes = kw_ceil(kw_max(1.0, outputs * kw_max(pitch, KW_CONVOLUTION_PROCESSORS_LINE)) / KW_CONVOLUTION_PROCESSORS_SLAB_UNITS);
  const double panels = panels_m * panels_n * taps;
  const double slices = kw_max(1.0, kw_min(boxes, kw_ceil(KW_CONVOLUTION_PROCESSORS_ENOUGH_TILES / (panels * p.groups))));
  const double parts = kw_ceil(kw_convolution_processors_wanted_tasks(b.threads) / (slices * p.groups));
  const double parts_n = kw_min(taps * panels_n, parts);
  const double parts_m = kw_min(panels_m, kw_ceil(parts / parts_n));
  const double most = kw_ceil(panels_m / parts_m) * kw_ceil(taps * panels_n / parts_n);
  const double tasks = slices * p.groups * parts_m * parts_n;
  clocks = steps * taps * p.groups * outputs * kw_convolution_processors_busiest(tasks, b.threads, most * parts_m * parts_n, panels);
  clocks += slices * panels * p.groups * b.rows * b.columns * KW_CONVOLUTION_PROCESSORS_SUM_CLOCKS / b.threads;
  clocks += outputs * p.groups * rows * parts_n * KW_CONVOLUTION_PROCESSORS_GRADIENT_CLOCKS / b.threads;
  if (!kw_convolution_processors_pointwise(p)) {
    clocks += outputs * p.groups * c * parts_m * KW_CONVOLUTION_PROCESSORS_FILL_CLOCKS / b.threads;
  }
  return clocks;
}

static inline kw_convolution_processors_Block kw_convolution_processors_block_of(KW_GIVEN(kw_convolution_problem_Problem) p, KW_GIVEN(kw_convolution_processors_Kernel) t, KW_GIVEN(kw_machine_Device) d, double rate) {
  const double useful = kw_convolution_problem_work(p) / KW_CONVOLUTION_PROCESSORS_MULTIPLICATIONS_PER_THREAD;
  return KW_RECORD(kw_convolution_processors_Block, t.rows, t.columns, kw_max(1.0, rate / 4.0), p.backward_weight ? KW_CONVOLUTION_PROCESSORS_WEIGHT_LATENCY_CLOCKS : KW_CONVOLUTION_PROCESSORS_LATENCY_CLOCKS, p.backward_weight ? KW_CONVOLUTION_PROCESSORS_WEIGHT_VECTOR_CLOCKS : KW_CONVOLUTION_PROCESSORS_VECTOR_CLOCKS, t.slow_dots ? KW_CONVOLUTION_PROCESSORS_SLOW_DOT : 1.0, useful < 2.0 ? 1.0 : kw_min(kw_floor(useful), d.units));
}

static inline double kw_convolution_processors_clocks_of(KW_GIVEN(kw_convolution_problem_Problem) p, KW_GIVEN(kw_convolution_processors_Kernel) t, KW_GIVEN(kw_machine_Device) d, KW_GIVEN(kw_convolution_processors_Block) b, double rate) {
  const double c = p.c / p.groups;
  const bool whole_groups = c == p.k / p.groups && kw_ceil(b.lanes / c) * c == b.lanes && c < b.lanes;
  if (t.depthwise || whole_groups) {
    return 2.0 * kw_convolution_problem_work(p) / rate / d.units;
  }
  return p.backward_weight ? kw_convolution_processors_weight_clocks(p, b) : kw_convolution_processors_sweep_clocks(p, t, b);
}

static inline kw_machine_Estimate kw_convolution_processors_estimate(KW_GIVEN(kw_convolution_problem_Problem) p, KW_GIVEN(kw_convolution_processors_Kernel) t, KW_GIVEN(kw_machine_Device) d) {
  const double rate = kw_max(1.0, d.rate_fp32);
  const kw_convolution_processors_Block b = kw_convolution_processors_block_of(p, t, d, rate);
  const kw_convolution_problem_Gemm g = kw_convolution_problem_gemm(p);
  const double tiles = p.groups * kw_ceil(g.m / kw_max(1.0, b.rows)) * kw_ceil(g.n / kw_max(1.0, b.columns));
  const double clocks = kw_convolution_problem_work(p) > 0.0 ? kw_convolution_processors_clocks_of(p, t, d, b, rate) : 0.0;
  const double epilogue = t.any_epilogue ? KW_CONVOLUTION_PROCESSORS_ANY_EPILOGUE : 1.0;
  const double compute_us = clocks / d.clocks_per_us * kw_convolution_tiles_spare(t.spare_dimensions) * epilogue;
  const double memory_us = kw_convolution_problem_moved_bytes(p) / d.bytes_per_us;
  return KW_RECORD(kw_machine_Estimate, tiles, kw_ceil(tiles / b.threads), compute_us, 0.0, memory_us, compute_us + memory_us, 1.0);
}

#endif /* KW_CONVOLUTION_PROCESSORS_H */
