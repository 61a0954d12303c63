/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/gemm/formulas/processors.py by `kernelwright formulas`, and explained there. */
#ifndef KW_GEMM_PROCESSORS_H
#define KW_GEMM_PROCESSORS_H

#include <stdbool.h>

#include "kernelwright/dispatcher/support/machine.h"
#include "kernelwright/dispatcher/support/numbers.h"
#include "kernelwright/dispatcher/support/products.h"

#define KW_GEMM_PROCESSORS_LATENCY_CLOCKS 4.9
#define KW_GEMM_PROCESSORS_ROW_CLOCKS 0.05
#define KW_GEMM_PROCESSORS_SLOW_DOT 3.7
#define KW_GEMM_PROCESSORS_BLOCK_CLOCKS 215.0
#define KW_GEMM_PROCESSORS_OWN_VECTOR_CLOCKS 4.2
#define KW_GEMM_PROCESSORS_SHARED_VECTOR_CLOCKS 5.9
#define KW_GEMM_PROCESSORS_VECTOR_OF_A_CLOCKS 30.0
#define KW_GEMM_PROCESSORS_FAR_VECTOR_CLOCKS 13.7
#define KW_GEMM_PROCESSORS_PARTIAL_CLOCKS 5.2
#define KW_GEMM_PROCESSORS_ADD_CLOCKS 2.8
#define KW_GEMM_PROCESSORS_MEET_CLOCKS 10400.0
#define KW_GEMM_PROCESSORS_ANY_EPILOGUE 1.01
#define KW_GEMM_PROCESSORS_TILE_CLOCKS 20.0
#define KW_GEMM_PROCESSORS_TILE_UNITS 16.0
#define KW_GEMM_PROCESSORS_TILE_VALUES 32.0
#define KW_GEMM_PROCESSORS_TILE_VECTOR_OF_A_CLOCKS 6.0
#define KW_GEMM_PROCESSORS_READ_BYTE_CLOCKS 0.1
#define KW_GEMM_PROCESSORS_MULTIPLICATIONS_PER_THREAD 1048576.0
#define KW_GEMM_PROCESSORS_TASKS_PER_THREAD 4.0
#define KW_GEMM_PROCESSORS_PARTIAL_UNITS 16777216.0
#define KW_GEMM_PROCESSORS_FEW_VECTORS 4.0
#define KW_GEMM_PROCESSORS_STREAM_DEPTH 64.0
#define KW_GEMM_PROCESSORS_STREAM_PARTS 64.0
#define KW_GEMM_PROCESSORS_DIRECT_EXTENT 128.0
#define KW_GEMM_PROCESSORS_DIRECT_WORK 884736.0

typedef struct kw_gemm_processors_Kernel {
  double rows;
  double columns;
  double unit;
  double tile_m;
  double tile_n;
  double tile_k;
  bool slow_dots;
  bool fp32;
  bool stream_k;
  bool persistent;
  bool any_epilogue;
} kw_gemm_processors_Kernel;

typedef struct kw_gemm_processors_Problem {
  double m;
  double n;
  double k;
  double batch;
  double split;
  double size;
  bool fp32_results;
  bool shuffled;
} kw_gemm_processors_Problem;

typedef struct kw_gemm_processors_Shape {
  double m;
  double n;
  double k;
  double lanes;
  double units;
  double packed;
  double blocks_k;
  double dot;
  double vector_of_a;
  double threads;
  bool partial;
  bool tiles;
} kw_gemm_processors_Shape;

typedef struct kw_gemm_processors_Clocks {
  double multiply;
  double move;
} kw_gemm_processors_Clocks;

static inline double kw_gemm_processors_threads_of(double multiplications, double units) {
  const double useful = multiplications / KW_GEMM_PROCESSORS_MULTIPLICATIONS_PER_THREAD;
  return useful < 2.0 ? 1.0 : kw_min(kw_floor(useful), units);
}

static inline double kw_gemm_processors_block_clocks(double rows, double vectors, KW_GIVEN(kw_gemm_processors_Shape) s) {
  double step = 0;
  if (rows <= 0.0 || vectors <= 0.0) {
    return 0.0;
  }
  step = kw_max(kw_max(rows * vectors / 2.0 * s.dot, (rows + vectors) / 2.0), KW_GEMM_PROCESSORS_LATENCY_CLOCKS) + KW_GEMM_PROCESSORS_ROW_CLOCKS * rows;
  if (s.tiles) {
    step = kw_ceil(rows / KW_GEMM_PROCESSORS_TILE_UNITS) * vectors * KW_GEMM_PROCESSORS_TILE_CLOCKS;
  }
  return s.units * step + s.blocks_k * KW_GEMM_PROCESSORS_BLOCK_CLOCKS;
}

static inline double kw_gemm_processors_product_clocks(double rows, double columns, KW_GIVEN(kw_gemm_processors_Shape) s, KW_GIVEN(kw_gemm_processors_Kernel) t) {
  const double whole_m = kw_floor(rows / t.rows);
  const double whole_n = kw_floor(columns / t.columns);
  const double rest_m = rows - whole_m * t.rows;
  const double rest_n = kw_ceil((columns - whole_n * t.columns) / s.lanes);
  const double vectors = t.columns / s.lanes;
  const double whole = whole_n * (whole_m * kw_gemm_processors_block_clocks(t.rows, vectors, s) + kw_gemm_processors_block_clocks(rest_m, vectors, s));
  return whole + whole_m * kw_gemm_processors_block_clocks(t.rows, rest_n, s) + kw_gemm_processors_block_clocks(rest_m, rest_n, s);
}

static inline kw_gemm_processors_Clocks kw_gemm_processors_packed(KW_GIVEN(kw_gemm_processors_Shape) s, KW_GIVEN(kw_gemm_processors_Kernel) t, KW_GIVEN(kw_gemm_processors_Problem) p) {
  double super_m = 0;
  double move = 0;
  const bool short_m = s.m <= t.tile_m;
  const double wanted_n = short_m && (s.tiles || !s.partial) ? 1.0 : kw_ceil(s.n / t.tile_n);
  const double block_n = kw_ceil(kw_ceil(s.n / wanted_n) / t.columns) * t.columns;
  const double count_n = kw_ceil(s.n / block_n);
  super_m = kw_ceil(s.m / t.rows) * t.rows;
  if (s.partial) {
    super_m = kw_min(super_m, kw_max(t.tile_m, kw_floor(kw_floor(KW_GEMM_PROCESSORS_PARTIAL_UNITS / block_n) / t.tile_m) * t.tile_m));
  }
  const double count_m = kw_ceil(s.m / super_m);
  const double panels = short_m ? block_n / t.columns : super_m / t.rows;
  const double spread = s.threads > 1.0 ? KW_GEMM_PROCESSORS_TASKS_PER_THREAD * s.threads : 1.0;
  const double per_tile = kw_max(1.0, kw_floor(t.tile_m / t.rows));
  const double tasks = kw_min(panels, short_m ? spread : kw_ceil(kw_ceil(panels / per_tile) / s.threads) * s.threads);
  const double busiest = kw_min(1.0, kw_ceil(tasks / s.threads) * kw_ceil(panels / tasks) / panels);
  const double share = kw_max(busiest, 1.0 / s.threads);
  const double vectors_a = s.m * s.packed / s.lanes;
  const double vectors_b = p.shuffled ? 0.0 : s.n * s.packed / s.lanes;
  const double multiply = kw_gemm_processors_product_clocks(s.m, s.n, s, t) * share;
  move = s.m * s.n * (s.blocks_k - 1.0) * KW_GEMM_PROCESSORS_PARTIAL_CLOCKS / s.threads;
  if (short_m) {
    move += vectors_a * s.vector_of_a / kw_min(s.threads, kw_ceil(s.m / t.rows)) * count_n;
    move += vectors_b * KW_GEMM_PROCESSORS_OWN_VECTOR_CLOCKS * share;
  } else {
    move += vectors_a * s.vector_of_a / s.threads * count_n;
    move += vectors_b * (KW_GEMM_PROCESSORS_SHARED_VECTOR_CLOCKS * count_m / s.threads + KW_GEMM_PROCESSORS_FAR_VECTOR_CLOCKS);
  }
  if (s.threads > 1.0) {
    move += count_m * count_n * s.blocks_k * KW_GEMM_PROCESSORS_MEET_CLOCKS;
  }
  return KW_RECORD(kw_gemm_processors_Clocks, multiply, move);
}

static inline kw_gemm_processors_Clocks kw_gemm_processors_tiles(KW_GIVEN(kw_gemm_processors_Shape) s, KW_GIVEN(kw_gemm_processors_Kernel) t, double slices) {
  double each = 0;
  double busiest = 0;
  double vectors_b = 0;
  double move = 0;
  const double tile_m = kw_min(t.tile_m, kw_ceil(s.m / t.rows) * t.rows);
  const double tile_n = kw_min(t.tile_n, kw_ceil(s.n / t.columns) * t.columns);
  const double along_m = kw_ceil(s.m / tile_m);
  const double count = along_m * kw_ceil(s.n / tile_n);
  const bool whole = !t.stream_k && slices <= 1.0;
  each = kw_gemm_processors_product_clocks(s.m, s.n, s, t) / count;
  busiest = kw_ceil(count * slices / s.threads) / slices;
  if (t.stream_k) {
    busiest = kw_max(count / s.threads, 1.0 / kw_min(KW_GEMM_PROCESSORS_STREAM_PARTS, kw_ceil(s.k / KW_GEMM_PROCESSORS_STREAM_DEPTH)));
  }
  if (whole) {
    busiest = kw_ceil(count / kw_min(count, s.threads));
    each = kw_gemm_processors_product_clocks(tile_m, tile_n, s, t);
  }
  vectors_b = tile_n * s.packed / s.lanes;
  if (s.blocks_k <= 1.0 && along_m > 1.0) {
    vectors_b /= kw_min(along_m, kw_max(busiest, 1.0));
  }
  move = busiest * (tile_m * s.packed / s.lanes * s.vector_of_a + vectors_b * KW_GEMM_PROCESSORS_SHARED_VECTOR_CLOCKS);
  move += s.m * s.n * (s.blocks_k - 1.0) * KW_GEMM_PROCESSORS_PARTIAL_CLOCKS / s.threads;
  if (!whole) {
    move += s.m * s.n * (t.stream_k ? 2.0 : slices) * KW_GEMM_PROCESSORS_ADD_CLOCKS / s.threads;
  }
  if (s.threads > 1.0) {
    move += KW_GEMM_PROCESSORS_MEET_CLOCKS;
  }
  return KW_RECORD(kw_gemm_processors_Clocks, busiest * each, move);
}

static inline kw_gemm_processors_Clocks kw_gemm_processors_clocks_of(KW_GIVEN(kw_gemm_processors_Shape) s, KW_GIVEN(kw_gemm_processors_Kernel) t, KW_GIVEN(kw_gemm_processors_Problem) p) {
  double read = 0;
  if (t.stream_k || t.persistent || p.split > 1.0) {
    return kw_gemm_processors_tiles(s, t, p.split);
  }
  if (!p.shuffled && kw_min(s.m, s.n) <= KW_GEMM_PROCESSORS_FEW_VECTORS) {
    read = kw_max(s.m, s.n) * s.k * p.size * KW_GEMM_PROCESSORS_READ_BYTE_CLOCKS;
    return KW_RECORD(kw_gemm_processors_Clocks, s.m * s.n * s.k / s.lanes / 2.0 / s.threads, read / s.threads);
  }
  const bool direct = kw_max(kw_max(s.m, s.n), s.k) <= KW_GEMM_PROCESSORS_DIRECT_EXTENT && s.m * s.n * s.k <= KW_GEMM_PROCESSORS_DIRECT_WORK;
  if (!p.shuffled && t.fp32 && direct) {
    return KW_RECORD(kw_gemm_processors_Clocks, kw_gemm_processors_product_clocks(s.m, s.n, s, t), 0.0);
  }
  return kw_gemm_processors_packed(s, t, p);
}

static inline kw_machine_Estimate kw_gemm_processors_estimate(KW_GIVEN(kw_gemm_processors_Problem) p, KW_GIVEN(kw_gemm_processors_Kernel) t, KW_GIVEN(kw_machine_Device) d) {
  if (p.m == 0.0 || p.n == 0.0) {
    return KW_RECORD(kw_machine_Estimate, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0);
  }
  const double k = kw_max(p.k, 1.0);
  const double work = p.m * p.n * k;
  const double alone = kw_gemm_processors_threads_of(work, d.units);
  const double together = kw_gemm_processors_threads_of(work * p.batch, d.units);
  const bool beside = p.batch > 1.0 && (alone == 1.0 || p.batch >= d.units);
  const double threads = beside ? 1.0 : alone;
  const double blocks_k = kw_ceil(k / t.tile_k);
  const bool partial = blocks_k > 1.0 && !p.fp32_results;
  const double lanes = kw_max(1.0, d.rate_fp32 / 4.0);
  const double dot = t.slow_dots ? KW_GEMM_PROCESSORS_SLOW_DOT : 1.0;
  const double units = kw_ceil(k / t.unit);
  const bool by_tiles = t.unit >= KW_GEMM_PROCESSORS_TILE_VALUES;
  const double of_a = by_tiles ? KW_GEMM_PROCESSORS_TILE_VECTOR_OF_A_CLOCKS : KW_GEMM_PROCESSORS_VECTOR_OF_A_CLOCKS;
  const double packed_units = by_tiles ? units * KW_GEMM_PROCESSORS_TILE_UNITS : units;
  const kw_gemm_processors_Shape s = KW_RECORD(kw_gemm_processors_Shape, p.m, p.n, k, lanes, units, packed_units, blocks_k, dot, of_a, threads, partial, by_tiles);
  const double rounds = beside ? kw_ceil(p.batch / together) : p.batch;
  const kw_gemm_processors_Clocks c = kw_gemm_processors_clocks_of(s, t, p);
  const double blocks = kw_ceil(p.m / t.rows) * kw_ceil(p.n / t.columns);
  const double tiles_of_all = blocks * p.split * p.batch;
  const double epilogue = t.any_epilogue ? KW_GEMM_PROCESSORS_ANY_EPILOGUE : 1.0;
  const double compute_us = rounds * c.multiply / d.clocks_per_us * epilogue;
  const double memory_us = rounds * c.move / d.clocks_per_us;
  const double useful = p.m * p.n / (blocks * t.rows * t.columns);
  return KW_RECORD(kw_machine_Estimate, tiles_of_all, kw_ceil(tiles_of_all / threads), compute_us, 0.0, memory_us, compute_us + memory_us, useful);
}

#endif /* KW_GEMM_PROCESSORS_H */
