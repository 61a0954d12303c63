// Selection models that come with libraries.
#include <string.h>

#include "handle.hpp"

namespace {

void models_rank_without_being_asked() {
  Handle h;
  CHECK(h.add("model") == KW_OK);
  std::string reason;
  CHECK(h.chosen(make_problem(5, 9, 64), &reason) == "gemm_fp32_rcr_128x128x64");
  CHECK(reason == "best of 3 by large_tiles");
  const std::string text = h.explain(make_problem(5, 9, 64));
  CHECK(contains(text, "\"selection\":\"auto\"") && contains(text, "\"ranked_by\":\"large_tiles\""));
  CHECK(contains(text, "\"reason\":\"best of 3 by large_tiles\""));
  CHECK(contains(text, "\"score\":-132"));  // tile_m and the compute units of the architecture
}

void predicted_times_decide_the_rest() {
  Handle h, plain;
  CHECK(h.add("model") == KW_OK && plain.add("good") == KW_OK);
  const kw_gemm_problem tall = make_problem(101, 9, 64);
  std::string reason;
  CHECK(h.chosen(tall, &reason) == plain.chosen(tall) && reason == "fastest predicted of 3: ranked by no model");
  CHECK(contains(h.explain(tall), "\"selection\":\"auto\"") &&
        contains(h.explain(tall), "\"ranked_by\":\"predicted time\""));
  CHECK(contains(h.explain(tall), "ranked by no model"));
  kw_gemm_problem unserved = make_problem(5, 9, 64);
  unserved.dtype_a = KW_BF16;
  CHECK(h.chosen(unserved).empty() && contains(h.explain(unserved), "no kernel serves this problem"));
}

// A kernel that the model would rank, and that refuses the problem itself.
void errors_say_what_was_asked_and_what_ranked() {
  Handle h, plain;
  CHECK(h.add("model") == KW_OK && plain.add("good") == KW_OK);
  kw_gemm_problem p = make_problem(5, 9, 2048);
  p.split_k = 2;
  const kw_plan* plan = nullptr;
  CHECK_FAILS(kw_dispatcher_select(plain.d, &p.base, &plan), KW_NO_KERNEL,
              "(selection auto, ranked by predicted time)");
  p = make_problem(5, 9, 65);
  CHECK(kw_dispatcher_set_priority(h.d, "gemm_fp32_rcr_64x64x64_whole", 1) == KW_OK);
  const std::string text = h.explain(p);
  CHECK(contains(text, "\"selection\":\"auto\",\"chosen\"") && contains(text, "\"ranked_by\":\"large_tiles\""));
  CHECK(h.use(KW_SELECT_FIRST_FIT) == KW_OK);
  CHECK(contains(h.explain(p), "\"selection\":\"first_fit\"") && contains(h.explain(p), "\"ranked_by\":\"priority\""));
}

void callers_may_ask_for_predicted_times() {
  Handle h;
  CHECK(h.add("model") == KW_OK && h.use(KW_SELECT_ANALYTIC) == KW_OK);
  std::string reason;
  CHECK(!h.chosen(make_problem(5, 9, 64), &reason).empty() && reason == "fastest predicted of 3, tie by name");
  CHECK(h.use(KW_SELECT_AUTO) == KW_OK);  // forgets plans
  CHECK(h.chosen(make_problem(5, 9, 64), &reason) == "gemm_fp32_rcr_128x128x64");
  CHECK(reason == "best of 3 by large_tiles");
}

// The model of one library ranks kernels of all.
void models_rank_other_libraries_too() {
  Handle h;
  CHECK(h.add("variants") == KW_OK && h.add("model") == KW_OK);
  std::string reason;
  kw_gemm_problem p = make_problem(5, 9, 64);
  p.layout_b = KW_ROW_MAJOR;
  p.ldb = p.n;
  CHECK(!h.chosen(p, &reason).empty() && contains(reason, " by large_tiles"));
}

void models_of_another_version_are_refused() {
  Handle h;
  CHECK(h.add("future_model") == KW_ABI_MISMATCH);
  CHECK(contains(kw_last_error(), "selection model other is of version 99"));
  CHECK(h.add("old") == KW_OK);  // its table ends before models
  std::string reason;
  CHECK(!h.chosen(make_problem(300, 64, 128), &reason).empty() && reason == "fastest predicted of 3");
}

}  // namespace

void models() {
  models_rank_without_being_asked();
  predicted_times_decide_the_rest();
  errors_say_what_was_asked_and_what_ranked();
  callers_may_ask_for_predicted_times();
  models_rank_other_libraries_too();
  models_of_another_version_are_refused();
}
