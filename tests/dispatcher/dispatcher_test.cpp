// Tests of the native dispatcher against mock kernel libraries; argument 1 is the folder that holds them.
#include "kernelwright/dispatcher.h"

#include <stdint.h>
#include <stdlib.h>

#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "handle.hpp"
#include "kernelwright/dispatcher/features.hpp"
#include "kernelwright/dispatcher/support/text.hpp"

namespace {

void a_table_may_end_before_set_runtime() {
  Handle h;
  CHECK(h.add("old") == KW_OK);
}

void loading_refuses_what_is_wrong() {
  Handle h;
  CHECK_FAILS(h.add("absent"), KW_LOAD_FAILED, "absent.so", "cannot be opened");
  CHECK_FAILS(h.add("text"), KW_LOAD_FAILED, "not a shared object");
  CHECK_FAILS(h.add("truncated"), KW_LOAD_FAILED, "truncated");
  CHECK_FAILS(h.add("cut_header"), KW_LOAD_FAILED, "not a shared object");
  CHECK_FAILS(h.add("nosymbol"), KW_LOAD_FAILED, "kw_library_get");
  CHECK_FAILS(h.add("null"), KW_LOAD_FAILED, "returned null");
  CHECK_FAILS(h.add("empty"), KW_LOAD_FAILED, "no kernels");
  CHECK_FAILS(h.add("abi"), KW_ABI_MISMATCH, "version 99", "version 3");
  CHECK_FAILS(h.add("device"), KW_ARCH_MISMATCH, "mock device", "gfx942");
  CHECK_FAILS(kw_dispatcher_add_library(h.d, folder().c_str(), nullptr), KW_LOAD_FAILED, "regular file");
  CHECK_FAILS(kw_dispatcher_add_library(h.d, nullptr, nullptr), KW_INVALID_ARGUMENT, "path");
  CHECK(kw_dispatcher_kernel_count(h.d) == 0);
  CHECK(h.add("good") == KW_OK);
  CHECK(kw_dispatcher_kernel_count(h.d) == 9);
  CHECK(h.add("v4") == KW_OK);
  CHECK(kw_dispatcher_kernel_count(h.d) == 18);
}

void devices_are_checked_when_asked() {
  kw_dispatcher_options options = {};
  options.struct_size = sizeof options;
  options.arch = "x86_64_v4";
  Handle wrong(&options);
  CHECK_FAILS(wrong.add("good"), KW_ARCH_MISMATCH, "x86_64_v3", "x86_64_v4");
  options.arch = nullptr;
  options.device_check = KW_CHECK_ON_LAUNCH;
  Handle late(&options);
  CHECK(late.add("device") == KW_OK);
  const kw_gemm_problem p = make_problem(1, 1, 1);
  float one = 1, d = 0;
  const kw_gemm_args args = {sizeof args, 0, &one, &one, nullptr, &d, {}};
  CHECK_FAILS(kw_dispatcher_run(late.d, &p.base, &kLaunch, &args), KW_ARCH_MISMATCH, "mock device");
  options.device_check = KW_CHECK_NEVER;
  Handle never(&options);
  CHECK(never.add("good") == KW_OK);
  CHECK_FAILS(kw_dispatcher_run(never.d, &p.base, &kLaunch, &args), KW_ARCH_MISMATCH, "only plans");
  options.device_check = 7;
  kw_dispatcher* none = nullptr;
  CHECK_FAILS(kw_dispatcher_create(&options, &none), KW_INVALID_ARGUMENT, "device_check = 7");
  options.struct_size = 3;
  CHECK_FAILS(kw_dispatcher_create(&options, &none), KW_INVALID_ARGUMENT, "struct_size = 3");
  options = {sizeof options, KW_CHECK_ON_ADD, 5, 0, nullptr, nullptr, 0, 0};
  Handle other(&options);
  CHECK_FAILS(other.add("good"), KW_ARCH_MISMATCH, "device 5");
}

void features_gate_kernels() {
  kw_dispatcher_options options = {};
  options.struct_size = sizeof options;
  options.features = "other made_up_feature";
  Handle with(&options), without;
  CHECK(with.add("good") == KW_OK && without.add("good") == KW_OK);
  CHECK(with.use(KW_SELECT_FIRST_FIT) == KW_OK && without.use(KW_SELECT_FIRST_FIT) == KW_OK);
  const kw_gemm_problem p = make_problem(8, 8, 8);
  CHECK(with.chosen(p) == "a_gemm_fp32_rcr_exotic");
  CHECK(without.chosen(p) == "gemm_fp32_rcr_128x128x64");
  CHECK(contains(without.explain(p), "the device lacks made_up_feature"));
  CHECK(contains(without.explain(p), "\"lacks_features\":true"));
  int length = 0;
  CHECK(kernelwright::missing_feature("", "", &length) == nullptr);
  CHECK(kernelwright::missing_feature("avx2", "avx", &length) != nullptr && length == 4);
  CHECK(kernelwright::missing_feature("a  b", "b a", &length) == nullptr);
  CHECK(kernelwright::cpu_count() >= 1);
}

void problems_are_validated() {
  Handle h;
  CHECK(h.add("good") == KW_OK);
  const kw_plan* plan = nullptr;
  const auto select = [&](const kw_gemm_problem& p) { return kw_dispatcher_select(h.d, &p.base, &plan); };
  kw_gemm_problem p = make_problem(4, 5, 6);
  CHECK(select(p) == KW_OK);
  p.m = -1;
  CHECK_FAILS(select(p), KW_INVALID_ARGUMENT, "m = -1", "negative", "allowed");
  p = make_problem(4, 5, 6), p.lda = 5;
  CHECK_FAILS(select(p), KW_INVALID_ARGUMENT, "lda = 5", "k = 6", "row-major", "6 or more");
  p = make_problem(4, 5, 6), p.layout_a = KW_COL_MAJOR, p.lda = 3;
  CHECK_FAILS(select(p), KW_INVALID_ARGUMENT, "lda = 3", "m = 4", "column-major");
  p = make_problem(4, 5, 6), p.ldb = 0;
  CHECK_FAILS(select(p), KW_INVALID_ARGUMENT, "ldb = 0");
  p = make_problem(4, 5, 6), p.ldc = -9;
  CHECK_FAILS(select(p), KW_INVALID_ARGUMENT, "ldc = -9", "n = 5");
  p = make_problem(INT64_MAX / 2, 1, 1), p.lda = 4;
  CHECK_FAILS(select(p), KW_INVALID_ARGUMENT, "m * lda", "overflows");
  p = make_problem(4, 5, 6), p.dtype_a = 77;
  CHECK_FAILS(select(p), KW_INVALID_ARGUMENT, "dtype_a = 77");
  p = make_problem(4, 5, 6), p.dtype_acc = 0;
  CHECK_FAILS(select(p), KW_INVALID_ARGUMENT, "dtype_acc = 0");
  p = make_problem(4, 5, 6), p.layout_c = 2;
  CHECK_FAILS(select(p), KW_INVALID_ARGUMENT, "layout_c = 2");
  p = make_problem(4, 5, 6), p.base.struct_size = 8;
  CHECK_FAILS(select(p), KW_INVALID_ARGUMENT, "struct_size = 8", "224");
  p = make_problem(4, 5, 6), p.base.op = 9;
  CHECK_FAILS(select(p), KW_INVALID_ARGUMENT, "op = 9");
  CHECK_FAILS(kw_dispatcher_select(h.d, nullptr, &plan), KW_INVALID_ARGUMENT, "problem is null");
  CHECK_FAILS(kw_dispatcher_select(nullptr, &p.base, &plan), KW_INVALID_ARGUMENT, "dispatcher is null");
  CHECK(plan == nullptr);
  p = make_problem(4, 5, 6), p.split_k = 2;
  CHECK_FAILS(select(p), KW_NO_KERNEL, "fp32 rcr 4x5x6 split_k 2", "split_k is 2");
  p = make_problem(4, 5, 6), p.dtype_b = KW_FP16, p.dtype_c = KW_BF16;
  CHECK_FAILS(select(p), KW_NO_KERNEL, "fp32*fp16->bf16", "(selection auto, ranked by predicted time)");
  CHECK_FAILS(kw_dispatcher_select(Handle().d, base(make_problem(1, 1, 1)), &plan), KW_NO_KERNEL, "add a library");
}

void selection_is_deterministic() {
  Handle h;
  CHECK(h.add("good") == KW_OK);
  CHECK(h.use(KW_SELECT_FIRST_FIT) == KW_OK);
  std::string reason;
  CHECK(h.chosen(make_problem(64, 64, 64), &reason) == "gemm_fp32_rcr_128x128x64");
  CHECK(reason == "first of 3 that fit");
  CHECK(kw_dispatcher_set_priority(h.d, "gemm_fp32_rcr_64x64x64_whole", 5) == KW_OK);
  CHECK(h.chosen(make_problem(64, 64, 64)) == "gemm_fp32_rcr_64x64x64_whole");
  CHECK(h.chosen(make_problem(64, 64, 65)) == "gemm_fp32_rcr_128x128x64");
  CHECK(kw_dispatcher_set_priority(h.d, "gemm_fp32_rcr_64x64x64_whole", 0) == KW_OK);
  CHECK(h.use(KW_SELECT_ANALYTIC) == KW_OK);
  CHECK(h.chosen(make_problem(300, 64, 128), &reason) == "gemm_fp32_rcr_64x64x64_whole");
  CHECK(reason == "fastest predicted of 3");
  CHECK(h.chosen(make_problem(5, 9, 64), &reason) == "gemm_fp32_rcr_128x128x64");  // one register block in every tile
  CHECK(reason == "fastest predicted of 3, tie by name");
  CHECK(h.use(KW_SELECT_EXPLICIT, "gemm_fp32_rcr_128x128x64") == KW_OK);
  CHECK(h.chosen(make_problem(5, 9, 64)) == "gemm_fp32_rcr_128x128x64");
  kw_gemm_problem row = make_problem(4, 4, 4);
  row.layout_b = KW_ROW_MAJOR;
  const kw_plan* plan = nullptr;
  CHECK_FAILS(kw_dispatcher_select(h.d, &row.base, &plan), KW_NO_KERNEL, "128x128x64: layout_b is row-major",
              "(selection explicit, ranked by name)");
  CHECK_FAILS(h.use(KW_SELECT_EXPLICIT, "unknown"), KW_INVALID_ARGUMENT, "unknown", "allowed", "exotic");
  CHECK_FAILS(h.use(KW_SELECT_EXPLICIT, nullptr), KW_INVALID_ARGUMENT, "kernel is null");
  CHECK_FAILS(h.use(9), KW_INVALID_ARGUMENT, "provider = 9");
  CHECK_FAILS(h.use(KW_SELECT_CALLBACK), KW_INVALID_ARGUMENT, "score is null");
  CHECK(h.add("v4") == KW_OK);
  CHECK_FAILS(h.use(KW_SELECT_EXPLICIT, "gemm_fp32_rcr_32x32x32"), KW_INVALID_ARGUMENT, "ambiguous", "x86_64_v4/");
  CHECK(h.use(KW_SELECT_EXPLICIT, "x86_64_v4/gemm_fp32_rcr_32x32x32") == KW_OK);
  CHECK(h.chosen(make_problem(4, 4, 4)) == "gemm_fp32_rcr_32x32x32");
}

kw_status prefer_small(void* user, const kw_problem*, kw_candidate* candidates, uint64_t count) {
  ++*static_cast<int*>(user);
  for (uint64_t i = 0; i < count; ++i) {
    const auto* traits = static_cast<const kw_gemm_traits*>(candidates[i].kernel->traits);
    if (traits->tile_m != 128) candidates[i].score = traits->tile_m;
  }
  return KW_OK;
}
kw_status refuse_all(void*, const kw_problem*, kw_candidate*, uint64_t) { return KW_OK; }
kw_status rank_large(void* user, const kw_problem* problem, kw_candidate* candidates, uint64_t count) {
  const auto* gemm = reinterpret_cast<const kw_gemm_problem*>(problem);
  return gemm->m < 64 ? KW_UNSUPPORTED : prefer_small(user, problem, candidates, count);
}
kw_status broken(void*, const kw_problem*, kw_candidate*, uint64_t) { return KW_OUT_OF_MEMORY; }

void callbacks_score() {
  Handle h;
  CHECK(h.add("good") == KW_OK);
  int calls = 0;
  kw_selection_options options = {sizeof options, KW_SELECT_CALLBACK, nullptr, prefer_small, &calls, "tiny_model"};
  CHECK(kw_dispatcher_set_selection(h.d, &options) == KW_OK);
  std::string reason;
  const kw_gemm_problem p = make_problem(64, 64, 64);
  CHECK(h.chosen(p, &reason) == "gemm_fp32_rcr_32x32x32");
  CHECK(reason == "best of 2 by tiny_model");
  CHECK(h.chosen(p) != "" && calls == 1);
  CHECK(contains(h.explain(p), "ruled out by tiny_model"));
  options.score = refuse_all;
  CHECK(kw_dispatcher_set_selection(h.d, &options) == KW_OK);
  const kw_plan* plan = nullptr;
  CHECK_FAILS(kw_dispatcher_select(h.d, &p.base, &plan), KW_NO_KERNEL, "ruled out");
  options.score = rank_large;
  CHECK(kw_dispatcher_set_selection(h.d, &options) == KW_OK);
  CHECK(h.chosen(p, &reason) == "gemm_fp32_rcr_32x32x32" && reason == "best of 2 by tiny_model");
  const kw_gemm_problem small = make_problem(4, 64, 64);
  Handle analytic;
  CHECK(analytic.add("good") == KW_OK);
  CHECK(h.chosen(small, &reason) == analytic.chosen(small));
  CHECK(contains(reason, "fastest predicted of ") && contains(reason, ": not ranked by tiny_model"));
  CHECK(contains(h.explain(small), ": not ranked by tiny_model"));
  options.score = broken;
  CHECK(kw_dispatcher_set_selection(h.d, &options) == KW_OK);
  CHECK_FAILS(kw_dispatcher_select(h.d, &p.base, &plan), KW_OUT_OF_MEMORY, "tiny_model failed");
}

void plans_are_cached_and_outlive_changes() {
  Handle h;
  CHECK(h.add("good") == KW_OK);
  std::vector<const kw_plan*> plans;
  for (int64_t m = 0; m < 500; ++m) {
    const kw_plan* plan = nullptr;
    CHECK(kw_dispatcher_select(h.d, base(make_problem(m, 7, 3)), &plan) == KW_OK);
    plans.push_back(plan);
  }
  CHECK(kw_dispatcher_plan_count(h.d) == 500);
  for (int64_t m = 0; m < 500; ++m) {
    const kw_plan* plan = nullptr;
    CHECK(kw_dispatcher_select(h.d, base(make_problem(m, 7, 3)), &plan) == KW_OK);
    CHECK(plan == plans[static_cast<size_t>(m)]);
  }
  CHECK(h.use(KW_SELECT_FIRST_FIT) == KW_OK);
  const kw_plan* plan = nullptr;
  CHECK(kw_dispatcher_select(h.d, base(make_problem(3, 7, 3)), &plan) == KW_OK);
  CHECK(plan != plans[3] && kw_plan_workspace_size(plans[3]) == 0);
  kw_dispatcher_clear_plans(h.d);
  CHECK(kw_dispatcher_plan_count(h.d) == 0);
  CHECK(h.chosen(make_problem(3, 7, 3)) != "");
}

void a_full_cache_refuses_plans_and_still_runs() {
  kw_dispatcher_options options = {};
  options.struct_size = sizeof options;
  options.plan_limit = 3;
  Handle h(&options);
  CHECK(h.add("good") == KW_OK);
  const kw_plan *first = nullptr, *plan = nullptr;
  CHECK(kw_dispatcher_select(h.d, base(make_problem(1, 7, 3)), &first) == KW_OK);
  CHECK(h.chosen(make_problem(2, 7, 3)) != "" && h.chosen(make_problem(3, 7, 3)) != "");
  CHECK_FAILS(kw_dispatcher_select(h.d, base(make_problem(4, 7, 3)), &plan), KW_OUT_OF_MEMORY, "3 plans are cached",
              "plan_limit", "kw_plan_create", "kw_dispatcher_clear_plans");
  CHECK(plan == nullptr && kw_dispatcher_plan_count(h.d) == 3);
  CHECK(kw_dispatcher_select(h.d, base(make_problem(1, 7, 3)), &plan) == KW_OK && plan == first);
  const float ones[64] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  float d[64] = {};
  const kw_gemm_args args = {sizeof args, 0, ones, ones, nullptr, d, {}};
  CHECK(kw_dispatcher_run(h.d, base(make_problem(5, 7, 3)), &kLaunch, &args) == KW_OK && d[0] == 3);
  kw_plan* own = nullptr;
  d[0] = 0;
  CHECK(kw_plan_create(h.d, base(make_problem(6, 7, 3)), &own) == KW_OK);
  CHECK(kw_plan_launch(own, &kLaunch, &args) == KW_OK && d[0] == 3);
  CHECK(kw_dispatcher_plan_count(h.d) == 3);
  kw_plan_destroy(own);
  kw_plan_destroy(nullptr);
  CHECK_FAILS(kw_plan_create(h.d, nullptr, &own), KW_INVALID_ARGUMENT, "problem is null");
  CHECK(own == nullptr);
  CHECK_FAILS(kw_plan_create(nullptr, base(make_problem(1, 1, 1)), &own), KW_INVALID_ARGUMENT, "dispatcher is null");
  CHECK_FAILS(kw_plan_create(h.d, base(make_problem(1, 1, 1)), nullptr), KW_INVALID_ARGUMENT, "plan is null");
  kw_dispatcher_clear_plans(h.d);
  CHECK(h.chosen(make_problem(4, 7, 3)) != "");
}

void launches_compute_and_check_arguments() {
  Handle h;
  CHECK(h.add("good") == KW_OK);
  kw_gemm_problem p = make_problem(2, 2, 3);
  p.layout_b = KW_ROW_MAJOR, p.ldb = 2, p.alpha = 2, p.beta = 10;
  const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 0, 1, 1, 1}, c[] = {1, 2, 3, 4};
  float d[4] = {};
  const kw_plan* plan = nullptr;
  CHECK(kw_dispatcher_select(h.d, &p.base, &plan) == KW_OK);
  CHECK(kw_plan_workspace_size(plan) == 4096);
  alignas(256) static char workspace[4096 + 256];
  kw_gemm_args args = {sizeof args, 0, a, b, c, d, {}};
  kw_launch where = make_launch(workspace, 4096);
  CHECK(kw_plan_launch(plan, &where, &args) == KW_OK);
  CHECK(d[0] == 18 && d[1] == 30 && d[2] == 50 && d[3] == 62);
  where.workspace_bytes = 4095;
  CHECK_FAILS(kw_plan_launch(plan, &where, &args), KW_WORKSPACE_TOO_SMALL, "4095", "4096");
  where.workspace_bytes = 4096, where.workspace = workspace + 8;
  CHECK_FAILS(kw_plan_launch(plan, &where, &args), KW_INVALID_ARGUMENT, "aligned to 256");
  where.workspace = nullptr;
  CHECK_FAILS(kw_plan_launch(plan, &where, &args), KW_INVALID_ARGUMENT, "workspace is null");
  where.workspace = workspace, args.c = nullptr;
  CHECK_FAILS(kw_plan_launch(plan, &where, &args), KW_INVALID_ARGUMENT, "c is null", "beta");
  args.d = nullptr;
  CHECK_FAILS(kw_plan_launch(plan, &where, &args), KW_INVALID_ARGUMENT, "d is null");
  args.d = d, args.a = nullptr;
  CHECK_FAILS(kw_plan_launch(plan, &where, &args), KW_INVALID_ARGUMENT, "a is null");
  args.struct_size = 4;
  CHECK_FAILS(kw_plan_launch(plan, &where, &args), KW_INVALID_ARGUMENT, "struct_size = 4");
  CHECK_FAILS(kw_plan_launch(plan, &where, nullptr), KW_INVALID_ARGUMENT, "args is null");
  CHECK_FAILS(kw_plan_launch(nullptr, &where, &args), KW_INVALID_ARGUMENT, "plan is null");
  args.struct_size = sizeof args, args.a = a, args.c = c, args.d = d;
  CHECK_FAILS(kw_plan_launch(plan, nullptr, &args), KW_INVALID_ARGUMENT, "launch is null");
  where.device = 1;
  CHECK_FAILS(kw_plan_launch(plan, &where, &args), KW_INVALID_ARGUMENT, "device = 1", "allowed: 0");
  where.struct_size = 8;
  CHECK_FAILS(kw_plan_launch(plan, &where, &args), KW_INVALID_ARGUMENT, "launch: struct_size = 8", "32");
  kw_gemm_problem bad = make_problem(2, 2, 2);
  bad.dtype_a = bad.dtype_b = KW_INT8, bad.dtype_c = bad.dtype_acc = KW_INT32;
  args = {sizeof args, 0, a, b, nullptr, d, {}};
  CHECK_FAILS(kw_dispatcher_run(h.d, &bad.base, &kLaunch, &args), KW_LAUNCH_FAILED, "gemm_int8_rcr_fails", "said no");
}

void zero_sizes_work() {
  Handle h;
  CHECK(h.add("good") == KW_OK);
  kw_gemm_args args = {sizeof args, 0, nullptr, nullptr, nullptr, nullptr, {}};
  CHECK(kw_dispatcher_run(h.d, base(make_problem(0, 5, 5)), &kLaunch, &args) == KW_OK);
  CHECK(kw_dispatcher_run(h.d, base(make_problem(5, 0, 5)), &kLaunch, &args) == KW_OK);
  CHECK(kw_dispatcher_run(h.d, base(make_problem(0, 0, 0)), &kLaunch, &args) == KW_OK);
  float d[4] = {9, 9, 9, 9};
  args.d = d;
  CHECK(kw_dispatcher_run(h.d, base(make_problem(2, 2, 0)), &kLaunch, &args) == KW_OK);
  CHECK(d[0] == 0 && d[3] == 0);
}

void registry_lists_and_exports() {
  Handle h;
  CHECK(h.add("good", 3) == KW_OK);
  kw_kernel_info info = {};
  CHECK_FAILS(kw_dispatcher_kernel_at(h.d, 0, &info), KW_INVALID_ARGUMENT, "struct_size = 0");
  info.struct_size = sizeof info;
  CHECK(kw_dispatcher_kernel_at(h.d, 0, &info) == KW_OK);
  CHECK(info.priority == 3 && strcmp(info.kernel->name, "a_gemm_fp32_rcr_exotic") == 0);
  CHECK_FAILS(kw_dispatcher_kernel_at(h.d, 9, &info), KW_INVALID_ARGUMENT, "index = 9", "below 9");
  const std::string identity = info.kernel->identity;
  CHECK(kw_dispatcher_find_kernel(h.d, identity.c_str(), &info) == KW_OK);
  CHECK(strcmp(info.library->name, "mock") == 0);
  CHECK_FAILS(kw_dispatcher_find_kernel(h.d, "nope", &info), KW_INVALID_ARGUMENT, "nope");
  size_t needed = 0;
  char small[4];
  CHECK_FAILS(kw_dispatcher_export_json(h.d, small, sizeof small, &needed), KW_BUFFER_TOO_SMALL, "4 bytes");
  std::string text(needed, '\0');
  CHECK(kw_dispatcher_export_json(h.d, &text[0], needed, nullptr) == KW_OK);
  CHECK(contains(text, "\"priority\":3") && contains(text, identity.c_str()));
  CHECK(kw_dispatcher_set_num_threads(h.d, 2) == KW_OK);
  CHECK_FAILS(kw_dispatcher_set_num_threads(h.d, 65), KW_INVALID_ARGUMENT, "at most 64");
  CHECK(kw_dispatcher_version() == KW_DISPATCHER_VERSION && kw_dispatcher_abi_version() == KW_ABI_VERSION);
}

void text_is_json() {
  kernelwright::Text text;
  text.quoted("a\"\\\n\x01")
      .fixed3(-1.0005)
      .add(' ')
      .fixed3(1e300)
      .add(' ')
      .exact(0.1)
      .exact(1.0 / 0.0)
      .quoted(nullptr);
  CHECK(strcmp(text.c_str(), "\"a\\\"\\\\\\u000a\\u0001\"-1.001 1.0000000000000001e+300 0.10000000000000001nullnull") ==
        0);
}

// Readers, writers of the cache and two dispatchers at once: for ThreadSanitizer.
void threads_share_dispatchers() {
  Handle first, second;
  CHECK(first.add("good") == KW_OK && second.add("good") == KW_OK);
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      kw_dispatcher* d = t % 2 == 0 ? first.d : second.d;
      alignas(256) char workspace[4096];
      for (int i = 0; i < 300; ++i) {
        kw_gemm_problem p = make_problem(1 + (i * 7 + t) % 41, 3, 2);
        p.layout_b = KW_ROW_MAJOR, p.ldb = 3;
        float a[82], b[6], out[123];
        for (float& x : a) x = 1;
        for (float& x : b) x = static_cast<float>(t);
        const kw_gemm_args args = {sizeof args, 0, a, b, nullptr, out, {}};
        const kw_launch where = make_launch(workspace, sizeof workspace);
        CHECK(kw_dispatcher_run(d, &p.base, &where, &args) == KW_OK);
        CHECK(out[0] == 2 * static_cast<float>(t));
        if (t < 2 && i % 100 == 50) CHECK(kw_dispatcher_set_priority(d, "gemm_fp32_rrr_32x32x32", i) == KW_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Many problems through a small cache, each thread with plans of its own beside it: for both sanitizers.
void threads_share_a_full_cache() {
  kw_dispatcher_options options = {};
  options.struct_size = sizeof options;
  options.plan_limit = 20;
  Handle h(&options);
  CHECK(h.add("good") == KW_OK);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const kw_gemm_problem p = make_problem(1 + (i * 7 + t) % 41, 3, 2);
        float a[82], b[6], out[123];
        for (float& x : a) x = 1;
        for (float& x : b) x = static_cast<float>(t);
        const kw_gemm_args args = {sizeof args, 0, a, b, nullptr, out, {}};
        if (i % 3 != 0) {
          CHECK(kw_dispatcher_run(h.d, &p.base, &kLaunch, &args) == KW_OK);
        } else {
          kw_plan* own = nullptr;
          CHECK(kw_plan_create(h.d, &p.base, &own) == KW_OK);
          CHECK(kw_plan_launch(own, &kLaunch, &args) == KW_OK);
          kw_plan_destroy(own);
        }
        CHECK(out[0] == 2 * static_cast<float>(t));
        if (t == 0 && i == 100) CHECK(kw_dispatcher_set_priority(h.d, "gemm_fp32_rcr_32x32x32", i) == KW_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(kw_dispatcher_plan_count(h.d) == 20);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  folder() = argv[1];
  a_table_may_end_before_set_runtime();
  loading_refuses_what_is_wrong();
  loading();
  devices_are_checked_when_asked();
  features_gate_kernels();
  problems_are_validated();
  selection_is_deterministic();
  callbacks_score();
  plans_are_cached_and_outlive_changes();
  a_full_cache_refuses_plans_and_still_runs();
  launches_compute_and_check_arguments();
  zero_sizes_work();
  registry_lists_and_exports();
  estimates();
  text_is_json();
  threads_share_dispatchers();
  threads_share_a_full_cache();
  plan_cache();
  variants();
  stages();
  models();
  convolution();
  attention();
  sharing();
  widths();
  threads();
  if (failures() == 0) puts("dispatcher: all tests passed");
  return failures() == 0 ? 0 : 1;
}
