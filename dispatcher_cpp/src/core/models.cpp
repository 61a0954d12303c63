// Learned models that come with libraries: which one ranks a problem.
#include <math.h>

#include "kernelwright/dispatcher/selection.hpp"
#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/heuristic.h"

namespace kernelwright {
namespace {

// The models of a library, null where it has none.
const kw_library_models* models_of(const kw_library& library) {
  if (library.struct_size < sizeof(kw_library_models)) return nullptr;
  const auto* all = reinterpret_cast<const kw_library_models*>(&library);
  return all->heuristic_count == 0 ? nullptr : all;
}

// A kernel that matches the problem, as a model sees it; false where there is none.
bool first_candidate(const Question& question, kw_candidate* candidate) {
  for (const KernelEntry* entry : question.registry.kernels()) {
    const kw_kernel& kernel = *entry->kernel;
    if (kernel.op != question.operation.op) continue;
    if (question.operation.matches(kernel, question.problem, nullptr, 0) != Fit::kServes) continue;
    *candidate = {&kernel, entry->library->library->arch, entry->priority, 0, HUGE_VAL};
    return true;
  }
  return false;
}

}  // namespace

kw_status check_heuristics(const kw_library& library, const char* path) {
  const kw_library_models* const all = models_of(library);
  if (all == nullptr) return KW_OK;
  for (uint64_t i = 0; i < all->heuristic_count; ++i) {
    const kw_heuristic* model = all->heuristics == nullptr ? nullptr : all->heuristics[i];
    if (model == nullptr || model->struct_size < sizeof(kw_heuristic) || model->name == nullptr ||
        model->score == nullptr) {
      return fail(KW_LOAD_FAILED, "%s: selection model %llu of library %s is incomplete", path,
                  static_cast<unsigned long long>(i), library.name);
    }
    if (model->version != KW_HEURISTIC_VERSION) {
      return fail(KW_ABI_MISMATCH, "%s: selection model %s is of version %u, this dispatcher's is %u; rebuild it", path,
                  model->name, model->version, KW_HEURISTIC_VERSION);
    }
  }
  return KW_OK;
}

void resolve(const Question& question, Selection* selection) {
  if (selection->provider != KW_SELECT_AUTO) return;
  selection->provider = KW_SELECT_ANALYTIC;
  selection->automatic = true;
  kw_candidate probe;
  for (const LibraryEntry* entry : question.registry.libraries()) {
    const kw_library_models* const all = models_of(*entry->library);
    if (all == nullptr) continue;
    if (!selection->unranked && !first_candidate(question, &probe)) return;
    selection->unranked = true;
    selection->compute_units = place_of(question.device, *probe.arch).compute_units;
    for (uint64_t i = 0; i < all->heuristic_count; ++i) {
      const kw_heuristic& model = *all->heuristics[i];
      kw_candidate ranked = probe;
      if (model.score(&selection->compute_units, &question.problem, &ranked, 1) != KW_OK) continue;
      selection->provider = KW_SELECT_CALLBACK;
      selection->score = model.score;
      selection->user = &selection->compute_units;
      selection->label = const_cast<char*>(model.name);  // nobody frees this copy's
      selection->unranked = false;
      return;
    }
  }
}

}  // namespace kernelwright
