// See estimate_conv_cpu in problem.hpp. How problems are cut is what plans of cpu/launchers/convolution say. The
// numbers are fitted to tuning problems (benchmarks/results/cpu_sweep_20261123/conv-tuning-*, four threads of a Xeon of
// the fifth generation); on an EPYC 9555 they choose as well.
#include "kernelwright/convolution/checks.h"
#include "kernelwright/dispatcher/convolution/problem.hpp"

namespace kernelwright {
namespace {

// Clocks. Of a register block's step at least, and of each of its vectors beside multiplying; in backward weight, which
// reads both operands from the second-level cache, more.
constexpr double kLatencyClocks = 4.3, kVectorClocks = 0.18, kWeightLatencyClocks = 10, kWeightVectorClocks = 0.75;
constexpr double kSlowDot = 3.7;  // as in gemm/analytic_cpu.cpp
// Of writing a register block: so many lines of the output may be on their way to the first-level cache.
constexpr double kLinesOnTheirWay = 16, kLineClocks = 17;
// Of an output: for itself, and for each byte that its box reads and writes, which do not stay in a cache.
constexpr double kStoreClocks = 0.16, kBoxByteClocks = 7.8e-7;
constexpr double kPackClocks = 5;                                       // of a vector of weights
constexpr double kWeightClocks = 0.43;                                  // of a weight in each box of outputs
constexpr double kSumClocks = 1, kGradientClocks = 3, kFillClocks = 3;  // of a sum of a slice, a value of dy and of x
constexpr double kSpareDimension = 1.01;                                // as in estimate.cpp
// Of launchers.
constexpr double kMultiplicationsPerThread = 1048576, kTasksPerThread = 4, kEnoughTiles = 256;
constexpr double kSlabUnits = 98304, kTurnedChannels = 256;

double max(double left, double right) { return left > right ? left : right; }
double min(double left, double right) { return left < right ? left : right; }
double floor(double value) { return static_cast<double>(static_cast<int64_t>(value)); }
double times(double extent, double quantum) {
  const double whole = floor(extent / quantum);
  return whole * quantum < extent ? whole + 1 : whole;
}

struct Layer {
  double images, groups, c, k, taps, along_w;  // c and k are of a group; along_w: filter points
  double stride, wide;                         // product of strides, that along W
  double x_points, y_points, x_line, y_line;   // of an image, along W
  bool pointwise;
};

Layer layer_of(const kw_conv_problem& p) {
  Layer l;
  l.images = static_cast<double>(p.n), l.groups = static_cast<double>(p.groups);
  l.c = static_cast<double>(p.c) / l.groups, l.k = static_cast<double>(p.k) / l.groups;
  l.taps = static_cast<double>(kw_conv_filter_points(&p)), l.along_w = static_cast<double>(p.filter[2]);
  l.wide = static_cast<double>(p.stride[2]);
  l.stride = static_cast<double>(p.stride[0] * p.stride[1]) * l.wide;
  l.x_points = static_cast<double>(p.extent[0]) * static_cast<double>(p.extent[1]) * static_cast<double>(p.extent[2]);
  l.y_points = static_cast<double>(kw_conv_out_points(&p));
  l.x_line = static_cast<double>(p.extent[2]), l.y_line = static_cast<double>(kw_conv_out(&p, 2));
  l.pointwise = l.taps == 1 && l.stride == 1 && l.x_points == l.y_points;
  return l;
}

// A kernel's register block, and how it is used.
struct Block {
  double rows, columns, lanes, latency, vector, dot, threads;

  // Of so many rows and vectors, per step.
  double clocks(double r, double v) const {
    if (r <= 0 || v <= 0) return 0;
    return max(max(r * v / 2 * dot, (r + v) / 2), latency) + vector * v;
  }
  // Of so many rows and all columns.
  double clocks_of_row(double r, double all) const {
    const double whole = floor(all / columns);
    return whole * clocks(r, columns / lanes) + clocks(r, times(all - whole * columns, lanes));
  }
};

// Tasks of so many parts each, of which threads take one after another: what the busiest one takes of all.
double busiest(double tasks, double threads, double most, double mean) {
  return min(1.0, max(times(tasks, threads) / tasks * most / mean, 1 / threads));
}

double wanted_tasks(double threads) { return threads > 1 ? kTasksPerThread * threads : 1; }

// Of neighbouring points of a slab, in units.
double pitch_of(double units) {
  if (units < 16) return units;
  const double lines = times(units, 16);
  return 16 * (floor(lines / 2) * 2 == lines ? lines + 1 : lines);
}

// Boxes of outputs: rows of register blocks are outputs along a line, columns are channels.
double sweep_clocks(const kw_conv_problem& p, const kw_conv_traits& t, const Block& b) {
  const Layer l = layer_of(p);
  const bool back = p.base.op == KW_OP_CONV_BACKWARD_DATA;
  const double channels = back ? l.k : l.c, columns = back ? l.c : l.k, units = times(channels, t.warp_tile_k);
  const double taps = back ? l.taps / l.stride : l.taps;
  double line = back ? times(l.x_line, l.wide) : l.y_line;
  double lines = back ? l.images * l.x_points / l.x_line * min(l.wide, l.along_w) : l.images * l.y_points / l.y_line;
  if (l.pointwise) line = l.images * l.x_points, lines = 1;
  // A block is two runs of outputs of half its rows.
  const double half = floor((b.rows + 1) / 2), runs = floor(line / half), rest = line - runs * half;
  const double steps = lines * (runs / 2 * b.clocks_of_row(b.rows, columns) +
                                (rest > 0 ? 0.5 * b.clocks_of_row(max(2 * rest, 1), columns) : 0));
  const double panels = times(columns, b.columns), blocks = lines * times(line, half) / 2 * panels * l.groups;
  const double vectors = b.rows * min(b.columns, columns) / b.lanes;
  double clocks = steps * units * taps * l.groups + blocks * kLineClocks * max(0, vectors - kLinesOnTheirWay);

  const double outputs = lines * line, wanted = wanted_tasks(b.threads);
  double box = min(outputs, max(min(t.tile_m, outputs * l.groups / wanted), 4 * b.rows));
  box = max(1, min(box, kSlabUnits / pitch_of(units)));
  const double boxes = times(outputs, box), slabs = boxes * l.groups;
  const double parts = min(panels, max(times(columns, max(t.tile_n, b.columns)), times(wanted, slabs)));
  clocks *= busiest(slabs * parts, b.threads, times(panels, parts) * parts, panels);
  const double bytes = box * (units + columns / parts) * 4, weights = l.taps * l.groups * units * columns;
  clocks += outputs * l.groups * columns * (kStoreClocks + kBoxByteClocks * bytes) / b.threads;
  return clocks + weights * (kPackClocks / b.lanes + kWeightClocks * boxes) / b.threads;
}

// Backward weight: rows and columns are channels of dy and of x, or the other way round where that fills vectors.
double weight_clocks(const kw_conv_problem& p, const kw_conv_traits& t, const Block& b) {
  const Layer l = layer_of(p);
  const double pitch = pitch_of(l.c);
  const bool merged = pitch == l.c && p.dilation[2] == 1;
  const double run = l.c * (merged ? l.along_w : 1), taps = merged ? l.taps / l.along_w : l.taps;
  const bool turned = l.c <= kTurnedChannels && 11 * times(l.k, b.lanes) * run < 10 * times(run, b.lanes) * l.k;
  const double rows = turned ? run : l.k, columns = turned ? l.k : run;
  const double panels_m = times(rows, b.rows), panels_n = times(columns, b.columns);
  const double each = turned ? times(rows, panels_m) : b.rows, whole = floor(rows / each);
  const double outputs = l.images * l.y_points;
  const double steps = whole * b.clocks_of_row(each, columns) + b.clocks_of_row(rows - whole * each, columns);
  const double boxes = times(max(1, outputs * max(pitch, 16)), kSlabUnits), panels = panels_m * panels_n * taps;
  const double slices = max(1, min(boxes, times(kEnoughTiles, panels * l.groups)));
  const double parts = times(wanted_tasks(b.threads), slices * l.groups);
  const double parts_n = min(taps * panels_n, parts), parts_m = min(panels_m, times(parts, parts_n));
  const double most = times(panels_m, parts_m) * times(taps * panels_n, parts_n),
               tasks = slices * l.groups * parts_m * parts_n;
  const double share = busiest(tasks, b.threads, most * parts_m * parts_n, panels);
  double clocks = steps * taps * l.groups * outputs * share;
  clocks += slices * panels * l.groups * t.warp_tile_m * t.warp_tile_n * kSumClocks / b.threads;
  clocks += outputs * l.groups * rows * parts_n * kGradientClocks / b.threads;
  if (!l.pointwise) clocks += outputs * l.groups * l.c * parts_m * kFillClocks / b.threads;
  return clocks;
}

}  // namespace

Estimate estimate_conv_cpu(const kw_kernel& kernel, const kw_conv_problem& p, const Place& place) {
  const kw_conv_traits& t = conv_traits(kernel);
  const kw_arch& arch = *place.arch;
  const kw_conv_gemm g = kw_conv_as_gemm(&p);
  const double multiplications =
      static_cast<double>(p.groups) * static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  const double rate = max(1.0, arch.flops_per_clock_per_cu[KW_FP32]),
               useful = multiplications / kMultiplicationsPerThread;
  const bool weight = p.base.op != KW_OP_CONV_FORWARD && p.base.op != KW_OP_CONV_BACKWARD_DATA;
  const int64_t per_group = p.c / p.groups;
  const double per_channels = static_cast<double>(per_group);
  Block b = {};
  b.rows = t.warp_tile_m, b.columns = t.warp_tile_n, b.lanes = max(1.0, rate / 4.0);
  b.threads = useful < 2 ? 1 : min(floor(useful), place.compute_units);
  b.latency = weight ? kWeightLatencyClocks : kLatencyClocks;
  b.vector = weight ? kWeightVectorClocks : kVectorClocks;
  b.dot = place.slow_dots && t.dtype_x == KW_BF16 && t.warp_tile_k > 1 ? kSlowDot : 1;
  Estimate e;
  double clocks = 0;
  if (multiplications <= 0) {
    clocks = 0;
  } else if (t.depthwise != 0 || (per_group == p.k / p.groups &&
                                  times(b.lanes, per_channels) * per_channels == b.lanes && per_channels < b.lanes)) {
    clocks = 2.0 * multiplications / rate / place.compute_units;  // vectors of channels or outputs
  } else {
    clocks = weight ? weight_clocks(p, t, b) : sweep_clocks(p, t, b);
  }
  e.tiles = static_cast<double>(p.groups) * times(static_cast<double>(g.m), max(1, b.rows)) *
            times(static_cast<double>(g.n), max(1, b.columns));
  e.waves = times(e.tiles, b.threads);
  e.compute_us = clocks / ((arch.clock_ghz > 0 ? arch.clock_ghz : 1.0) * 1e3);
  for (uint32_t dims = kw_conv_dims(p.layout); dims < kw_conv_dims(t.layout); ++dims) e.compute_us *= kSpareDimension;
  return e;
}

}  // namespace kernelwright
