// How rows of a norm are shared among threads.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_NORM_PLAN_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_NORM_PLAN_HPP

#include "kernelwright/cpu/norm/kernel.hpp"
#include "kernelwright/norm/operands.h"
#include "launchers/cpu/common/room.hpp"

namespace kernelwright::cpu {

constexpr int64_t kThreadElements = 32768;  // fewer are not worth waking a thread
constexpr int64_t kTaskElements = 8192;     // what a thread takes at a time
constexpr int64_t kMostBlocks = 32;         // of rows whose sums a gradient of weights is made of
constexpr int64_t kFinishColumns = 512;     // of such a gradient, which a thread adds up at a time

struct norm_plan {
  kw_norm_problem problem;
  int64_t rows_per_task;
  int64_t tasks;      // of rows
  int64_t gradients;  // of weight and bias: how many
  int64_t pitch;      // from the sums of a task to those of the next
  uint64_t workspace_bytes;
  uint32_t threads;
};
static_assert(sizeof(norm_plan) <= KW_CPU_NORM_PLAN_BYTES, "the plan outgrew its storage");

// Tasks of gradients depend on the problem alone, so that sums do.
inline void plan_norm(const kw_norm_problem& p, uint32_t threads, norm_plan* plan) {
  *plan = {};
  plan->problem = p;
  const int64_t elements = kw_mul(p.rows, p.columns);
  plan->gradients = kw_norm_is_backward(&p) ? p.weight + p.bias : 0;
  plan->rows_per_task = kw_larger(kTaskElements / p.columns, 1);
  if (plan->gradients != 0) plan->rows_per_task = kw_larger(plan->rows_per_task, kw_parts(p.rows, kMostBlocks));
  plan->tasks = kw_parts(p.rows, plan->rows_per_task);
  plan->pitch = plan->gradients * p.columns;
  plan->workspace_bytes = room(kw_mul(plan->tasks, plan->pitch), sizeof(float));
  const int64_t worth = kw_smaller(plan->tasks, kw_parts(elements, kThreadElements));
  plan->threads = worth < threads ? static_cast<uint32_t>(kw_larger(worth, 1)) : threads;
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_NORM_PLAN_HPP
