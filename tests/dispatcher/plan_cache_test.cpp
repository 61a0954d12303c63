// Which problems share a plan, and how well their hashes spread.
#include "kernelwright/dispatcher/plan_cache.hpp"

#include <set>
#include <vector>

#include "handle.hpp"

using kernelwright::PlanCache;

namespace {

constexpr size_t kWords = sizeof(kw_gemm_problem) / 8;

kw_gemm_problem with_flipped_bit(kw_gemm_problem p, size_t word, int bit) {
  uint64_t words[kWords];
  memcpy(words, &p, sizeof p);
  words[word] ^= uint64_t{1} << bit;
  memcpy(&p, words, sizeof p);
  return p;
}

// A cache with one plan of a kernel that is never called.
struct OnePlan {
  kw_kernel kernel = {};
  kernelwright::LibraryEntry library;
  kernelwright::KernelEntry entry = {&kernel, &library, 0};
  PlanCache cache;
  kw_plan* plan;

  explicit OnePlan(const kw_gemm_problem& p) : plan(kernelwright::make_plan(p.base, &entry)) {
    CHECK(cache.insert(plan) == KW_OK);
  }
  bool finds(const kw_gemm_problem& p) const { return cache.find(p, PlanCache::hash(p)) == plan; }
};

void every_field_that_is_used_tells_problems_apart() {
  kw_gemm_problem p = make_problem(5, 7, 3);
  p.batch = 3, p.stride_a = 15, p.stride_b = 21, p.stride_c = 35;
  p.num_d = 2, p.ld_multi_d[0] = 7;
  const OnePlan one(p);
  CHECK(one.finds(p));
  for (size_t word = 1; word < kWords; ++word) {  // the first one says what kind of problem it is
    for (int bit = 0; bit < 64; ++bit) {
      const kw_gemm_problem other = with_flipped_bit(p, word, bit);
      CHECK(!one.finds(other) && PlanCache::hash(other) != PlanCache::hash(p));
      CHECK(one.cache.find(other, PlanCache::hash(p)) == nullptr);  // also where hashes collide
    }
  }
}

void fields_without_a_meaning_do_not() {
  const kw_gemm_problem p = make_problem(5, 7, 3);
  const OnePlan one(p);
  size_t shared = 0;
  for (size_t word = 1; word < kWords; ++word) {
    const size_t byte = word * 8;
    const bool stride = byte >= offsetof(kw_gemm_problem, stride_a) && byte < offsetof(kw_gemm_problem, num_d);
    const bool line = byte >= offsetof(kw_gemm_problem, ld_multi_d) && byte < offsetof(kw_gemm_problem, b_format);
    CHECK(one.finds(with_flipped_bit(p, word, 5)) == (stride || line));
    shared += stride || line;
  }
  CHECK(shared == 3 + 2 * KW_MAX_D);
}

// Tables take the upper half of a hash: of 2^14 problems in 2^15 slots, as many as chance would, 12,900, begin alone.
void hashes_spread() {
  std::set<uint64_t> all, slots;
  for (int64_t m = 1; m <= 32; ++m) {
    for (int64_t n = 1; n <= 32; ++n) {
      for (int64_t k = 1; k <= 16; ++k) {
        const uint64_t hash = PlanCache::hash(make_problem(64 * m, 128 * n, 32 * k));
        all.insert(hash);
        slots.insert(hash >> 32 & 0x7fff);
      }
    }
  }
  CHECK(all.size() == 1 << 14 && slots.size() > 12700);
}

}  // namespace

void plan_cache() {
  every_field_that_is_used_tells_problems_apart();
  fields_without_a_meaning_do_not();
  hashes_spread();
}
