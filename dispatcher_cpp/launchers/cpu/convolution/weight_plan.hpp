// How backward weight is cut: boxes of outputs are summed in a few slices, tiles of dw are shared by threads.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_WEIGHT_PLAN_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_WEIGHT_PLAN_HPP

#include "launchers/cpu/convolution/sweep_plan.hpp"

namespace kernelwright::cpu {

// Tiles of dw that are enough for many threads. Fewer are summed in slices, whose number depends on the problem alone,
// so that sums do not depend on threads.
constexpr int64_t kEnoughTiles = 256;
// Channels of a slab, so that it serves many outputs: sums pass through memory once for each slab.
constexpr int64_t kWeightChannels = 256;
// Sums of all slices, in fp32: at most 64 MiB beyond the first.
constexpr int64_t kSliceUnits = int64_t{16} << 20;

// How many slices sum so many tiles of so many units each.
inline int64_t weight_slices(const boxes& cut, int64_t tiles, int64_t tile_units) {
  const int64_t fits = larger(1, kSliceUnits / kw_mul(tiles, tile_units));
  return smaller(smaller(cut.all(), divide_up(kEnoughTiles, tiles)), fits);
}

// What both ways to sum dw have: see weight_job.hpp. Rows and columns are those of tiles of sums.
struct weight_cut {
  kw_conv_problem problem;
  uint32_t threads;
  uint32_t x_in_place;
  uint32_t merged;  // filter points along W and their channels are one run
  int64_t pitch;
  boxes cut;
  int64_t rows,
      columns;   // channels of one operand at a filter point (or in a merged run), and of the other, of a group
  int64_t taps;  // filter points, or merged runs
  int64_t row_panels, column_panels;
  int64_t slices;
  int64_t row_parts, column_parts;
  int64_t multiply_tasks, finish_tasks;
  uint64_t slice_bytes, private_offset, dy_offset, private_bytes, workspace_bytes;

  int64_t tiles() const { return row_panels * taps * column_panels; }  // of a group

  void set_problem(const kw_conv_problem& given, uint32_t threads_allowed) {
    problem = flattened(given);
    threads = threads_for(conv_multiplications(problem) / kMultiplicationsPerThread, threads_allowed);
  }

  // Filter points and panels, once rows and columns of one filter point are known; `of_x` is the one of these that
  // counts channels of x, and becomes that of a merged run.
  void count(const kw_conv_traits& t, int64_t& of_x) {
    const int64_t merging = merged != 0 ? problem.filter[2] : 1;
    of_x *= merging;
    taps = kw_conv_filter_points(&problem) / merging;
    row_panels = divide_up(rows, t.warp_tile_m);
    column_panels = divide_up(columns, t.warp_tile_n);
  }

  // Slices and tasks; a task takes parts of so many rows and columns of panels, of one of `chunks`.
  void share(int64_t tile_units, int64_t chunks, int64_t row_units, int64_t column_units) {
    const int64_t all = problem.groups * tiles(), wanted = threads == 1 ? 1 : kTasksPerThread * threads;
    slices = weight_slices(cut, all, tile_units);
    slice_bytes = static_cast<uint64_t>(kw_mul3(all, tile_units, 4));
    const int64_t shares = kw_mul3(slices, problem.groups, chunks), parts = divide_up(wanted, shares);
    column_parts = smaller(column_units, parts);
    row_parts = smaller(row_units, divide_up(parts, column_parts));
    multiply_tasks = kw_mul3(shares, column_parts, row_parts);
    finish_tasks = smaller(all, wanted);
  }

  // The workspace: slices, then for each thread its slab, if x is not read in place, and so many units of dy.
  void place(int64_t dy_units) {
    const int64_t slab = x_in_place != 0 ? 0 : kw_add(slab_units(problem, cut.size, pitch), kSlabSpare);
    dy_offset = room(slab, 4);
    private_bytes = behind(dy_offset, room(dy_units, 4));
    private_offset = room(slices, static_cast<int64_t>(slice_bytes));
    workspace_bytes = behind_all(private_offset, threads, private_bytes);
  }
};

// Rows are channels of dy, columns channels of x.
struct weight_plan : weight_cut {
  int64_t chunk_panels, chunks;  // a slab holds the channels of so many panels of columns
};

inline bool weight_in_place(const conv_kernel& kernel, const kw_conv_problem& p) {
  return p.c / p.groups % kernel.lanes == 0 && reads_in_place(kernel, p);
}

inline weight_plan make_weight_plan(const conv_kernel& kernel, const kw_conv_problem& problem,
                                    uint32_t threads_allowed) {
  const kw_conv_traits& t = kernel.traits;
  const int64_t mr = t.warp_tile_m, nr = t.warp_tile_n;
  weight_plan plan = {};
  plan.set_problem(problem, threads_allowed);
  const kw_conv_problem& p = plan.problem;
  const int64_t channels = p.c / p.groups;
  plan.x_in_place = weight_in_place(kernel, p);
  plan.chunk_panels = divide_up(plan.x_in_place != 0 ? channels : smaller(channels, kWeightChannels), nr);
  plan.pitch = slab_pitch(smaller(channels, plan.chunk_panels * nr));
  const sweep s = make_sweep(p, 0);
  plan.merged = plan.x_in_place == 0 && plan.pitch == channels && s.along[2].tap_step == 1;
  plan.rows = p.k / p.groups;
  plan.columns = channels;
  plan.count(t, plan.columns);
  if (plan.merged != 0) plan.chunk_panels = plan.column_panels;
  plan.chunks = divide_up(plan.column_panels, plan.chunk_panels);
  plan.cut = cut_outputs(p, s, plan.pitch, larger(t.tile_k, 4), 1);
  plan.share(mr * nr, plan.chunks, plan.row_panels, plan.taps * plan.chunk_panels);
  const int64_t lines = plan.cut.size[0] * plan.cut.size[1] * plan.cut.size[2];
  plan.place(kw_mul3(lines, divide_up(plan.row_panels, plan.row_parts), panel_units(mr, plan.cut.size[3])));
  return plan;
}

// Vectors along the channels of dy, for filters whose points have too few channels of x for them, are a turned plan.

// Units of dy that a box of outputs reads: it stays in the second-level cache with the slab while all filter points
// pass.
constexpr int64_t kTurnedUnits = 64 << 10;

// Rows are channels of x, columns channels of dy.
struct turned_plan : weight_cut {
  uint32_t dy_in_place;
  int64_t dy_pitch;
  int64_t panel_rows;  // of each panel but the last: at most warp_tile_m
};

inline bool merges_rows(const kw_conv_problem& p, int64_t pitch) {
  return pitch == p.c / p.groups && make_sweep(p, 0).along[2].tap_step == 1;
}

// Are more lanes of vectors used this way round, by a tenth?
inline bool serves_turned(const conv_kernel& kernel, const kw_conv_problem& problem) {
  if (kernel.weight == nullptr) return false;
  const kw_conv_problem p = flattened(problem);
  const int64_t x = p.c / p.groups, dy = p.k / p.groups;
  if (x > kWeightChannels) return false;
  const int64_t run = x * (merges_rows(p, slab_pitch(x)) ? p.filter[2] : 1);
  return kw_mul3(11, round_up(dy, kernel.lanes), run) < kw_mul3(10, round_up(run, kernel.lanes), dy);
}

inline turned_plan make_turned_plan(const conv_kernel& kernel, const kw_conv_problem& problem,
                                    uint32_t threads_allowed) {
  const kw_conv_traits& t = kernel.traits;
  const int64_t units = int64_t{t.warp_tile_m} * t.warp_tile_n;
  turned_plan plan = {};
  plan.set_problem(problem, threads_allowed);
  const kw_conv_problem& p = plan.problem;
  plan.rows = p.c / p.groups;
  plan.columns = p.k / p.groups;
  plan.pitch = slab_pitch(plan.rows);
  plan.x_in_place = reads_in_place(kernel, p);
  plan.merged = plan.x_in_place == 0 && merges_rows(p, plan.pitch);
  plan.dy_in_place = t.dtype_x == KW_FP32 && plan.columns % kernel.lanes == 0 && !aliases(p.stride_y[4], 1);
  plan.dy_pitch = slab_pitch(plan.columns);
  plan.count(t, plan.rows);
  plan.panel_rows = divide_up(plan.rows, plan.row_panels);
  plan.cut = cut_outputs(p, make_sweep(p, 0), plan.pitch, larger(4, kTurnedUnits / plan.dy_pitch), 1);
  plan.share(units, 1, plan.taps * plan.row_panels, plan.column_panels);
  const int64_t dy = plan.dy_in_place != 0 ? 0 : kw_add(kw_mul(plan.cut.outputs(), plan.dy_pitch), kSlabSpare);
  plan.place(larger(dy, units));
  return plan;
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_WEIGHT_PLAN_HPP
