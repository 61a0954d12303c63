#include "kernelwright/dispatcher/selection.hpp"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernelwright/dispatcher/features.hpp"
#include "kernelwright/dispatcher/gemm/problem.hpp"
#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/dispatcher/support/sort.hpp"

namespace kernelwright {
namespace {

const kw_gemm_traits& traits_of(const KernelEntry& entry) {
  return *static_cast<const kw_gemm_traits*>(entry.kernel->traits);
}

uint32_t compute_units(const Device& device, const kw_arch& arch) {
  if (device.compute_units != 0) return device.compute_units;
  if (arch.compute_units != 0) return arch.compute_units;
  return arch.backend == KW_BACKEND_CPU ? cpu_count() : 1;
}

bool refuse(Ranked* ranked, Fit fit, const char* format, ...) __attribute__((format(printf, 3, 4)));
bool refuse(Ranked* ranked, Fit fit, const char* format, ...) {
  ranked->fit = fit;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(ranked->refusal, sizeof ranked->refusal, format, arguments);
  va_end(arguments);
  return false;
}

const char* layout_name(uint32_t layout) { return layout == KW_ROW_MAJOR ? "row-major" : "column-major"; }

// What every kernel would have to check the same way; the rest is the kernel's own answer.
bool matches_traits(const Signature& p, const kw_gemm_traits& t, Ranked* ranked) {
  const struct {
    const char* field;
    uint32_t asked, built;
  } dtypes[] = {{"dtype_a", p.dtype_a, t.dtype_a},
                {"dtype_b", p.dtype_b, t.dtype_b},
                {"dtype_c", p.dtype_c, t.dtype_c},
                {"dtype_acc", p.dtype_acc, t.dtype_acc}},
    layouts[] = {{"layout_a", p.layout_a, t.layout_a},
                 {"layout_b", p.layout_b, t.layout_b},
                 {"layout_c", p.layout_c, t.layout_c}};
  for (const auto& d : dtypes) {
    if (d.asked == d.built) continue;
    const char* built = dtype_name(d.built);
    return refuse(ranked, Fit::kOtherDtype, "%s is %s, the kernel is built for %s", d.field, dtype_name(d.asked),
                  built == nullptr ? "an unknown dtype" : built);
  }
  for (const auto& l : layouts) {
    if (l.asked == l.built) continue;
    return refuse(ranked, Fit::kOtherLayout, "%s is %s, the kernel is built for %s", l.field, layout_name(l.asked),
                  layout_name(l.built));
  }
  return true;
}

bool has_features(const Device& device, Ranked* ranked) {
  const KernelEntry& entry = *ranked->entry;
  const bool cpu = entry.library->library->arch->backend == KW_BACKEND_CPU;
  const char* offered = device.features != nullptr ? device.features : cpu ? cpu_features() : "";
  int length = 0;
  const char* missing = missing_feature(entry.kernel->features, offered, &length);
  return missing == nullptr || refuse(ranked, Fit::kFeatureMissing, "the device lacks %.*s", length, missing);
}

// The kernel's own answer.
bool is_supported(const kw_problem& problem, Ranked* ranked) {
  const kw_kernel& kernel = *ranked->entry->kernel;
  char reason[kReasonBytes] = "";
  const kw_status status = kernel.supports(&kernel, &problem, reason, sizeof reason);
  reason[sizeof reason - 1] = '\0';
  if (status == KW_OK) {
    ranked->refusal[0] = '\0';
    ranked->fit = Fit::kServes;
    return true;
  }
  return refuse(ranked, Fit::kKernelRefuses, "%s", reason[0] != '\0' ? reason : kw_status_name(status));
}

bool serves_split(kw_gemm_problem problem, uint32_t split_k, Ranked* ranked) {
  problem.split_k = ranked->split_k = split_k;
  return is_supported(problem.base, ranked);
}

// More slices than k has tiles would be empty.
uint32_t most_slices(const kw_gemm_problem& p, const kw_gemm_traits& t) {
  const int64_t tiles = p.k / t.tile_k + (p.k % t.tile_k != 0 ? 1 : 0);
  return tiles < 1 ? 1 : tiles < t.max_split_k ? static_cast<uint32_t>(tiles) : t.max_split_k;
}

// Chooses split_k: tries the numbers of slices in the order of their predicted times until the kernel serves one.
bool serves_best_split(const kw_gemm_problem& problem, const kw_arch& arch, uint32_t units, Ranked* ranked) {
  const kw_gemm_traits& traits = traits_of(*ranked->entry);
  const uint32_t most = most_slices(problem, traits);
  double last_us = -1;
  uint32_t last = 0;  // the one that was tried last: all before it in the order (time, slices) were refused
  for (uint32_t tried = 0; tried < most; ++tried) {
    double best_us = HUGE_VAL;
    uint32_t best = 0;
    kw_gemm_problem p = problem;
    for (p.split_k = 1; p.split_k <= most; ++p.split_k) {
      const double us = estimate(p, arch, traits, units).total_us;
      const bool later = us > last_us || (us == last_us && p.split_k > last);
      if (later && (best == 0 || us < best_us)) best_us = us, best = p.split_k;
    }
    if (best == 0) break;
    if (serves_split(problem, best, ranked)) return true;
    last_us = best_us, last = best;
  }
  return false;  // with the reason why the last one is not served
}

bool serves(const kw_problem& problem, const Device& device, Ranked* ranked) {
  const KernelEntry& entry = *ranked->entry;
  const kw_arch& arch = *entry.library->library->arch;
  const kw_gemm_traits& traits = traits_of(entry);
  ranked->refusal[0] = '\0';
  ranked->split_k = 1;
  if (entry.kernel->op != problem.op) {
    const bool grouped = problem.op == KW_OP_GROUPED_GEMM;
    return refuse(ranked, Fit::kOtherOp, "the problem is %s, the kernel serves %s problems only",
                  grouped ? "grouped" : "a single one", grouped ? "single" : "grouped");
  }
  if (!matches_traits(signature(problem), traits, ranked) || !has_features(device, ranked)) return false;
  const uint32_t units = compute_units(device, arch);
  if (problem.op == KW_OP_GROUPED_GEMM) {
    if (!is_supported(problem, ranked)) return false;
    ranked->estimate = estimate(as_grouped(problem), arch, traits, units);
    return true;
  }
  kw_gemm_problem gemm = as_gemm(problem);
  if (!(gemm.split_k == 0 ? serves_best_split(gemm, arch, units, ranked) : serves_split(gemm, gemm.split_k, ranked))) {
    return false;
  }
  gemm.split_k = ranked->split_k;
  ranked->estimate = estimate(gemm, arch, traits, units);
  return true;
}

kw_status score_by_callback(const Selection& selection, const kw_problem& problem, Vec<Ranked>* ranking) {
  Vec<kw_candidate> candidates;
  if (!candidates.reserve(ranking->size())) return fail(KW_OUT_OF_MEMORY, "no memory for candidates");
  for (const Ranked& ranked : *ranking) {
    if (!ranked.supported()) continue;
    const KernelEntry& entry = *ranked.entry;
    const kw_candidate candidate = {entry.kernel, entry.library->library->arch, entry.priority, 0, HUGE_VAL};
    if (!candidates.push(candidate)) return fail(KW_OUT_OF_MEMORY, "no memory for candidates");
  }
  if (candidates.empty()) return KW_OK;
  if (kw_status status = selection.score(selection.user, &problem, candidates.begin(), candidates.size())) {
    return fail(status, "selection by %s failed: %s", provider_name(selection), kw_status_name(status));
  }
  size_t next = 0;
  for (Ranked& ranked : *ranking) {
    if (!ranked.supported()) continue;
    ranked.score = candidates[next++].score;
    ranked.usable = isfinite(ranked.score);
    if (!ranked.usable) snprintf(ranked.refusal, sizeof ranked.refusal, "ruled out by %s", provider_name(selection));
  }
  return KW_OK;
}

kw_status score_explicit(const Registry& registry, const Selection& selection, Vec<Ranked>* ranking) {
  KernelEntry* wanted = nullptr;
  if (kw_status status = const_cast<Registry&>(registry).find(selection.kernel, &wanted)) return status;
  for (Ranked& ranked : *ranking) {
    ranked.score = ranked.entry == wanted ? 0 : 1;
    ranked.usable = ranked.supported() && ranked.entry == wanted;
    if (ranked.supported() && !ranked.usable) {
      snprintf(ranked.refusal, sizeof ranked.refusal, "not the kernel that was asked for");
    }
  }
  return KW_OK;
}

kw_status score_all(const Registry& registry, const Selection& selection, const kw_problem& problem,
                    Vec<Ranked>* ranking) {
  switch (selection.provider) {
    case KW_SELECT_EXPLICIT:
      return score_explicit(registry, selection, ranking);
    case KW_SELECT_CALLBACK:
      return score_by_callback(selection, problem, ranking);
    case KW_SELECT_ANALYTIC:
      for (Ranked& ranked : *ranking) ranked.score = ranked.estimate.total_us;
      return KW_OK;
    default: {  // first fit: the order of the registry is the score
      double position = 0;
      for (Ranked& ranked : *ranking) ranked.score = position++;
      return KW_OK;
    }
  }
}

void kernel_json(const Selection& selection, const Ranked& ranked, size_t rank, Text* text) {
  const KernelEntry& entry = *ranked.entry;
  text->add("{\"name\":").quoted(entry.kernel->name).add(",\"arch\":").quoted(entry.kernel->arch);
  text->add(",\"identity\":").quoted(entry.kernel->identity);
  text->add(",\"library\":").quoted(entry.library->library->name).add(",\"priority\":").add(entry.priority);
  text->add(",\"supported\":").add(ranked.supported() ? "true" : "false");
  if (!ranked.usable) {
    text->add(",\"rank\":null,\"score\":null,\"reason\":").quoted(ranked.refusal);
  } else {
    text->add(",\"rank\":").add(static_cast<uint64_t>(rank)).add(",\"score\":");
    if (selection.provider == KW_SELECT_CALLBACK) {
      text->exact(ranked.score);
    } else {
      text->fixed3(ranked.score);
    }
    text->add(",\"reason\":null");
  }
  if (ranked.supported()) {
    const Estimate& e = ranked.estimate;
    text->add(",\"split_k\":").add(ranked.split_k);
    text->add(",\"estimate\":{\"tiles\":").fixed3(e.tiles).add(",\"waves\":").fixed3(e.waves);
    text->add(",\"compute_us\":").fixed3(e.compute_us).add(",\"fill_us\":").fixed3(e.fill_us);
    text->add(",\"memory_us\":").fixed3(e.memory_us);
    text->add(",\"total_us\":").fixed3(e.total_us).add(",\"useful\":").fixed3(e.useful).add('}');
  }
  text->add('}');
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
    default:
      return selection.label != nullptr ? selection.label : "callback";
  }
}

kw_status rank(const Registry& registry, const Device& device, const Selection& selection, const kw_problem& problem,
               Vec<Ranked>* ranking) {
  if (!ranking->reserve(registry.kernels().size())) return fail(KW_OUT_OF_MEMORY, "no memory for the ranking");
  for (KernelEntry* entry : registry.kernels()) {
    Ranked ranked;
    ranked.entry = entry;
    ranked.position = ranking->size();
    ranked.score = 0;
    ranked.usable = serves(problem, device, &ranked);
    if (!ranking->push(ranked)) return fail(KW_OUT_OF_MEMORY, "no memory for the ranking");
  }
  if (kw_status status = score_all(registry, selection, problem, ranking)) return status;
  sort(ranking->begin(), ranking->size(), [](const Ranked& left, const Ranked& right) {
    if (left.usable != right.usable) return left.usable;
    if (left.usable && left.score != right.score) return left.score < right.score;
    if (!left.usable && left.fit != right.fit) return left.fit > right.fit;
    return left.position < right.position;
  });
  return KW_OK;
}

void choice_reason(const Selection& selection, const Vec<Ranked>& ranking, Text* text) {
  const Ranked& best = ranking[0];
  uint64_t usable = 0;
  for (const Ranked& ranked : ranking) usable += ranked.usable ? 1 : 0;
  if (selection.provider == KW_SELECT_EXPLICIT) {
    text->add("asked for by name");
  } else if (usable == 1) {
    text->add("only kernel that fits");
  } else if (selection.provider == KW_SELECT_FIRST_FIT) {
    text->add("first of ").add(usable).add(" that fit");
  } else if (selection.provider == KW_SELECT_CALLBACK) {
    text->add("best of ").add(usable).add(" by ").add(provider_name(selection));
  } else {
    text->add("fastest predicted of ").add(usable);
  }
  const bool scored = selection.provider == KW_SELECT_CALLBACK || selection.provider == KW_SELECT_ANALYTIC;
  if (scored && usable > 1 && ranking[1].score == best.score) {
    text->add(ranking[1].entry->priority == best.entry->priority ? ", tie by name" : ", tie by priority");
  }
}

kw_status no_kernel(const Selection& selection, const Vec<Ranked>& ranking, const kw_problem& problem) {
  Text text;
  describe(problem, &text);
  if (ranking.empty()) {
    return fail(KW_NO_KERNEL, "no kernel serves %s: the dispatcher has no kernels; add a library", text.c_str());
  }
  Text reasons;
  size_t shown = 0;
  for (const Ranked& ranked : ranking) {
    if (selection.provider == KW_SELECT_EXPLICIT && ranked.score != 0) continue;
    if (shown++ == 4) {
      reasons.add("; …");
      break;
    }
    reasons.add(shown == 1 ? "" : "; ").add(ranked.entry->kernel->name).add(": ").add(ranked.refusal);
  }
  return fail(KW_NO_KERNEL, "none of %zu kernels serves %s (selection %s): %s", ranking.size(), text.c_str(),
              provider_name(selection), reasons.c_str());
}

void ranking_json(const Selection& selection, const Vec<Ranked>& ranking, const kw_problem& problem, Text* text) {
  text->add("{\"problem\":");
  problem_json(problem, text);
  text->add(",\"selection\":").quoted(provider_name(selection)).add(",\"chosen\":");
  if (ranking.empty() || !ranking[0].usable) {
    text->add("null,\"reason\":\"no kernel serves this problem\"");
  } else {
    Text reason;
    choice_reason(selection, ranking, &reason);
    text->quoted(ranking[0].entry->kernel->identity).add(",\"reason\":").quoted(reason.c_str());
  }
  text->add(",\"kernels\":[");
  for (size_t i = 0; i < ranking.size(); ++i) {
    if (i != 0) text->add(',');
    kernel_json(selection, ranking[i], i + 1, text);
  }
  text->add("]}");
}

}  // namespace kernelwright
