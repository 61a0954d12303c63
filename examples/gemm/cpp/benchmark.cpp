// Times squares: benchmark LIBRARY.so [REPEATS [SIZE …]]
//
// Prints the median of the repeats. What it shows is this machine at this moment.
#include <algorithm>
#include <chrono>

#include "example.hpp"

int main(int argc, char** argv) {
  const Dispatcher dispatcher(library_argument(argc, argv));
  const int repeats = argc > 2 ? std::max(1, std::atoi(argv[2])) : 7;
  std::vector<int64_t> sizes;
  for (int i = 3; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
  if (sizes.empty()) sizes = {256, 512, 1024};
  for (const int64_t size : sizes) {
    const std::vector<float> a = whole_numbers(size * size, 7), b = whole_numbers(size * size, 5);
    std::vector<float> d(static_cast<size_t>(size * size));
    const kw_gemm_problem problem = fp32_problem(size, size, size);
    const kw_plan* plan = nullptr;
    require(kw_dispatcher_select(dispatcher, &problem.base, &plan), "select");
    Workspace workspace(plan);
    const kw_gemm_args args = arguments(a.data(), b.data(), d.data());
    const kw_launch launch = workspace.launch();
    std::vector<double> seconds;
    for (int i = 0; i <= repeats; ++i) {
      const auto start = std::chrono::steady_clock::now();
      require(kw_plan_launch(plan, &launch, &args), "launch");
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      if (i > 0) seconds.push_back(took.count());  // the first warms up
    }
    std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
    const double flops = 2.0 * static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(size);
    std::printf("%5d  %8.1f GFLOP/s  %s\n", static_cast<int>(size), flops / seconds[repeats / 2] / 1e9,
                kernel_of(plan).c_str());
  }
  return 0;
}
