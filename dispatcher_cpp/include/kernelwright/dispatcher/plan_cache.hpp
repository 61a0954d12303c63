// Plans by the key of their problem: a hash table that is read without a lock and written under the dispatcher's.
//
// A reader loads the current table and probes its slots; a writer fills a free slot, or publishes a larger table. Old
// tables are kept until the cache goes, because a reader may still be probing one; those that a larger one has replaced
// are together no larger than it, and each forget() leaves one more. Plans never move and are never freed before the
// cache, so their number is limited: a full cache refuses.
#ifndef KERNELWRIGHT_DISPATCHER_PLAN_CACHE_HPP
#define KERNELWRIGHT_DISPATCHER_PLAN_CACHE_HPP

#include "kernelwright/dispatcher/plan.hpp"

namespace kernelwright {

// The normalised words of a problem and their hash, see Operation::key. The first word is the operation.
struct Key {
  uint64_t words[2 + kMaxKeyWords];  // one more to be read in pairs
  uint32_t count;
  uint64_t hash;

  // The operation has a key function.
  Key(const Operation& operation, const kw_problem& problem);
};

class PlanCache {
 public:
  PlanCache() = default;
  PlanCache(const PlanCache&) = delete;
  PlanCache& operator=(const PlanCache&) = delete;
  ~PlanCache() { clear(); }

  // Lock-free; null if absent.
  const kw_plan* find(const Key& key) const;
  // Under the lock. Takes ownership of plan, also when it fails.
  kw_status insert(kw_plan* plan);
  // Under the lock: later finds miss, handed-out plans stay valid.
  void forget();
  // Frees everything; nobody may be reading.
  void clear();
  uint64_t size() const { return plans_.size(); }  // forgotten ones included

 private:
  struct Table {
    uint64_t mask;
    uint64_t used;
    Atomic<const kw_plan*> slots[1];
  };
  static Table* make_table(uint64_t slots);
  static void put(Table* table, const kw_plan* plan);

  Atomic<Table*> table_;
  Vec<Table*> tables_;
  Vec<kw_plan*> plans_;
};

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_PLAN_CACHE_HPP
