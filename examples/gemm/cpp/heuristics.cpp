// Ways to choose kernels: heuristics LIBRARY.so
//
// The dispatcher's own model of times, the first that fits, one by name, and a function of one's own.
#include "example.hpp"

namespace {

// Lower is better: prefers the kernel with the most rows in its register blocks.
kw_status widest_block(void*, const kw_problem*, kw_candidate* candidates, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const auto* traits = static_cast<const kw_gemm_traits*>(candidates[i].kernel->traits);
    candidates[i].score = -static_cast<double>(traits->warp_tile_m);
  }
  return KW_OK;
}

std::string choose(const Dispatcher& dispatcher, const kw_selection_options& selection, const kw_gemm_problem& problem,
                   const char* what) {
  require(kw_dispatcher_set_selection(dispatcher, &selection), "selection");
  const kw_plan* plan = nullptr;
  require(kw_dispatcher_select(dispatcher, &problem.base, &plan), "select");
  kw_stage_info info{};
  info.struct_size = sizeof info;
  require(kw_plan_get_stage(plan, 0, &info), "stage");
  std::printf("%s: %s (%s)\n", what, info.kernel->name, info.reason);
  return info.kernel->identity;
}

}  // namespace

int main(int argc, char** argv) {
  const Dispatcher dispatcher(library_argument(argc, argv));
  const kw_gemm_problem problem = fp32_problem(512, 384, 256);
  kw_selection_options selection{};
  selection.struct_size = sizeof selection;
  const std::string best = choose(dispatcher, selection, problem, "analytic");
  selection.provider = KW_SELECT_FIRST_FIT;
  choose(dispatcher, selection, problem, "first fit");
  selection.provider = KW_SELECT_EXPLICIT;
  selection.kernel = best.c_str();
  choose(dispatcher, selection, problem, "explicit");
  selection.provider = KW_SELECT_CALLBACK;
  selection.score = widest_block;
  selection.label = "widest_block";
  choose(dispatcher, selection, problem, "function");

  // A priority decides in first fit and between kernels with equal scores.
  require(kw_dispatcher_set_priority(dispatcher, best.c_str(), 1), "priority");
  selection = {};
  selection.struct_size = sizeof selection;
  selection.provider = KW_SELECT_FIRST_FIT;
  return choose(dispatcher, selection, problem, "first fit with a priority") != best;
}
