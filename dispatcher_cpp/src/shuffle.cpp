#include "tilewright/dispatcher.h"
#include "tilewright/dispatcher/problem.hpp"
#include "tilewright/dispatcher/state.hpp"

using namespace tilewright;

namespace {

const tw_gemm_traits& traits_of(const KernelEntry& entry) {
  return *static_cast<const tw_gemm_traits*>(entry.kernel->traits);
}

tw_status check(const tw_problem* problem) {
  if (tw_status status = validate(problem)) return status;
  if (problem->op == TW_OP_GEMM) return TW_OK;
  return fail(TW_INVALID_ARGUMENT, "shuffle_b: op = %u; allowed: 1 (gemm)", problem->op);
}

// With the reason of the first kernel that reads this format: those of others, that B is shuffled at all, say little.
tw_status not_served(const Vec<Ranked>& ranking, const tw_gemm_problem& problem) {
  Text text;
  describe(problem.base, &text);
  for (const Ranked& ranked : ranking) {
    if (traits_of(*ranked.entry).b_format != problem.b_format) continue;
    return fail(TW_NO_KERNEL, "no kernel that reads b_format %llu serves %s: %s: %s",
                static_cast<unsigned long long>(problem.b_format), text.c_str(), ranked.entry->kernel->name,
                ranked.refusal);
  }
  return fail(TW_NO_KERNEL, "no kernel reads b_format %llu; shuffle B for a kernel that is here",
              static_cast<unsigned long long>(problem.b_format));
}

// The best kernel of one format. Under the lock.
tw_status best_of_format(tw_dispatcher* dispatcher, const tw_gemm_problem& problem, Ranked* best) {
  Vec<Ranked> ranking;
  if (tw_status status =
          rank(dispatcher->registry, dispatcher->device, dispatcher->selection, problem.base, &ranking)) {
    return status;
  }
  if (ranking.empty() || !ranking[0].usable) return not_served(ranking, problem);
  *best = ranking[0];
  return TW_OK;
}

bool comes_first(const KernelEntry* entry, const Vec<KernelEntry*>& kernels) {
  for (const KernelEntry* other : kernels) {
    if (other == entry) return true;
    if (traits_of(*other).b_format == traits_of(*entry).b_format) return false;
  }
  return true;
}

// The best kernel of any format. Under the lock.
tw_status best_of_all(tw_dispatcher* dispatcher, tw_gemm_problem problem, Ranked* best) {
  tw_status refused = TW_OK;
  bool found = false;
  const Vec<KernelEntry*>& kernels = dispatcher->registry.kernels();
  for (const KernelEntry* entry : kernels) {
    problem.b_format = traits_of(*entry).b_format;
    if (problem.b_format == 0 || !comes_first(entry, kernels)) continue;
    Ranked one;
    const tw_status status = best_of_format(dispatcher, problem, &one);
    if (status != TW_OK && status != TW_NO_KERNEL) return status;
    if (status != TW_OK) {
      refused = status;
    } else if (!found || one.score < best->score || (one.score == best->score && one.position < best->position)) {
      *best = one;
      found = true;
    }
  }
  if (found) return TW_OK;
  if (refused != TW_OK) return refused;
  return fail(TW_NO_KERNEL, "no kernel here reads B in an order of its own; add a library with preshuffle kernels");
}

tw_status failed(const Ranked& ranked, tw_status status) {
  return fail(status, "kernel %s cannot shuffle B: %s: %s", ranked.entry->kernel->name, tw_status_name(status),
              ranked.entry->library->library->last_error());
}

tw_status bytes_of(const Ranked& ranked, const tw_gemm_problem& problem, uint64_t* bytes) {
  const tw_kernel& kernel = *ranked.entry->kernel;
  const tw_status status = kernel.shuffle_b_bytes(&kernel, &problem.base, bytes);
  return status == TW_OK ? TW_OK : failed(ranked, status);
}

}  // namespace

tw_status tw_dispatcher_shuffled_b(tw_dispatcher* dispatcher, const tw_problem* problem, uint64_t* b_format,
                                   uint64_t* bytes) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (b_format == nullptr) return null_argument("b_format");
  if (bytes == nullptr) return null_argument("bytes");
  if (tw_status status = check(problem)) return status;
  tw_gemm_problem asked = as_gemm(*problem);
  Ranked best;
  {
    const Lock lock(dispatcher->mutex);
    const tw_status status =
        asked.b_format == 0 ? best_of_all(dispatcher, asked, &best) : best_of_format(dispatcher, asked, &best);
    if (status != TW_OK) return status;
  }
  asked.b_format = *b_format = traits_of(*best.entry).b_format;
  asked.split_k = best.split_k;
  return bytes_of(best, asked, bytes);
}

tw_status tw_dispatcher_shuffle_b(tw_dispatcher* dispatcher, const tw_problem* problem, const void* b, void* shuffled,
                                  uint64_t bytes) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (tw_status status = check(problem)) return status;
  tw_gemm_problem asked = as_gemm(*problem);
  if (asked.b_format == 0) {
    return fail(TW_INVALID_ARGUMENT, "shuffle_b: b_format = 0; allowed: what tw_dispatcher_shuffled_b says");
  }
  Ranked best;
  {
    const Lock lock(dispatcher->mutex);
    if (tw_status status = best_of_format(dispatcher, asked, &best)) return status;
  }
  asked.split_k = best.split_k;
  uint64_t needed = 0;
  if (tw_status status = bytes_of(best, asked, &needed)) return status;
  if (bytes < needed) {
    return fail(TW_BUFFER_TOO_SMALL, "shuffle_b: bytes = %llu; allowed: %llu or more",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(needed));
  }
  if (needed == 0) return TW_OK;
  if (b == nullptr) return null_argument("b");
  if (shuffled == nullptr) return null_argument("shuffled");
  const tw_kernel& kernel = *best.entry->kernel;
  const tw_status status = kernel.shuffle_b(&kernel, &asked.base, b, shuffled);
  return status == TW_OK ? TW_OK : failed(best, status);
}
