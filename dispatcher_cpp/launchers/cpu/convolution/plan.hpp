// One planned problem, in the way that suits it.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_PLAN_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_PLAN_HPP

#include "launchers/cpu/convolution/lanes_driver.hpp"
#include "launchers/cpu/convolution/plane_driver.hpp"
#include "launchers/cpu/convolution/sweep_driver.hpp"
#include "launchers/cpu/convolution/turned_driver.hpp"
#include "launchers/cpu/convolution/weight_driver.hpp"

namespace kernelwright::cpu {

enum class conv_path : uint32_t {
  kSweep,   // implicit GEMM, of forward and backward data
  kWeight,  // implicit GEMM, of backward weight
  kTurned,  // the same with vectors along the channels of dy
  kLanes,   // groups of few channels: vectors of channels
  kPlane,   // depthwise with points side by side: vectors of outputs
};

struct conv_plan {
  conv_path way;
  uint32_t reserved;
  uint64_t workspace_bytes;
  union {
    sweep_plan sweeps;
    weight_plan weights;
    turned_plan turned;
    lanes_plan lanes;
    plane_plan planes;
  };
};
static_assert(sizeof(conv_plan) <= KW_CPU_CONV_PLAN_BYTES, "the plan outgrew its storage");

inline void plan_conv(const conv_kernel& kernel, const kw_conv_problem& given, uint32_t threads, conv_plan* plan) {
  const kw_conv_problem p = with_least_strides(given);
  if (kernel.plane != nullptr) {
    plan->way = conv_path::kPlane;
    plan->planes = make_plane_plan(p, threads);
    plan->workspace_bytes = plan->planes.workspace_bytes;
  } else if (serves_lanes(kernel, p)) {
    plan->way = conv_path::kLanes;
    plan->lanes = make_lanes_plan(kernel, p, threads);
    plan->workspace_bytes = plan->lanes.workspace_bytes;
  } else if (serves_turned(kernel, p)) {
    plan->way = conv_path::kTurned;
    plan->turned = make_turned_plan(kernel, p, threads);
    plan->workspace_bytes = plan->turned.workspace_bytes;
  } else if (kernel.weight != nullptr) {
    plan->way = conv_path::kWeight;
    plan->weights = make_weight_plan(kernel, p, threads);
    plan->workspace_bytes = plan->weights.workspace_bytes;
  } else {
    plan->way = conv_path::kSweep;
    plan->sweeps = make_sweep_plan(kernel, p, threads);
    plan->workspace_bytes = plan->sweeps.workspace_bytes;
  }
}

inline const kw_conv_problem& problem_of(const conv_plan& plan) {
  switch (plan.way) {
    case conv_path::kSweep:
      return plan.sweeps.problem;
    case conv_path::kWeight:
      return plan.weights.problem;
    case conv_path::kTurned:
      return plan.turned.problem;
    case conv_path::kLanes:
      return plan.lanes.problem;
    case conv_path::kPlane:
      break;
  }
  return plan.planes.problem;
}

inline void launch_conv(const conv_kernel& kernel, const conv_plan& plan, const kw_conv_args& args, void* workspace) {
  switch (plan.way) {
    case conv_path::kSweep:
      return sweep_job(kernel, plan.sweeps, args, workspace).run();
    case conv_path::kWeight:
      return weight_job<straight_weights>(kernel, plan.weights, args, workspace).run();
    case conv_path::kTurned:
      return weight_job<turned_weights>(kernel, plan.turned, args, workspace).run();
    case conv_path::kLanes:
      return lanes_job(kernel, plan.lanes, args, workspace).run();
    case conv_path::kPlane:
      return plane_job(kernel, plan.planes, args, workspace).run();
  }
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_PLAN_HPP
