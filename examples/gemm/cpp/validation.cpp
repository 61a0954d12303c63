// Checks every fp32 kernel of a library on whole numbers: validation LIBRARY.so
//
// Each kernel is chosen explicitly; those that do not serve the problem say why.
#include <algorithm>

#include "example.hpp"

int main(int argc, char** argv) {
  const Dispatcher dispatcher(library_argument(argc, argv));
  constexpr int64_t m = 65, n = 47, k = 129;
  const std::vector<float> a = whole_numbers(m * k, 7), b = whole_numbers(k * n, 5);
  const kw_gemm_problem problem = fp32_problem(m, n, k);

  int right = 0, wrong = 0;
  for (uint64_t i = 0; i < kw_dispatcher_kernel_count(dispatcher); ++i) {
    kw_kernel_info info{};
    info.struct_size = sizeof info;
    require(kw_dispatcher_kernel_at(dispatcher, i, &info), "kernel");
    kw_selection_options only{};
    only.struct_size = sizeof only;
    only.provider = KW_SELECT_EXPLICIT;
    only.kernel = info.kernel->identity;
    require(kw_dispatcher_set_selection(dispatcher, &only), "selection");
    kw_plan* plan = nullptr;
    const kw_status status = kw_plan_create(dispatcher, &problem.base, &plan);
    if (status == KW_NO_KERNEL) {
      std::printf("another  %s\n", info.kernel->name);
      continue;
    }
    require(status, info.kernel->name);
    std::vector<float> d(m * n, -1.0f);
    Workspace workspace(plan);
    const kw_gemm_args args = arguments(a.data(), b.data(), d.data());
    const kw_launch launch = workspace.launch();
    require(kw_plan_launch(plan, &launch, &args), "launch");
    const bool exact = count_wrong(a, b, d, m, n, k) == 0;
    std::printf("%s  %s\n", exact ? "right  " : "WRONG  ", info.kernel->name);
    (exact ? right : wrong) += 1;
    kw_plan_destroy(plan);
  }
  std::printf("%d right, %d wrong\n", right, wrong);
  return wrong != 0 || right == 0;
}
