// Products of different shapes in one launch: grouped LIBRARY.so
//
// Each group has as many rows as it happens to get, some none; B is column-major, as layers keep their weights.
#include "example.hpp"

int main(int argc, char** argv) {
  const Dispatcher dispatcher(library_argument(argc, argv));
  constexpr int64_t n = 40, k = 48, rows[] = {17, 0, 64, 3};
  constexpr size_t count = sizeof rows / sizeof *rows;
  const std::vector<float> weight = whole_numbers(k * n, 5), columns = turned(weight, k, n);
  std::vector<std::vector<float>> inputs, results;
  std::vector<kw_gemm_group> groups;
  for (const int64_t m : rows) {
    inputs.push_back(whole_numbers(m * k, 7));
    results.emplace_back(static_cast<size_t>(m * n));
    groups.push_back({m, n, k, k, k, n});
  }
  std::vector<const void*> a, b(count, columns.data());
  std::vector<void*> d;
  for (size_t i = 0; i < count; ++i) {
    a.push_back(inputs[i].data());
    d.push_back(results[i].data());
  }

  kw_grouped_gemm_problem problem{};
  problem.base = {sizeof problem, KW_OP_GROUPED_GEMM};
  problem.dtype_a = problem.dtype_b = problem.dtype_c = problem.dtype_acc = KW_FP32;
  problem.layout_a = problem.layout_c = KW_ROW_MAJOR, problem.layout_b = KW_COL_MAJOR;
  problem.group_count = static_cast<int64_t>(count), problem.groups = groups.data();
  problem.alpha = 1.0;
  kw_plan* plan = nullptr;
  require(kw_plan_create(dispatcher, &problem.base, &plan), "plan");
  Workspace workspace(plan);

  kw_grouped_gemm_args args{};
  args.struct_size = sizeof args;
  args.group_count = problem.group_count, args.groups = groups.data();
  args.a = a.data(), args.b = b.data(), args.d = d.data();
  const kw_launch launch = workspace.launch();
  require(kw_plan_launch(plan, &launch, &args), "launch");

  int64_t wrong = 0;
  for (size_t i = 0; i < count; ++i) wrong += count_wrong(inputs[i], weight, results[i], rows[i], n, k);
  std::printf("%s: %d groups, %d wrong elements\n", kernel_of(plan).c_str(), static_cast<int>(count),
              static_cast<int>(wrong));
  kw_plan_destroy(plan);
  return wrong != 0;
}
