// Backward weight with vectors along the channels of dy, for filters whose points have too few channels of x for them.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_TURNED_PLAN_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_TURNED_PLAN_HPP

#include "kernelwright/cpu/launchers/convolution/weight_plan.hpp"

namespace kernelwright::cpu {

// Units of dy that a box of outputs reads: it stays in the second-level cache with the slab while all filter points
// pass.
constexpr int64_t kTurnedUnits = 64 << 10;

struct turned_plan {
  kw_conv_problem problem;
  uint32_t threads;
  uint32_t x_in_place, dy_in_place;
  uint32_t merged;  // filter points along W and their channels are one run of rows
  int64_t pitch, dy_pitch;
  boxes cut;
  int64_t rows, columns;  // channels of x at a filter point (or in a merged run); channels of dy, both of a group
  int64_t taps;           // filter points, or merged runs
  int64_t row_panels, panel_rows, column_panels;
  int64_t slices, row_parts, column_parts;
  int64_t multiply_tasks, finish_tasks;
  uint64_t slice_bytes, private_offset, dy_offset, private_bytes, workspace_bytes;

  int64_t tiles() const { return taps * row_panels * column_panels; }  // of a group
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
  return 11 * round_up(dy, kernel.lanes) * run < 10 * round_up(run, kernel.lanes) * dy;
}

inline turned_plan make_turned_plan(const conv_kernel& kernel, const kw_conv_problem& problem,
                                    uint32_t threads_allowed) {
  const kw_conv_traits& t = kernel.traits;
  const int64_t mr = t.warp_tile_m, nr = t.warp_tile_n;
  turned_plan plan = {};
  plan.problem = flattened(problem);
  const kw_conv_problem& p = plan.problem;
  const int64_t channels = p.c / p.groups;
  plan.threads = threads_for(conv_multiplications(p) / kMultiplicationsPerThread, threads_allowed);
  plan.pitch = slab_pitch(channels);
  plan.x_in_place = reads_in_place(kernel, p);
  plan.merged = plan.x_in_place == 0 && merges_rows(p, plan.pitch);
  plan.rows = channels * (plan.merged != 0 ? p.filter[2] : 1);
  plan.columns = p.k / p.groups;
  plan.dy_in_place = t.dtype_x == KW_FP32 && plan.columns % kernel.lanes == 0 && p.stride_y[4] * 4 % kAliasing != 0;
  plan.dy_pitch = slab_pitch(plan.columns);
  plan.taps = kw_conv_filter_points(&p) / (plan.merged != 0 ? p.filter[2] : 1);
  plan.row_panels = divide_up(plan.rows, mr);
  plan.panel_rows = divide_up(plan.rows, plan.row_panels);
  plan.column_panels = divide_up(plan.columns, nr);
  plan.cut = cut_outputs(p, make_sweep(p, 0), plan.pitch, larger(4, kTurnedUnits / plan.dy_pitch), 1);

  const int64_t tiles = p.groups * plan.tiles();
  plan.slices = weight_slices(plan.cut, tiles, mr * nr);
  plan.slice_bytes = 4u * static_cast<uint64_t>(tiles * mr * nr);
  const int64_t wanted = plan.threads == 1 ? 1 : kTasksPerThread * plan.threads;
  const int64_t parts = divide_up(wanted, plan.slices * p.groups);
  plan.column_parts = smaller(plan.column_panels, parts);
  plan.row_parts = smaller(plan.taps * plan.row_panels, divide_up(parts, plan.column_parts));
  plan.multiply_tasks = plan.slices * p.groups * plan.column_parts * plan.row_parts;
  plan.finish_tasks = smaller(tiles, wanted);

  const int64_t slab = plan.x_in_place != 0 ? 0 : slab_units(p, plan.cut.size, plan.pitch) + kSlabSpare;
  const int64_t dy = plan.dy_in_place != 0 ? 0 : plan.cut.outputs() * plan.dy_pitch + kSlabSpare;
  plan.dy_offset = align_bytes(4u * static_cast<uint64_t>(slab));
  plan.private_bytes = plan.dy_offset + align_bytes(4u * static_cast<uint64_t>(larger(dy, mr * nr)));
  plan.private_offset = align_bytes(static_cast<uint64_t>(plan.slices) * plan.slice_bytes);
  plan.workspace_bytes = plan.private_offset + plan.threads * plan.private_bytes;
  return plan;
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_TURNED_PLAN_HPP
