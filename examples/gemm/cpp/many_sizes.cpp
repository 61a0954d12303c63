// Many sizes with one dispatcher: many_sizes LIBRARY.so
//
// A plan is made once for each problem and looked up again in less than 100 ns; zero sizes are legal.
#include "example.hpp"

int main(int argc, char** argv) {
  const Dispatcher dispatcher(library_argument(argc, argv));
  const int64_t sizes[][3] = {{1, 512, 512}, {7, 64, 300}, {64, 64, 64}, {129, 257, 65}, {300, 1, 200}, {0, 16, 16}};
  int64_t wrong = 0;
  for (int repeat = 0; repeat < 2; ++repeat) {  // the second time, every plan is there
    for (const auto& [m, n, k] : sizes) {
      const std::vector<float> a = whole_numbers(m * k, 7), b = whole_numbers(k * n, 5);
      std::vector<float> d(static_cast<size_t>(m * n));
      const kw_gemm_problem problem = fp32_problem(m, n, k);
      const kw_plan* plan = nullptr;
      require(kw_dispatcher_select(dispatcher, &problem.base, &plan), "select");
      Workspace workspace(plan);
      const kw_gemm_args args = arguments(a.data(), b.data(), d.data());
      const kw_launch launch = workspace.launch();
      require(kw_plan_launch(plan, &launch, &args), "launch");
      wrong += count_wrong(a, b, d, m, n, k);
    }
  }
  std::printf("%d plans, %d wrong elements\n", static_cast<int>(kw_dispatcher_plan_count(dispatcher)),
              static_cast<int>(wrong));
  return wrong != 0;
}
