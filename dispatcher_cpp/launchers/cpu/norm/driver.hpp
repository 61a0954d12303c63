// One planned norm: tasks of rows, then sums of gradients, handed out to however many threads come.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_NORM_DRIVER_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_NORM_DRIVER_HPP

#include "launchers/cpu/common/tickets.hpp"
#include "launchers/cpu/norm/plan.hpp"

namespace kernelwright::cpu {

class norm_job {
 public:
  norm_job(const norm_kernel& kernel, const norm_plan& plan, const kw_norm_args& args, void* workspace)
      : kernel_(kernel), plan_(plan), args_(args), sums_(static_cast<float*>(workspace)) {
    per_gradient_ = kw_parts(plan.problem.columns, kFinishColumns);
    ends_[0] = plan.tasks;
    ends_[1] = plan.tasks + plan.gradients * per_gradient_;
  }

  void run() {
    run_parts(
        threads_now(plan_.threads), [](void* job, uint32_t index) { static_cast<norm_job*>(job)->work(index); }, this);
  }

 private:
  void work(uint32_t index) {
    tickets_.hand_out(ends_, index, [&](int stage, int64_t number) { stage == 0 ? rows(number) : finish(number); });
  }

  void rows(int64_t number) const {
    const int64_t begin = number * plan_.rows_per_task;
    const int64_t end = kw_smaller(begin + plan_.rows_per_task, plan_.problem.rows);
    kernel_.rows({&plan_.problem, &args_, begin, end, sums_ + number * plan_.pitch});
  }

  void finish(int64_t number) const {
    const int64_t gradient = number / per_gradient_, begin = number % per_gradient_ * kFinishColumns;
    const int64_t columns = plan_.problem.columns;
    void* const to = gradient == 0 && plan_.problem.weight != 0 ? args_.dweight : args_.dbias;
    kernel_.finish({sums_ + gradient * columns, plan_.pitch, plan_.tasks, to, plan_.problem.dtype_w == KW_FP32, begin,
                    kw_smaller(kFinishColumns, columns - begin)});
  }

  const norm_kernel& kernel_;
  const norm_plan& plan_;
  const kw_norm_args& args_;
  float* const sums_;
  int64_t per_gradient_ = 0;
  int64_t ends_[2] = {};
  tickets tickets_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_NORM_DRIVER_HPP
