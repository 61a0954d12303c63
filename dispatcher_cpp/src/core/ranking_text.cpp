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

}  // namespace

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
  Text selection;
  describe_selection(asked_name(question.selection), judge(question), &selection);
  return fail(KW_NO_KERNEL, "none of %zu kernels serves %s (selection %s): %s", ranked_.size(), text.c_str(),
              selection.c_str(), reasons.c_str());
}

void Ranking::best_reason(const Question& question, Text* reason) const {
  uint64_t usable = 0;
  for (const Ranked& ranked : ranked_) usable += ranked.usable ? 1 : 0;
  if (usable == 1) {
    reason->add("only kernel that fits");
    const size_t values = ranked_[0].pair_count;
    if (question.selection.provider != KW_SELECT_CALLBACK || values < 2) return;
    reason->add(left_to_estimates_ ? ", its values not judged by " : ", best of its values by ");
    reason->add(provider_name(question.selection));
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
    kernel_json(question, ranked_[i], pairs_.begin(), i + 1, text);
  }
  text->add(']');
}

}  // namespace kernelwright
