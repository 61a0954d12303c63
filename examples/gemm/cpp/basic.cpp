// One multiplication: basic LIBRARY.so
#include "example.hpp"

int main(int argc, char** argv) {
  const Dispatcher dispatcher(library_argument(argc, argv));
  constexpr int64_t m = 100, n = 70, k = 50;
  const std::vector<float> a = whole_numbers(m * k, 7), b = whole_numbers(k * n, 5);
  std::vector<float> d(m * n);

  const kw_gemm_problem problem = fp32_problem(m, n, k);
  const kw_plan* plan = nullptr;
  require(kw_dispatcher_select(dispatcher, &problem.base, &plan), "select");
  Workspace workspace(plan);
  const kw_gemm_args args = arguments(a.data(), b.data(), d.data());
  const kw_launch launch = workspace.launch();
  require(kw_plan_launch(plan, &launch, &args), "launch");

  const int64_t wrong = count_wrong(a, b, d, m, n, k);
  std::printf("%s: %d wrong of %d\n", kernel_of(plan).c_str(), static_cast<int>(wrong), static_cast<int>(m * n));
  return wrong != 0;
}
