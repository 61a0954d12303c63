// What follows a product, in the same kernel: multi_d LIBRARY.so
//
// D = gelu(A B + bias), and a look at what a kernel without such an epilogue says.
#include <cmath>

#include "example.hpp"

int main(int argc, char** argv) {
  const Dispatcher dispatcher(library_argument(argc, argv));
  constexpr int64_t m = 40, n = 30, k = 20;
  const std::vector<float> a = whole_numbers(m * k, 7), b = whole_numbers(k * n, 5), bias = whole_numbers(n, 9);
  const std::vector<float> columns = turned(b, k, n);
  std::vector<float> d(m * n);

  kw_gemm_problem problem = fp32_problem(m, n, k);
  problem.num_d = 1;
  problem.d_op = KW_D_ADD;
  problem.ld_multi_d[0] = 0;  // one row of n values for all
  problem.activation = KW_ACTIVATION_GELU;
  problem.layout_b = KW_COL_MAJOR, problem.ldb = k;
  const kw_plan* plan = nullptr;
  require(kw_dispatcher_select(dispatcher, &problem.base, &plan), "select");
  Workspace workspace(plan);
  kw_gemm_args args = arguments(a.data(), columns.data(), d.data());
  args.multi_d[0] = bias.data();
  const kw_launch launch = workspace.launch();
  require(kw_plan_launch(plan, &launch, &args), "launch");

  int wrong = 0;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = bias[static_cast<size_t>(j)];
      for (int64_t l = 0; l < k; ++l) sum += a[static_cast<size_t>(i * k + l)] * b[static_cast<size_t>(l * n + j)];
      const double gelu = sum / 2 * (1 + std::erf(sum / std::sqrt(2.0)));
      wrong += !(std::fabs(d[static_cast<size_t>(i * n + j)] - gelu) <= 1e-5 * (1 + std::fabs(sum)));
    }
  }
  std::printf("%s: %d wrong of %d\n", kernel_of(plan).c_str(), wrong, static_cast<int>(m * n));

  problem.b_format = 1;  // B in the order of a kernel that is not here: the refusal says why
  const kw_status status = kw_dispatcher_select(dispatcher, &problem.base, &plan);
  std::printf("%s: %.80s …\n", kw_status_name(status), kw_last_error());
  return wrong != 0 || status != KW_NO_KERNEL;
}
