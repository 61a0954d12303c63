#include "kernelwright/dispatcher/plan_cache.hpp"

#include <stdlib.h>

#include "kernelwright/dispatcher/support/error.hpp"

namespace kernelwright {
namespace {

constexpr uint64_t kFirstSlots = 64;

__extension__ typedef unsigned __int128 Wide;

// Of a product both halves: every bit of a word reaches many of the result. Words are told apart by where they stand.
uint64_t mix(uint64_t left, uint64_t right, uint32_t position) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
  const uint64_t l = left ^ (position + 1) * kGolden, r = right ^ (position + 2) * kGolden;
  const Wide product = static_cast<Wide>(l) * r;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

bool equal(const uint64_t* left, const uint64_t* right, uint32_t count) {
  uint64_t all = 0;
  for (uint32_t i = 0; i < count; ++i) all |= left[i] ^ right[i];
  return all == 0;
}

}  // namespace

Key::Key(const Operation& operation, const kw_problem& problem) {
  words[0] = operation.op;
  count = 1 + static_cast<uint32_t>(operation.key(problem, words + 1));
  words[count] = 0;      // the partner of a last word that has none
  uint64_t all = count;  // a sum of products that do not wait for each other
  for (uint32_t i = 0; i < count; i += 2) all += mix(words[i], words[i + 1], i);
  hash = all ^ all >> 32;
}

const kw_plan* PlanCache::find(const Key& key) const {
  const Table* table = table_.acquire();
  if (table == nullptr) return nullptr;
  for (uint64_t slot = key.hash >> 32;; ++slot) {
    const kw_plan* plan = table->slots[slot & table->mask].acquire();
    if (plan == nullptr) return nullptr;
    if (plan->hash == key.hash && plan->key_words == key.count && equal(plan->key, key.words, key.count)) return plan;
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

}  // namespace kernelwright
