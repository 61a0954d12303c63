// Groups of few channels: which problems the direct kernels take, and how they are cut.
#ifndef KERNELWRIGHT_CPU_CONVOLUTION_LANES_PLAN_HPP
#define KERNELWRIGHT_CPU_CONVOLUTION_LANES_PLAN_HPP

#include "kernelwright/cpu/convolution/sweep_plan.hpp"

namespace kernelwright::cpu {

struct lanes_plan {
  kw_conv_problem problem;
  uint32_t threads;
  uint32_t reserved;
  int64_t per_group, channels, vectors, taps;
  int64_t vector_units;  // weights of a vector, or their sums
  int64_t lines;         // of outputs along H, of all images and D, of the phase that has the most
  int64_t lines_per_task, line_parts, vectors_per_task, vector_parts;
  int64_t pack_tasks, multiply_tasks, finish_tasks;  // finish: backward weight only
  uint64_t private_offset, private_bytes, workspace_bytes;
};

// Does a vector hold whole groups, with as many channels in as out?
inline bool serves_lanes(const conv_kernel& kernel, const kw_conv_problem& p) {
  const int64_t per_group = p.c / p.groups;
  return per_group == p.k / p.groups && per_group < kernel.lanes && kernel.lanes % per_group == 0;
}

// Lines that a slice of backward weight sums at least, and most slices: not a matter of threads.
constexpr int64_t kLinesPerSlice = 4;
constexpr int64_t kMostSlices = 64;
// Lines of a vector's channels that a thread walks at a time, so that they are read from the first-level cache again.
constexpr int64_t kLinesPerTask = 8;

inline bool sums_weights(const kw_conv_problem& p) { return p.base.op == KW_OP_CONV_WEIGHT_SLICES; }

inline lanes_plan make_lanes_plan(const conv_kernel& kernel, const kw_conv_problem& p, uint32_t threads_allowed) {
  lanes_plan plan = {};
  plan.problem = p;
  plan.per_group = p.c / p.groups;
  plan.channels = p.c;
  plan.vectors = divide_up(p.c, kernel.lanes);
  plan.taps = kw_conv_filter_points(&p);
  plan.vector_units = plan.taps * plan.per_group * kernel.lanes;
  const sweep s = make_sweep(p, 0);
  plan.lines = larger(1, p.n) * larger(1, s.along[0].outputs) * larger(1, s.along[1].outputs);
  // A vector of one filter point counts as one multiplication per lane.
  plan.threads = threads_for(conv_multiplications(p) / kMultiplicationsPerThread, threads_allowed);
  const int64_t wanted = plan.threads == 1 ? 1 : kTasksPerThread * plan.threads;
  if (sums_weights(p)) {
    plan.line_parts = smaller(kMostSlices, divide_up(plan.lines, kLinesPerSlice));
    plan.vector_parts = smaller(plan.vectors, divide_up(wanted, plan.line_parts));
    plan.multiply_tasks = plan.line_parts * plan.vector_parts;
    plan.finish_tasks = smaller(plan.vectors, wanted);
    plan.private_offset = align_bytes(4u * static_cast<uint64_t>(plan.line_parts * plan.vectors * plan.vector_units));
    plan.private_bytes = align_bytes(4u * static_cast<uint64_t>(plan.vector_units));
  } else {
    plan.line_parts = divide_up(plan.lines, kLinesPerTask);
    plan.vector_parts = smaller(plan.vectors, divide_up(wanted, plan.line_parts * phases(p)));
    plan.pack_tasks = smaller(plan.vectors, wanted);
    plan.multiply_tasks = phases(p) * plan.line_parts * plan.vector_parts;
    plan.private_offset = align_bytes(4u * static_cast<uint64_t>(plan.vectors * plan.vector_units));
  }
  plan.private_bytes += align_bytes(sizeof(lanes_tap) * static_cast<uint64_t>(plan.taps * plan.per_group));
  plan.workspace_bytes = plan.private_offset + plan.threads * plan.private_bytes;
  return plan;
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_CONVOLUTION_LANES_PLAN_HPP
