// How one problem is cut into cache blocks and tasks.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_GEMM_PLAN_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_GEMM_PLAN_HPP

#include "kernelwright/cpu/gemm/kernel.hpp"
#include "launchers/cpu/common/room.hpp"

namespace kernelwright::cpu {

// Offsets into the workspace are bytes. Which block is summed in which order depends on the problem alone, never on the
// number of threads.
enum class path : uint32_t {
  kPacked,  // blocks of A and B are packed
  kDirect,  // small: one thread, A where it lies
  kSkinny,  // few rows or few columns: the other operand is read once, where it lies
  kTiles,   // persistent, split-K, stream-K: threads pack for themselves, see tiles.hpp
};

struct gemm_plan {
  kw_gemm_problem problem;
  path way;
  uint32_t threads;
  uint32_t few_columns;                               // kSkinny: of B, so A is the matrix; else few rows
  int64_t vectors, vector_ld, lines, lines_per_task;  // kSkinny
  // A fits one cache block: A is packed once and shared, every thread packs the panels of B that it uses. Otherwise B
  // is shared and every thread packs the blocks of A that it uses.
  uint32_t short_m;
  int64_t super_m, super_m_count;  // rows whose partial sums are kept at a time
  int64_t block_n, block_n_count;  // columns per cache block, whole panels
  int64_t block_k, block_k_count;
  int64_t pack_tasks, multiply_tasks;  // of every (super_m, block_n, block_k)
  uint64_t partial_offset, private_offset, private_bytes, workspace_bytes;
  // kTiles: `workers` share the steps of all tiles along K; the sums of a tile that several have a part in meet in the
  // workspace.
  int64_t tile_m, tile_n, tiles_m, tiles_n, workers, steps_k;
  uint64_t tile_bytes;  // of the sums of a tile
};

// Partial sums in fp32 stay below 64 MiB, whatever the problem.
constexpr int64_t kPartialUnits = int64_t{16} << 20;
// A thread is worth waking for so many bytes of a matrix that is read once: some 20 microseconds.
constexpr double kBytesPerThread = 512 << 10;
// Beyond it the widened vectors of a skinny problem would no longer stay in a cache.
constexpr int64_t kMaxSkinnyDepth = int64_t{1} << 18;
// Up to here a product is over before packing A pays.
constexpr int64_t kMaxDirectExtent = 128;
constexpr int64_t kMaxDirectWork = 96 * 96 * 96;

// Are lines of the matrix contiguous along K?
inline bool skinny_along_k(const gemm_plan& plan) {
  return plan.few_columns ? plan.problem.layout_a == KW_ROW_MAJOR : plan.problem.layout_b == KW_COL_MAJOR;
}

inline bool plan_skinny(const gemm_kernel& kernel, uint32_t threads_allowed, gemm_plan& plan) {
  const kw_gemm_problem& p = plan.problem;
  if (p.k > kMaxSkinnyDepth || p.k == 0) return false;
  plan.few_columns = p.m > p.n;
  plan.vectors = plan.few_columns ? p.n : p.m;
  plan.lines = plan.few_columns ? p.m : p.n;
  if (plan.vectors > kMaxVectors || plan.vectors == 0) return false;
  if ((skinny_along_k(plan) ? kernel.skinny_along_k : kernel.skinny_along_lines) == nullptr) return false;
  plan.way = path::kSkinny;
  const double bytes = static_cast<double>(plan.lines) * static_cast<double>(p.k) * kernel.input_bytes;
  plan.threads = threads_for(bytes / kBytesPerThread, threads_allowed);
  plan.vector_ld = round_up(divide_up(p.k, kernel.skinny_depth), kSpareUnits);
  // Sums stay in the first-level cache; threads take turns of at least a few lines' worth of prefetching.
  const int64_t even = divide_up(plan.lines, plan.threads == 1 ? 1 : 2 * plan.threads);
  plan.lines_per_task = smaller(round_up(larger(even, 256), 64), 4096);
  const int64_t sums = plan.vectors * plan.lines_per_task * (plan.few_columns && plan.vectors > 1 ? 2 : 1);
  plan.private_bytes = room(kw_add(kw_mul(plan.vectors, plan.vector_ld), sums), 4);
  plan.workspace_bytes = behind_all(0, plan.threads, plan.private_bytes);
  return true;
}

inline bool plan_direct(const gemm_kernel& kernel, gemm_plan& plan) {
  const kw_gemm_problem& p = plan.problem;
  if (kernel.direct == nullptr || larger(p.m, larger(p.n, p.k)) > kMaxDirectExtent) return false;
  if (p.m * p.n * p.k > kMaxDirectWork) return false;
  plan.way = path::kDirect;
  plan.threads = 1;
  const int64_t nr = kernel.traits.warp_tile_n;
  const int64_t packed = p.layout_b == KW_ROW_MAJOR ? 0 : divide_up(p.n, nr) * panel_units(nr, p.k);
  plan.workspace_bytes = align_bytes(4u * static_cast<uint64_t>(packed));
  return true;
}

inline double multiplications(const kw_gemm_problem& p) {
  return static_cast<double>(larger(p.m, 1)) * static_cast<double>(larger(p.n, 1)) *
         static_cast<double>(larger(p.k, 1));
}

// Into blocks as long as one another, which depend on k and the kernel alone: B is shuffled block by block.
inline void cut_k(const gemm_kernel& kernel, gemm_plan& plan) {
  const int64_t k = larger(plan.problem.k, 1);
  plan.block_k_count = divide_up(k, kernel.traits.tile_k);
  plan.block_k = round_up(divide_up(k, plan.block_k_count), kernel.traits.warp_tile_k);
  plan.block_k_count = divide_up(k, plan.block_k);
}

inline void plan_packed(const gemm_kernel& kernel, uint32_t threads_allowed, gemm_plan& plan) {
  const kw_gemm_problem& problem = plan.problem;
  const kw_gemm_traits& t = kernel.traits;
  const int64_t mr = t.warp_tile_m, nr = t.warp_tile_n;
  const int64_t m = larger(problem.m, 1), n = larger(problem.n, 1);
  plan.way = path::kPacked;
  plan.threads = threads_for(multiplications(problem) / kMultiplicationsPerThread, threads_allowed);
  cut_k(kernel, plan);
  const int64_t steps = packed_steps(kernel, plan.block_k);
  const bool partial = plan.block_k_count > 1 && kernel.partial_in_output == 0;

  plan.short_m = m <= t.tile_m;
  // Few rows have few sums, so that threads get many columns between two meetings.
  const bool wide = plan.short_m && multiplies_tiles(kernel);
  const int64_t widest = wide ? larger(t.tile_n, kPartialUnits / round_up(m, mr)) : t.tile_n;
  plan.block_n_count = plan.short_m && !partial ? 1 : divide_up(n, widest);
  plan.block_n = round_up(divide_up(n, plan.block_n_count), nr);
  plan.block_n_count = divide_up(n, plan.block_n);
  const int64_t panels_n = plan.block_n / nr;

  plan.super_m = round_up(m, mr);
  if (partial) {
    const int64_t most = kPartialUnits / plan.block_n / t.tile_m * t.tile_m;
    const int64_t near = multiplies_tiles(kernel) ? t.tile_m * plan.threads : most;
    plan.super_m = smaller(plan.super_m, larger(t.tile_m, smaller(most, near)));
  }
  plan.super_m_count = divide_up(m, plan.super_m);
  const int64_t panels_m = plan.super_m / mr;

  const int64_t spread = plan.threads == 1 ? 1 : kTasksPerThread * plan.threads;
  uint64_t shared = 0;
  if (plan.short_m) {
    plan.pack_tasks = smaller(panels_m, plan.threads);
    plan.multiply_tasks = smaller(panels_n, spread);
    shared = room(kw_mul(panels_m, panel_units(mr, steps)), 4);
    plan.private_bytes = room(panel_units(nr, steps), 4);
  } else {
    const int64_t per_tile = t.tile_m / mr;
    plan.pack_tasks = t.b_format != 0 ? 0 : smaller(panels_n, spread);
    plan.multiply_tasks = smaller(panels_m, round_up(divide_up(panels_m, per_tile), plan.threads));
    shared = t.b_format != 0 ? 0 : room(kw_mul(panels_n, panel_units(nr, steps)), 4);
    const int64_t panels = divide_up(panels_m, plan.multiply_tasks);
    plan.private_bytes = room(kw_mul(panels, panel_units(mr, steps)), 4);
  }
  plan.partial_offset = shared;
  plan.private_offset = behind(shared, partial ? room(kw_mul(plan.super_m, plan.block_n), 4) : 0);
  plan.workspace_bytes = behind_all(plan.private_offset, plan.threads, plan.private_bytes);
}

// Work of a stream-K worker, some 5 microseconds, and how many there are at most. Not a matter of threads, so that sums
// do not depend on them.
constexpr double kMultiplicationsPerWorker = 1 << 18;
constexpr int64_t kMaxWorkers = 64;
// Depth of the steps that stream-K shares out.
constexpr int64_t kStreamDepth = 64;

inline void plan_tiles(const gemm_kernel& kernel, uint32_t threads_allowed, gemm_plan& plan) {
  const kw_gemm_traits& t = kernel.traits;
  const kw_gemm_problem& p = plan.problem;
  const int64_t mr = t.warp_tile_m, nr = t.warp_tile_n;
  plan.way = path::kTiles;
  plan.threads = threads_for(multiplications(p) / kMultiplicationsPerThread, threads_allowed);
  plan.tile_m = smaller(t.tile_m, round_up(larger(p.m, 1), mr));
  plan.tile_n = smaller(t.tile_n, round_up(larger(p.n, 1), nr));
  plan.tiles_m = divide_up(larger(p.m, 1), plan.tile_m);
  plan.tiles_n = divide_up(larger(p.n, 1), plan.tile_n);
  plan.block_k = smaller(t.tile_k, round_up(larger(p.k, 1), t.warp_tile_k));
  plan.tile_bytes = 4u * static_cast<uint64_t>(plan.tile_m * plan.tile_n);
  const int64_t tiles = kw_mul(plan.tiles_m, plan.tiles_n);
  int64_t slots = 0;  // for the sums of parts of tiles
  if (t.stream_k != KW_STREAM_K_NONE) {
    plan.steps_k = divide_up(larger(p.k, 1), kStreamDepth);
    const double even = multiplications(p) / kMultiplicationsPerWorker;
    plan.workers = even < 2 ? 1 : even < kMaxWorkers ? static_cast<int64_t>(even) : kMaxWorkers;
    plan.workers = smaller(plan.workers, kw_mul(tiles, plan.steps_k));
    slots = 2 * plan.workers;
  } else if (p.split_k > 1) {
    plan.steps_k = p.split_k;
    plan.workers = kw_mul(tiles, plan.steps_k);
    slots = plan.workers;
  } else {
    plan.steps_k = 1;
    plan.workers = smaller(tiles, plan.threads);
  }
  const int64_t steps = packed_steps(kernel, plan.block_k);
  const int64_t packed = plan.tile_m / mr * panel_units(mr, steps) + plan.tile_n / nr * panel_units(nr, steps);
  plan.private_bytes = align_bytes(4u * static_cast<uint64_t>(packed) + plan.tile_bytes);
  plan.private_offset = room(slots, static_cast<int64_t>(plan.tile_bytes));
  plan.workspace_bytes = behind_all(plan.private_offset, plan.threads, plan.private_bytes);
}

inline gemm_plan make_plan(const gemm_kernel& kernel, const kw_gemm_problem& problem, uint32_t threads_allowed) {
  const kw_gemm_traits& t = kernel.traits;
  gemm_plan plan = {};
  plan.problem = problem;
  if (problem.alpha == 0) plan.problem.k = 0;  // as in BLAS: A and B are not read, so no NaN of theirs reaches D
  if (t.stream_k != KW_STREAM_K_NONE || t.persistent != 0 || problem.split_k > 1) {
    plan_tiles(kernel, threads_allowed, plan);
  } else if (t.b_format != 0 || !(plan_skinny(kernel, threads_allowed, plan) || plan_direct(kernel, plan))) {
    plan_packed(kernel, threads_allowed, plan);
  }
  return plan;
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_GEMM_PLAN_HPP
