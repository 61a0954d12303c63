#include "kernelwright/dispatcher/selection.hpp"

#include <string.h>

#include "kernelwright/dispatcher/features.hpp"
#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/dispatcher/support/sort.hpp"

namespace kernelwright {
namespace {

constexpr size_t kCacheLine = 64;

// A kernel that matches, with a value where the problem leaves something open.
struct Candidate {
  double us;
  KernelEntry* entry;
  uint32_t position;  // of the kernel, in first-fit order
  uint32_t order;     // of the value
  uint32_t value;
  bool open;
};

struct IsWorse {
  bool operator()(const Candidate& left, const Candidate& right) const {
    if (left.us != right.us) return left.us > right.us;
    if (left.position != right.position) return left.position > right.position;
    return left.order > right.order;
  }
};

// Gives the best candidate first. Most often that one serves the problem, so the others become a heap only when a
// second one is asked for.
class Candidates {
 public:
  bool reserve(size_t count) { return items_.reserve(count); }
  // With `all` false, candidates that are slower than one before them are left out.
  explicit Candidates(bool all) : all_(all) {}
  // What a candidate may take at most to be kept.
  double most_us() const { return all_ || items_.empty() ? HUGE_VAL : items_[best_].us; }
  bool push(const Candidate& candidate) {
    if (candidate.us > most_us()) return true;
    if (!items_.empty() && IsWorse()(items_[best_], candidate)) best_ = items_.size();
    return items_.push(candidate);
  }
  bool empty() const { return items_.empty(); }
  // No push may follow.
  Candidate pop() {
    if (is_heap_) best_ = 0;
    const Candidate best = items_[best_];
    items_[best_] = items_[items_.size() - 1];
    items_.resize_down(items_.size() - 1);
    if (is_heap_) sift_down(items_.begin(), 0, items_.size(), IsWorse());
    return best;
  }
  // The one before was refused.
  void arrange() {
    if (is_heap_) return;
    for (size_t root = items_.size() / 2; root-- > 0;) sift_down(items_.begin(), root, items_.size(), IsWorse());
    is_heap_ = true;
  }
  // The first other kernel with the same predicted time; null if there is none.
  const Candidate* tie_of(const Candidate& best) const {
    const Candidate* first = nullptr;
    for (const Candidate& other : items_) {
      if (other.us != best.us || other.entry == best.entry) continue;
      if (first == nullptr || other.position < first->position) first = &other;
    }
    return first;
  }

 private:
  Vec<Candidate> items_;
  size_t best_ = 0;
  bool all_, is_heap_ = false;
};

bool is_candidate(const Question& question, const KernelEntry& entry) {
  const kw_kernel& kernel = *entry.kernel;
  if (kernel.op != question.operation.op) return false;
  if (question.operation.matches(kernel, question.problem, nullptr, 0) != Fit::kServes) return false;
  int length = 0;
  return lacks_feature(question.device, entry, &length) == nullptr;
}

// Appends a kernel with each of its values. *trial is the problem, and gets values written into it.
bool add_candidates(const Question& question, KernelEntry* entry, uint32_t position, kw_problem* trial,
                    Candidates* candidates) {
  const Operation& operation = question.operation;
  const kw_kernel& kernel = *entry->kernel;
  const kw_arch& arch = *entry->library->library->arch;
  Place place = place_of(question.device, arch);
  uint32_t values[kMaxChoices];
  const size_t count = operation.choices == nullptr ? 0 : operation.choices(kernel, question.problem, place, values);
  place.most_us = candidates->most_us();
  if (count == 0) {
    const double us = operation.estimate(kernel, question.problem, place).total_us;
    return candidates->push({us, entry, position, 0, 0, false});
  }
  for (uint32_t i = 0; i < count; ++i) {
    operation.choose(trial, values[i]);
    place.most_us = candidates->most_us();
    const double us = operation.estimate(kernel, *trial, place).total_us;
    if (!candidates->push({us, entry, position, i, values[i], true})) return false;
  }
  return true;
}

// Asks the kernel about the problem with the candidate's value, which stays in *trial.
bool serves(const Question& question, const Candidate& candidate, kw_problem* trial) {
  const kw_kernel& kernel = *candidate.entry->kernel;
  if (candidate.open) {
    question.operation.choose(trial, candidate.value);
  } else {
    memcpy(trial, &question.problem, question.operation.problem_bytes);
  }
  char reason[kReasonBytes];
  return kernel.supports(&kernel, trial, reason, sizeof reason) == KW_OK;
}

kw_status no_memory() { return fail(KW_OUT_OF_MEMORY, "no memory for candidates"); }

// With all reasons: slower than choosing.
kw_status nothing_serves(const Question& question) {
  Ranking ranking;
  if (kw_status status = ranking.fill(question)) return status;
  return ranking.no_kernel(question);
}

// Thousands of kernels do not stay in the nearest caches between two selections; each is three objects that lead to one
// another.
void fetch_ahead(const Vec<KernelEntry*>& kernels, size_t at) {
  constexpr size_t kEntry = 12, kKernel = 8, kTraits = 4;
  if (at + kEntry >= kernels.size()) return;
  __builtin_prefetch(kernels[at + kEntry]);
  __builtin_prefetch(kernels[at + kKernel]->kernel);
  const char* traits = static_cast<const char*>(kernels[at + kTraits]->kernel->traits);
  __builtin_prefetch(traits);
  __builtin_prefetch(traits + kCacheLine);
}

// Candidates of all kernels, and how many kernels those are.
bool collect(const Question& question, kw_problem* trial, Candidates* candidates, uint64_t* matching) {
  const Vec<KernelEntry*>& kernels = question.registry.kernels();
  *matching = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    fetch_ahead(kernels, i);
    if (!is_candidate(question, *kernels[i])) continue;
    ++*matching;
    if (!add_candidates(question, kernels[i], static_cast<uint32_t>(i), trial, candidates)) return false;
  }
  return true;
}

// Kernels are asked in the order of the candidates' predicted times. With `all` false only the first one is, and
// *refused says that it serves nothing.
kw_status fastest_of(const Question& question, bool all, kw_problem* trial, Selected* selected, bool* refused,
                     Text* reason) {
  Candidates candidates(all);
  uint64_t matching = 0;
  if (all && !candidates.reserve(question.registry.kernels().size())) return no_memory();
  if (!collect(question, trial, &candidates, &matching)) return no_memory();
  for (*refused = false; !candidates.empty() && !*refused; candidates.arrange()) {
    const Candidate best = candidates.pop();
    if (!serves(question, best, trial)) {
      *refused = !all;
      continue;
    }
    *selected = {best.entry, best.us, best.position};
    if (matching == 1) {
      reason->add("only kernel that fits");
      return KW_OK;
    }
    reason->add("fastest predicted of ").add(matching);
    if (question.selection.unranked) reason->add(": ranked by no model");
    const Candidate* other = candidates.tie_of(best);
    if (other != nullptr) reason->add(tie_text(*best.entry, *other->entry));
    return KW_OK;
  }
  return *refused ? KW_OK : nothing_serves(question);
}

// Analytic selection. Most often the kernel that is predicted to be fastest serves the problem, so the others get an
// estimate only as far as it takes to see that they are slower; only if it does not, each gets its own.
kw_status fastest(const Question& question, kw_problem* trial, Selected* selected, Text* reason) {
  bool refused = false;
  const kw_status status = fastest_of(question, false, trial, selected, &refused, reason);
  return refused ? fastest_of(question, true, trial, selected, &refused, reason) : status;
}

// The kernel with its fastest value that it serves.
bool serves_any(const Question& question, KernelEntry* entry, kw_problem* trial, bool* complete) {
  Candidates values(true);
  *complete = add_candidates(question, entry, 0, trial, &values);
  for (; !values.empty(); values.arrange()) {
    if (serves(question, values.pop(), trial)) return true;
  }
  return false;
}

kw_status first_that_fits(const Question& question, kw_problem* trial, Selected* selected, Text* reason) {
  const Vec<KernelEntry*>& kernels = question.registry.kernels();
  uint64_t matching = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (!is_candidate(question, *kernels[i])) continue;
    ++matching;
    bool complete = true;
    if (selected->entry != nullptr || !serves_any(question, kernels[i], trial, &complete)) {
      if (!complete) return no_memory();
      continue;
    }
    *selected = {kernels[i], static_cast<double>(i), i};
  }
  if (selected->entry == nullptr) return nothing_serves(question);
  if (matching == 1) {
    reason->add("only kernel that fits");
  } else {
    reason->add("first of ").add(matching).add(" that fit");
  }
  return KW_OK;
}

kw_status by_name(const Question& question, kw_problem* trial, Selected* selected, Text* reason) {
  KernelEntry* wanted = nullptr;
  if (kw_status status = question.registry.find(question.selection.kernel, &wanted)) return status;
  bool complete = true;
  if (!is_candidate(question, *wanted) || !serves_any(question, wanted, trial, &complete)) {
    return complete ? nothing_serves(question) : no_memory();
  }
  *selected = {wanted, 0, 0};
  reason->add("asked for by name");
  return KW_OK;
}

kw_status by_callback(const Question& question, kw_problem* trial, Selected* selected, Text* reason) {
  Ranking ranking;
  if (kw_status status = ranking.fill(question)) return status;
  const Ranked* best = ranking.best();
  if (best == nullptr) return ranking.no_kernel(question);
  if (best->open) question.operation.choose(trial, best->choice);
  *selected = {best->entry, best->score, best->position};
  ranking.best_reason(question, reason);
  return KW_OK;
}

uint32_t compute_units(const Device& device, const kw_arch& arch) {
  if (device.compute_units != 0) return device.compute_units;
  if (arch.compute_units != 0) return arch.compute_units;
  return arch.backend == KW_BACKEND_CPU ? cpu_count() : 1;
}

}  // namespace

const char* provider_name(const Selection& selection) {
  switch (selection.provider) {
    case KW_SELECT_ANALYTIC:
      return "analytic";
    case KW_SELECT_FIRST_FIT:
      return "first_fit";
    case KW_SELECT_EXPLICIT:
      return "explicit";
    case KW_SELECT_AUTO:
      return "auto";
    default:
      return selection.label != nullptr ? selection.label : "callback";
  }
}

const char* asked_name(const Selection& selection) { return selection.automatic ? "auto" : provider_name(selection); }

const char* ranked_by_name(const Selection& selection) {
  switch (selection.provider) {
    case KW_SELECT_FIRST_FIT:
      return "priority";
    case KW_SELECT_EXPLICIT:
      return "name";
    case KW_SELECT_CALLBACK:
      return provider_name(selection);
    default:
      return "predicted time";
  }
}

void describe_selection(const char* asked, const char* ranked_by, Text* text) {
  text->add(asked);
  if (strcmp(asked, ranked_by) != 0) text->add(", ranked by ").add(ranked_by);
}

Place place_of(const Device& device, const kw_arch& arch) {
  Place place = {&arch, compute_units(device, arch)};
  if (arch.backend == KW_BACKEND_CPU) {
    int length = 0;
    const char* offered = device.features != nullptr ? device.features : cpu_features();
    place.slow_dots = missing_feature("slow_avx512_bf16", offered, &length) == nullptr;
  }
  return place;
}

const char* lacks_feature(const Device& device, const KernelEntry& entry, int* length) {
  if (entry.kernel->features[0] == '\0') return nullptr;
  const bool cpu = entry.library->library->arch->backend == KW_BACKEND_CPU;
  const char* offered = device.features != nullptr ? device.features : cpu ? cpu_features() : "";
  return missing_feature(entry.kernel->features, offered, length);
}

kw_status select_kernel(const Question& question, kw_problem* problem, Selected* selected, Text* reason) {
  AnyProblem trial;
  memcpy(trial.bytes, &question.problem, question.operation.problem_bytes);
  kw_status status = KW_OK;
  switch (question.selection.provider) {
    case KW_SELECT_FIRST_FIT:
      status = first_that_fits(question, &trial.base(), selected, reason);
      break;
    case KW_SELECT_EXPLICIT:
      status = by_name(question, &trial.base(), selected, reason);
      break;
    case KW_SELECT_CALLBACK:
      status = by_callback(question, &trial.base(), selected, reason);
      break;
    default:
      status = fastest(question, &trial.base(), selected, reason);
  }
  if (status == KW_OK) memcpy(problem, trial.bytes, question.operation.problem_bytes);
  return status;
}

}  // namespace kernelwright
