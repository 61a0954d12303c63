// The whole ranking with all reasons: for explanations, errors and callbacks. What it says is in ranking_text.cpp.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernelwright/dispatcher/selection.hpp"
#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/dispatcher/support/sort.hpp"

namespace kernelwright {
namespace {

using Pairs = Vec<RankedPair>;

// The kernel's own answer; its reason goes to reason.
bool is_supported(const kw_kernel& kernel, const kw_problem& problem, char* reason, Ranked* ranked) {
  reason[0] = '\0';
  const kw_status status = kernel.supports(&kernel, &problem, reason, kReasonBytes);
  reason[kReasonBytes - 1] = '\0';
  ranked->fit = Fit::kKernelRefuses;
  if (status == KW_OK) ranked->fit = Fit::kServes;
  if (status == KW_ARCH_MISMATCH) ranked->fit = Fit::kFeatureMissing;
  if (status != KW_OK && reason[0] == '\0') snprintf(reason, kReasonBytes, "%s", kw_status_name(status));
  return status == KW_OK;
}

// The pair of lowest score first.
void arrange(RankedPair* pairs, size_t count) {
  sort(pairs, count, [](const RankedPair& left, const RankedPair& right) {
    if (left.score != right.score) return left.score < right.score;
    return left.order < right.order;
  });
  for (size_t i = 0; i < count; ++i) pairs[i].order = static_cast<uint32_t>(i);
}

// Appends a pair for each value that the kernel serves, those of least predicted time first. False where memory ran
// out.
bool add_values(const Question& question, const Place& place, const uint32_t* values, size_t count, char* reason,
                Ranked* ranked, Pairs* pairs) {
  const kw_kernel& kernel = *ranked->entry->kernel;
  AnyProblem trial;
  memcpy(trial.bytes, &question.problem, question.operation.problem_bytes);
  for (uint32_t i = 0; i < count; ++i) {
    question.operation.choose(&trial.base(), values[i]);
    if (!is_supported(kernel, trial.base(), reason, ranked)) continue;
    const Estimate estimate = question.operation.estimate(kernel, trial.base(), place);
    if (!pairs->push({estimate, estimate.total_us, values[i], i})) return false;
    ++ranked->pair_count;
  }
  if (ranked->pair_count == 0) return true;
  ranked->fit = Fit::kServes;
  ranked->open = true;
  arrange(pairs->begin() + ranked->first_pair, ranked->pair_count);
  return true;
}

// Whether the kernel serves the problem, with the pairs with which it does; else the reason. *complete: memory
// sufficed.
bool serves(const Question& question, char* reason, Ranked* ranked, Pairs* pairs, bool* complete) {
  const KernelEntry& entry = *ranked->entry;
  const kw_kernel& kernel = *entry.kernel;
  const Operation& operation = question.operation;
  if (kernel.op != operation.op) {
    const Operation* other = find_operation(kernel.op);
    snprintf(reason, kReasonBytes, "the problem's operation is %s, this kernel's is %s", operation.name,
             other == nullptr ? "unknown" : other->name);
    return false;
  }
  ranked->fit = operation.matches(kernel, question.problem, reason, kReasonBytes);
  if (ranked->fit != Fit::kServes) return false;
  int length = 0;
  if (const char* missing = lacks_feature(question.device, entry, &length)) {
    ranked->fit = Fit::kFeatureMissing;
    snprintf(reason, kReasonBytes, "the device lacks %.*s", length, missing);
    return false;
  }
  const kw_arch& arch = *entry.library->library->arch;
  const Place place = place_of(question.device, arch);
  uint32_t values[kMaxChoices];
  const size_t count = operation.choices == nullptr ? 0 : operation.choices(kernel, question.problem, place, values);
  if (count > 0) {
    *complete = add_values(question, place, values, count, reason, ranked, pairs);
  } else if (is_supported(kernel, question.problem, reason, ranked)) {
    const Estimate estimate = operation.estimate(kernel, question.problem, place);
    *complete = pairs->push({estimate, estimate.total_us, 0, 0});
    ranked->pair_count = 1;
  }
  return ranked->pair_count != 0;
}

// What a kernel's pairs are scored with where the provider compares whole kernels.
void score_kernel(double score, const Ranked& ranked, RankedPair* pairs) {
  for (size_t i = 0; i < ranked.pair_count; ++i) pairs[ranked.first_pair + i].score = score;
}

// Takes over the scores of candidates, which are the pairs in their order.
kw_status take_scores(const Question& question, const kw_candidate* candidates, Ranking* ranking, Vec<Ranked>* all,
                      RankedPair* pairs) {
  for (Ranked& ranked : *all) {
    if (!ranked.supported()) continue;
    RankedPair* const own = pairs + ranked.first_pair;
    for (size_t i = 0; i < ranked.pair_count; ++i) {
      const double score = candidates[ranked.first_pair + i].score;
      own[i].score = isfinite(score) ? score : HUGE_VAL;
    }
    arrange(own, ranked.pair_count);
    ranked.usable = isfinite(own[0].score);
    if (ranked.usable) continue;
    Text reason;
    reason.add("ruled out by ").add(provider_name(question.selection));
    if (kw_status refused = ranking->refuse(&ranked, reason.c_str())) return refused;
  }
  return KW_OK;
}

kw_status score_by_callback(const Question& question, Ranking* ranking, Vec<Ranked>* all, RankedPair* pairs) {
  const Selection& selection = question.selection;
  Vec<kw_candidate> candidates;
  if (!candidates.reserve(all->size())) return fail(KW_OUT_OF_MEMORY, "no memory for candidates");
  for (const Ranked& ranked : *all) {
    const KernelEntry& entry = *ranked.entry;
    const kw_arch* const arch = entry.library->library->arch;
    for (size_t i = 0; i < ranked.pair_count; ++i) {
      const uint32_t value = pairs[ranked.first_pair + i].value & kChoiceNumber;
      const kw_candidate candidate = {entry.kernel, arch, entry.priority, value, HUGE_VAL};
      if (!candidates.push(candidate)) return fail(KW_OUT_OF_MEMORY, "no memory for candidates");
    }
  }
  if (candidates.empty()) return KW_OK;
  const kw_status status = selection.score(selection.user, &question.problem, candidates.begin(), candidates.size());
  if (status == KW_OK) return take_scores(question, candidates.begin(), ranking, all, pairs);
  if (status == KW_UNSUPPORTED) {
    ranking->leave_to_estimates();
    return KW_OK;
  }
  return fail(status, "selection by %s failed: %s", provider_name(selection), kw_status_name(status));
}

kw_status score_explicit(const Question& question, Ranking* ranking, Vec<Ranked>* all, RankedPair* pairs) {
  KernelEntry* wanted = nullptr;
  if (kw_status status = question.registry.find(question.selection.kernel, &wanted)) return status;
  for (Ranked& ranked : *all) {
    ranked.score = ranked.entry == wanted ? 0 : 1;
    score_kernel(ranked.score, ranked, pairs);
    if (!ranked.supported() || ranked.entry == wanted) continue;
    ranked.usable = false;
    if (kw_status status = ranking->refuse(&ranked, "not the kernel that was asked for")) return status;
  }
  return KW_OK;
}

// Gives every pair its score, which is the predicted time so far.
kw_status score_all(const Question& question, Ranking* ranking, Vec<Ranked>* all, RankedPair* pairs) {
  switch (question.selection.provider) {
    case KW_SELECT_EXPLICIT:
      return score_explicit(question, ranking, all, pairs);
    case KW_SELECT_CALLBACK:
      return score_by_callback(question, ranking, all, pairs);
    case KW_SELECT_ANALYTIC:
      return KW_OK;
    default:  // first fit: the order of the registry is the score
      for (const Ranked& ranked : *all) score_kernel(static_cast<double>(ranked.position), ranked, pairs);
      return KW_OK;
  }
}

}  // namespace

Ranking::~Ranking() {
  for (char* text : texts_) free(text);
}

void Ranking::leave_to_estimates() { left_to_estimates_ = true; }

const char* Ranking::ranked_by(const Question& question) const {
  return left_to_estimates_ ? "predicted time" : ranked_by_name(question.selection);
}

kw_status Ranking::refuse(Ranked* ranked, const char* reason) {
  char* copy = strdup(reason);
  if (copy != nullptr && texts_.push(copy)) {
    ranked->refusal = copy;
    return KW_OK;
  }
  free(copy);
  return fail(KW_OUT_OF_MEMORY, "no memory for the ranking");
}

kw_status Ranking::fill(const Question& question) {
  const Vec<KernelEntry*>& kernels = question.registry.kernels();
  if (!ranked_.reserve(kernels.size())) return fail(KW_OUT_OF_MEMORY, "no memory for the ranking");
  for (size_t i = 0; i < kernels.size(); ++i) {
    Ranked ranked;
    ranked.entry = kernels[i];
    ranked.position = i;
    ranked.first_pair = pairs_.size();
    char reason[kReasonBytes] = "";
    bool complete = true;
    ranked.usable = serves(question, reason, &ranked, &pairs_, &complete);
    if (!complete) return fail(KW_OUT_OF_MEMORY, "no memory for the ranking");
    if (!ranked.usable) {
      if (kw_status status = refuse(&ranked, reason)) return status;
    }
    if (!ranked_.push(ranked)) return fail(KW_OUT_OF_MEMORY, "no memory for the ranking");
  }
  if (kw_status status = score_all(question, this, &ranked_, pairs_.begin())) return status;
  for (Ranked& ranked : ranked_) {
    if (!ranked.supported()) continue;
    const RankedPair& best = pairs_[ranked.first_pair];
    ranked.score = best.score;
    ranked.choice = best.value;
    ranked.estimate = best.estimate;
  }
  sort(ranked_.begin(), ranked_.size(), [](const Ranked& left, const Ranked& right) {
    if (left.usable != right.usable) return left.usable;
    if (left.usable && left.score != right.score) return left.score < right.score;
    if (!left.usable && left.fit != right.fit) return left.fit > right.fit;
    return left.position < right.position;
  });
  return KW_OK;
}

}  // namespace kernelwright
