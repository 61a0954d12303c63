// How one problem is cut into cache blocks and tasks.
#ifndef TILEWRIGHT_CPU_PLAN_HPP
#define TILEWRIGHT_CPU_PLAN_HPP

#include "tilewright/cpu/kernel.hpp"

namespace tilewright::cpu {

// Offsets into the workspace are bytes. Which block is summed in which order depends on the problem alone, never on the
// number of threads.
struct gemm_plan {
  tw_gemm_problem problem;
  uint32_t threads;
  // A fits one cache block: A is packed once and shared, every thread packs the panels of B that it uses. Otherwise B
  // is shared and every thread packs the blocks of A that it uses.
  uint32_t short_m;
  int64_t super_m, super_m_count;  // rows whose partial sums are kept at a time
  int64_t block_n, block_n_count;  // columns per cache block, whole panels
  int64_t block_k, block_k_count;
  int64_t pack_tasks, multiply_tasks;  // of every (super_m, block_n, block_k)
  uint64_t partial_offset, private_offset, private_bytes, workspace_bytes;
};
static_assert(sizeof(gemm_plan) <= TW_CPU_GEMM_PLAN_BYTES, "the plan outgrew its storage");

struct range {
  int64_t begin, end;
};

// Part `index` of `parts` nearly equal parts of `count` things.
constexpr range part(int64_t count, int64_t parts, int64_t index) {
  const int64_t size = count / parts, longer = count % parts;
  const int64_t begin = index * size + (index < longer ? index : longer);
  return {begin, begin + size + (index < longer ? 1 : 0)};
}

constexpr int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

// A thread is worth waking for about 20 microseconds of work.
constexpr double kMultiplicationsPerThread = 1 << 20;
// Partial sums in fp32 stay below 64 MiB, whatever the problem.
constexpr int64_t kPartialUnits = int64_t{16} << 20;
// Several tasks per thread, so that a thread that is held up does not hold up the others.
constexpr int64_t kTasksPerThread = 4;

constexpr uint64_t align_bytes(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

inline gemm_plan make_plan(const gemm_kernel& kernel, const tw_gemm_problem& problem, uint32_t threads_allowed) {
  const tw_gemm_traits& t = kernel.traits;
  const int64_t mr = t.warp_tile_m, nr = t.warp_tile_n, kr = t.warp_tile_k;
  const int64_t m = larger(problem.m, 1), n = larger(problem.n, 1), k = larger(problem.k, 1);
  gemm_plan plan = {};
  plan.problem = problem;
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const double useful = work / kMultiplicationsPerThread;
  plan.threads = useful < 2 ? 1 : useful < threads_allowed ? static_cast<uint32_t>(useful) : threads_allowed;

  plan.block_k_count = divide_up(k, t.tile_k);
  plan.block_k = round_up(divide_up(k, plan.block_k_count), kr);
  plan.block_k_count = divide_up(k, plan.block_k);
  const int64_t steps = plan.block_k / kr;
  const bool partial = plan.block_k_count > 1 && kernel.partial_in_output == 0;

  plan.short_m = m <= t.tile_m;
  plan.block_n_count = plan.short_m && !partial ? 1 : divide_up(n, t.tile_n);
  plan.block_n = round_up(divide_up(n, plan.block_n_count), nr);
  plan.block_n_count = divide_up(n, plan.block_n);
  const int64_t panels_n = plan.block_n / nr;

  plan.super_m = round_up(m, mr);
  if (partial) {
    plan.super_m = smaller(plan.super_m, larger(t.tile_m, kPartialUnits / plan.block_n / t.tile_m * t.tile_m));
  }
  plan.super_m_count = divide_up(m, plan.super_m);
  const int64_t panels_m = plan.super_m / mr;

  const int64_t spread = plan.threads == 1 ? 1 : kTasksPerThread * plan.threads;
  uint64_t shared = 0;
  if (plan.short_m) {
    plan.pack_tasks = smaller(panels_m, plan.threads);
    plan.multiply_tasks = smaller(panels_n, spread);
    shared = 4u * static_cast<uint64_t>(panels_m * panel_units(mr, steps));
    plan.private_bytes = align_bytes(4u * static_cast<uint64_t>(panel_units(nr, steps)));
  } else {
    const int64_t per_tile = t.tile_m / mr;
    plan.pack_tasks = smaller(panels_n, spread);
    plan.multiply_tasks = smaller(panels_m, round_up(divide_up(panels_m, per_tile), plan.threads));
    shared = 4u * static_cast<uint64_t>(panels_n * panel_units(nr, steps));
    const int64_t panels = divide_up(panels_m, plan.multiply_tasks);
    plan.private_bytes = align_bytes(4u * static_cast<uint64_t>(panels * panel_units(mr, steps)));
  }
  plan.partial_offset = align_bytes(shared);
  plan.private_offset =
      plan.partial_offset + align_bytes(partial ? 4u * static_cast<uint64_t>(plan.super_m * plan.block_n) : 0);
  plan.workspace_bytes = plan.private_offset + plan.threads * plan.private_bytes;
  return plan;
}

}  // namespace tilewright::cpu

#endif  // TILEWRIGHT_CPU_PLAN_HPP
