// What is done to scores before softmax, in the order of the C ABI: cap, bias, mask.
#ifndef KERNELWRIGHT_CPU_ATTENTION_MICRO_SCORES_HPP
#define KERNELWRIGHT_CPU_ATTENTION_MICRO_SCORES_HPP

#include "kernelwright/cpu/attention/kernel.hpp"
#include "kernelwright/cpu/attention/micro/power.hpp"
#include "kernelwright/cpu/common/element.hpp"

namespace kernelwright::cpu {
namespace {

// What a kernel's scores may have; Bias is a kw_attention_bias. Problems that lack some of it are served too.
template <bool Cap, int Bias, bool Dropout>
struct score_features {
  static constexpr bool kCap = Cap, kDropout = Dropout, kElementwise = Bias == KW_BIAS_ELEMENTWISE;
  static constexpr bool kAlibi = Bias == KW_BIAS_ALIBI;
};

// What one vector of scores needs to know: of rows, and of keys.
struct score_place {
  vec place, low, high, slope;

  // Of the rows from `row` on, one in each lane.
  static KW_CPU_INLINE score_place of_rows(const row_block& rows, int64_t row) {
    return {load(rows.place + row), load(rows.low + row), load(rows.high + row), load(rows.slope + row)};
  }
  // Of one row.
  static KW_CPU_INLINE score_place of_row(const row_block& rows, int64_t row) {
    return {broadcast(rows.place[row]), broadcast(rows.low[row]), broadcast(rows.high[row]),
            broadcast(rows.slope[row])};
  }
};

// Without an elementwise bias, which lies in memory in another order; `key` is the number of each lane's key.
template <class Features, bool Masked, bool Capped>
KW_CPU_INLINE vec scored(vec s, vec key, const score_place& at, const score_rules& rules) {
  if constexpr (Capped) s = mul(tanh::apply(s), broadcast(rules.cap));
  if constexpr (Features::kAlibi) s = fma(magnitude(sub(at.place, key)), sub(zero(), at.slope), s);
  if constexpr (Masked) {
    const vec inside = smaller_of(sub(key, at.low), sub(at.high, key));
    s = if_negative(inside, broadcast(-__builtin_inff()), s);
  }
  return s;
}

// Adds a bias to transposed scores: `keys` x rows of a panel, NR apart. A vector of each of kLanes rows is transposed.
template <class Element, int NR>
void add_bias(float* scores, const void* const* bias, int64_t rows, int64_t first, int64_t keys) {
  using storage = typename Element::storage;
  const vec factor = broadcast(kLog2E);
  for (int64_t row = 0; row < rows; row += kLanes) {
    for (int64_t key = 0; key < keys; key += kLanes) {
      vec lines[kLanes];
      const int64_t count = keys - key < kLanes ? keys - key : kLanes;
      KW_CPU_UNROLL for (int i = 0; i < kLanes; ++i) {
        lines[i] = zero();
        if (row + i < rows) {
          lines[i] = Element::load_first(static_cast<const storage*>(bias[row + i]) + first + key, count);
        }
      }
      transpose(lines);
      KW_CPU_UNROLL for (int i = 0; i < kLanes; ++i) {
        if (i < count) {
          float* const at = scores + (key + i) * NR + row;
          store(at, fma(lines[i], factor, load(at)));
        }
      }
    }
  }
}

// Numbers of neighbouring keys of a panel, NR apart, as bf16 in one unit: one instruction sums both.
template <int NR>
void pair_up_panel(float* panel, int64_t vectors, int64_t keys) {
  for (int64_t v = 0; v < vectors; ++v) {
    float* const at = panel + v * kLanes;
    for (int64_t j = 0; j < keys; j += 2) {
      const vec second = j + 1 < keys ? load(at + (j + 1) * NR) : zero();
      const ivec low = widen(float_to_bf16(load(at + j * NR)));
      store(at + j / 2 * NR, from_bits(bit_or(low, shift_left_16(widen(float_to_bf16(second))))));
    }
  }
}

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_ATTENTION_MICRO_SCORES_HPP
