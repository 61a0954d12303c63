// Plans of single problems, by problem: a hash table that is read without a lock and written under the dispatcher's.
//
// A reader loads the current table and probes its slots; a writer fills a free slot, or publishes a larger table. Old
// tables are kept until the cache goes, because a reader may still be probing one; together they are no larger than the
// current one. Plans never move and are never freed before the cache, so their number is limited: a full cache refuses.
#ifndef KERNELWRIGHT_DISPATCHER_PLAN_CACHE_HPP
#define KERNELWRIGHT_DISPATCHER_PLAN_CACHE_HPP

#include "kernelwright/dispatcher/selection.hpp"
#include "kernelwright/gemm.h"

// Finding and launching a plan reads its first 64 bytes, then of the problem what it uses.
struct alignas(64) kw_plan {
  uint64_t hash;
  uint32_t op;       // which of the problems below is meant
  uint32_t split_k;  // what is planned where the problem leaves the choice
  kernelwright::KernelEntry* entry;
  kernelwright::LibraryEntry* library;
  uint64_t workspace_bytes;
  void* storage;  // plan_bytes of the kernel, aligned to 64
  kw_gemm_group* groups;
  char* reason;
  kw_gemm_problem problem;          // as it was posed, and so looked for
  kw_grouped_gemm_problem grouped;  // with the plan's own copy of the groups
  int32_t device;
  uint32_t device_check;
};

namespace kernelwright {

class PlanCache {
 public:
  PlanCache() = default;
  PlanCache(const PlanCache&) = delete;
  PlanCache& operator=(const PlanCache&) = delete;
  ~PlanCache() { clear(); }

  // Equal for problems that differ in nothing but strides of a single product and lines of D tensors that are not
  // there; find() takes these for one.
  static uint64_t hash(const kw_gemm_problem& problem);

  // Lock-free; null if absent.
  const kw_plan* find(const kw_gemm_problem& problem, uint64_t hash) const;
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

// Of a valid problem; null when memory ran out.
kw_plan* make_plan(const kw_problem& problem, KernelEntry* entry);
void free_plan(kw_plan* plan);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_PLAN_CACHE_HPP
