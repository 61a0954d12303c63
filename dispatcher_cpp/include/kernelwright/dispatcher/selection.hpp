// From a problem to a ranking of kernels: who refuses and why, who is best and why.
#ifndef KERNELWRIGHT_DISPATCHER_SELECTION_HPP
#define KERNELWRIGHT_DISPATCHER_SELECTION_HPP

#include "kernelwright/dispatcher.h"
#include "kernelwright/dispatcher/gemm/analytic.hpp"
#include "kernelwright/dispatcher/registry.hpp"

namespace kernelwright {

constexpr size_t kReasonBytes = 256;

struct Device {
  int32_t ordinal = 0;
  uint32_t compute_units = 0;  // 0 = the architecture's
  char* arch = nullptr;        // null = any
  char* features = nullptr;    // null = detected on CPU, none elsewhere
};

struct Selection {
  uint32_t provider = KW_SELECT_ANALYTIC;
  char* kernel = nullptr;
  kw_score_fn score = nullptr;
  void* user = nullptr;
  char* label = nullptr;
};

// How near a kernel that is not used came: errors show the nearest first.
enum class Fit { kOtherOp, kOtherDtype, kOtherLayout, kFeatureMissing, kKernelRefuses, kServes };

struct Ranked {
  KernelEntry* entry;
  size_t position;  // in first-fit order: breaks ties
  Fit fit;
  bool usable;       // serves the problem and is not ruled out by the provider
  uint32_t split_k;  // the problem's, or what is chosen for this kernel where that is 0; 1 for grouped problems
  double score;      // lower is better: microseconds for analytic, position for first fit
  Estimate estimate;
  char refusal[kReasonBytes];

  bool supported() const { return fit == Fit::kServes; }
};

const char* provider_name(const Selection& selection);

// Every kernel, the usable ones first and best first. Where split_k is 0, each kernel is ranked with the number of
// slices for which its predicted time is least, of those that it serves; fewer where times are equal. Fails only for a
// broken selection (unknown explicit kernel, failing callback) or lack of memory.
kw_status rank(const Registry& registry, const Device& device, const Selection& selection, const kw_problem& problem,
               Vec<Ranked>* ranking);

// A few words on why ranking[0] was chosen; ranking[0] is usable.
void choice_reason(const Selection& selection, const Vec<Ranked>& ranking, Text* text);
// What to say when ranking[0] is not usable.
kw_status no_kernel(const Selection& selection, const Vec<Ranked>& ranking, const kw_problem& problem);
void ranking_json(const Selection& selection, const Vec<Ranked>& ranking, const kw_problem& problem, Text* text);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_SELECTION_HPP
