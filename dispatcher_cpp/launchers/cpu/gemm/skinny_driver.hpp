// Problems of few rows or few columns: threads take ranges of lines of the other operand.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_GEMM_SKINNY_DRIVER_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_GEMM_SKINNY_DRIVER_HPP

#include "launchers/cpu/common/threads.hpp"
#include "launchers/cpu/gemm/operands.hpp"
#include "launchers/cpu/gemm/plan.hpp"

namespace kernelwright::cpu {

class skinny_job {
 public:
  skinny_job(const gemm_kernel& kernel, const gemm_plan& plan, const product& args)
      : kernel_(kernel), plan_(plan), args_(args), next_(0) {}

  void run() { run_parts(threads_now(plan_.threads), &skinny_job::participate, this); }

 private:
  static void participate(void* context, uint32_t index) {
    skinny_job& job = *static_cast<skinny_job*>(context);
    const gemm_plan& plan = job.plan_;
    const int64_t total = divide_up(plan.lines, plan.lines_per_task);
    float* const own = reinterpret_cast<float*>(static_cast<char*>(job.args_.workspace) + index * plan.private_bytes);
    bool ready = false;
    for (;;) {
      const int64_t task = __atomic_fetch_add(&job.next_, 1, __ATOMIC_RELAXED);
      if (task >= total) return;
      if (!ready) job.widen_vectors(own);
      ready = true;
      const int64_t begin = task * plan.lines_per_task;
      job.multiply(own, begin, smaller(plan.lines_per_task, plan.lines - begin));
    }
  }

  // Every thread has a copy: they fit its cache, and nobody waits.
  void widen_vectors(float* vectors) const {
    const kw_gemm_problem& p = plan_.problem;
    const bool along_k = plan_.few_columns ? p.layout_b == KW_COL_MAJOR : p.layout_a == KW_ROW_MAJOR;
    const int64_t stride = along_k ? 1 : plan_.few_columns ? p.ldb : p.lda;
    for (int64_t i = 0; i < plan_.vectors; ++i) {
      const void* from = plan_.few_columns ? b_at(kernel_, p, args_, 0, i) : a_at(kernel_, p, args_, i, 0);
      kernel_.widen(vectors + i * plan_.vector_ld, from, stride, p.k);
    }
  }

  void multiply(float* own, int64_t line, int64_t lines) const {
    const kw_gemm_problem& p = plan_.problem;
    skinny_block s = {};
    s.vectors = own;
    s.count = plan_.vectors;
    s.vector_ld = plan_.vector_ld;
    s.depth = p.k;
    s.lines = lines;
    s.sums = own + plan_.vectors * plan_.vector_ld;
    s.sums_ld = plan_.lines_per_task;
    s.matrix = plan_.few_columns ? a_at(kernel_, p, args_, line, 0) : b_at(kernel_, p, args_, 0, line);
    s.ld = plan_.few_columns ? p.lda : p.ldb;
    (skinny_along_k(plan_) ? kernel_.skinny_along_k : kernel_.skinny_along_lines)(s);
    write(s, line);
  }

  void write(const skinny_block& s, int64_t line) const {
    const kw_gemm_problem& p = plan_.problem;
    finish_block f = {};
    f.sums = s.sums;
    f.slices = 1;
    if (!plan_.few_columns) {
      f.ld = s.sums_ld;
      f.rows = s.count;
      f.cols = s.lines;
      f.to = output_at(kernel_, p, args_, 0, line);
    } else {
      f.to = output_at(kernel_, p, args_, line, 0);
      f.rows = s.lines;
      f.cols = f.ld = s.count;
      if (s.count > 1) f.sums = turned(s);
      if (is_dense_column(f)) {
        f.rows = 1;
        f.cols = f.ld = s.lines;
      }
    }
    kernel_.finish(f);
  }

  // Then its elements lie side by side, as those of a row.
  bool is_dense_column(const finish_block& f) const {
    bool dense = f.cols == 1 && f.to.ldc == 1;
    for (uint32_t n = 0; n < plan_.problem.num_d; ++n) dense = dense && f.to.ld_multi_d[n] == 1;
    return dense;
  }

  // Sums line by line instead of vector by vector.
  static float* turned(const skinny_block& s) {
    float* to = s.sums + s.count * s.sums_ld;
    for (int64_t i = 0; i < s.lines; ++i) {
      for (int64_t j = 0; j < s.count; ++j) to[i * s.count + j] = s.sums[j * s.sums_ld + i];
    }
    return to;
  }

  const gemm_kernel& kernel_;
  const gemm_plan& plan_;
  const product& args_;
  alignas(64) int64_t next_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_GEMM_SKINNY_DRIVER_HPP
