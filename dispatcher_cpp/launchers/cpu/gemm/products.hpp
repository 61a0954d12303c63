// One call's products: one, a batch of one shape, or groups of different shapes.
//
// Many or small products run side by side, a thread each; few large ones after another, with all threads each. Either
// way a product's bits are the same.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_GEMM_PRODUCTS_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_GEMM_PRODUCTS_HPP

#include "kernelwright/gemm/checks.h"
#include "kernelwright/gemm/groups.h"
#include "launchers/cpu/gemm/paths.hpp"

namespace kernelwright::cpu {

struct products_plan {
  gemm_plan one;  // of a batch: for all threads, or for one if products run side by side; of groups: their types
  int64_t count;
  uint32_t grouped;
  uint32_t side_by_side;  // threads that take products, 1 = after another
  uint32_t threads;       // that a single product may use
  uint64_t bytes_each, workspace_bytes;
};
static_assert(sizeof(products_plan) <= KW_CPU_GEMM_PLAN_BYTES, "the plan outgrew its storage");

inline kw_gemm_problem problem_of_group(const kw_gemm_problem& types, const kw_gemm_group& group) {
  kw_gemm_problem p = types;
  p.m = group.m;
  p.n = group.n;
  p.k = group.k;
  p.lda = group.lda;
  p.ldb = group.ldb;
  p.ldc = group.ldc;
  return p;
}

// With so many products for each thread, none waits long for the last of the others.
constexpr int64_t kProductsPerThread = 4;

inline products_plan make_products_plan(const gemm_kernel& kernel, const kw_gemm_problem& problem, uint32_t threads) {
  products_plan plan = {};
  plan.count = problem.batch;
  plan.threads = threads;
  plan.side_by_side = 1;
  plan.one = make_plan(kernel, problem, threads);
  if (problem.batch > 1 && threads > 1 &&
      (plan.one.threads == 1 || problem.batch % threads == 0 || problem.batch >= kProductsPerThread * threads)) {
    const double work = multiplications(problem) * static_cast<double>(problem.batch);
    plan.side_by_side = threads_for(work / kMultiplicationsPerThread, threads);
    if (problem.batch < plan.side_by_side) plan.side_by_side = static_cast<uint32_t>(problem.batch);
    plan.threads = 1;
    plan.one = make_plan(kernel, problem, 1);
  }
  plan.bytes_each = plan.one.workspace_bytes;
  plan.workspace_bytes = behind_all(0, plan.side_by_side, plan.bytes_each);
  return plan;
}

inline products_plan make_groups_plan(const gemm_kernel& kernel, const kw_grouped_gemm_problem& g, uint32_t threads) {
  products_plan plan = {};
  plan.one.problem = kw_types_of_groups(&g);
  plan.count = g.group_count;
  plan.grouped = 1;
  double work = 0, largest = 0;
  uint64_t alone = 0, together = 0;
  for (int64_t i = 0; i < g.group_count; ++i) {
    const kw_gemm_problem p = problem_of_group(plan.one.problem, g.groups[i]);
    const uint64_t for_one = make_plan(kernel, p, 1).workspace_bytes;
    const uint64_t for_all = make_plan(kernel, p, threads).workspace_bytes;
    if (for_one > alone) alone = for_one;
    if (for_all > together) together = for_all;
    work += multiplications(p);
    if (multiplications(p) > largest) largest = multiplications(p);
  }
  // The largest group alone must not be what all others wait for.
  const uint32_t useful = threads_for(work / kMultiplicationsPerThread, threads);
  const bool even = largest * useful <= work && g.group_count >= 2 * static_cast<int64_t>(useful);
  plan.side_by_side = even ? useful : 1;
  plan.threads = plan.side_by_side > 1 ? 1 : threads;
  plan.bytes_each = plan.threads == 1 ? alone : together;
  plan.workspace_bytes = behind_all(0, plan.side_by_side, plan.bytes_each);
  return plan;
}

class products_job {
 public:
  // args are of the groups if the plan is of groups, else of the batch.
  products_job(const gemm_kernel& kernel, const products_plan& plan, void* workspace, const void* args)
      : kernel_(kernel), plan_(plan), workspace_(workspace), args_(args), next_(0) {}

  void run() {
    if (plan_.grouped == 0 && plan_.count == 1) return run_of_batch(0, 0);
    run_parts(threads_now(plan_.side_by_side), &products_job::participate, this);
  }

 private:
  static void participate(void* context, uint32_t index) {
    products_job& job = *static_cast<products_job*>(context);
    for (;;) {
      const int64_t product = __atomic_fetch_add(&job.next_, 1, __ATOMIC_RELAXED);
      if (product >= job.plan_.count) return;
      if (job.plan_.grouped != 0) {
        job.run_group(product, index);
      } else {
        job.run_of_batch(product, index);
      }
    }
  }

  void* workspace_of(uint32_t index) const { return static_cast<char*>(workspace_) + index * plan_.bytes_each; }

  void run_of_batch(int64_t product_index, uint32_t index) const {
    const kw_gemm_problem& p = plan_.one.problem;
    const kw_gemm_args& all = *static_cast<const kw_gemm_args*>(args_);
    const auto moved_by = [&](const void* from, int64_t stride, uint32_t bytes) -> const void* {
      return from == nullptr ? nullptr : static_cast<const char*>(from) + product_index * stride * bytes;
    };
    product one = {};
    one.a = moved_by(all.a, p.stride_a, kernel_.input_bytes);
    one.b = moved_by(all.b, p.stride_b, kernel_.input_bytes);
    one.c = moved_by(all.c, p.stride_c, kernel_.output_bytes);
    one.d = static_cast<char*>(all.d) + product_index * p.stride_c * kernel_.output_bytes;
    for (uint32_t n = 0; n < p.num_d; ++n) {
      one.multi_d[n] = moved_by(all.multi_d[n], p.stride_multi_d[n], kernel_.output_bytes);
    }
    one.workspace = workspace_of(index);
    launch(kernel_, plan_.one, one);
  }

  void run_group(int64_t group, uint32_t index) const {
    const kw_grouped_gemm_args& all = *static_cast<const kw_grouped_gemm_args*>(args_);
    const kw_gemm_problem p = problem_of_group(plan_.one.problem, all.groups[group]);
    if (p.m == 0 || p.n == 0) return;
    product one = {};
    one.a = all.a[group];
    one.b = all.b[group];
    one.c = all.c != nullptr ? all.c[group] : nullptr;
    one.d = all.d[group];
    one.workspace = workspace_of(index);
    launch(kernel_, make_plan(kernel_, p, plan_.threads), one);
  }

  const gemm_kernel& kernel_;
  const products_plan& plan_;
  void* workspace_;
  const void* args_;
  alignas(64) int64_t next_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_GEMM_PRODUCTS_HPP
