// The whole ranking with all reasons: for explanations, errors and callbacks.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernelwright/dispatcher/selection.hpp"
#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/dispatcher/support/sort.hpp"

namespace kernelwright {
namespace {

struct Value {
  Estimate estimate;
  uint32_t value, order;
};

// The kernel's own answer; its reason goes to reason.
bool is_supported(const kw_kernel& kernel, const kw_problem& problem, char* reason, Ranked* ranked) {
  reason[0] = '\0';
  const kw_status status = kernel.supports(&kernel, &problem, reason, kReasonBytes);
  reason[kReasonBytes - 1] = '\0';
  ranked->fit = status == KW_OK ? Fit::kServes : Fit::kKernelRefuses;
  if (status != KW_OK && reason[0] == '\0') snprintf(reason, kReasonBytes, "%s", kw_status_name(status));
  return status == KW_OK;
}

// With the value for which the predicted time is least, of those that the kernel serves.
bool serves_a_value(const Question& question, const Place& place, const uint32_t* values, size_t count, char* reason,
                    Ranked* ranked) {
  const kw_kernel& kernel = *ranked->entry->kernel;
  AnyProblem trial;
  memcpy(trial.bytes, &question.problem, question.operation.problem_bytes);
  Value each[kMaxChoices];
  for (uint32_t i = 0; i < count; ++i) {
    question.operation.choose(&trial.base(), values[i]);
    each[i] = {question.operation.estimate(kernel, trial.base(), place), values[i], i};
  }
  sort(each, count, [](const Value& left, const Value& right) {
    if (left.estimate.total_us != right.estimate.total_us) return left.estimate.total_us < right.estimate.total_us;
    return left.order < right.order;
  });
  for (size_t i = 0; i < count; ++i) {
    question.operation.choose(&trial.base(), each[i].value);
    if (!is_supported(kernel, trial.base(), reason, ranked)) continue;
    ranked->open = true;
    ranked->choice = each[i].value;
    ranked->estimate = each[i].estimate;
    return true;
  }
  return false;
}

bool serves(const Question& question, char* reason, Ranked* ranked) {
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
  const Place place = {&arch, compute_units(question.device, arch)};
  uint32_t values[kMaxChoices];
  const size_t count = operation.choices == nullptr ? 0 : operation.choices(kernel, question.problem, place, values);
  if (count > 0) return serves_a_value(question, place, values, count, reason, ranked);
  if (!is_supported(kernel, question.problem, reason, ranked)) return false;
  ranked->estimate = operation.estimate(kernel, question.problem, place);
  return true;
}

kw_status score_by_callback(const Question& question, Ranking* ranking, Vec<Ranked>* all) {
  const Selection& selection = question.selection;
  Vec<kw_candidate> candidates;
  if (!candidates.reserve(all->size())) return fail(KW_OUT_OF_MEMORY, "no memory for candidates");
  for (const Ranked& ranked : *all) {
    if (!ranked.supported()) continue;
    const KernelEntry& entry = *ranked.entry;
    const kw_candidate candidate = {entry.kernel, entry.library->library->arch, entry.priority, 0, HUGE_VAL};
    if (!candidates.push(candidate)) return fail(KW_OUT_OF_MEMORY, "no memory for candidates");
  }
  if (candidates.empty()) return KW_OK;
  const kw_status status = selection.score(selection.user, &question.problem, candidates.begin(), candidates.size());
  if (status == KW_UNSUPPORTED) {
    ranking->leave_to_estimates();
    for (Ranked& ranked : *all) ranked.score = ranked.estimate.total_us;
    return KW_OK;
  }
  if (status != KW_OK) {
    return fail(status, "selection by %s failed: %s", provider_name(selection), kw_status_name(status));
  }
  size_t next = 0;
  for (Ranked& ranked : *all) {
    if (!ranked.supported()) continue;
    ranked.score = candidates[next++].score;
    ranked.usable = isfinite(ranked.score);
    if (ranked.usable) continue;
    Text reason;
    reason.add("ruled out by ").add(provider_name(selection));
    if (kw_status refused = ranking->refuse(&ranked, reason.c_str())) return refused;
  }
  return KW_OK;
}

kw_status score_explicit(const Question& question, Ranking* ranking, Vec<Ranked>* all) {
  KernelEntry* wanted = nullptr;
  if (kw_status status = question.registry.find(question.selection.kernel, &wanted)) return status;
  for (Ranked& ranked : *all) {
    ranked.score = ranked.entry == wanted ? 0 : 1;
    if (!ranked.supported() || ranked.entry == wanted) continue;
    ranked.usable = false;
    if (kw_status status = ranking->refuse(&ranked, "not the kernel that was asked for")) return status;
  }
  return KW_OK;
}

kw_status score_all(const Question& question, Ranking* ranking, Vec<Ranked>* all) {
  switch (question.selection.provider) {
    case KW_SELECT_EXPLICIT:
      return score_explicit(question, ranking, all);
    case KW_SELECT_CALLBACK:
      return score_by_callback(question, ranking, all);
    case KW_SELECT_ANALYTIC:
      for (Ranked& ranked : *all) ranked.score = ranked.estimate.total_us;
      return KW_OK;
    default:  // first fit: the order of the registry is the score
      for (Ranked& ranked : *all) ranked.score = static_cast<double>(ranked.position);
      return KW_OK;
  }
}

void choices_json(const Question& question, const Ranked& ranked, Text* text) {
  text->add(",\"choices\":");
  Text choices;
  if (question.operation.describe_choices != nullptr) {
    AnyProblem chosen;
    memcpy(chosen.bytes, &question.problem, question.operation.problem_bytes);
    if (ranked.open) question.operation.choose(&chosen.base(), ranked.choice);
    question.operation.describe_choices(chosen.base(), &choices);
  }
  text->quoted(choices.c_str());
}

void kernel_json(const Question& question, const Ranked& ranked, size_t rank, Text* text) {
  const KernelEntry& entry = *ranked.entry;
  text->add("{\"name\":").quoted(entry.kernel->name).add(",\"arch\":").quoted(entry.kernel->arch);
  text->add(",\"identity\":").quoted(entry.kernel->identity);
  text->add(",\"library\":").quoted(entry.library->library->name).add(",\"priority\":").add(entry.priority);
  text->add(",\"supported\":").add(ranked.supported() ? "true" : "false");
  if (!ranked.usable) {
    text->add(",\"rank\":null,\"score\":null,\"reason\":").quoted(ranked.refusal);
  } else {
    text->add(",\"rank\":").add(static_cast<uint64_t>(rank)).add(",\"score\":");
    if (question.selection.provider == KW_SELECT_CALLBACK) {
      text->exact(ranked.score);
    } else {
      text->fixed3(ranked.score);
    }
    text->add(",\"reason\":null");
  }
  if (ranked.supported()) {
    const Estimate& e = ranked.estimate;
    choices_json(question, ranked, text);
    text->add(",\"estimate\":{\"tiles\":").fixed3(e.tiles).add(",\"waves\":").fixed3(e.waves);
    text->add(",\"compute_us\":").fixed3(e.compute_us).add(",\"fill_us\":").fixed3(e.fill_us);
    text->add(",\"memory_us\":").fixed3(e.memory_us);
    text->add(",\"total_us\":").fixed3(e.total_us).add(",\"useful\":").fixed3(e.useful).add('}');
  }
  text->add('}');
}

}  // namespace

Ranking::~Ranking() {
  for (char* text : texts_) free(text);
}

void Ranking::leave_to_estimates() { left_to_estimates_ = true; }

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
    char reason[kReasonBytes] = "";
    ranked.usable = serves(question, reason, &ranked);
    if (!ranked.usable) {
      if (kw_status status = refuse(&ranked, reason)) return status;
    }
    if (!ranked_.push(ranked)) return fail(KW_OUT_OF_MEMORY, "no memory for the ranking");
  }
  if (kw_status status = score_all(question, this, &ranked_)) return status;
  sort(ranked_.begin(), ranked_.size(), [](const Ranked& left, const Ranked& right) {
    if (left.usable != right.usable) return left.usable;
    if (left.usable && left.score != right.score) return left.score < right.score;
    if (!left.usable && left.fit != right.fit) return left.fit > right.fit;
    return left.position < right.position;
  });
  return KW_OK;
}

kw_status Ranking::no_kernel(const Question& question) const {
  Text text;
  question.operation.describe(question.problem, &text);
  if (ranked_.empty()) {
    return fail(KW_NO_KERNEL, "no kernel serves %s: the dispatcher has no kernels; add a library", text.c_str());
  }
  const bool by_name = question.selection.provider == KW_SELECT_EXPLICIT;
  Text reasons;
  size_t shown = 0;
  for (const Ranked& ranked : ranked_) {
    if (by_name && ranked.score != 0) continue;
    if (shown++ == 4) {
      reasons.add("; …");
      break;
    }
    reasons.add(shown == 1 ? "" : "; ").add(ranked.entry->kernel->name).add(": ").add(ranked.refusal);
  }
  return fail(KW_NO_KERNEL, "none of %zu kernels serves %s (selection %s): %s", ranked_.size(), text.c_str(),
              provider_name(question.selection), reasons.c_str());
}

void Ranking::best_reason(const Question& question, Text* reason) const {
  uint64_t usable = 0;
  for (const Ranked& ranked : ranked_) usable += ranked.usable ? 1 : 0;
  if (usable == 1) {
    reason->add("only kernel that fits");
    return;
  }
  if (left_to_estimates_) {
    reason->add("fastest predicted of ").add(usable).add(": not judged by ").add(provider_name(question.selection));
  } else {
    reason->add("best of ").add(usable).add(" by ").add(provider_name(question.selection));
  }
  if (ranked_[1].score == ranked_[0].score) reason->add(tie_text(*ranked_[0].entry, *ranked_[1].entry));
}

void Ranking::to_json(const Question& question, Text* text) const {
  text->add('[');
  for (size_t i = 0; i < ranked_.size(); ++i) {
    if (i != 0) text->add(',');
    kernel_json(question, ranked_[i], i + 1, text);
  }
  text->add(']');
}

}  // namespace kernelwright
