// Groups of few channels: which problems the direct kernels take, and how they are cut.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_LANES_PLAN_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_LANES_PLAN_HPP

#include "launchers/cpu/convolution/sweep_plan.hpp"

namespace kernelwright::cpu {

struct lanes_plan {
  kw_conv_problem problem;
  uint32_t threads;
  uint32_t reserved;
  int64_t per_group, channels, vectors, taps;
  int64_t vector_units;                              // weights of a vector, or their sums
  boxes cut;                                         // outputs that a slab serves
  int64_t chunk, chunks;                             // vectors of a slab, how many such chunks there are
  int64_t slices;                                    // of backward weight, over boxes
  int64_t pack_tasks, multiply_tasks, finish_tasks;  // finish: backward weight only
  uint64_t private_offset, tiles_offset, taps_offset, private_bytes, workspace_bytes;
};

// Does a vector hold whole groups, with as many channels in as out?
inline bool serves_lanes(const conv_kernel& kernel, const kw_conv_problem& p) {
  const int64_t per_group = p.c / p.groups;
  return per_group == p.k / p.groups && per_group < kernel.lanes && kernel.lanes % per_group == 0;
}

// A slab stays in the second-level cache; of one vector's channels it then fits the first.
constexpr int64_t kLanesUnits = 64 << 10;
constexpr int64_t kLanesChunk = 8;  // vectors at a time: points are copied in long pieces
constexpr int64_t kMostSlices = 32;

inline bool sums_weights(const kw_conv_problem& p) { return p.base.op == KW_OP_CONV_WEIGHT_SLICES; }

inline lanes_plan make_lanes_plan(const conv_kernel& kernel, const kw_conv_problem& p, uint32_t threads_allowed) {
  lanes_plan plan = {};
  plan.problem = p;
  plan.per_group = p.c / p.groups;
  plan.channels = p.c;
  plan.vectors = divide_up(p.c, kernel.lanes);
  plan.taps = kw_conv_filter_points(&p);
  plan.vector_units = kw_mul3(plan.taps, plan.per_group, kernel.lanes);
  const sweep s = make_sweep(p, 0);
  plan.chunk = smaller(plan.vectors, kLanesChunk);
  plan.chunks = divide_up(plan.vectors, plan.chunk);
  plan.chunk = divide_up(plan.vectors, plan.chunks);
  const int64_t pitch = plan.chunk * kernel.lanes;
  plan.cut = cut_outputs(p, s, pitch, int64_t{1} << 20, 1, kLanesUnits);
  plan.threads = threads_for(conv_multiplications(p) / kMultiplicationsPerThread, threads_allowed);
  const int64_t wanted = plan.threads == 1 ? 1 : kTasksPerThread * plan.threads;
  const int64_t weights = kw_mul(plan.vectors, plan.vector_units);
  if (sums_weights(p)) {
    plan.slices = smaller(plan.cut.all(), larger(1, kMostSlices / plan.chunks));
    plan.multiply_tasks = plan.slices * plan.chunks;
    plan.finish_tasks = smaller(plan.vectors, wanted);
    plan.private_offset = room(kw_mul(plan.slices, weights), 4);
  } else {
    plan.slices = 1;
    plan.pack_tasks = smaller(plan.vectors, wanted);
    plan.multiply_tasks = kw_mul3(phases(p), plan.cut.all(), plan.chunks);
    plan.private_offset = room(weights, 4);
  }
  const int64_t lines = plan.cut.size[0] * plan.cut.size[1] * plan.cut.size[2];
  const int64_t slab = larger(kw_add(slab_units(p, plan.cut.size, pitch), kSlabSpare), plan.vector_units);
  plan.tiles_offset = room(slab, 4);
  plan.taps_offset =
      behind(plan.tiles_offset, room(kw_mul(lines, divide_up(plan.cut.size[3], kLanesHalf)), sizeof(pixel_tile)));
  plan.private_bytes = behind(plan.taps_offset, room(kw_mul(plan.taps, plan.per_group), sizeof(lanes_tap)));
  plan.workspace_bytes = behind_all(plan.private_offset, plan.threads, plan.private_bytes);
  return plan;
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_LANES_PLAN_HPP
