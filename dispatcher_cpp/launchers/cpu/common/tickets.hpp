// Tasks of several stages, handed out in one fixed order by a counter to however many threads come.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_COMMON_TICKETS_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_COMMON_TICKETS_HPP

#include "launchers/cpu/common/threads.hpp"

namespace kernelwright::cpu {

class tickets {
 public:
  // Called by every thread of a pool, with its index. ends[i] is the number of tasks of all stages up to i;
  // task(stage, number) does one of them, once all tasks of earlier stages are done. Thread 0 returns when all are.
  template <int stages, typename Task>
  void hand_out(const int64_t (&ends)[stages], uint32_t index, const Task& task) {
    const int64_t total = ends[stages - 1];
    for (;;) {
      const int64_t ticket = __atomic_fetch_add(&next_, 1, __ATOMIC_RELAXED);
      if (ticket >= total) break;
      int stage = 0;
      int64_t begin = 0;
      for (; ticket >= ends[stage]; ++stage) begin = ends[stage];
      if (begin > 0) wait_until(done_, begin);
      task(stage, ticket - begin);
      __atomic_fetch_add(&done_, 1, __ATOMIC_RELEASE);
    }
    if (index == 0) wait_until(done_, total);
  }

 private:
  alignas(64) int64_t next_ = 0;
  alignas(64) int64_t done_ = 0;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_COMMON_TICKETS_HPP
