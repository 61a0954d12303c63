// Nanoseconds of the native dispatcher against a kernel that does nothing: plan-cache hit, launch, both.
// Usage: overhead LIBRARY.so [PLANS]; prints JSON. CPU time of the thread, so that other
// work on the machine does not count. LIBRARY must serve fp16 rrr (see mock_library.c).
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tilewright/dispatcher.h"

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
void measure(const char* name, Call call, bool last = false) {
  double ns[kRepeats];
  for (double& sample : ns) {
    const double start = now_ns();
    for (int i = 0; i < kCalls; ++i) call(i);
    sample = (now_ns() - start) / kCalls;
  }
  qsort(ns, kRepeats, sizeof ns[0], compare);
  printf("  \"%s\": {\"median_ns\": %.1f, \"min_ns\": %.1f, \"p90_ns\": %.1f}%s\n", name, ns[kRepeats / 2], ns[0],
         ns[kRepeats * 9 / 10], last ? "" : ",");
}

tw_gemm_problem make_problem(int64_t m) {
  tw_gemm_problem p = {};
  p.base = {sizeof p, TW_OP_GEMM};
  p.dtype_a = p.dtype_b = p.dtype_c = TW_FP16;
  p.dtype_acc = TW_FP32;
  p.split_k = 1;
  p.batch = 1;
  p.m = m, p.n = 512, p.k = 256;
  p.lda = 256, p.ldb = p.ldc = 512;
  p.alpha = 1;
  return p;
}

void require(tw_status status) {
  if (status == TW_OK) return;
  fprintf(stderr, "overhead: %s\n", tw_last_error());
  exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: overhead LIBRARY.so [PLANS]\n");
    return 2;
  }
  const int plans = argc > 2 ? atoi(argv[2]) : 1000;
  tw_dispatcher* dispatcher = nullptr;
  require(tw_dispatcher_create(nullptr, &dispatcher));
  require(tw_dispatcher_add_library(dispatcher, argv[1], nullptr));
  auto* problems = static_cast<tw_gemm_problem*>(malloc(sizeof(tw_gemm_problem) * static_cast<size_t>(plans)));
  const tw_plan* plan = nullptr;
  for (int i = 0; i < plans; ++i) {
    problems[i] = make_problem(1 + i);
    require(tw_dispatcher_select(dispatcher, &problems[i].base, &plan));
  }
  char memory = 0;
  const tw_gemm_args args = {sizeof args, 0, &memory, &memory, nullptr, &memory, nullptr, 0, nullptr, {}};
  tw_plan_info info = {};
  info.struct_size = sizeof info;
  require(tw_plan_get_info(plan, &info));

  printf("{\n  \"plans\": %d, \"calls\": %d, \"repeats\": %d,\n", plans, kCalls, kRepeats);
  measure("select_hit_one_problem", [&](int) { require(tw_dispatcher_select(dispatcher, &problems[0].base, &plan)); });
  measure("select_hit_all_problems",
          [&](int i) { require(tw_dispatcher_select(dispatcher, &problems[i % plans].base, &plan)); });
  measure("kernel_launch_raw", [&](int) { require(info.kernel->launch(info.kernel, &memory, &args)); });
  measure("plan_launch", [&](int) { require(tw_plan_launch(plan, &args)); });
  measure("run_hit", [&](int i) { require(tw_dispatcher_run(dispatcher, &problems[i % plans].base, &args)); }, true);
  printf("}\n");
  free(problems);
  tw_dispatcher_destroy(dispatcher);
  return 0;
}
