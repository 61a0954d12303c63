#include "kernelwright/dispatcher/plan_cache.hpp"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kernelwright/dispatcher/gemm/problem.hpp"
#include "kernelwright/dispatcher/support/error.hpp"

namespace kernelwright {
namespace {
constexpr uint64_t kFirstSlots = 64;

// A problem as words of 8 bytes; there is no padding, so every field is found in them.
constexpr size_t kWords = sizeof(kw_gemm_problem) / 8;
constexpr size_t kTypes = offsetof(kw_gemm_problem, dtype_a) / 8;  // the first behind what every problem starts with
constexpr size_t kStrides = offsetof(kw_gemm_problem, stride_a) / 8;
constexpr size_t kEpilogue = offsetof(kw_gemm_problem, num_d) / 8;
constexpr size_t kLines = offsetof(kw_gemm_problem, ld_multi_d) / 8;
constexpr size_t kFormat = offsetof(kw_gemm_problem, b_format) / 8;
static_assert(kTypes == 1 && kStrides == 14 && kEpilogue == 17 && kLines == 19 && kFormat == 27 && kWords == 28,
              "a field that is new or moved has to be hashed and compared here too");

__extension__ typedef unsigned __int128 Wide;

uint64_t load(const kw_gemm_problem& problem, size_t word) {
  uint64_t value;
  memcpy(&value, reinterpret_cast<const char*>(&problem) + word * sizeof value, sizeof value);
  return value;
}

// Of a product both halves: every bit of a word reaches many of the result. Words are told apart by where they stand.
uint64_t mix(const kw_gemm_problem& problem, size_t left, size_t right) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
  const uint64_t l = load(problem, left) ^ (left + 1) * kGolden, r = load(problem, right) ^ (right + 1) * kGolden;
  const Wide product = static_cast<Wide>(l) * r;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t difference(const kw_gemm_problem& left, const kw_gemm_problem& right, size_t begin, size_t end) {
  uint64_t all = 0;
#pragma GCC unroll 16
  for (size_t word = begin; word < end; ++word) all |= load(left, word) ^ load(right, word);
  return all;
}

// The strides of a single product and the lines of D tensors that are not there mean nothing. Most problems have
// neither, and a hit takes about as long as reading what is compared.
bool same(const kw_gemm_problem& left, const kw_gemm_problem& right) {
  const uint64_t always = difference(left, right, kTypes, kStrides) | difference(left, right, kEpilogue, kLines) |
                          difference(left, right, kFormat, kWords);
  return always == 0 && (left.batch == 1 || difference(left, right, kStrides, kEpilogue) == 0) &&
         (left.num_d == 0 || difference(left, right, kLines, kFormat) == 0);
}
}  // namespace

uint64_t PlanCache::hash(const kw_gemm_problem& problem) {
  // A sum of products that do not wait for each other.
  uint64_t all = mix(problem, kTypes, kTypes + 1) + mix(problem, kTypes + 2, kTypes + 3);
#pragma GCC unroll 16
  for (size_t word = kTypes + 4; word < kStrides - 1; word += 2) all += mix(problem, word, word + 1);
  all += mix(problem, kStrides - 1, kEpilogue) + mix(problem, kEpilogue + 1, kFormat);
  if (problem.batch != 1) {
    all += mix(problem, kStrides, kStrides + 1) + mix(problem, kStrides + 2, kFormat);
  }
  if (problem.num_d != 0) {
    for (size_t word = kLines; word < kFormat; word += 2) all += mix(problem, word, word + 1);
  }
  return all ^ all >> 32;
}

const kw_plan* PlanCache::find(const kw_gemm_problem& problem, uint64_t hash) const {
  const Table* table = table_.acquire();
  if (table == nullptr) return nullptr;
  for (uint64_t slot = hash >> 32;; ++slot) {
    const kw_plan* plan = table->slots[slot & table->mask].acquire();
    if (plan == nullptr) return nullptr;
    if (plan->hash == hash && same(plan->problem, problem)) return plan;
  }
}

PlanCache::Table* PlanCache::make_table(uint64_t slots) {
  void* storage = malloc(sizeof(Table) + (slots - 1) * sizeof(Atomic<const kw_plan*>));
  if (storage == nullptr) return nullptr;
  Table* table = static_cast<Table*>(storage);
  table->mask = slots - 1;
  table->used = 0;
  for (uint64_t i = 0; i < slots; ++i) ::new (&table->slots[i], InPlace()) Atomic<const kw_plan*>();
  return table;
}

void PlanCache::put(Table* table, const kw_plan* plan) {
  uint64_t slot = plan->hash >> 32;
  while (table->slots[slot & table->mask].relaxed() != nullptr) ++slot;
  table->slots[slot & table->mask].release(plan);
  ++table->used;
}

kw_status PlanCache::insert(kw_plan* plan) {
  Table* table = table_.relaxed();
  if (!plans_.push(plan)) {
    free_plan(plan);
    return fail(KW_OUT_OF_MEMORY, "no memory for the plan cache");
  }
  if (table == nullptr || 2 * (table->used + 1) > table->mask) {
    Table* larger = make_table(table == nullptr ? kFirstSlots : 2 * (table->mask + 1));
    if (larger == nullptr || !tables_.push(larger)) {
      free(larger);
      plans_.resize_down(plans_.size() - 1);
      free_plan(plan);
      return fail(KW_OUT_OF_MEMORY, "no memory for the plan cache");
    }
    for (uint64_t i = 0; table != nullptr && i <= table->mask; ++i) {
      if (const kw_plan* old = table->slots[i].relaxed()) put(larger, old);
    }
    put(larger, plan);
    table_.release(larger);
    return KW_OK;
  }
  put(table, plan);
  return KW_OK;
}

void PlanCache::forget() { table_.release(nullptr); }

void PlanCache::clear() {
  forget();
  for (Table* table : tables_) free(table);
  for (kw_plan* plan : plans_) free_plan(plan);
  tables_.resize_down(0);
  plans_.resize_down(0);
}

kw_plan* make_plan(const kw_problem& problem, KernelEntry* entry) {
  kw_plan* plan = make_object<kw_plan>();
  if (plan == nullptr) return nullptr;
  *plan = kw_plan{};
  plan->op = problem.op;
  plan->entry = entry;
  plan->library = entry->library;
  const size_t bytes = (entry->kernel->plan_bytes / 64 + 1) * 64;
  if (posix_memalign(&plan->storage, 64, bytes) != 0) plan->storage = nullptr;
  bool complete = plan->storage != nullptr;
  if (complete) memset(plan->storage, 0, bytes);
  if (problem.op == KW_OP_GROUPED_GEMM) {
    plan->grouped = as_grouped(problem);
    const size_t groups = static_cast<size_t>(plan->grouped.group_count) * sizeof(kw_gemm_group);
    plan->groups = static_cast<kw_gemm_group*>(malloc(groups + 1));
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

void free_plan(kw_plan* plan) {
  if (plan == nullptr) return;
  free(plan->storage);
  free(plan->groups);
  free(plan->reason);
  destroy_object(plan);
}

}  // namespace kernelwright
