// Which problems share a plan, and how well their hashes spread.
#include "kernelwright/dispatcher/plan_cache.hpp"

#include <set>
#include <vector>

#include "handle.hpp"
#include "kernelwright/dispatcher/gemm/problem.hpp"

using kernelwright::Key;
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

Key key_of(const kw_gemm_problem& p) { return Key(kernelwright::kGemm, p.base); }

// A cache with one plan that has no stages and is never launched.
struct OnePlan {
  PlanCache cache;
  kw_plan* plan;

  explicit OnePlan(const kw_gemm_problem& p) : plan(kernelwright::make_plan(kernelwright::kGemm, p.base)) {
    CHECK(cache.insert(plan) == KW_OK);
  }
  bool finds(const kw_gemm_problem& p) const { return cache.find(key_of(p)) == plan; }
};

bool is_stride(size_t byte) {
  return byte >= offsetof(kw_gemm_problem, stride_a) && byte < offsetof(kw_gemm_problem, num_d);
}

// The D tensor that a word describes; -1 for another field.
int d_tensor(size_t byte) {
  for (int i = 0; i < KW_MAX_D; ++i) {
    const size_t at = static_cast<size_t>(i) * sizeof(int64_t);
    if (byte == offsetof(kw_gemm_problem, ld_multi_d) + at) return i;
    if (byte == offsetof(kw_gemm_problem, stride_multi_d) + at) return i;
  }
  return -1;
}

void every_field_that_is_used_tells_problems_apart() {
  kw_gemm_problem p = make_problem(5, 7, 3);
  p.batch = 3, p.stride_a = 15, p.stride_b = 21, p.stride_c = 35;
  p.num_d = 2, p.ld_multi_d[0] = 7;
  const OnePlan one(p);
  CHECK(one.finds(p));
  size_t shared = 0;
  for (size_t word = 1; word < kWords; ++word) {  // the first one says what kind of problem it is
    if (d_tensor(word * 8) >= 2) {
      CHECK(one.finds(with_flipped_bit(p, word, 5)));
      ++shared;
      continue;
    }
    for (int bit = 0; bit < 64; ++bit) {
      const Key other = key_of(with_flipped_bit(p, word, bit));
      CHECK(one.cache.find(other) == nullptr && other.hash != key_of(p).hash);
      Key colliding = other;  // also where hashes collide
      colliding.hash = key_of(p).hash;
      CHECK(one.cache.find(colliding) == nullptr);
    }
  }
  CHECK(shared == 2 * (KW_MAX_D - 2));
}

void fields_without_a_meaning_do_not() {
  const kw_gemm_problem p = make_problem(5, 7, 3);
  const OnePlan one(p);
  size_t shared = 0;
  for (size_t word = 1; word < kWords; ++word) {
    const bool unused = is_stride(word * 8) || d_tensor(word * 8) >= 0;
    CHECK(one.finds(with_flipped_bit(p, word, 5)) == unused);
    shared += unused;
  }
  CHECK(shared == 3 + 2 * KW_MAX_D);
  kw_gemm_problem wild = p;  // not validated when its key is made
  wild.num_d = UINT32_MAX;
  CHECK(!one.finds(wild));
}

// Tables take the upper half of a hash: of 2^14 problems in 2^15 slots, as many as chance would, 12,900, begin alone.
void hashes_spread() {
  std::set<uint64_t> all, slots;
  for (int64_t m = 1; m <= 32; ++m) {
    for (int64_t n = 1; n <= 32; ++n) {
      for (int64_t k = 1; k <= 16; ++k) {
        const uint64_t hash = key_of(make_problem(64 * m, 128 * n, 32 * k)).hash;
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
