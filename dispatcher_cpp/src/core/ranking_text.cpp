// What a ranking says: as JSON, in few words, and where no kernel is usable.
#include <math.h>
#include <string.h>

#include "kernelwright/dispatcher/selection.hpp"
#include "kernelwright/dispatcher/support/error.hpp"

namespace kernelwright {
namespace {

// What is chosen where the kernel's value is one that the problem leaves open.
void choices_json(const Question& question, bool open, uint32_t value, Text* text) {
  text->add("\"choices\":");
  Text choices;
  if (question.operation.describe_choices != nullptr) {
    AnyProblem chosen;
    memcpy(chosen.bytes, &question.problem, question.operation.problem_bytes);
    if (open) question.operation.choose(&chosen.base(), value);
    question.operation.describe_choices(chosen.base(), &choices);
  }
  text->quoted(choices.c_str());
}

void score_json(const Question& question, double score, Text* text) {
  text->add("\"score\":");
  if (!isfinite(score)) {
    text->add("null");
  } else if (question.selection.provider == KW_SELECT_CALLBACK) {
    text->exact(score);
  } else {
    text->fixed3(score);
  }
}

// Every value with which the kernel serves the problem, the one of lowest score first.
void values_json(const Question& question, const Ranked& ranked, const RankedPair* pairs, Text* text) {
  text->add(",\"values\":[");
  for (size_t i = 0; i < ranked.pair_count; ++i) {
    const RankedPair& pair = pairs[ranked.first_pair + i];
    text->add(i == 0 ? "{\"value\":" : ",{\"value\":").add(static_cast<uint64_t>(pair.value & kChoiceNumber)).add(',');
    choices_json(question, true, pair.value, text);
    score_json(question, pair.score, &text->add(','));
    text->add('}');
  }
  text->add(']');
}

void kernel_json(const Question& question, const Ranked& ranked, const RankedPair* pairs, size_t rank, Text* text) {
  const KernelEntry& entry = *ranked.entry;
  text->add("{\"name\":").quoted(entry.kernel->name).add(",\"arch\":").quoted(entry.kernel->arch);
  text->add(",\"identity\":").quoted(entry.kernel->identity);
  text->add(",\"library\":").quoted(entry.library->library->name).add(",\"priority\":").add(entry.priority);
  text->add(",\"supported\":").add(ranked.supported() ? "true" : "false");
  if (ranked.fit == Fit::kFeatureMissing) text->add(",\"lacks_features\":true");
  if (!ranked.usable) {
    text->add(",\"rank\":null,\"score\":null,\"reason\":").quoted(ranked.refusal);
  } else {
    text->add(",\"rank\":").add(static_cast<uint64_t>(rank)).add(',');
    score_json(question, ranked.score, text);
    text->add(",\"reason\":null");
  }
  if (ranked.supported()) {
    const Estimate& e = ranked.estimate;
    choices_json(question, ranked.open, ranked.choice, &text->add(','));
    if (ranked.open) values_json(question, ranked, pairs, text);
    text->add(",\"estimate\":{\"tiles\":").fixed3(e.tiles).add(",\"waves\":").fixed3(e.waves);
    text->add(",\"compute_us\":").fixed3(e.compute_us).add(",\"fill_us\":").fixed3(e.fill_us);
    text->add(",\"memory_us\":").fixed3(e.memory_us);
    text->add(",\"total_us\":").fixed3(e.total_us).add(",\"useful\":").fixed3(e.useful).add('}');
  }
  text->add('}');
}

constexpr size_t kShownReasons = 3;
constexpr uint64_t kSaidBefore = ~uint64_t{0};

// How many kernels behind this one are refused for the same reason; kSaidBefore where one in front of it is.
uint64_t same_refusal(const Vec<Ranked>& ranked, size_t index) {
  uint64_t count = 0;
  for (size_t i = 0; i < ranked.size(); ++i) {
    if (i == index || strcmp(ranked[i].refusal, ranked[index].refusal) != 0) continue;
    if (i < index) return kSaidBefore;
    ++count;
  }
  return count;
}

}  // namespace

kw_status Ranking::no_kernel(const Question& question) const {
  Text text;
  question.operation.describe(question.problem, &text);
  if (ranked_.empty()) {
    return fail(KW_NO_KERNEL, "no kernel serves %s: the dispatcher has no kernels; add a library", text.c_str());
  }
  Text selection;
  describe_selection(asked_name(question.selection), ranked_by(question), &selection);
  const bool by_name = question.selection.provider == KW_SELECT_EXPLICIT;
  size_t considered = 0;
  for (const Ranked& ranked : ranked_) considered += ranked.fit != Fit::kOtherOp ? 1 : 0;
  Text reasons;
  size_t shown = 0;
  for (size_t i = 0; i < ranked_.size(); ++i) {
    const Ranked& ranked = ranked_[i];
    if (by_name ? ranked.score != 0 : considered != 0 && ranked.fit == Fit::kOtherOp) continue;
    const uint64_t others = by_name ? 0 : same_refusal(ranked_, i);
    if (others == kSaidBefore) continue;
    if (shown++ == kShownReasons) {
      reasons.add("; …");
      break;
    }
    reasons.add(shown == 1 ? "" : "; ").add(ranked.entry->kernel->name);
    if (others != 0) reasons.add(" and ").add(others).add(" more");
    reasons.add(": ").add(ranked.refusal);
  }
  return fail(KW_NO_KERNEL, "none of %zu kernels serves %s (selection %s): %s",
              considered == 0 ? ranked_.size() : considered, text.c_str(), selection.c_str(), reasons.c_str());
}

void Ranking::best_reason(const Question& question, Text* reason) const {
  uint64_t usable = 0;
  for (const Ranked& ranked : ranked_) usable += ranked.usable ? 1 : 0;
  if (usable == 1) {
    reason->add("only kernel that fits");
    const size_t values = ranked_[0].pair_count;
    if (question.selection.provider != KW_SELECT_CALLBACK || values < 2) return;
    reason->add(left_to_estimates_ ? ", its values not ranked by " : ", best of its values by ");
    reason->add(provider_name(question.selection));
    return;
  }
  if (left_to_estimates_) {
    reason->add("fastest predicted of ").add(usable).add(": not ranked by ").add(provider_name(question.selection));
  } else {
    reason->add("best of ").add(usable).add(" by ").add(provider_name(question.selection));
  }
  if (ranked_[1].score == ranked_[0].score) reason->add(tie_text(*ranked_[0].entry, *ranked_[1].entry));
}

void Ranking::to_json(const Question& question, Text* text) const {
  text->add('[');
  for (size_t i = 0; i < ranked_.size(); ++i) {
    if (i != 0) text->add(',');
    kernel_json(question, ranked_[i], pairs_.begin(), i + 1, text);
  }
  text->add(']');
}

}  // namespace kernelwright
