// How backward weight is cut: boxes of outputs are summed in a few slices, tiles of dw are shared by threads.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_WEIGHT_PLAN_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_WEIGHT_PLAN_HPP

#include "kernelwright/cpu/launchers/convolution/sweep_plan.hpp"

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
  const int64_t room = larger(1, kSliceUnits / (tiles * tile_units));
  return smaller(smaller(cut.all(), divide_up(kEnoughTiles, tiles)), room);
}

struct weight_plan {
  kw_conv_problem problem;
  uint32_t threads;
  uint32_t in_place;
  uint32_t merged;  // filter points along W and their channels are one run of columns
  int64_t pitch;
  boxes cut;
  int64_t rows, columns;  // of dw: output channels of a group; channels of a filter point (or of a merged run)
  int64_t taps;           // filter points, or merged runs
  int64_t row_panels, column_panels;
  int64_t panel_rows;            // of each panel but the last: at most warp_tile_m
  int64_t chunk_panels, chunks;  // a slab holds the channels of so many panels of columns
  int64_t slices;
  int64_t row_parts, column_parts;
  int64_t multiply_tasks, finish_tasks;
  int64_t line_units;  // of packed dy: of all panels of one line of outputs
  uint64_t slice_bytes, private_offset, dy_offset, private_bytes, workspace_bytes;

  int64_t tiles() const { return row_panels * taps * column_panels; }  // of a group
};

inline bool weight_in_place(const conv_kernel& kernel, const kw_conv_problem& p) {
  return p.c / p.groups % kernel.lanes == 0 && reads_in_place(kernel, p);
}

inline weight_plan make_weight_plan(const conv_kernel& kernel, const kw_conv_problem& problem,
                                    uint32_t threads_allowed) {
  const kw_conv_traits& t = kernel.traits;
  const int64_t mr = t.warp_tile_m, nr = t.warp_tile_n;
  weight_plan plan = {};
  plan.problem = flattened(problem);
  const kw_conv_problem& p = plan.problem;
  const int64_t channels = p.c / p.groups;
  plan.threads = threads_for(conv_multiplications(p) / kMultiplicationsPerThread, threads_allowed);
  plan.in_place = weight_in_place(kernel, p);
  plan.chunk_panels = divide_up(plan.in_place != 0 ? channels : smaller(channels, kWeightChannels), nr);
  plan.pitch = slab_pitch(smaller(channels, plan.chunk_panels * nr));
  const sweep s = make_sweep(p, 0);
  plan.merged = plan.in_place == 0 && plan.pitch == channels && s.along[2].tap_step == 1;
  plan.rows = p.k / p.groups;
  plan.columns = channels * (plan.merged != 0 ? p.filter[2] : 1);
  plan.taps = kw_conv_filter_points(&p) / (plan.merged != 0 ? p.filter[2] : 1);
  plan.row_panels = divide_up(plan.rows, mr);
  plan.column_panels = divide_up(plan.columns, nr);
  if (plan.merged != 0) plan.chunk_panels = plan.column_panels;
  plan.chunks = divide_up(plan.column_panels, plan.chunk_panels);
  plan.cut = cut_outputs(p, s, plan.pitch, larger(t.tile_k, 4), 1);

  const int64_t tiles = p.groups * plan.tiles();
  plan.slices = weight_slices(plan.cut, tiles, mr * nr);
  plan.slice_bytes = 4u * static_cast<uint64_t>(tiles * mr * nr);
  const int64_t wanted = plan.threads == 1 ? 1 : kTasksPerThread * plan.threads;
  const int64_t parts = divide_up(wanted, plan.slices * p.groups * plan.chunks);
  plan.column_parts = smaller(plan.taps * plan.chunk_panels, parts);
  plan.row_parts = smaller(plan.row_panels, divide_up(parts, plan.column_parts));
  plan.multiply_tasks = plan.slices * p.groups * plan.chunks * plan.column_parts * plan.row_parts;
  plan.finish_tasks = smaller(tiles, wanted);

  const int64_t lines = plan.cut.size[0] * plan.cut.size[1] * plan.cut.size[2];
  plan.line_units = divide_up(plan.row_panels, plan.row_parts) * panel_units(mr, plan.cut.size[3]);
  const int64_t slab = plan.in_place != 0 ? 0 : slab_units(p, plan.cut.size, plan.pitch) + kSlabSpare;
  plan.dy_offset = align_bytes(4u * static_cast<uint64_t>(slab));
  plan.private_bytes = plan.dy_offset + align_bytes(4u * static_cast<uint64_t>(lines * plan.line_units));
  plan.private_offset = align_bytes(static_cast<uint64_t>(plan.slices) * plan.slice_bytes);
  plan.workspace_bytes = plan.private_offset + plan.threads * plan.private_bytes;
  return plan;
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_WEIGHT_PLAN_HPP
