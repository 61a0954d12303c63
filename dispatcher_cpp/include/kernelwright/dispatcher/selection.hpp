// From a problem to a kernel, and to the ranking of all kernels: which refuse and why, which is best and why.
#ifndef KERNELWRIGHT_DISPATCHER_SELECTION_HPP
#define KERNELWRIGHT_DISPATCHER_SELECTION_HPP

#include "kernelwright/dispatcher.h"
#include "kernelwright/dispatcher/operation.hpp"
#include "kernelwright/dispatcher/registry.hpp"

namespace kernelwright {

struct Device {
  int32_t ordinal = 0;
  uint32_t compute_units = 0;  // 0 = the architecture's
  char* arch = nullptr;        // null = any
  char* features = nullptr;    // null = detected on CPU, none elsewhere
};

struct Selection {
  uint32_t provider = KW_SELECT_AUTO;
  char* kernel = nullptr;
  kw_score_fn score = nullptr;
  void* user = nullptr;
  char* label = nullptr;
  uint32_t compute_units = 0;  // what user of a library's model points to
  bool automatic = false;      // KW_SELECT_AUTO, which resolve() made into what the others say
  bool unranked = false;       // libraries have models, and none ranks the problem
};

// What selection works with; the problem is one stage, which kernels serve, not a problem of several stages.
struct Question {
  const Registry& registry;
  const Device& device;
  const Selection& selection;
  const Operation& operation;
  const kw_problem& problem;
};

// A kernel and a value of what the problem leaves open, with which it serves the problem.
struct RankedPair {
  Estimate estimate;
  double score;    // lower is better
  uint32_t value;  // 0 where nothing is open
  uint32_t order;  // breaks ties
};

struct Ranked {
  KernelEntry* entry = nullptr;
  size_t position = 0;  // in first-fit order: breaks ties
  Fit fit = Fit::kOtherOp;
  bool usable = false;                    // serves the problem and is not ruled out by the provider
  size_t first_pair = 0, pair_count = 0;  // of the ranking; none for a kernel that does not serve the problem
  bool open = false;                      // choice holds what is chosen where the problem leaves something open
  uint32_t choice = 0;                    // as score and estimate, of the pair of lowest score
  double score = 0;                       // lower is better: microseconds for analytic, position for first fit
  Estimate estimate;
  const char* refusal = "";  // the ranking's

  bool supported() const { return fit == Fit::kServes; }
};

// Every kernel, the usable ones first and best first, with all reasons. A kernel's place is that of its best pair.
class Ranking {
 public:
  Ranking() = default;
  Ranking(const Ranking&) = delete;
  Ranking& operator=(const Ranking&) = delete;
  ~Ranking();

  // Fails only for a broken selection (unknown explicit kernel, failing callback) or lack of memory.
  kw_status fill(const Question& question);
  // Null where no kernel is usable.
  const Ranked* best() const { return ranked_.empty() || !ranked_[0].usable ? nullptr : &ranked_[0]; }
  const Vec<Ranked>& all() const { return ranked_; }
  // Why the best kernel leads the ranking of a callback, in a few words; there is one.
  void best_reason(const Question& question, Text* reason) const;
  void to_json(const Question& question, Text* text) const;
  // What to say where no kernel is usable: KW_NO_KERNEL.
  kw_status no_kernel(const Question& question) const;
  // The callback does not rank the problem: predicted times decide.
  void leave_to_estimates();
  // What compared the kernels, see ranked_by_name().
  const char* ranked_by(const Question& question) const;
  // Stores a sentence on why a kernel is not used.
  kw_status refuse(Ranked* ranked, const char* reason);

 private:
  Vec<Ranked> ranked_;
  Vec<RankedPair> pairs_;  // of each kernel side by side, best first
  Vec<char*> texts_;
  bool left_to_estimates_ = false;  // a callback does not rank the problem
};

// How reasons say that another kernel has the same score.
inline const char* tie_text(const KernelEntry& best, const KernelEntry& other) {
  return other.priority == best.priority ? ", tie by name" : ", tie by priority";
}
const char* provider_name(const Selection& selection);
// What was asked for, "auto" also where resolve() found out what that means.
const char* asked_name(const Selection& selection);
// What compares kernels: "predicted time", "priority", "name", or the label of a model or callback.
const char* ranked_by_name(const Selection& selection);
// Both of them, as errors say it: "auto, ranked by predicted time".
void describe_selection(const char* asked, const char* ranked_by, Text* text);
// Where kernels of a library for the architecture would run.
Place place_of(const Device& device, const kw_arch& arch);
// The first feature that the kernel needs and the device lacks, as [begin, begin + *length); null when it lacks none.
const char* lacks_feature(const Device& device, const KernelEntry& entry, int* length);

// Makes of KW_SELECT_AUTO, if *selection is that, what it is for the problem: the first model of a library that ranks
// it, as a callback, or else predicted times. question.selection is *selection, which stays where it is.
void resolve(const Question& question, Selection* selection);

// What was selected. score is what the provider compared.
struct Selected {
  KernelEntry* entry = nullptr;
  double score = 0;
  size_t position = 0;
};

// The best kernel and, in a few words, why. *problem is question.problem, and gets what is chosen where that leaves
// something open: a callback's scores decide, or else predicted times. Estimates each kernel (and value) once and asks
// kernels in the order of the scores until one serves the problem. KW_NO_KERNEL with the reasons of the nearest
// kernels.
kw_status select_kernel(const Question& question, kw_problem* problem, Selected* selected, Text* reason);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_SELECTION_HPP
