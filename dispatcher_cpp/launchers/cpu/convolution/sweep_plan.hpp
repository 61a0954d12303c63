// How forward and backward data are cut into slabs, blocks of filter points and channels, and tasks.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_SWEEP_PLAN_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_SWEEP_PLAN_HPP

#include "kernelwright/cpu/convolution/kernel.hpp"
#include "launchers/cpu/common/room.hpp"
#include "launchers/cpu/convolution/geometry.hpp"

namespace kernelwright::cpu {

// A slab takes about a third of a second-level cache of 1 MiB, so that weights can stream past it.
constexpr int64_t kSlabUnits = 96 << 10;
// Behind its end: backward weight reads whole panels.
constexpr int64_t kSlabSpare = 64;

// Outputs that one slab serves, and how many such boxes there are: images, D, H, W.
struct boxes {
  int64_t size[4], count[4];
  int64_t all() const { return count[0] * count[1] * count[2] * count[3]; }
  int64_t outputs() const { return size[0] * size[1] * size[2] * size[3]; }
};

// Which outputs of a phase a box holds.
struct box {
  int64_t first[4], size[4];
  bool empty() const { return size[0] <= 0 || size[1] <= 0 || size[2] <= 0 || size[3] <= 0; }
};

inline box box_at(const boxes& all, int64_t index, int64_t images, const sweep& s) {
  box b;
  for (int i = 3; i >= 0; --i) {
    const int64_t outputs = i == 0 ? images : s.along[i - 1].outputs;
    b.first[i] = index % all.count[i] * all.size[i];
    b.size[i] = smaller(all.size[i], outputs - b.first[i]);
    index /= all.count[i];
  }
  return b;
}

// Distances in a slab of one box, in units: between images, D, H, W. Filter point i of a dimension begins at entry
// tap_at + i * tap_step. Along D and H a slab may hold the entries of one filter point after another: gaps[dim] is then
// how many each has, else 0.
struct slab_layout {
  int64_t stride[4];
  int64_t entries[3], gaps[3];
  int64_t tap_at[3], tap_step[3];

  int64_t tap(int dim, int64_t i) const { return (tap_at[dim] + i * tap_step[dim]) * stride[dim + 1]; }
};

inline void place_taps_densely(const axis& a, int dim, slab_layout& l) {
  l.gaps[dim] = 0;
  l.tap_at[dim] = a.tap_at;
  l.tap_step[dim] = a.tap_step;
}

inline slab_layout layout_of(const sweep& s, const box& b, int64_t pitch) {
  slab_layout l;
  int64_t size = pitch;
  for (int i = 3; i >= 0; --i) {
    l.stride[i] = size;
    if (i == 0) break;
    const axis& a = s.along[i - 1];
    place_taps_densely(a, i - 1, l);
    l.entries[i - 1] = a.entries(b.size[i]);
    if (i < 3 && a.has_gaps(b.size[i])) {
      l.gaps[i - 1] = l.tap_step[i - 1] = a.window(b.size[i]);
      l.tap_at[i - 1] = 0;
      l.entries[i - 1] = a.least_entries(b.size[i]);
    }
    size *= l.entries[i - 1];
  }
  return l;
}

// Units that neighbouring points are apart. Many points of many channels would share few sets of the first-level cache
// if that were a power of two.
inline int64_t slab_pitch(int64_t units) { return units < 16 ? units : (divide_up(units, 16) | 1) * 16; }

// The most units that a slab of such a box takes, over all phases.
inline int64_t slab_units(const kw_conv_problem& p, const int64_t (&size)[4], int64_t pitch) {
  int64_t units = kw_mul(pitch, size[0]);
  for (int dim = 0; dim < 3; ++dim) {
    const axis a = p.base.op == KW_OP_CONV_BACKWARD_DATA ? longest_axis(p, dim) : forward_axis(p, dim);
    units = kw_mul(units, larger(1, dim < 2 ? a.least_entries(size[dim + 1]) : a.entries(size[dim + 1])));
  }
  return units;
}

// As large as the slab and `most` outputs allow: whole lines first, then whole planes, then images.
inline boxes cut_outputs(const kw_conv_problem& p, const sweep& largest, int64_t pitch, int64_t most, int64_t quantum,
                         int64_t units = kSlabUnits) {
  int64_t size[4] = {1, 1, 1, 1};
  const auto fits = [&] {
    return size[0] * size[1] * size[2] * size[3] <= most && slab_units(p, size, pitch) <= units;
  };
  boxes all = {{1, 1, 1, 1}, {1, 1, 1, 1}};
  if (p.n == 0) return all;  // one box without images: a dw of zeros has no more to do
  for (int i = 3; i >= 0; --i) {
    const int64_t outputs = larger(1, i == 0 ? p.n : largest.along[i - 1].outputs);
    int64_t low = 1, high = outputs;  // the largest that fits lies in between
    while (low < high) {
      size[i] = (low + high + 1) / 2;
      if (fits()) {
        low = size[i];
      } else {
        high = size[i] - 1;
      }
    }
    if (i == 3 && low < outputs && low > quantum) low = low / quantum * quantum;
    all.count[i] = divide_up(outputs, low);
    all.size[i] = i == 3 && low < outputs ? round_up(divide_up(outputs, all.count[i]), quantum)
                                          : divide_up(outputs, all.count[i]);
    all.count[i] = divide_up(outputs, all.size[i]);
    size[i] = all.size[i];
    if (low < outputs) {  // a part of a line or plane: boxes of several would not be dense
      for (int j = 0; j < i; ++j) {
        all.size[j] = 1;
        all.count[j] = larger(1, j == 0 ? p.n : largest.along[j - 1].outputs);
      }
      break;
    }
  }
  return all;
}

struct sweep_plan {
  kw_conv_problem problem;
  uint32_t threads;
  uint32_t in_place;                  // the image is read where it lies
  uint32_t few;                       // few channels are written: vectors hold those that are read
  int64_t phases, channels, columns;  // per group: summed, written
  int64_t pitch, panels, taps;        // taps: filter points of all phases
  boxes cut;
  int64_t run;         // units of channels that one pass sums, at most
  int64_t pass_steps;  // steps along K of one pass, at most
  int64_t pack_parts, column_parts;
  int64_t pack_tasks, multiply_tasks;
  uint64_t few_offset, private_offset, tiles_offset, taps_offset, partial_offset, private_bytes, workspace_bytes;
};

inline bool is_backward(const kw_conv_problem& p) { return p.base.op == KW_OP_CONV_BACKWARD_DATA; }

// Images and lines that follow one another without a gap are one long line to a filter of one point.
inline kw_conv_problem flattened(kw_conv_problem p) {
  const bool pointwise = kw_conv_everywhere(p.filter, 1) && kw_conv_everywhere(p.stride, 1) &&
                         kw_conv_everywhere(p.pad_left, 0) && kw_conv_everywhere(p.pad_right, 0);
  if (!pointwise || p.n == 0) return p;  // n says that nothing is read
  const int64_t counts[] = {p.n, p.extent[0], p.extent[1], p.extent[2]};
  const int at[] = {0, 2, 3, 4};
  int64_t x = p.stride_x[4], y = p.stride_y[4];
  for (int i = 3; i >= 0; --i) {
    if (counts[i] > 1 && (p.stride_x[at[i]] != x || p.stride_y[at[i]] != y)) return p;
    x *= counts[i];
    y *= counts[i];
  }
  p.extent[2] = p.n * p.extent[0] * p.extent[1] * p.extent[2];
  p.n = p.extent[0] = p.extent[1] = 1;
  return p;
}

// A stride leads nowhere along a dimension with one output: it is then as small as leaves that the only one, and in
// backward data no larger than the padded image, in which no multiple of it but 0 is met.
inline kw_conv_problem with_least_strides(kw_conv_problem p) {
  for (int dim = 0; dim < 3; ++dim) {
    if (kw_conv_out(&p, dim) > 1) continue;
    const int64_t padded = p.extent[dim] + p.pad_left[dim] + p.pad_right[dim];
    const int64_t reach = p.dilation[dim] * (p.filter[dim] - 1);
    p.stride[dim] = smaller(p.stride[dim], is_backward(p) ? padded : padded - reach);
  }
  return p;
}

inline double conv_multiplications(const kw_conv_problem& p) {
  const kw_conv_Gemm g = kw_conv_as_gemm(&p);
  return static_cast<double>(p.groups) * static_cast<double>(larger(g.m, 1)) * static_cast<double>(larger(g.n, 1)) *
         static_cast<double>(larger(g.k, 1));
}

// Lines that lie a multiple of this apart share too few sets of the first-level cache, in bytes.
constexpr int64_t kAliasing = 2048;

// Longer filters are not asked, point by point, whether they need a copy: they have one.
constexpr int64_t kInPlaceTaps = 4096;

// Do points of dx meet outputs alone wherever they meet a filter point along a dimension?
inline bool backward_inside(const kw_conv_problem& p, int dim) {
  const int64_t stride = p.stride[dim], outputs = kw_conv_out(&p, dim);
  if (p.filter[dim] > kInPlaceTaps) return false;
  for (int64_t tap = 0; tap < p.filter[dim]; ++tap) {
    const int64_t shift = p.pad_left[dim] - tap * p.dilation[dim];
    const int64_t rest = shift % stride, first = rest == 0 ? 0 : rest > 0 ? stride - rest : -rest;
    if (first >= p.extent[dim]) continue;  // no point of this phase
    const int64_t last = first + (p.extent[dim] - 1 - first) / stride * stride;
    if (first + shift < 0 || (last + shift) / stride >= outputs) return false;
  }
  return true;
}

// Is a line of so many elements between neighbours, of so many points each, in few sets of the cache?
inline bool aliases(int64_t point, int64_t points) {
  return (point % kAliasing) * (points % kAliasing) * 4 % kAliasing == 0;
}

inline bool reads_in_place(const conv_kernel& kernel, const kw_conv_problem& p) {
  if (kernel.traits.dtype_x != KW_FP32) return false;
  if (is_backward(p)) {  // neighbours in a phase meet neighbouring outputs
    for (int dim = 0; dim < 3; ++dim) {
      if (!backward_inside(p, dim)) return false;
    }
    return !aliases(p.stride_y[4], 1);
  }
  const sweep s = make_sweep(p, 0);
  for (const axis& a : s.along) {
    if (!a.inside()) return false;
  }
  return !aliases(p.stride_x[4], s.along[2].grain * s.along[2].slab_step);
}

inline sweep_plan make_sweep_plan(const conv_kernel& kernel, const kw_conv_problem& problem, uint32_t threads_allowed) {
  const kw_conv_traits& t = kernel.traits;
  const int64_t mr = t.warp_tile_m, nr = t.warp_tile_n, depth = t.warp_tile_k;
  sweep_plan plan = {};
  plan.problem = flattened(problem);
  const kw_conv_problem& p = plan.problem;
  plan.threads = threads_for(conv_multiplications(p) / kMultiplicationsPerThread, threads_allowed);
  plan.phases = phases(p);
  plan.channels = (is_backward(p) ? p.k : p.c) / p.groups;
  plan.columns = (is_backward(p) ? p.c : p.k) / p.groups;
  plan.panels = divide_up(plan.columns, nr);
  plan.taps = kw_conv_filter_points(&p);
  plan.in_place = reads_in_place(kernel, p);
  const int64_t units = divide_up(plan.channels, depth);
  plan.pitch = slab_pitch(units);
  // Phase 0 has the most outputs along every dimension.
  const sweep first = make_sweep(p, 0);
  const int64_t outputs =
      p.n * larger(1, first.along[0].outputs) * larger(1, first.along[1].outputs) * larger(1, first.along[2].outputs);
  const int64_t wanted = plan.threads == 1 ? 1 : kTasksPerThread * plan.threads;
  const int64_t even = kw_parts(kw_mul3(outputs, p.groups, plan.phases), wanted);
  plan.cut = cut_outputs(p, first, plan.pitch, larger(smaller(t.tile_m, even), 4 * mr), mr);
  plan.few = plan.columns <= kFewColumns && units >= kernel.lanes;
  plan.pass_steps = plan.few != 0 ? larger(1, kw_mul(plan.taps, units)) : divide_up(t.tile_k, depth);
  const int64_t runs = divide_up(units, plan.pass_steps);
  plan.run = divide_up(units, runs);
  const int64_t tasks = kw_mul3(plan.phases, plan.cut.all(), p.groups);
  plan.column_parts =
      smaller(plan.panels, larger(divide_up(plan.columns, larger(t.tile_n, nr)), divide_up(wanted, tasks)));
  plan.multiply_tasks = kw_mul(tasks, plan.column_parts);
  plan.pack_parts = smaller(plan.taps, divide_up(wanted, p.groups * plan.panels));
  plan.pack_tasks = p.groups * plan.panels * plan.pack_parts;

  const int64_t lines = plan.cut.size[0] * plan.cut.size[1] * plan.cut.size[2];
  const int64_t tiles = lines * divide_up(plan.cut.size[3], (mr + 1) / 2);
  const bool partial = kw_mul(plan.taps, units) > plan.pass_steps;
  const int64_t slab = plan.in_place ? 0 : kw_add(slab_units(p, plan.cut.size, plan.pitch), kSlabSpare);
  plan.tiles_offset = room(slab, 4);
  plan.taps_offset = behind(plan.tiles_offset, room(tiles, sizeof(pixel_tile)));
  plan.partial_offset = behind(plan.taps_offset, room(plan.taps, 16));
  plan.private_bytes = behind(plan.partial_offset, partial ? room(kw_mul(tiles, mr * nr), 4) : 0);
  const int64_t weights = kw_mul(kw_mul(p.groups, plan.taps), units);
  plan.few_offset = room(kw_mul3(weights, plan.panels, nr), 4);
  plan.private_offset = behind(plan.few_offset, plan.few != 0 ? room(kw_mul(weights, plan.columns), 4) : 0);
  plan.workspace_bytes = behind_all(plan.private_offset, plan.threads, plan.private_bytes);
  return plan;
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_SWEEP_PLAN_HPP
