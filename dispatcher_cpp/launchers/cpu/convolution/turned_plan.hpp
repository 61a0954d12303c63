// Backward weight with vectors along the channels of dy, for filters whose points have too few channels of x for them.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_TURNED_PLAN_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_TURNED_PLAN_HPP

#include "launchers/cpu/convolution/weight_plan.hpp"

namespace kernelwright::cpu {

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
  plan.pose(problem, threads_allowed);
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

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_TURNED_PLAN_HPP
