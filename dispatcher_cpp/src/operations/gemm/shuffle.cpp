#include "kernelwright/dispatcher/gemm.h"
#include "kernelwright/dispatcher/gemm/problem.hpp"
#include "kernelwright/dispatcher/state.hpp"

using namespace kernelwright;

namespace {

const kw_gemm_traits& traits_of(const KernelEntry& entry) {
  return *static_cast<const kw_gemm_traits*>(entry.kernel->traits);
}

kw_status check(const kw_problem* problem) {
  if (kw_status status = validate(problem)) return status;
  if (problem->op == KW_OP_GEMM) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "shuffle_b: op = %u; allowed: 1 (gemm)", problem->op);
}

// With the reason of the first kernel that reads this format: those of others, that B is shuffled at all, say little.
kw_status not_served(const Vec<Ranked>& ranking, const kw_gemm_problem& problem) {
  Text text;
  describe(problem.base, &text);
  for (const Ranked& ranked : ranking) {
    if (traits_of(*ranked.entry).b_format != problem.b_format) continue;
    return fail(KW_NO_KERNEL, "no kernel that reads b_format %llu serves %s: %s: %s",
                static_cast<unsigned long long>(problem.b_format), text.c_str(), ranked.entry->kernel->name,
                ranked.refusal);
  }
  return fail(KW_NO_KERNEL, "no kernel reads b_format %llu; shuffle B for a kernel that is here",
              static_cast<unsigned long long>(problem.b_format));
}

// The best kernel of one format. Under the lock.
kw_status best_of_format(kw_dispatcher* dispatcher, const kw_gemm_problem& problem, Ranked* best) {
  Vec<Ranked> ranking;
  if (kw_status status =
          rank(dispatcher->registry, dispatcher->device, dispatcher->selection, problem.base, &ranking)) {
    return status;
  }
  if (ranking.empty() || !ranking[0].usable) return not_served(ranking, problem);
  *best = ranking[0];
  return KW_OK;
}

bool comes_first(const KernelEntry* entry, const Vec<KernelEntry*>& kernels) {
  for (const KernelEntry* other : kernels) {
    if (other == entry) return true;
    if (traits_of(*other).b_format == traits_of(*entry).b_format) return false;
  }
  return true;
}

// The best kernel of any format. Under the lock.
kw_status best_of_all(kw_dispatcher* dispatcher, kw_gemm_problem problem, Ranked* best) {
  kw_status refused = KW_OK;
  bool found = false;
  const Vec<KernelEntry*>& kernels = dispatcher->registry.kernels();
  for (const KernelEntry* entry : kernels) {
    problem.b_format = traits_of(*entry).b_format;
    if (problem.b_format == 0 || !comes_first(entry, kernels)) continue;
    Ranked one;
    const kw_status status = best_of_format(dispatcher, problem, &one);
    if (status != KW_OK && status != KW_NO_KERNEL) return status;
    if (status != KW_OK) {
      refused = status;
    } else if (!found || one.score < best->score || (one.score == best->score && one.position < best->position)) {
      *best = one;
      found = true;
    }
  }
  if (found) return KW_OK;
  if (refused != KW_OK) return refused;
  return fail(KW_NO_KERNEL, "no kernel here reads B in an order of its own; add a library with preshuffle kernels");
}

kw_status failed(const Ranked& ranked, kw_status status) {
  return fail(status, "kernel %s cannot shuffle B: %s: %s", ranked.entry->kernel->name, kw_status_name(status),
              ranked.entry->library->library->last_error());
}

kw_status bytes_of(const Ranked& ranked, const kw_gemm_problem& problem, uint64_t* bytes) {
  const kw_kernel& kernel = *ranked.entry->kernel;
  const kw_status status = kernel.shuffle_b_bytes(&kernel, &problem.base, bytes);
  return status == KW_OK ? KW_OK : failed(ranked, status);
}

}  // namespace

kw_status kw_dispatcher_shuffled_b(kw_dispatcher* dispatcher, const kw_problem* problem, uint64_t* b_format,
                                   uint64_t* bytes) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (b_format == nullptr) return null_argument("b_format");
  if (bytes == nullptr) return null_argument("bytes");
  if (kw_status status = check(problem)) return status;
  kw_gemm_problem asked = as_gemm(*problem);
  Ranked best;
  {
    const Lock lock(dispatcher->mutex);
    const kw_status status =
        asked.b_format == 0 ? best_of_all(dispatcher, asked, &best) : best_of_format(dispatcher, asked, &best);
    if (status != KW_OK) return status;
  }
  asked.b_format = *b_format = traits_of(*best.entry).b_format;
  asked.split_k = best.split_k;
  return bytes_of(best, asked, bytes);
}

kw_status kw_dispatcher_shuffle_b(kw_dispatcher* dispatcher, const kw_problem* problem, const void* b, void* shuffled,
                                  uint64_t bytes) {
  if (dispatcher == nullptr) return null_argument("dispatcher");
  if (kw_status status = check(problem)) return status;
  kw_gemm_problem asked = as_gemm(*problem);
  if (asked.b_format == 0) {
    return fail(KW_INVALID_ARGUMENT, "shuffle_b: b_format = 0; allowed: what kw_dispatcher_shuffled_b says");
  }
  Ranked best;
  {
    const Lock lock(dispatcher->mutex);
    if (kw_status status = best_of_format(dispatcher, asked, &best)) return status;
  }
  asked.split_k = best.split_k;
  uint64_t needed = 0;
  if (kw_status status = bytes_of(best, asked, &needed)) return status;
  if (bytes < needed) {
    return fail(KW_BUFFER_TOO_SMALL, "shuffle_b: bytes = %llu; allowed: %llu or more",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(needed));
  }
  if (needed == 0) return KW_OK;
  if (b == nullptr) return null_argument("b");
  if (shuffled == nullptr) return null_argument("shuffled");
  const kw_kernel& kernel = *best.entry->kernel;
  const kw_status status = kernel.shuffle_b(&kernel, &asked.base, b, shuffled);
  return status == KW_OK ? KW_OK : failed(best, status);
}
