// Batches, D tensors, activations, grouped problems, shuffled B and the choice of split_k, against the mock's variants.
#include <thread>
#include <vector>

#include "handle.hpp"
#include "kernelwright/dispatcher/gemm/estimate.hpp"

namespace {

// Row-major without gaps.
kw_gemm_problem row_major(int64_t m, int64_t n, int64_t k) {
  kw_gemm_problem p = make_problem(m, n, k);
  p.layout_b = KW_ROW_MAJOR, p.ldb = p.ldc;
  return p;
}

kw_gemm_problem batch_of(int64_t batch, int64_t m, int64_t n, int64_t k) {
  kw_gemm_problem p = row_major(m, n, k);
  p.batch = batch, p.stride_a = m * k, p.stride_b = k * n, p.stride_c = m * n;
  return p;
}

struct Variants : Handle {
  explicit Variants(const kw_dispatcher_options* options = nullptr) : Handle(options) {
    CHECK(add("variants") == KW_OK);
  }
};

void variant_fields_are_validated() {
  const auto invalid = [](const kw_gemm_problem& p) { return kw_problem_validate(&p.base); };
  kw_gemm_problem p = row_major(4, 5, 6);
  p.split_k = 0;
  CHECK(invalid(p) == KW_OK);
  p = row_major(4, 5, 6), p.batch = 0;
  CHECK_FAILS(invalid(p), KW_INVALID_ARGUMENT, "batch = 0", "1 or more");
  p = batch_of(3, 4, 5, 6), p.stride_a = -1;
  CHECK_FAILS(invalid(p), KW_INVALID_ARGUMENT, "stride_a = -1", "negative");
  p = batch_of(3, 4, 5, 6), p.stride_a = p.stride_b = 0;  // shared
  CHECK(invalid(p) == KW_OK);
  p = batch_of(3, 4, 5, 6), p.stride_c = 19;
  CHECK_FAILS(invalid(p), KW_INVALID_ARGUMENT, "stride_c = 19", "overlap", "20 or more");
  p = batch_of(3, 4, 5, 6), p.stride_c = 5, p.ldc = 15;  // side by side in one matrix
  CHECK(invalid(p) == KW_OK);
  p.ldc = 14;
  CHECK_FAILS(invalid(p), KW_INVALID_ARGUMENT, "stride_c = 5", "ldc = 14");
  p = batch_of(INT64_MAX / 4, 4, 5, 6);
  CHECK_FAILS(invalid(p), KW_INVALID_ARGUMENT, "batch * stride_a", "overflows");
  p = batch_of(3, 0, 5, 6), p.stride_c = 0;
  CHECK(invalid(p) == KW_OK);
  p = row_major(4, 5, 6), p.num_d = 5;
  CHECK_FAILS(invalid(p), KW_INVALID_ARGUMENT, "num_d = 5", "0 to 4");
  p = row_major(4, 5, 6), p.d_op = 2;
  CHECK_FAILS(invalid(p), KW_INVALID_ARGUMENT, "d_op = 2", "multiply");
  p = row_major(4, 5, 6), p.activation = 7;
  CHECK_FAILS(invalid(p), KW_INVALID_ARGUMENT, "activation = 7", "tanh");
  p = row_major(4, 5, 6), p.reserved = 1;
  CHECK_FAILS(invalid(p), KW_INVALID_ARGUMENT, "reserved = 1");
  p = row_major(4, 5, 6), p.num_d = 2, p.ld_multi_d[0] = 0, p.ld_multi_d[1] = 4;
  CHECK_FAILS(invalid(p), KW_INVALID_ARGUMENT, "ld_multi_d[1] = 4", "n = 5", "row-major");
  p = batch_of(2, 4, 5, 6), p.num_d = 1, p.ld_multi_d[0] = 5, p.stride_multi_d[0] = -5;
  CHECK_FAILS(invalid(p), KW_INVALID_ARGUMENT, "stride_multi_d[0] = -5", "negative");
}

void batches_go_to_batched_kernels() {
  Variants h;
  CHECK(h.chosen(batch_of(3, 4, 5, 6)) == "gemm_fp32_rrr_batched");
  CHECK(h.chosen(row_major(4, 5, 6)) == "gemm_fp32_rrr_batched");  // serves one too: a tie by name
  CHECK(contains(h.explain(batch_of(3, 4, 5, 6)), "batch is 3, this kernel serves 1"));
  CHECK(contains(h.explain(batch_of(3, 4, 5, 6)), "\"batch\":3,\"stride_a\":24"));
  kw_gemm_problem p = batch_of(2, 1, 2, 2);
  p.stride_b = 0;
  const float a[] = {1, 2, 3, 4}, b[] = {1, 0, 1, 1};
  float d[4] = {};
  kw_gemm_args args = {};
  args.struct_size = sizeof args, args.a = a, args.b = b, args.d = d;
  CHECK(kw_dispatcher_run(h.d, &p.base, &kLaunch, &args) == KW_OK);
  CHECK(d[0] == 3 && d[1] == 2 && d[2] == 7 && d[3] == 4);
  p.batch = 3;  // another problem, another plan
  const kw_plan *two = nullptr, *three = nullptr;
  CHECK(kw_dispatcher_select(h.d, base(batch_of(2, 1, 2, 2)), &two) == KW_OK);
  CHECK(kw_dispatcher_select(h.d, &p.base, &three) == KW_OK && two != three);
  Handle plain;
  CHECK(plain.add("good") == KW_OK);
  const kw_plan* plan = nullptr;
  CHECK_FAILS(kw_dispatcher_select(plain.d, &p.base, &plan), KW_NO_KERNEL, "3*1x2x2", "batch is 3");
}

void d_tensors_are_combined() {
  Variants h;
  kw_gemm_problem p = row_major(2, 2, 1);
  p.num_d = 1, p.activation = KW_ACTIVATION_RELU;
  CHECK(h.chosen(p) == "gemm_fp32_rrr_multid_Add_Relu_d1");  // ld_multi_d 0: a bias
  const float a[] = {1, 2}, b[] = {1, -1}, bias[] = {10, -1}, scale[] = {1, 2, 3, 4};
  float d[4] = {};
  kw_gemm_args args = {};
  args.struct_size = sizeof args, args.a = a, args.b = b, args.d = d;
  CHECK_FAILS(kw_dispatcher_run(h.d, &p.base, &kLaunch, &args), KW_INVALID_ARGUMENT, "multi_d[0] is null", "1 D");
  args.multi_d[0] = bias;
  CHECK(kw_dispatcher_run(h.d, &p.base, &kLaunch, &args) == KW_OK);
  CHECK(d[0] == 11 && d[1] == 0 && d[2] == 12 && d[3] == 0);
  const kw_plan* plan = nullptr;
  p.activation = KW_ACTIVATION_SILU;
  CHECK_FAILS(kw_dispatcher_select(h.d, &p.base, &plan), KW_NO_KERNEL, "add 1 D silu", "activation is silu",
              "does relu");
  p.activation = KW_ACTIVATION_NONE, p.num_d = 2, p.d_op = KW_D_MULTIPLY, p.ld_multi_d[0] = p.ld_multi_d[1] = 2;
  CHECK(h.chosen(p) == "gemm_fp32_rrr_multid_Multiply_d2");
  args.multi_d[0] = args.multi_d[1] = scale;
  CHECK(kw_dispatcher_run(h.d, &p.base, &kLaunch, &args) == KW_OK);
  CHECK(d[0] == 1 && d[1] == -4 && d[2] == 18 && d[3] == -32);
  CHECK(contains(h.explain(p), "\"num_d\":2,\"d_op\":\"multiply\",\"activation\":\"none\",\"ld_multi_d\":[2,2]"));
  p.d_op = KW_D_ADD;
  CHECK_FAILS(kw_dispatcher_select(h.d, &p.base, &plan), KW_NO_KERNEL, "d_op is add", "does multiply");
}

kw_grouped_gemm_problem grouped(const kw_gemm_group* groups, int64_t count) {
  kw_grouped_gemm_problem p = {};
  p.base = {sizeof p, KW_OP_GROUPED_GEMM};
  p.dtype_a = p.dtype_b = p.dtype_c = p.dtype_acc = KW_FP32;
  p.group_count = count, p.groups = groups, p.alpha = 1;
  return p;
}

void grouped_problems_are_validated() {
  const kw_gemm_group groups[] = {{2, 2, 2, 2, 2, 2}, {1, 3, 2, 1, 3, 3}};
  kw_grouped_gemm_problem p = grouped(groups, 2);
  CHECK_FAILS(kw_problem_validate(&p.base), KW_INVALID_ARGUMENT, "group 1", "lda = 1", "k = 2");
  p.group_count = 1;
  CHECK(kw_problem_validate(&p.base) == KW_OK);
  p.reserved = 4;
  CHECK_FAILS(kw_problem_validate(&p.base), KW_INVALID_ARGUMENT, "reserved = 4");
  p.reserved = 0, p.group_count = -1;
  CHECK_FAILS(kw_problem_validate(&p.base), KW_INVALID_ARGUMENT, "group_count = -1");
  p = grouped(nullptr, 1);
  CHECK_FAILS(kw_problem_validate(&p.base), KW_INVALID_ARGUMENT, "groups is null");
  p = grouped(groups, 1), p.dtype_c = 99;
  CHECK_FAILS(kw_problem_validate(&p.base), KW_INVALID_ARGUMENT, "dtype_c = 99");
  p = grouped(groups, 1), p.base.struct_size = 7;
  CHECK_FAILS(kw_problem_validate(&p.base), KW_INVALID_ARGUMENT, "grouped gemm problem", "struct_size = 7");
}

void grouped_problems_have_plans_of_their_own() {
  Variants h;
  std::vector<kw_gemm_group> groups = {{1, 2, 2, 2, 2, 2}, {2, 1, 1, 1, 1, 1}, {0, 4, 4, 4, 4, 4}};
  const kw_grouped_gemm_problem p = grouped(groups.data(), 3);
  const kw_plan* cached = nullptr;
  CHECK_FAILS(kw_dispatcher_select(h.d, &p.base, &cached), KW_INVALID_ARGUMENT, "not cached", "kw_plan_create");
  kw_plan* plan = nullptr;
  CHECK(kw_plan_create(h.d, &p.base, &plan) == KW_OK);
  CHECK(kw_plan_workspace_size(plan) == 4096);
  const float a0[] = {1, 2}, b0[] = {1, 0, 1, 1}, a1[] = {3, 4}, b1[] = {5};
  float d0[2] = {}, d1[2] = {};
  const void *a[] = {a0, a1, nullptr}, *b[] = {b0, b1, nullptr};
  void* d[] = {d0, d1, nullptr};
  alignas(256) static char workspace[4096];
  const std::vector<kw_gemm_group> again = groups;
  kw_launch where = make_launch(workspace, sizeof workspace);
  kw_grouped_gemm_args args = {sizeof args, 0, 3, again.data(), a, b, nullptr, d};
  for (kw_gemm_group& group : groups) group = {};  // the plan has its own copy
  CHECK(kw_plan_launch(plan, &where, &args) == KW_OK);
  CHECK(d0[0] == 3 && d0[1] == 2 && d1[0] == 15 && d1[1] == 20);
  args.groups = groups.data();
  CHECK_FAILS(kw_plan_launch(plan, &where, &args), KW_INVALID_ARGUMENT, "group 0 is not the problem's");
  args.groups = again.data(), args.group_count = 2;
  CHECK_FAILS(kw_plan_launch(plan, &where, &args), KW_INVALID_ARGUMENT, "group_count = 2", "3");
  args.group_count = 3, a[1] = nullptr;
  CHECK_FAILS(kw_plan_launch(plan, &where, &args), KW_INVALID_ARGUMENT, "a[1] is null");
  a[1] = a1, args.b = nullptr;
  CHECK_FAILS(kw_plan_launch(plan, &where, &args), KW_INVALID_ARGUMENT, "b or d is null");
  args.b = b, where.workspace_bytes = 5;
  CHECK_FAILS(kw_plan_launch(plan, &where, &args), KW_WORKSPACE_TOO_SMALL, "4096");
  args.struct_size = 5;
  CHECK_FAILS(kw_plan_launch(plan, &where, &args), KW_INVALID_ARGUMENT, "grouped gemm args", "struct_size = 5");
  kw_plan_destroy(plan);

  groups = again, where.workspace_bytes = sizeof workspace;
  args = {sizeof args, 0, 3, groups.data(), a, b, nullptr, d};
  d1[0] = 0;
  CHECK(kw_dispatcher_run(h.d, &p.base, &where, &args) == KW_OK && d1[0] == 15);
  CHECK(kw_dispatcher_plan_count(h.d) == 0);
  size_t needed = 0;
  CHECK(kw_dispatcher_explain(h.d, &p.base, nullptr, 0, &needed) == KW_BUFFER_TOO_SMALL);
  std::string text(needed, '\0');
  CHECK(kw_dispatcher_explain(h.d, &p.base, &text[0], needed, nullptr) == KW_OK);
  CHECK(contains(text, "\"op\":\"grouped_gemm\"") && contains(text, "\"groups\":[{\"m\":1,") &&
        contains(text, "this kernel's is gemm"));
  const kw_grouped_gemm_problem none = grouped(nullptr, 0);
  args.group_count = 0, where.workspace = nullptr;
  CHECK(kw_dispatcher_run(h.d, &none.base, &where, &args) == KW_OK);
  groups[2].k = groups[2].lda = 2000;
  CHECK_FAILS(kw_plan_create(h.d, &p.base, &plan), KW_NO_KERNEL, "grouped gemm fp32 rrr of 3 groups: 1x2x2, 2x1x1",
              "group 2: k is 2000");
}

void b_is_shuffled_for_its_kernels() {
  Variants h;
  kw_gemm_problem p = make_problem(2, 3, 2);  // column-major B
  uint64_t format = 0, bytes = 0;
  CHECK(kw_dispatcher_shuffled_b(h.d, &p.base, &format, &bytes) == KW_OK && format == 77 && bytes == 24);
  const float b[] = {1, 2, 3, 4, 5, 6}, a[] = {1, 0, 0, 1};
  float shuffled[6] = {}, d[6] = {};
  CHECK_FAILS(kw_dispatcher_shuffle_b(h.d, &p.base, b, shuffled, bytes), KW_INVALID_ARGUMENT, "b_format = 0");
  p.b_format = format;
  bytes = 0;
  CHECK(kw_dispatcher_shuffled_b(h.d, &p.base, &format, &bytes) == KW_OK && format == 77 && bytes == 24);
  CHECK_FAILS(kw_dispatcher_shuffle_b(h.d, &p.base, b, shuffled, 23), KW_BUFFER_TOO_SMALL, "23", "24");
  CHECK_FAILS(kw_dispatcher_shuffle_b(h.d, &p.base, nullptr, shuffled, 24), KW_INVALID_ARGUMENT, "b is null");
  CHECK_FAILS(kw_dispatcher_shuffle_b(h.d, &p.base, b, nullptr, 24), KW_INVALID_ARGUMENT, "shuffled is null");
  CHECK(kw_dispatcher_shuffle_b(h.d, &p.base, b, shuffled, 24) == KW_OK && shuffled[0] == 6);
  CHECK(h.chosen(p) == "gemm_fp32_rcr_preshuffle");
  kw_gemm_args args = {};
  args.struct_size = sizeof args, args.a = a, args.b = shuffled, args.d = d;
  CHECK(kw_dispatcher_run(h.d, &p.base, &kLaunch, &args) == KW_OK);
  CHECK(d[0] == 1 && d[1] == 3 && d[2] == 5 && d[3] == 2 && d[4] == 4 && d[5] == 6);
  const kw_plan* plan = nullptr;
  p.b_format = 78;
  CHECK_FAILS(kw_dispatcher_select(h.d, &p.base, &plan), KW_NO_KERNEL, "B shuffled", "another kernel");
  p.b_format = 0;
  CHECK_FAILS(kw_dispatcher_select(h.d, &p.base, &plan), KW_NO_KERNEL, "not shuffled");
  p = row_major(2, 3, 2);
  CHECK_FAILS(kw_dispatcher_shuffled_b(h.d, &p.base, &format, &bytes), KW_NO_KERNEL, "layout_b");
  Handle plain;
  CHECK(plain.add("good") == KW_OK);
  CHECK_FAILS(kw_dispatcher_shuffled_b(plain.d, &p.base, &format, &bytes), KW_NO_KERNEL, "preshuffle");
}

uint32_t planned_split(const kw_plan* plan) {
  kw_plan_info info = {};
  info.struct_size = sizeof info;
  CHECK(kw_plan_get_info(plan, &info) == KW_OK && info.stage_count == 1);
  unsigned slices = 0;
  CHECK(sscanf(info.choices, "split_k=%u", &slices) == 1);
  return slices;
}

void split_k_is_chosen() {
  kw_dispatcher_options options = {};
  options.struct_size = sizeof options;
  options.compute_units = 16;
  Variants h(&options);
  CHECK(h.use(KW_SELECT_EXPLICIT, "gemm_fp32_rrr_splitk") == KW_OK);
  kw_gemm_problem p = row_major(8, 16, 4096);
  p.split_k = 0;
  const kw_plan *plan = nullptr, *again = nullptr;
  CHECK(kw_dispatcher_select(h.d, &p.base, &plan) == KW_OK);
  const uint32_t split = planned_split(plan);
  CHECK(split > 1 && split <= 16);
  kw_gemm_problem stated = p;
  stated.split_k = split;
  CHECK(kw_dispatcher_select(h.d, &stated.base, &again) == KW_OK && again != plan && planned_split(again) == split);
  CHECK(kw_dispatcher_select(h.d, &p.base, &again) == KW_OK && again == plan);
  char text[32];
  snprintf(text, sizeof text, "\"choices\":\"split_k=%u\"", split);
  CHECK(contains(h.explain(p), text) && contains(h.explain(p), "\"split_k\":0,"));
  p.k = 64, p.lda = 64;  // two tiles of k: one slice is not served, more than two would be empty
  CHECK(kw_dispatcher_select(h.d, &p.base, &plan) == KW_OK && planned_split(plan) == 2);
  p.k = 32;
  CHECK_FAILS(kw_dispatcher_select(h.d, &p.base, &plan), KW_NO_KERNEL, "rrr 8x16x32", "split_k is 1");
  CHECK(h.use(KW_SELECT_ANALYTIC) == KW_OK);  // then a kernel without slices
  CHECK(kw_dispatcher_select(h.d, &p.base, &plan) == KW_OK && planned_split(plan) == 1);
}

void estimates_count_variants() {
  const kw_arch gpu = {sizeof gpu, KW_BACKEND_HIP, "x", 10, 64, KW_FP8_OCP, 0, 65536, 1.0, 1e9, {0, 0, 1000}};
  kw_gemm_traits t = {};
  t.tile_m = t.tile_n = 100, t.tile_k = 10;
  kw_gemm_problem p = batch_of(11, 100, 100, 100);
  p.dtype_a = p.dtype_b = p.dtype_c = KW_FP16;
  kernelwright::Estimate e = kernelwright::estimate(p, t, {&gpu, 10});
  CHECK(e.tiles == 11 && e.waves == 2 && e.compute_us == 4.0 && e.useful == 1);
  t.stream_k = KW_STREAM_K_LINEAR;  // 110 steps over 10 units
  e = kernelwright::estimate(p, t, {&gpu, 10});
  CHECK(e.waves == 1.1 && e.compute_us == 11 * 0.2);
  t.stream_k = 0;

  // Slices are added up behind the rest: 4 us, and their bytes once more.
  t.max_split_k = 64, p.batch = 1, p.split_k = 5;  // five workgroups of two steps
  e = kernelwright::estimate(p, t, {&gpu, 10});
  CHECK(e.compute_us == 2 * 0.2 && e.total_us > 4.4 && e.total_us < 4.401);
  t.max_split_k = 1, p.batch = 11, p.split_k = 1;

  kw_arch slow = gpu;
  slow.memory_gbytes_per_s = 0.001;  // one byte per microsecond: memory_us counts bytes
  const double bytes = 11.0 * 2 * 3 * 100 * 100;
  CHECK(kernelwright::estimate(p, t, {&slow, 10}).memory_us == bytes);
  p.stride_b = 0;
  CHECK(kernelwright::estimate(p, t, {&slow, 10}).memory_us == bytes - 10.0 * 2 * 100 * 100);
  p = batch_of(1, 100, 100, 100);
  p.dtype_a = p.dtype_b = p.dtype_c = KW_FP16, p.num_d = 2, p.ld_multi_d[1] = 100;
  CHECK(kernelwright::estimate(p, t, {&slow, 10}).memory_us == 2.0 * (4 * 100 * 100 + 100));
  p.num_d = 0, p.split_k = 2, t.max_split_k = 64;
  e = kernelwright::estimate(p, t, {&slow, 10});
  CHECK(e.memory_us == 2.0 * 3 * 100 * 100 + 8.0 * 2 * 100 * 100);
  CHECK(e.total_us == e.memory_us + 4);  // nothing else takes as long
  t.max_split_k = 1, p.split_k = 1;

  const kw_gemm_group groups[] = {{100, 100, 100, 100, 100, 100}, {1000, 100, 50, 50, 100, 100}, {0, 5, 5, 5, 5, 5}};
  kw_grouped_gemm_problem g = grouped(groups, 3);
  g.dtype_a = g.dtype_b = g.dtype_c = KW_FP16;
  e = kernelwright::estimate(g, t, {&gpu, 10});
  CHECK(e.tiles == 11 && e.waves == 2 && e.useful == 1);
  CHECK(e.compute_us > 2.18 && e.compute_us < 2.19);  // two waves of (2 + 10 * 1) / 11
  g.group_count = 0;
  CHECK(kernelwright::estimate(g, t, {&gpu, 10}).total_us == 0);
}

// Batches through the cache, grouped problems beside it: for ThreadSanitizer.
void threads_share_variants() {
  Variants h;
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      alignas(256) char workspace[4096];
      const float ones[64] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
      for (int i = 0; i < 100; ++i) {
        float d[64] = {}, d0[4] = {};
        const kw_gemm_problem p = batch_of(1 + (i * 5 + t) % 4, 1, 2, 3);
        kw_gemm_args args = {};
        args.struct_size = sizeof args, args.a = ones, args.b = ones, args.d = d;
        CHECK(kw_dispatcher_run(h.d, &p.base, &kLaunch, &args) == KW_OK && d[p.batch * 2 - 1] == 3);
        const kw_gemm_group group = {2, 2, 1 + (i + t) % 3, 4, 2, 2};
        const kw_grouped_gemm_problem g = grouped(&group, 1);
        const void* operand = ones;
        void* result = d0;
        const kw_grouped_gemm_args more = {sizeof more, 0, 1, &group, &operand, &operand, nullptr, &result};
        const kw_launch where = make_launch(workspace, sizeof workspace);
        CHECK(kw_dispatcher_run(h.d, &g.base, &where, &more) == KW_OK && d0[3] == static_cast<float>(group.k));
        if (t == 0 && i == 50) CHECK(kw_dispatcher_set_priority(h.d, "gemm_fp32_rrr_grouped", i) == KW_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(kw_dispatcher_plan_count(h.d) >= 4);
}

}  // namespace

void variants() {
  variant_fields_are_validated();
  batches_go_to_batched_kernels();
  d_tensors_are_combined();
  grouped_problems_are_validated();
  grouped_problems_have_plans_of_their_own();
  b_is_shuffled_for_its_kernels();
  split_k_is_chosen();
  estimates_count_variants();
  threads_share_variants();
}
