#include "kernelwright/dispatcher/gemm.h"
#include "kernelwright/dispatcher/gemm/problem.hpp"
#include "kernelwright/dispatcher/state.hpp"

using namespace kernelwright;

namespace {

// The kernel for one format of B, and the problem with the slices of K that are chosen for it.
struct Best {
  Selected selected;
  AnyProblem problem;

  const kw_kernel& kernel() const { return *selected.entry->kernel; }
  const kw_gemm_extension& extension() const { return *static_cast<const kw_gemm_extension*>(kernel().extension); }
};

kw_status check(const kw_problem* problem) {
  const Operation* operation = nullptr;
  if (kw_status status = validate(problem, &operation)) return status;
  if (problem->op == KW_OP_GEMM) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "shuffle_b: op = %u; allowed: 1 (gemm)", problem->op);
}

// With the reason of the first kernel that reads this format: other kernels only say that B is shuffled at all.
kw_status not_served(const Question& question, uint64_t b_format) {
  Ranking ranking;
  if (kw_status status = ranking.fill(question)) return status;
  Text text;
  question.operation.describe(question.problem, &text);
  for (const Ranked& ranked : ranking.all()) {
    if (ranked.entry->kernel->op != KW_OP_GEMM || gemm_traits(*ranked.entry->kernel).b_format != b_format) continue;
    return fail(KW_NO_KERNEL, "no kernel that reads b_format %llu serves %s: %s: %s",
                static_cast<unsigned long long>(b_format), text.c_str(), ranked.entry->kernel->name, ranked.refusal);
  }
  return fail(KW_NO_KERNEL, "no kernel reads b_format %llu; shuffle B for a kernel that is here",
              static_cast<unsigned long long>(b_format));
}

// The best kernel of one format. Under the lock.
kw_status best_of_format(kw_dispatcher* dispatcher, const kw_gemm_problem& problem, Best* best) {
  const Question question = {dispatcher->registry, dispatcher->device, dispatcher->selection, kGemm, problem.base};
  Text reason;
  const kw_status status = select_kernel(question, &best->problem.base(), &best->selected, &reason);
  return status == KW_NO_KERNEL ? not_served(question, problem.b_format) : status;
}

// The format in which the kernel reads B; 0 = as the problem's layout says.
uint64_t format_of(const KernelEntry& entry) {
  return entry.kernel->op == KW_OP_GEMM ? gemm_traits(*entry.kernel).b_format : 0;
}

bool comes_first(const KernelEntry* entry, const Vec<KernelEntry*>& kernels) {
  for (const KernelEntry* other : kernels) {
    if (other == entry) return true;
    if (format_of(*other) == format_of(*entry)) return false;
  }
  return true;
}

// The best kernel of any format. Under the lock.
kw_status best_of_all(kw_dispatcher* dispatcher, kw_gemm_problem problem, Best* best) {
  kw_status refused = KW_OK;
  bool chosen = false;
  const Vec<KernelEntry*>& kernels = dispatcher->registry.kernels();
  for (const KernelEntry* entry : kernels) {
    problem.b_format = format_of(*entry);
    if (problem.b_format == 0 || !comes_first(entry, kernels)) continue;
    Best one;
    const kw_status status = best_of_format(dispatcher, problem, &one);
    if (status != KW_OK && status != KW_NO_KERNEL) return status;
    const Selected &left = one.selected, &right = best->selected;
    if (status != KW_OK) {
      refused = status;
    } else if (!chosen || left.score < right.score || (left.score == right.score && left.position < right.position)) {
      *best = one;
      chosen = true;
    }
  }
  if (chosen) return KW_OK;
  if (refused != KW_OK) return refused;
  return fail(KW_NO_KERNEL, "no kernel here reads B in an order of its own; add a library with preshuffle kernels");
}

kw_status failed(const Best& best, kw_status status) {
  return fail(status, "kernel %s cannot shuffle B: %s: %s", best.kernel().name, kw_status_name(status),
              best.selected.entry->library->library->last_error());
}

kw_status bytes_of(const Best& best, uint64_t* bytes) {
  const kw_status status = best.extension().shuffle_b_bytes(&best.kernel(), &best.problem.base(), bytes);
  return status == KW_OK ? KW_OK : failed(best, status);
}

}  // namespace

kw_status kw_dispatcher_shuffled_b(kw_dispatcher* dispatcher, const kw_problem* problem, uint64_t* b_format,
                                   uint64_t* bytes) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (b_format == nullptr) return null_argument("b_format");
  if (bytes == nullptr) return null_argument("bytes");
  if (kw_status status = check(problem)) return status;
  const kw_gemm_problem& asked = as_gemm(*problem);
  Best best;
  {
    const Lock lock(dispatcher->mutex);
    const kw_status status =
        asked.b_format == 0 ? best_of_all(dispatcher, asked, &best) : best_of_format(dispatcher, asked, &best);
    if (status != KW_OK) return status;
  }
  *b_format = gemm_traits(best.kernel()).b_format;
  return bytes_of(best, bytes);
}

kw_status kw_dispatcher_shuffle_b(kw_dispatcher* dispatcher, const kw_problem* problem, const void* b, void* shuffled,
                                  uint64_t bytes) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (kw_status status = check(problem)) return status;
  const kw_gemm_problem& asked = as_gemm(*problem);
  if (asked.b_format == 0) {
    return fail(KW_INVALID_ARGUMENT, "shuffle_b: b_format = 0; allowed: what kw_dispatcher_shuffled_b says");
  }
  Best best;
  {
    const Lock lock(dispatcher->mutex);
    if (kw_status status = best_of_format(dispatcher, asked, &best)) return status;
  }
  uint64_t needed = 0;
  if (kw_status status = bytes_of(best, &needed)) return status;
  if (bytes < needed) {
    return fail(KW_BUFFER_TOO_SMALL, "shuffle_b: bytes = %llu; allowed: %llu or more",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(needed));
  }
  if (needed == 0) return KW_OK;
  if (b == nullptr) return null_argument("b");
  if (shuffled == nullptr) return null_argument("shuffled");
  const kw_status status = best.extension().shuffle_b(&best.kernel(), &best.problem.base(), b, shuffled);
  return status == KW_OK ? KW_OK : failed(best, status);
}
