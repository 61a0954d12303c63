// Persistent, split-K and stream-K kernels: every worker has a range of the steps of all tiles along K, walks it alone
// with packing memory of its own, and leaves the sums of tiles that it has only a part of in the workspace.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_GEMM_TILES_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_GEMM_TILES_HPP

#include "launchers/cpu/common/threads.hpp"
#include "launchers/cpu/gemm/operands.hpp"
#include "launchers/cpu/gemm/plan.hpp"

namespace kernelwright::cpu {

class tiles_job {
 public:
  tiles_job(const gemm_kernel& kernel, const gemm_plan& plan, const product& args)
      : kernel_(kernel), plan_(plan), args_(args), tiles_(plan.tiles_m * plan.tiles_n), next_(0), done_(0) {}

  void run() { run_parts(threads_now(plan_.threads), &tiles_job::participate, this); }

 private:
  // Private memory of a thread, and which block of B lies packed in it.
  struct memory {
    float* a;
    float* b;
    float* sums;
    int64_t packed_col, packed_k, packed_depth;
  };

  // Tickets are workers, then tiles whose parts are to be added up.
  static void participate(void* context, uint32_t index) {
    tiles_job& job = *static_cast<tiles_job*>(context);
    const int64_t workers = job.plan_.workers;
    const int64_t total = workers + (job.plan_.steps_k > 1 ? job.tiles_ : 0);
    memory own = job.memory_of(index);
    const multiplying_thread thread(job.kernel_);
    for (;;) {
      const int64_t ticket = __atomic_fetch_add(&job.next_, 1, __ATOMIC_RELAXED);
      if (ticket >= total) break;
      if (ticket < workers) {
        job.work(ticket, own);
        __atomic_fetch_add(&job.done_, 1, __ATOMIC_RELEASE);
      } else {
        wait_until(job.done_, workers);
        job.add_up(ticket - workers);
      }
    }
    if (index == 0) wait_until(job.done_, workers);
  }

  memory memory_of(uint32_t index) const {
    const int64_t mr = kernel_.traits.warp_tile_m;
    const int64_t steps = packed_steps(kernel_, plan_.block_k);
    char* own = static_cast<char*>(args_.workspace) + plan_.private_offset + index * plan_.private_bytes;
    memory m = {};
    m.sums = reinterpret_cast<float*>(own);
    m.a = m.sums + plan_.tile_bytes / 4;
    m.b = m.a + plan_.tile_m / mr * panel_units(mr, steps);
    m.packed_col = -1;
    return m;
  }

  range steps_of(int64_t worker) const { return part(tiles_ * plan_.steps_k, plan_.workers, worker); }

  // The worker that has a step: the inverse of steps_of.
  int64_t worker_of(int64_t step) const {
    const int64_t all = tiles_ * plan_.steps_k, size = all / plan_.workers, longer = all % plan_.workers;
    const int64_t in_longer = longer * (size + 1);
    return step < in_longer ? step / (size + 1) : longer + (step - in_longer) / size;
  }

  // Where a worker leaves the sums of a tile that it begins but does not end, and of one that it does not begin.
  float* slot(int64_t index) const {
    return reinterpret_cast<float*>(static_cast<char*>(args_.workspace) +
                                    static_cast<uint64_t>(index) * plan_.tile_bytes);
  }
  bool streams() const { return kernel_.traits.stream_k != KW_STREAM_K_NONE; }
  float* first_part(int64_t worker) const { return slot(worker); }
  float* later_part(int64_t worker) const { return slot(streams() ? plan_.workers + worker : worker); }

  void work(int64_t worker, memory& own) const {
    const range steps = steps_of(worker);
    for (int64_t step = steps.begin; step < steps.end;) {
      const int64_t tile = step / plan_.steps_k, first = step % plan_.steps_k;
      const int64_t last = smaller(plan_.steps_k, first + steps.end - step);
      const range k = depth_of(first, last);
      float* sums = nullptr;
      if (first != 0) {
        sums = later_part(worker);
      } else if (last != plan_.steps_k) {
        sums = first_part(worker);
      }
      multiply(tile, k, sums, own);
      step += last - first;
    }
  }

  range depth_of(int64_t first_step, int64_t last_step) const {
    const int64_t k = plan_.problem.k;
    if (streams()) return {smaller(k, first_step * kStreamDepth), smaller(k, last_step * kStreamDepth)};
    const int64_t units = divide_up(k, kernel_.traits.warp_tile_k);
    const int64_t begin = part(units, plan_.steps_k, first_step).begin,
                  end = part(units, plan_.steps_k, last_step - 1).end;
    return {smaller(k, begin * kernel_.traits.warp_tile_k), smaller(k, end * kernel_.traits.warp_tile_k)};
  }

  struct area {
    int64_t row, rows, col, cols;
  };
  // Rows inside, so that a packed block of B serves the tiles that follow.
  area area_of(int64_t tile) const {
    const kw_gemm_problem& p = plan_.problem;
    const int64_t row = tile % plan_.tiles_m * plan_.tile_m, col = tile / plan_.tiles_m * plan_.tile_n;
    return {row, smaller(plan_.tile_m, p.m - row), col, smaller(plan_.tile_n, p.n - col)};
  }

  // Goes to `sums`, or to the output if that is null.
  void multiply(int64_t tile, range k, float* sums, memory& own) const {
    const area at = area_of(tile);
    const int64_t nr = kernel_.traits.warp_tile_n, mr = kernel_.traits.warp_tile_m;
    const int64_t blocks = larger(1, divide_up(k.end - k.begin, plan_.block_k));
    block b = {};
    b.rows = at.rows;
    b.cols = at.cols;
    b.a = own.a;
    b.b = own.b;
    b.to = output_at(kernel_, plan_.problem, args_, at.row, at.col);
    b.partial = sums != nullptr ? sums : blocks > 1 ? own.sums : nullptr;
    b.partial_panel_stride = plan_.tile_n / nr * (mr * nr);
    for (int64_t index = 0; index < blocks; ++index) {
      const int64_t begin = k.begin + index * plan_.block_k, depth = smaller(plan_.block_k, k.end - begin);
      pack(at, begin, depth, own);
      b.steps = packed_steps(kernel_, depth);
      b.first = index == 0;
      b.last = sums == nullptr && index == blocks - 1;
      kernel_.multiply(b);
    }
  }

  void pack(const area& at, int64_t k, int64_t depth, memory& own) const {
    if (depth == 0) return;
    const kw_gemm_problem& p = plan_.problem;
    kernel_.pack_a(own.a, a_at(kernel_, p, args_, at.row, k), p.lda, at.rows, depth);
    if (own.packed_col == at.col && own.packed_k == k && own.packed_depth == depth) return;
    kernel_.pack_b(own.b, b_at(kernel_, p, args_, k, at.col), p.ldb, at.cols, depth);
    own.packed_col = at.col;
    own.packed_k = k;
    own.packed_depth = depth;
  }

  void add_up(int64_t tile) const {
    const int64_t first = worker_of(tile * plan_.steps_k), last = worker_of((tile + 1) * plan_.steps_k - 1);
    if (first == last) return;  // it wrote the output
    const area at = area_of(tile);
    const int64_t nr = kernel_.traits.warp_tile_n, mr = kernel_.traits.warp_tile_m;
    finish_block f = {};
    f.ld = nr;
    f.slices = last - first + 1;
    f.slice_stride = static_cast<int64_t>(plan_.tile_bytes / 4);
    f.tree = kernel_.traits.stream_k == KW_STREAM_K_TREE;
    for (int64_t row = 0; row < at.rows; row += mr) {
      for (int64_t col = 0; col < at.cols; col += nr) {
        const int64_t unit = row / mr * (plan_.tile_n / nr * (mr * nr)) + col / nr * (mr * nr);
        f.sums = first_part(first) + unit;
        f.others = later_part(first + 1) + unit;
        f.rows = smaller(mr, at.rows - row);
        f.cols = smaller(nr, at.cols - col);
        f.to = output_at(kernel_, plan_.problem, args_, at.row + row, at.col + col);
        kernel_.finish(f);
      }
    }
  }

  const gemm_kernel& kernel_;
  const gemm_plan& plan_;
  const product& args_;
  const int64_t tiles_;
  alignas(64) int64_t next_;
  alignas(64) int64_t done_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_GEMM_TILES_HPP
