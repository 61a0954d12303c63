// Threads share one dispatcher and its plans: stress LIBRARY.so [THREADS [ROUNDS]]
#include <atomic>
#include <thread>

#include "example.hpp"

int main(int argc, char** argv) {
  const Dispatcher dispatcher(library_argument(argc, argv));
  const int threads = argc > 2 ? std::atoi(argv[2]) : 16, rounds = argc > 3 ? std::atoi(argv[3]) : 50;
  std::atomic<int> done{0}, wrong{0};
  std::vector<std::thread> running;
  for (int thread = 0; thread < threads; ++thread) {
    running.emplace_back([&, thread] {
      for (int round = 0; round < rounds; ++round) {
        const int64_t m = 1 + (round * 7 + thread) % 41, n = 1 + round % 33, k = 1 + (round + thread) % 29;
        const std::vector<float> a = whole_numbers(m * k, 7), b = whole_numbers(k * n, 5);
        std::vector<float> d(static_cast<size_t>(m * n));
        const kw_gemm_problem problem = fp32_problem(m, n, k);
        const kw_plan* plan = nullptr;
        require(kw_dispatcher_select(dispatcher, &problem.base, &plan), "select");
        Workspace workspace(plan);  // each thread its own
        const kw_gemm_args args = arguments(a.data(), b.data(), d.data());
        const kw_launch launch = workspace.launch();
        require(kw_plan_launch(plan, &launch, &args), "launch");
        wrong += count_wrong(a, b, d, m, n, k) != 0;
        ++done;
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  std::printf("%d of %d products, %d wrong, %d plans\n", done.load(), threads * rounds, wrong.load(),
              static_cast<int>(kw_dispatcher_plan_count(dispatcher)));
  return wrong != 0 || done != threads * rounds;
}
