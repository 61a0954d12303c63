// B packed ahead of time: block after block along K, panel after panel, just as the driver would pack it.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_GEMM_SHUFFLE_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_GEMM_SHUFFLE_HPP

#include "launchers/cpu/gemm/plan.hpp"

namespace kernelwright::cpu {

// Where a panel begins; `steps` of the block that it belongs to, of which only the last is shorter than the others.
inline int64_t shuffled_unit(const gemm_kernel& kernel, const gemm_plan& plan, int64_t k_index, int64_t panel,
                             int64_t steps) {
  const int64_t nr = kernel.traits.warp_tile_n;
  const int64_t panels = divide_up(plan.problem.n, nr);
  return k_index * panels * panel_units(nr, packed_steps(kernel, plan.block_k)) + panel * panel_units(nr, steps);
}

inline uint64_t shuffled_bytes(const gemm_kernel& kernel, const kw_gemm_problem& problem) {
  gemm_plan plan = {};
  plan.problem = problem;
  cut_k(kernel, plan);
  return 4u * static_cast<uint64_t>(shuffled_unit(kernel, plan, plan.block_k_count, 0, 0));
}

inline void shuffle(const gemm_kernel& kernel, const kw_gemm_problem& problem, const void* b, void* shuffled) {
  gemm_plan plan = {};
  plan.problem = problem;
  cut_k(kernel, plan);
  for (int64_t index = 0; index < plan.block_k_count; ++index) {
    const int64_t k = index * plan.block_k, depth = smaller(plan.block_k, problem.k - k);
    const int64_t steps = packed_steps(kernel, larger(depth, 0));
    char* to = static_cast<char*>(shuffled) + shuffled_unit(kernel, plan, index, 0, steps) * 4;
    const int64_t from = k * (problem.layout_b == KW_ROW_MAJOR ? problem.ldb : 1);
    if (depth > 0)
      kernel.pack_b(to, static_cast<const char*>(b) + from * kernel.input_bytes, problem.ldb, problem.n, depth);
  }
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_GEMM_SHUFFLE_HPP
