// Which probabilities dropout keeps: the random bytes of Philox 4x32 that the C ABI assigns to each.
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011. A tile of 32 x 32
// probabilities takes one subsequence, of which each of 64 lanes draws 16 bytes: for 16 of 32 queries of one key.
#ifndef KERNELWRIGHT_CPU_ATTENTION_MICRO_DROPOUT_HPP
#define KERNELWRIGHT_CPU_ATTENTION_MICRO_DROPOUT_HPP

#include "kernelwright/cpu/attention/kernel.hpp"
#include "kernelwright/cpu/common/simd.hpp"

namespace kernelwright::cpu {
namespace {

struct random_words {
  uint32_t word[4];
};

// Seven rounds.
inline random_words philox(uint64_t place, uint32_t tile_m, uint32_t tile_n, uint64_t seed) {
  uint32_t c0 = static_cast<uint32_t>(place), c1 = static_cast<uint32_t>(place >> 32), c2 = tile_m, c3 = tile_n;
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 7; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * c0, b = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
    c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(b);
    c3 = static_cast<uint32_t>(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// The byte of one probability.
struct random_byte {
  int64_t lane, word, shift;

  static random_byte of(int64_t query, int64_t key) {
    const int64_t m = query % 32, drawn = m / 16 * 8 + m % 8;
    return {key % 32 + 32 * (m / 8 % 2), drawn / 4, drawn % 4 * 8};
  }
};

// Factors 1 and 0 of `rows` x `keys` probabilities from key `first` on: those of a row `row_step` apart, of a key
// `key_step`. Neighbouring rows mostly share what is drawn.
inline void dropout_factors(float* factors, int64_t row_step, int64_t key_step, const dropout_row* rows, int64_t count,
                            int64_t first, int64_t keys, const score_rules& rules) {
  for (int64_t j = 0; j < keys; ++j) {
    const int64_t key = first + j;
    uint64_t drawn_place = 0;
    int64_t drawn_tile = -1;
    random_words drawn = {};
    for (int64_t i = 0; i < count; ++i) {
      const random_byte at = random_byte::of(rows[i].query, key);
      const uint64_t place = rows[i].place + static_cast<uint64_t>(at.lane);
      const int64_t tile = rows[i].query / 32;
      if (place != drawn_place || tile != drawn_tile) {
        drawn = philox(place, static_cast<uint32_t>(tile), static_cast<uint32_t>(key / 32), rules.seed);
        drawn_place = place;
        drawn_tile = tile;
      }
      const uint32_t byte = drawn.word[at.word] >> at.shift & 0xffu;
      factors[i * row_step + j * key_step] = byte <= rules.keeps ? 1.0f : 0.0f;
    }
  }
}

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_ATTENTION_MICRO_DROPOUT_HPP
