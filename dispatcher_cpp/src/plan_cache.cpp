#include "tilewright/dispatcher/plan_cache.hpp"

#include <stdlib.h>
#include <string.h>

#include "tilewright/dispatcher/error.hpp"
#include "tilewright/dispatcher/problem.hpp"

namespace tilewright {
namespace {
static_assert(sizeof(tw_gemm_problem) == 224, "hashed as 7 times 4 words: no padding, no rest");
constexpr uint64_t kFirstSlots = 64;
}  // namespace

uint64_t PlanCache::hash(const tw_gemm_problem& problem) {
  uint64_t words[sizeof problem / 8];
  memcpy(words, &problem, sizeof problem);
  // Four independent multiply-xorshift chains: a quarter of the latency of one.
  uint64_t chains[] = {0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu, 0x165667b19e3779f9u, 0x85ebca77c2b2ae63u};
  for (size_t i = 0; i < sizeof words / 8; i += 4) {
    for (size_t lane = 0; lane < 4; ++lane) {
      chains[lane] = (chains[lane] ^ words[i + lane]) * 0xff51afd7ed558ccdu;
      chains[lane] ^= chains[lane] >> 32;
    }
  }
  uint64_t all = (chains[0] * 0xc4ceb9fe1a85ec53u + chains[1]) ^ ((chains[2] ^ chains[3] >> 29) * 0x9fb21c651e98df25u);
  all = (all + chains[3]) * 0xff51afd7ed558ccdu;
  all ^= all >> 33;
  return all * 0xc4ceb9fe1a85ec53u;
}

const tw_plan* PlanCache::find(const tw_gemm_problem& problem, uint64_t hash) const {
  const Table* table = table_.acquire();
  if (table == nullptr) return nullptr;
  for (uint64_t slot = hash >> 32;; ++slot) {
    const tw_plan* plan = table->slots[slot & table->mask].acquire();
    if (plan == nullptr) return nullptr;
    if (plan->hash == hash && memcmp(&plan->problem, &problem, sizeof problem) == 0) return plan;
  }
}

PlanCache::Table* PlanCache::make_table(uint64_t slots) {
  void* storage = malloc(sizeof(Table) + (slots - 1) * sizeof(Atomic<const tw_plan*>));
  if (storage == nullptr) return nullptr;
  Table* table = static_cast<Table*>(storage);
  table->mask = slots - 1;
  table->used = 0;
  for (uint64_t i = 0; i < slots; ++i) ::new (&table->slots[i], InPlace()) Atomic<const tw_plan*>();
  return table;
}

void PlanCache::put(Table* table, const tw_plan* plan) {
  uint64_t slot = plan->hash >> 32;
  while (table->slots[slot & table->mask].relaxed() != nullptr) ++slot;
  table->slots[slot & table->mask].release(plan);
  ++table->used;
}

tw_status PlanCache::insert(tw_plan* plan) {
  Table* table = table_.relaxed();
  if (!plans_.push(plan)) {
    free_plan(plan);
    return fail(TW_OUT_OF_MEMORY, "no memory for the plan cache");
  }
  if (table == nullptr || 2 * (table->used + 1) > table->mask) {
    Table* larger = make_table(table == nullptr ? kFirstSlots : 2 * (table->mask + 1));
    if (larger == nullptr || !tables_.push(larger)) {
      free(larger);
      plans_.resize_down(plans_.size() - 1);
      free_plan(plan);
      return fail(TW_OUT_OF_MEMORY, "no memory for the plan cache");
    }
    for (uint64_t i = 0; table != nullptr && i <= table->mask; ++i) {
      if (const tw_plan* old = table->slots[i].relaxed()) put(larger, old);
    }
    put(larger, plan);
    table_.release(larger);
    return TW_OK;
  }
  put(table, plan);
  return TW_OK;
}

void PlanCache::forget() { table_.release(nullptr); }

void PlanCache::clear() {
  forget();
  for (Table* table : tables_) free(table);
  for (tw_plan* plan : plans_) free_plan(plan);
  tables_.resize_down(0);
  plans_.resize_down(0);
}

tw_plan* make_plan(const tw_problem& problem, KernelEntry* entry) {
  tw_plan* plan = make_object<tw_plan>();
  if (plan == nullptr) return nullptr;
  *plan = tw_plan{};
  plan->op = problem.op;
  plan->entry = entry;
  plan->library = entry->library;
  const size_t bytes = (entry->kernel->plan_bytes / 64 + 1) * 64;
  if (posix_memalign(&plan->storage, 64, bytes) != 0) plan->storage = nullptr;
  bool complete = plan->storage != nullptr;
  if (complete) memset(plan->storage, 0, bytes);
  if (problem.op == TW_OP_GROUPED_GEMM) {
    plan->grouped = as_grouped(problem);
    const size_t groups = static_cast<size_t>(plan->grouped.group_count) * sizeof(tw_gemm_group);
    plan->groups = static_cast<tw_gemm_group*>(malloc(groups + 1));
    complete = complete && plan->groups != nullptr;
    if (complete && groups > 0) memcpy(plan->groups, plan->grouped.groups, groups);
    plan->grouped.groups = plan->groups;
  } else {
    plan->problem = as_gemm(problem);
    plan->hash = PlanCache::hash(plan->problem);
  }
  if (complete) return plan;
  free_plan(plan);
  return nullptr;
}

void free_plan(tw_plan* plan) {
  if (plan == nullptr) return;
  free(plan->storage);
  free(plan->groups);
  free(plan->reason);
  destroy_object(plan);
}

}  // namespace tilewright
