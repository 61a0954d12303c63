// Checks every fp32 kernel of a library on whole numbers: validation LIBRARY.so
//
// Each kernel is chosen explicitly; those that do not serve the problem say why.
#include <algorithm>

#include "example.hpp"

int main(int argc, char** argv) {
  const Dispatcher dispatcher(library_argument(argc, argv));
  constexpr int64_t m = 65, n = 47, k = 129;
  const std::vector<float> a = whole_numbers(m * k, 7), b = whole_numbers(k * n, 5);
  const tw_gemm_problem problem = fp32_problem(m, n, k);

  int right = 0, wrong = 0;
  for (uint64_t i = 0; i < tw_dispatcher_kernel_count(dispatcher); ++i) {
    tw_kernel_info info{};
    info.struct_size = sizeof info;
    require(tw_dispatcher_kernel_at(dispatcher, i, &info), "kernel");
    tw_selection_options only{};
    only.struct_size = sizeof only;
    only.provider = TW_SELECT_EXPLICIT;
    only.kernel = info.kernel->identity;
    require(tw_dispatcher_set_selection(dispatcher, &only), "selection");
    tw_plan* plan = nullptr;
    const tw_status status = tw_plan_create(dispatcher, &problem.base, &plan);
    if (status == TW_NO_KERNEL) {
      std::printf("another  %s\n", info.kernel->name);
      continue;
    }
    require(status, info.kernel->name);
    std::vector<float> d(m * n, -1.0f);
    Workspace workspace(plan);
    const tw_gemm_args args = arguments(a.data(), b.data(), d.data(), workspace);
    require(tw_plan_launch(plan, &args), "launch");
    const bool exact = count_wrong(a, b, d, m, n, k) == 0;
    std::printf("%s  %s\n", exact ? "right  " : "WRONG  ", info.kernel->name);
    (exact ? right : wrong) += 1;
    tw_plan_destroy(plan);
  }
  std::printf("%d right, %d wrong\n", right, wrong);
  return wrong != 0 || right == 0;
}
