// The time of a convolution on Hopper: see estimate_conv_cuda in problem.hpp.
#include "kernelwright/convolution/checks.h"
#include "kernelwright/convolution/folding.h"
#include "kernelwright/dispatcher/convolution/problem.hpp"

namespace kernelwright {
namespace {

constexpr double kStep = 64;  // channels, or points of a sum, that a step multiplies
// Of GEMM on an H200, see gemm/analytic_cuda.cpp: the kernels have the same instructions and the same ring of stages.
constexpr double kReadRowsClocks = 14.38, kReadColumnClocks = 0.25;
constexpr double kInstructionSlack = 0.9381;
constexpr double kFillBytesPerClock = 61.22;
constexpr double kStepClocks = 61.43;
// What shared memory reads for the products decides between tiles that are equal otherwise, such as 64x128 and 128x64.
constexpr double kReadRowBytes = 32, kSharedBytesPerClock = 128, kReadShare = 0.1;
constexpr double kStoreBytesPerClock = 15.69;
constexpr double kStartClocks = 725.5;
constexpr double kMemoryShare = 0.8475;
constexpr double kOverlap = 0.27;
constexpr double kLaunchUs = 1.287;
// Of a further kernel that copies operands or adds slices up.
constexpr double kHelperUs = 2.0;
// Backward weight: of each slice that is added up, of a step, and of a tile's store, as shares of other directions'.
constexpr double kSliceUs = 0.02797, kWeightStepClocks = 0.9123, kWeightStore = 0.6013;
// Products of a depthwise kernel per clock and multiprocessor: 128 lanes, which also read and convert.
constexpr double kDirectProducts = 64;
constexpr double kDirectRows = 8, kDirectColumns = 14;  // outputs of a box
// Depthwise backward weight: a workgroup, a box of outputs, each filter point of it; how far workgroups of a wave wait
// for each other; each slice that is added up, whose sums lie in L2.
constexpr double kDirectStartClocks = 92.6, kBoxClocks = 695.2, kBoxPointClocks = 122.4, kDirectWaves = 0.8061;
constexpr double kDirectLaunchUs = 0.5645, kDirectSliceUs = 0.0127, kDirectSliceBytesPerUs = 8e6;
constexpr double kVectorElements = 8;  // TMA addresses lines by multiples of 16 bytes

double max(double left, double right) { return left > right ? left : right; }
double min(double left, double right) { return left < right ? left : right; }

double ceil_div(double extent, double quantum) {
  const double quotient = extent / quantum, whole = static_cast<double>(static_cast<int64_t>(quotient));
  return whole < quotient ? whole + 1 : whole;
}

double real(int64_t value) { return static_cast<double>(value); }

// The implicit GEMM as launchers/convolution/conv_shape.c makes it: groups of few channels merged, channels in steps.
struct Shape {
  double rows, columns, steps, groups, merged, bytes, slice_bytes;
};

double merged_groups(const kw_conv_problem& p) {
  const int64_t c = p.c / p.groups, k = p.k / p.groups, widest = c > k ? c : k;
  for (int64_t merged = static_cast<int64_t>(kStep) / widest; merged > 1; --merged) {
    if (p.groups % merged == 0) return real(merged);
  }
  return 1;
}

Shape shape_of(const kw_conv_problem& posed) {
  Shape s = {};
  kw_conv_problem p = posed;
  const int64_t pitch = kw_conv_fold_pitch(&posed);
  if (pitch != 0) {
    p.c = pitch * p.filter[2];
    p.extent[2] = kw_conv_out(&posed, 2);
    p.filter[2] = p.stride[2] = 1;
    p.pad_left[2] = p.pad_right[2] = 0;
  }
  s.merged = merged_groups(p);
  s.groups = real(p.groups) / s.merged;
  const double c = real(p.c / p.groups) * s.merged, k = real(p.k / p.groups) * s.merged;
  const double points = real(kw_conv_filter_points(&p)), outputs = real(p.n) * real(kw_conv_out_points(&p));
  const double inputs = real(p.n) * real(p.extent[0]) * real(p.extent[1]) * real(p.extent[2]);
  const double size = kw_dtype_bytes(p.dtype_x);
  s.bytes = size * (inputs * real(p.c) + outputs * real(p.k) * (p.residual != 0 ? 2 : 1) + real(p.k) * c * points);
  s.rows = outputs, s.columns = k, s.steps = points * ceil_div(c, kStep);
  if (p.base.op == KW_OP_CONV_BACKWARD_DATA) {
    // Every residue of the strides has its share of the filter.
    const double residues = real(p.stride[0]) * real(p.stride[1]) * real(p.stride[2]);
    s.rows = inputs, s.columns = c, s.steps = max(1.0, points / residues) * ceil_div(k, kStep);
  } else if (p.base.op == KW_OP_CONV_WEIGHT_SLICES) {
    s.rows = k, s.columns = points * ceil_div(c, kStep) * kStep;
    s.steps = ceil_div(ceil_div(outputs, kStep), max(1.0, p.split_k));
    s.slice_bytes = 4 * real(p.k) * points * c;
  }
  return s;
}

double step_clocks(const kw_conv_traits& t, double size) {
  const double n = t.tile_n, instructions = kStep / 16 * t.tile_m / 64;
  const double multiply = instructions * max(n / 2, kReadRowsClocks + kReadColumnClocks * n) / kInstructionSlack;
  const double reads = instructions * (64 + n) * kReadRowBytes / kSharedBytesPerClock;
  return max(multiply, (t.tile_m + n) * kStep * size / kFillBytesPerClock) + kStepClocks + kReadShare * reads;
}

// Copies that operands need before TMA can read them, and slices that are added up behind.
double helper_us(const kw_conv_problem& p, const Shape& s, double bandwidth) {
  const bool weight = p.base.op == KW_OP_CONV_WEIGHT_SLICES;
  const bool copied = p.c % static_cast<int64_t>(kVectorElements) != 0 || kw_conv_fold_pitch(&p) != 0;
  double us = 0;
  if (!weight && (s.merged > 1 || copied)) us += kHelperUs;
  if (copied) us += kHelperUs + s.bytes / bandwidth;
  if (weight && (s.merged > 1 || p.split_k > 1))
    us += kHelperUs + kSliceUs * p.split_k + 2 * s.slice_bytes * p.split_k / bandwidth;
  return us;
}

Estimate direct(const kw_conv_problem& p, const Shape& s, double units, double clocks_per_us, double bandwidth) {
  Estimate e;
  e.tiles = e.waves = 1;
  const double points = real(kw_conv_filter_points(&p)), blocks = ceil_div(real(p.c), kStep);
  const double products = real(p.n) * real(kw_conv_out_points(&p)) * real(p.k) * points;
  e.compute_us = products / kDirectProducts / units / clocks_per_us;
  e.memory_us = s.bytes / bandwidth;
  e.total_us = max(e.compute_us, e.memory_us) + kLaunchUs;
  if (p.base.op != KW_OP_CONV_WEIGHT_SLICES) return e;
  // A workgroup has the boxes of a slice and of 64 channels. Those that share a multiprocessor share its arithmetic.
  const double slices = max(1.0, p.split_k), high = real(kw_conv_out(&p, 1)), wide = real(kw_conv_out(&p, 2));
  const double boxes = real(p.n) * ceil_div(high, kDirectRows) * ceil_div(wide, kDirectColumns);
  const double full = real(p.n) * high * wide / (boxes * kDirectRows * kDirectColumns);
  const double box_clocks = full * (kBoxClocks + kBoxPointClocks * points);
  e.tiles = blocks * slices;
  e.waves = kDirectWaves * ceil_div(e.tiles, units) + (1 - kDirectWaves) * max(1.0, e.tiles / units);
  e.compute_us = e.waves * (kDirectStartClocks + ceil_div(boxes, slices) * box_clocks) / clocks_per_us;
  e.total_us = max(e.compute_us, e.memory_us) + kLaunchUs + kHelperUs + kDirectLaunchUs + kDirectSliceUs * slices +
               2 * 4 * real(p.c) * points * slices / kDirectSliceBytesPerUs;
  return e;
}

}  // namespace

Estimate estimate_conv_cuda(const kw_kernel& kernel, const kw_conv_problem& p, const Place& place) {
  const kw_conv_traits& t = conv_traits(kernel);
  const double clocks_per_us = max(1.0, place.arch->clock_ghz) * 1e3, size = kw_dtype_bytes(p.dtype_x);
  const double bandwidth = max(1.0, place.arch->memory_gbytes_per_s) * 1e3 * kMemoryShare;
  const Shape s = shape_of(p);
  if (t.depthwise != 0) return direct(p, s, place.compute_units, clocks_per_us, bandwidth);
  const double slices = p.base.op == KW_OP_CONV_WEIGHT_SLICES ? max(1.0, p.split_k) : 1;
  const double stored = slices > 1 || s.slice_bytes > 0 ? 4 : size;
  Estimate e;
  e.tiles = ceil_div(s.rows, t.tile_m) * ceil_div(s.columns, t.tile_n) * s.groups * slices;
  e.waves = ceil_div(e.tiles, place.compute_units);
  const bool weight = s.slice_bytes > 0;
  const double multiply = s.steps * (step_clocks(t, size) * (weight ? kWeightStepClocks : 1.0));
  const double store = (weight ? kWeightStore : 1.0) * t.tile_m * t.tile_n * stored / kStoreBytesPerClock / t.wave_m;
  // Pingpong stores one tile while it multiplies the next; the last store is seen by both.
  const double each = t.wave_m == 1 ? max(multiply, (multiply + store) / 2) : multiply + store;
  e.compute_us = (kStartClocks + e.waves * each + (t.wave_m == 1 ? store : 0)) / clocks_per_us;
  e.fill_us = e.waves * s.steps * (t.tile_m + t.tile_n) * kStep * size / kFillBytesPerClock / clocks_per_us;
  e.memory_us = s.bytes / bandwidth;
  const double padded = e.tiles * s.steps * t.tile_m * t.tile_n * kStep;
  const kw_conv_gemm g = kw_conv_as_gemm(&p);
  const double asked = real(p.groups) * real(g.m) * real(g.n) * real(g.k);
  e.useful = padded > asked ? asked / padded : 1.0;
  e.total_us = max(e.compute_us, e.memory_us) + kOverlap * min(e.compute_us, e.memory_us) + kLaunchUs +
               helper_us(p, s, bandwidth);
  return e;
}

}  // namespace kernelwright
