// Nanoseconds of the native dispatcher against kernels that do nothing: plan-cache hit, launch, both.
// Usage: overhead LIBRARY.so VARIANTS.so [PLANS]; prints JSON. CPU time of the thread, so that other
// work on the machine does not count. LIBRARY must serve fp16 rrr, VARIANTS fp32 rrr (see mock_library.c).
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernelwright/dispatcher.h"
#include "kernelwright/gemm.h"

namespace {

constexpr int kRepeats = 21;
constexpr int kCalls = 200000;

double now_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e9 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec);
}

int compare(const void* left, const void* right) {
  const double l = *static_cast<const double*>(left), r = *static_cast<const double*>(right);
  return l < r ? -1 : l > r ? 1 : 0;
}

template <typename Call>
void measure(const char* name, Call call, int calls = kCalls, bool last = false) {
  double ns[kRepeats];
  for (double& sample : ns) {
    const double start = now_ns();
    for (int i = 0; i < calls; ++i) call(i);
    sample = (now_ns() - start) / calls;
  }
  qsort(ns, kRepeats, sizeof ns[0], compare);
  printf("  \"%s\": {\"median_ns\": %.1f, \"min_ns\": %.1f, \"p90_ns\": %.1f}%s\n", name, ns[kRepeats / 2], ns[0],
         ns[kRepeats * 9 / 10], last ? "" : ",");
}

kw_gemm_problem make_problem(int64_t m) {
  kw_gemm_problem p = {};
  p.base = {sizeof p, KW_OP_GEMM};
  p.dtype_a = p.dtype_b = p.dtype_c = KW_FP16;
  p.dtype_acc = KW_FP32;
  p.split_k = 1;
  p.batch = 1;
  p.m = m, p.n = 512, p.k = 256;
  p.lda = 256, p.ldb = p.ldc = 512;
  p.alpha = 1;
  return p;
}

// Of fp32, for the library of variants.
kw_gemm_problem with_variant(int64_t m, int64_t batch, uint32_t num_d) {
  kw_gemm_problem p = make_problem(m);
  p.dtype_a = p.dtype_b = p.dtype_c = KW_FP32;
  p.batch = batch;
  if (batch > 1) p.stride_a = m * p.lda, p.stride_b = p.k * p.ldb, p.stride_c = m * p.ldc;
  p.num_d = num_d;
  p.d_op = num_d > 0 ? KW_D_MULTIPLY : KW_D_ADD;
  for (uint32_t i = 0; i < num_d; ++i) p.ld_multi_d[i] = p.ldc;
  return p;
}

void require(kw_status status) {
  if (status == KW_OK) return;
  fprintf(stderr, "overhead: %s\n", kw_last_error());
  exit(1);
}

// Hits of the plan cache for problems with a variant, and both steps of a run.
void measure_variant(const char* select_name, const char* run_name, kw_dispatcher* dispatcher, int plans, int64_t batch,
                     uint32_t num_d, const kw_gemm_args& args) {
  auto* problems = static_cast<kw_gemm_problem*>(malloc(sizeof(kw_gemm_problem) * static_cast<size_t>(plans)));
  const kw_plan* plan = nullptr;
  for (int i = 0; i < plans; ++i) {
    problems[i] = with_variant(1 + i, batch, num_d);
    require(kw_dispatcher_select(dispatcher, &problems[i].base, &plan));
  }
  measure(select_name, [&](int i) { require(kw_dispatcher_select(dispatcher, &problems[i % plans].base, &plan)); });
  measure(run_name, [&](int i) { require(kw_dispatcher_run(dispatcher, &problems[i % plans].base, &args)); });
  free(problems);
}

// Groups are read and compared in every launch; plans of them are not cached.
void measure_grouped(kw_dispatcher* dispatcher, void* memory) {
  constexpr int64_t kGroups = 16;
  kw_gemm_group groups[kGroups];
  const void* read[kGroups];
  void* written[kGroups];
  for (int64_t i = 0; i < kGroups; ++i) groups[i] = {1 + i, 512, 256, 256, 512, 512}, read[i] = written[i] = memory;
  kw_grouped_gemm_problem problem = {};
  problem.base = {sizeof problem, KW_OP_GROUPED_GEMM};
  problem.dtype_a = problem.dtype_b = problem.dtype_c = problem.dtype_acc = KW_FP32;
  problem.group_count = kGroups, problem.groups = groups, problem.alpha = 1;
  alignas(256) static char workspace[4096];
  const kw_grouped_gemm_args args = {sizeof args, 0,       kGroups,   groups,           read,   read,
                                     nullptr,     written, workspace, sizeof workspace, nullptr};
  kw_plan* plan = nullptr;
  require(kw_plan_create(dispatcher, &problem.base, &plan));
  measure("plan_launch_16_groups", [&](int) { require(kw_plan_launch(plan, &args)); });
  kw_plan_destroy(plan);
  measure(
      "run_16_groups", [&](int) { require(kw_dispatcher_run(dispatcher, &problem.base, &args)); }, kCalls / 50, true);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: overhead LIBRARY.so VARIANTS.so [PLANS]\n");
    return 2;
  }
  const int plans = argc > 3 ? atoi(argv[3]) : 1000;
  kw_dispatcher *dispatcher = nullptr, *variants = nullptr;
  require(kw_dispatcher_create(nullptr, &dispatcher));
  require(kw_dispatcher_add_library(dispatcher, argv[1], nullptr));
  require(kw_dispatcher_create(nullptr, &variants));
  require(kw_dispatcher_add_library(variants, argv[2], nullptr));
  auto* problems = static_cast<kw_gemm_problem*>(malloc(sizeof(kw_gemm_problem) * static_cast<size_t>(plans)));
  const kw_plan* plan = nullptr;
  for (int i = 0; i < plans; ++i) {
    problems[i] = make_problem(1 + i);
    require(kw_dispatcher_select(dispatcher, &problems[i].base, &plan));
  }
  char memory = 0;
  const kw_gemm_args args = {sizeof args, 0,       &memory, &memory, nullptr,
                             &memory,     nullptr, 0,       nullptr, {&memory, &memory}};
  kw_plan_info info = {};
  info.struct_size = sizeof info;
  require(kw_plan_get_info(plan, &info));

  printf("{\n  \"plans\": %d, \"calls\": %d, \"repeats\": %d,\n", plans, kCalls, kRepeats);
  measure("select_hit_one_problem", [&](int) { require(kw_dispatcher_select(dispatcher, &problems[0].base, &plan)); });
  measure("select_hit_all_problems",
          [&](int i) { require(kw_dispatcher_select(dispatcher, &problems[i % plans].base, &plan)); });
  measure("kernel_launch_raw", [&](int) { require(info.kernel->launch(info.kernel, &memory, &args)); });
  measure("plan_launch", [&](int) { require(kw_plan_launch(plan, &args)); });
  measure("run_hit", [&](int i) { require(kw_dispatcher_run(dispatcher, &problems[i % plans].base, &args)); });
  measure_variant("select_hit_two_d", "run_hit_two_d", variants, plans, 1, 2, args);
  measure_variant("select_hit_batched", "run_hit_batched", variants, plans, 4, 0, args);
  measure_grouped(variants, &memory);
  printf("}\n");
  free(problems);
  kw_dispatcher_destroy(variants);
  kw_dispatcher_destroy(dispatcher);
  return 0;
}
