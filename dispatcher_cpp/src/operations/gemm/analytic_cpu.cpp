// The time of a GEMM on a CPU. analytic.hpp explains the formula; how problems are cut is what the launcher's plan.hpp
// says. The numbers are fitted to tuning problems: of four threads of a Xeon of the fifth generation
// (benchmarks/results/cpu_sweep_20261123/gemm-tuning-*) and two of an EPYC 9555 (cpu_gemm_tuning_*_20261122.csv.gz).
#include "kernelwright/dispatcher/gemm/analytic.hpp"
#include "kernelwright/gemm/checks.h"

namespace kernelwright {
namespace {

// Clocks.
constexpr double kLatencyClocks = 4.9;    // of a register block's step at least: sums wait for each other
constexpr double kRowClocks = 0.05;       // of each of its rows, beside multiplying
constexpr double kSlowDot = 3.7;          // of a dot product of bf16 over multiplying and adding, where they are slow
constexpr double kBlockClocks = 215;      // of a register block in each cache block along K
constexpr double kOwnVectorClocks = 4.2;  // to pack a vector of B for oneself,
constexpr double kSharedVectorClocks = 5.9;  // and for all threads
constexpr double kVectorOfAClocks = 30;      // to pack a vector of A
constexpr double kFarVectorClocks = 13.7;    // to read a vector of B that other threads packed
constexpr double kPartialClocks = 5.2;       // of a sum that waits for the next cache block along K
constexpr double kAddClocks = 2.8;           // of a sum of each slice
constexpr double kMeetClocks = 10400;        // until all threads have ended a stage
constexpr double kReadByteClocks = 0.1;      // of a matrix that is read where it lies
// Of the launcher.
constexpr double kMultiplicationsPerThread = 1048576;
constexpr double kTasksPerThread = 4;
constexpr double kPartialUnits = 16777216;
constexpr double kFewVectors = 4;
constexpr double kStreamDepth = 64;
constexpr double kDirectExtent = 128;
constexpr double kDirectWork = 884736;

double max(double left, double right) { return left > right ? left : right; }
double min(double left, double right) { return left < right ? left : right; }
double floor(double value) { return static_cast<double>(static_cast<int64_t>(value)); }
double ceiling(double value) {
  const double whole = floor(value);
  return whole < value ? whole + 1 : whole;
}
double times(double extent, double quantum) { return ceiling(extent / quantum); }

struct Shape {
  double m, n, k, rows, columns, lanes;  // rows and columns of a register block
  double tile_m, tile_n, units;          // units: steps along K
  double blocks_k, dot, threads;
  bool partial, alone;  // sums wait in memory of their own; workers pack for themselves
};

double threads_of(double multiplications, double units) {
  const double useful = multiplications / kMultiplicationsPerThread;
  return useful < 2 ? 1 : min(floor(useful), units);
}

Shape shape_of(const kw_gemm_problem& p, const kw_arch& arch, const kw_gemm_traits& t, const Place& place) {
  Shape s;
  s.m = static_cast<double>(p.m), s.n = static_cast<double>(p.n), s.k = static_cast<double>(p.k > 0 ? p.k : 1);
  s.rows = t.warp_tile_m, s.columns = t.warp_tile_n, s.tile_m = t.tile_m, s.tile_n = t.tile_n;
  s.lanes = max(1.0, arch.flops_per_clock_per_cu[KW_FP32] / 4.0);
  s.units = times(s.k, t.warp_tile_k);
  s.blocks_k = times(s.k, t.tile_k);
  s.dot = place.slow_dots && t.dtype_a == KW_BF16 && t.warp_tile_k > 1 ? kSlowDot : 1;
  s.threads = threads_of(s.m * s.n * s.k, place.compute_units);
  s.partial = s.blocks_k > 1 && p.dtype_c != KW_FP32;
  s.alone = t.stream_k != KW_STREAM_K_NONE || t.persistent != 0 || p.split_k > 1;
  return s;
}

// Of a register block of so many rows and vectors, all along K.
double block_clocks(double rows, double vectors, const Shape& s) {
  if (rows <= 0 || vectors <= 0) return 0;
  const double step = max(max(rows * vectors / 2 * s.dot, (rows + vectors) / 2), kLatencyClocks) + kRowClocks * rows;
  return s.units * step + s.blocks_k * kBlockClocks;
}

// Of all register blocks of so many rows and columns; those at edges are smaller.
double product_clocks(double rows, double columns, const Shape& s) {
  const double whole_m = floor(rows / s.rows), whole_n = floor(columns / s.columns);
  const double rest_m = rows - whole_m * s.rows, rest_n = times(columns - whole_n * s.columns, s.lanes);
  const double vectors = s.columns / s.lanes;
  return whole_n * (whole_m * block_clocks(s.rows, vectors, s) + block_clocks(rest_m, vectors, s)) +
         whole_m * block_clocks(s.rows, rest_n, s) + block_clocks(rest_m, rest_n, s);
}

struct Clocks {
  double multiply, move;
};

// Blocks of A and B are packed, one of them for all threads.
Clocks packed(const Shape& s, const kw_gemm_traits& t) {
  const bool short_m = s.m <= s.tile_m;
  double count_n = short_m && !s.partial ? 1 : times(s.n, s.tile_n);
  const double block_n = times(times(s.n, count_n), s.columns) * s.columns;
  count_n = times(s.n, block_n);
  double super_m = times(s.m, s.rows) * s.rows;
  if (s.partial) super_m = min(super_m, max(s.tile_m, floor(floor(kPartialUnits / block_n) / s.tile_m) * s.tile_m));
  const double count_m = times(s.m, super_m);
  const double panels = short_m ? block_n / s.columns : super_m / s.rows;
  const double spread = s.threads > 1 ? kTasksPerThread * s.threads : 1;
  const double per_tile = max(1.0, floor(s.tile_m / s.rows));
  const double tasks = min(panels, short_m ? spread : times(times(panels, per_tile), s.threads) * s.threads);
  const double busiest = min(1.0, times(tasks, s.threads) * times(panels, tasks) / panels);
  const double share = max(busiest, 1 / s.threads);
  const double vectors_a = s.m * s.units / s.lanes, vectors_b = t.b_format != 0 ? 0 : s.n * s.units / s.lanes;
  Clocks c;
  c.multiply = product_clocks(s.m, s.n, s) * share;
  c.move = s.m * s.n * (s.blocks_k - 1) * kPartialClocks / s.threads;
  if (short_m) {
    c.move += vectors_a * kVectorOfAClocks / min(s.threads, times(s.m, s.rows)) * count_n;
    c.move += vectors_b * kOwnVectorClocks * share;
  } else {
    c.move += vectors_a * kVectorOfAClocks / s.threads * count_n;
    c.move += vectors_b * (kSharedVectorClocks * count_m / s.threads + kFarVectorClocks);
  }
  if (s.threads > 1) c.move += count_m * count_n * s.blocks_k * kMeetClocks;
  return c;
}

// Persistent, split-K and stream-K kernels: workers take tiles, or parts of them along K, and pack what they need.
Clocks tiles(const Shape& s, const kw_gemm_traits& t, double slices) {
  const double tile_m = min(s.tile_m, times(s.m, s.rows) * s.rows);
  const double tile_n = min(s.tile_n, times(s.n, s.columns) * s.columns);
  const double along_m = times(s.m, tile_m), count = along_m * times(s.n, tile_n);
  const bool stream = t.stream_k != KW_STREAM_K_NONE, whole = !stream && slices <= 1;
  double each = product_clocks(s.m, s.n, s) / count, busiest = times(count * slices, s.threads) / slices;
  if (stream) busiest = max(count / s.threads, 1 / min(64.0, times(s.k, kStreamDepth)));
  if (whole) {
    busiest = times(count, min(count, s.threads));
    each = product_clocks(tile_m, tile_n, s);
  }
  double vectors_b = tile_n * s.units / s.lanes;
  if (s.blocks_k <= 1 && along_m > 1) vectors_b /= min(along_m, max(busiest, 1.0));  // serves the tiles that follow
  Clocks c;
  c.multiply = busiest * each;
  c.move = busiest * (tile_m * s.units / s.lanes * kVectorOfAClocks + vectors_b * kSharedVectorClocks);
  c.move += s.m * s.n * (s.blocks_k - 1) * kPartialClocks / s.threads;
  if (!whole) c.move += s.m * s.n * (stream ? 2 : slices) * kAddClocks / s.threads;
  if (s.threads > 1) c.move += kMeetClocks;
  return c;
}

Clocks clocks_of(const kw_gemm_problem& p, const kw_gemm_traits& t, const Shape& s) {
  if (s.alone) return tiles(s, t, p.split_k);
  if (t.b_format == 0 && min(s.m, s.n) <= kFewVectors) {
    const double size = kw_dtype_bytes(p.dtype_a);
    return {s.m * s.n * s.k / s.lanes / 2 / s.threads, max(s.m, s.n) * s.k * size * kReadByteClocks / s.threads};
  }
  const bool direct = max(max(s.m, s.n), s.k) <= kDirectExtent && s.m * s.n * s.k <= kDirectWork;
  if (t.b_format == 0 && t.dtype_a == KW_FP32 && direct) return {product_clocks(s.m, s.n, s), 0};
  return packed(s, t);
}

}  // namespace

Estimate estimate_cpu(const kw_gemm_problem& p, const kw_gemm_traits& t, const Place& place) {
  const kw_arch& arch = *place.arch;
  Estimate e;
  if (p.m == 0 || p.n == 0) return e;
  Shape s = shape_of(p, arch, t, place);
  // Products of a batch run side by side, a thread each, or one after another.
  const double batch = static_cast<double>(p.batch),
               together = threads_of(s.m * s.n * s.k * batch, place.compute_units);
  const bool beside = batch > 1 && (s.threads == 1 || batch >= place.compute_units);
  if (beside) s.threads = 1;
  const double rounds = beside ? times(batch, together) : batch;
  const double clocks_per_us = (arch.clock_ghz > 0 ? arch.clock_ghz : 1.0) * 1e3;
  const Clocks c = clocks_of(p, t, s);
  e.tiles = times(s.m, s.rows) * times(s.n, s.columns) * p.split_k * batch;
  e.waves = times(e.tiles, s.threads);
  e.compute_us = rounds * c.multiply / clocks_per_us;
  e.memory_us = rounds * c.move / clocks_per_us;
  e.total_us = e.compute_us + e.memory_us;
  const double padded = times(s.m, s.rows) * s.rows * times(s.n, s.columns) * s.columns;
  e.useful = s.m * s.n / padded;
  return e;
}

Estimate estimate_cpu(const kw_grouped_gemm_problem& p, const kw_gemm_traits& t, const Place& place) {
  Estimate e;
  double useful = 0;
  for (int64_t i = 0; i < p.group_count; ++i) {
    const kw_gemm_problem one = kw_problem_of_group(&p, &p.groups[i]);
    if (one.m == 0 || one.n == 0) continue;
    const Estimate each = estimate_cpu(one, t, place);
    e.tiles += each.tiles;
    e.compute_us += each.compute_us;
    e.memory_us += each.memory_us;
    e.total_us += each.total_us;
    useful += each.useful * each.tiles;
  }
  if (e.tiles > 0) e.useful = useful / e.tiles;
  e.waves = times(e.tiles, place.compute_units);
  return e;
}

}  // namespace kernelwright
