// Walks a planned problem with however many threads come: tasks are handed out in one fixed order by a ticket counter.
//
// The tickets of a step (one block along M, N and K) are its packing tasks, then its multiplying tasks; each kind waits
// until everything before it is done. A thread that comes late just takes later tickets.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_GEMM_DRIVER_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_GEMM_DRIVER_HPP

#include "launchers/cpu/common/threads.hpp"
#include "launchers/cpu/gemm/operands.hpp"
#include "launchers/cpu/gemm/plan.hpp"
#include "launchers/cpu/gemm/shuffle.hpp"

namespace kernelwright::cpu {

class gemm_job {
 public:
  gemm_job(const gemm_kernel& kernel, const gemm_plan& plan, const product& args)
      : kernel_(kernel), plan_(plan), args_(args), next_(0), done_(0) {}

  void run() { run_parts(threads_now(plan_.threads), &gemm_job::participate, this); }

 private:
  struct step {
    int64_t row, rows;  // of the super block
    int64_t col, cols;  // of the block along N
    int64_t k, depth, k_index;
    bool first, last;
  };

  static void participate(void* context, uint32_t index) {
    gemm_job& job = *static_cast<gemm_job*>(context);
    const gemm_plan& plan = job.plan_;
    const int64_t per_step = plan.pack_tasks + plan.multiply_tasks;
    const int64_t total = plan.super_m_count * plan.block_n_count * plan.block_k_count * per_step;
    char* const own = static_cast<char*>(job.args_.workspace) + plan.private_offset + index * plan.private_bytes;
    const multiplying_thread thread(job.kernel_);
    for (;;) {
      const int64_t ticket = __atomic_fetch_add(&job.next_, 1, __ATOMIC_RELAXED);
      if (ticket >= total) break;
      const int64_t number = ticket / per_step, task = ticket % per_step;
      const bool packs = task < plan.pack_tasks;
      job.wait_for(number * per_step + (packs ? 0 : plan.pack_tasks));
      const step s = job.make_step(number);
      if (packs) {
        job.pack_shared(s, task);
      } else if (plan.short_m) {
        job.multiply_columns(s, task - plan.pack_tasks, own);
      } else {
        job.multiply_rows(s, task - plan.pack_tasks, own);
      }
      __atomic_fetch_add(&job.done_, 1, __ATOMIC_RELEASE);
    }
    if (index == 0) job.wait_for(total);
  }

  void wait_for(int64_t tasks) const { wait_until(done_, tasks); }

  // K inside, so that the partial sums of one block are finished before the next begins.
  step make_step(int64_t number) const {
    const kw_gemm_problem& p = plan_.problem;
    const int64_t k_index = number % plan_.block_k_count;
    const int64_t n_index = number / plan_.block_k_count % plan_.block_n_count;
    const int64_t m_index = number / plan_.block_k_count / plan_.block_n_count;
    step s;
    s.row = m_index * plan_.super_m;
    s.rows = smaller(plan_.super_m, p.m - s.row);
    s.col = n_index * plan_.block_n;
    s.cols = smaller(plan_.block_n, p.n - s.col);
    s.k = k_index * plan_.block_k;
    s.k_index = k_index;
    s.depth = smaller(plan_.block_k, p.k - s.k);
    s.first = k_index == 0;
    s.last = k_index == plan_.block_k_count - 1;
    return s;
  }

  int64_t steps(const step& s) const { return packed_steps(kernel_, s.depth); }

  char* shared_panel(const step& s, int64_t index, int64_t width) const {
    return static_cast<char*>(args_.workspace) + index * panel_units(width, steps(s)) * 4;
  }

  bool is_shuffled() const { return kernel_.traits.b_format != 0; }
  const void* shuffled_panel(const step& s, int64_t panel) const {
    const int64_t nr = kernel_.traits.warp_tile_n;
    const int64_t unit = shuffled_unit(kernel_, plan_, s.k_index, s.col / nr + panel, steps(s));
    return static_cast<const char*>(args_.b) + unit * 4;
  }

  void pack_shared(const step& s, int64_t task) const {
    const int64_t width = plan_.short_m ? kernel_.traits.warp_tile_m : kernel_.traits.warp_tile_n;
    const int64_t extent = plan_.short_m ? s.rows : s.cols;
    const range panels = part(divide_up(extent, width), plan_.pack_tasks, task);
    const int64_t begin = panels.begin * width, count = smaller(panels.end * width, extent) - begin;
    if (count <= 0) return;
    char* packed = shared_panel(s, panels.begin, width);
    if (plan_.short_m) {
      kernel_.pack_a(packed, a_at(kernel_, plan_.problem, args_, s.row + begin, s.k), plan_.problem.lda, count,
                     s.depth);
    } else {
      kernel_.pack_b(packed, b_at(kernel_, plan_.problem, args_, s.k, s.col + begin), plan_.problem.ldb, count,
                     s.depth);
    }
  }

  void multiply_rows(const step& s, int64_t task, void* packed_a) const {
    const int64_t mr = kernel_.traits.warp_tile_m;
    const range panels = part(divide_up(s.rows, mr), plan_.multiply_tasks, task);
    const int64_t row = panels.begin * mr, rows = smaller(panels.end * mr, s.rows) - row;
    if (rows <= 0) return;
    kernel_.pack_a(packed_a, a_at(kernel_, plan_.problem, args_, s.row + row, s.k), plan_.problem.lda, rows, s.depth);
    multiply(s, row, rows, 0, s.cols, packed_a, is_shuffled() ? shuffled_panel(s, 0) : args_.workspace);
  }

  void multiply_columns(const step& s, int64_t task, void* packed_b) const {
    const int64_t nr = kernel_.traits.warp_tile_n;
    const range panels = part(divide_up(s.cols, nr), plan_.multiply_tasks, task);
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const int64_t col = panel * nr, cols = smaller(nr, s.cols - col);
      if (is_shuffled()) {
        multiply(s, 0, s.rows, col, cols, args_.workspace, shuffled_panel(s, panel));
        continue;
      }
      kernel_.pack_b(packed_b, b_at(kernel_, plan_.problem, args_, s.k, s.col + col), plan_.problem.ldb, cols, s.depth);
      multiply(s, 0, s.rows, col, cols, args_.workspace, packed_b);
    }
  }

  // row and col are relative to the step and multiples of the warp tile.
  void multiply(const step& s, int64_t row, int64_t rows, int64_t col, int64_t cols, const void* packed_a,
                const void* packed_b) const {
    const int64_t mr = kernel_.traits.warp_tile_m, nr = kernel_.traits.warp_tile_n;
    const kw_gemm_problem& p = plan_.problem;
    block b = {};
    b.rows = rows;
    b.cols = cols;
    b.steps = steps(s);
    b.a = packed_a;
    b.b = packed_b;
    b.first = s.first;
    b.last = s.last;
    b.to = output_at(kernel_, p, args_, s.row + row, s.col + col);
    if (kernel_.partial_in_output != 0 && !s.first) {
      b.to.c = b.to.d;
      b.to.beta = 1.0f;
    }
    if (kernel_.partial_in_output == 0 && plan_.block_k_count > 1) {
      b.partial_panel_stride = plan_.block_n / nr * (mr * nr);
      const int64_t unit = row / mr * b.partial_panel_stride + col / nr * (mr * nr);
      b.partial = static_cast<char*>(args_.workspace) + plan_.partial_offset + unit * 4;
    }
    kernel_.multiply(b);
  }

  const gemm_kernel& kernel_;
  const gemm_plan& plan_;
  const product& args_;
  alignas(64) int64_t next_;
  alignas(64) int64_t done_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_GEMM_DRIVER_HPP
