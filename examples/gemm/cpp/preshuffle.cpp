// Weights in the order that a kernel reads, made once: preshuffle LIBRARY.so
#include "example.hpp"

int main(int argc, char** argv) {
  const Dispatcher dispatcher(library_argument(argc, argv));
  constexpr int64_t n = 96, k = 64;
  const std::vector<float> b = whole_numbers(k * n, 5);
  const std::vector<float> columns = turned(b, k, n);  // column-major, as layers keep their weights

  kw_gemm_problem problem = fp32_problem(32, n, k);  // 32: the rows that are expected
  problem.layout_b = KW_COL_MAJOR, problem.ldb = k;
  uint64_t bytes = 0;
  require(kw_dispatcher_shuffled_b(dispatcher, &problem.base, &problem.b_format, &bytes), "format");
  alignas(64) static unsigned char shuffled[1 << 20];
  if (bytes > sizeof shuffled) return 1;
  require(kw_dispatcher_shuffle_b(dispatcher, &problem.base, columns.data(), shuffled, bytes), "shuffle");

  int64_t wrong = 0;
  for (const int64_t m : {1, 32, 57}) {
    problem.m = m;
    const std::vector<float> a = whole_numbers(m * k, 7);
    std::vector<float> d(static_cast<size_t>(m * n));
    const kw_plan* plan = nullptr;
    require(kw_dispatcher_select(dispatcher, &problem.base, &plan), "select");
    Workspace workspace(plan);
    const kw_gemm_args args = arguments(a.data(), reinterpret_cast<const float*>(shuffled), d.data());
    const kw_launch launch = workspace.launch();
    require(kw_plan_launch(plan, &launch, &args), "launch");
    wrong += count_wrong(a, b, d, m, n, k);
    std::printf("%2d rows: %s\n", static_cast<int>(m), kernel_of(plan).c_str());
  }
  std::printf("%d bytes shuffled, %d wrong elements\n", static_cast<int>(bytes), static_cast<int>(wrong));
  return wrong != 0;
}
