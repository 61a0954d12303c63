// Few rows look at a block of keys, as in decoding: K and V are read once, where they lie, and their memory sets the
// pace. Lanes are keys here.
#ifndef KERNELWRIGHT_CPU_ATTENTION_MICRO_FEW_HPP
#define KERNELWRIGHT_CPU_ATTENTION_MICRO_FEW_HPP

#include "kernelwright/cpu/attention/micro/dropout.hpp"
#include "kernelwright/cpu/attention/micro/scores.hpp"
#include "kernelwright/cpu/gemm/micro/skinny.hpp"

namespace kernelwright::cpu {
namespace {

KW_CPU_INLINE vec lane_numbers() {
  alignas(64) static constexpr float kNumbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return load(kNumbers);
}

inline float largest_lane(vec v) {
  float lanes[kLanes];
  store(lanes, v);
  float top = lanes[0];
  for (int i = 1; i < kLanes; ++i) top = lanes[i] > top ? lanes[i] : top;
  return top;
}

template <class Element, class Features>
class few_attender {
 public:
  static void attend(const few_call& call) {
    const int64_t rows = call.rows->rows, width = round_up(call.count, kLanes);
    for (int64_t row = 0; row < rows; row += kMaxVectors) {
      skinny_block s = {};
      s.vectors = call.q + row * call.ld_q;
      s.count = smaller(rows - row, kMaxVectors);
      s.vector_ld = call.ld_q;
      s.depth = call.hdim_q;
      s.matrix = call.k;
      s.ld = call.ld_k;
      s.lines = call.count;
      s.sums = call.scores + row * width;
      s.sums_ld = width;
      skinny<Element>::along_k(s);
    }
    if constexpr (Features::kDropout) {
      if (call.rules->dropout) {
        dropout_factors(factors(call), width, 1, call.rows->dropout, rows, call.first, call.count, *call.rules);
      }
    }
    for (int64_t row = 0; row < rows; ++row) {
      Features::kCap&& call.rules->cap != 0 ? soften<true>(call, row) : soften<false>(call, row);
    }
    for (int64_t row = 0; row < rows; row += kMaxVectors) {
      skinny_block s = {};
      s.vectors = call.scores + row * width;
      s.count = smaller(rows - row, kMaxVectors);
      s.vector_ld = width;
      s.depth = call.count;
      s.matrix = call.v;
      s.ld = call.ld_v;
      s.lines = call.hdim_v;
      s.sums = call.fresh + row * call.ld_o;
      s.sums_ld = call.ld_o;
      skinny<Element>::along_lines(s);
    }
    for (int64_t i = 0; i < rows * call.ld_o; i += kLanes) {
      store(call.partial + i, add(load(call.partial + i), load(call.fresh + i)));
    }
  }

 private:
  using storage = typename Element::storage;

  static float* factors(const few_call& call) { return call.scores + kFewRows * round_up(call.count, kLanes); }

  template <bool Capped>
  static void soften(const few_call& call, int64_t row) {
    const row_block& rows = *call.rows;
    const int64_t width = round_up(call.count, kLanes);
    float* const scores = call.scores + row * width;
    const score_place at = score_place::of_row(rows, row);
    const vec last = broadcast(static_cast<float>(call.first + call.count - 1));
    vec top = broadcast(rows.top[row]);
    for (int64_t j = 0; j < call.count; j += kLanes) {
      const vec key = add(broadcast(static_cast<float>(call.first + j)), lane_numbers());
      vec s = mul(load(scores + j), broadcast(call.rules->alpha));
      if constexpr (Features::kElementwise) {
        if (call.rules->biased) {
          const storage* const bias = static_cast<const storage*>(rows.bias[row]) + call.first + j;
          s = fma(Element::load_first(bias, smaller(call.count - j, kLanes)), broadcast(kLog2E), s);
        }
      }
      s = scored<Features, true, Capped>(s, key, at, *call.rules);
      s = if_negative(sub(last, key), broadcast(-__builtin_inff()), s);
      store(scores + j, s);
      top = larger_of(top, s);
    }
    const float highest = largest_lane(top), floor = highest > -__FLT_MAX__ ? highest : -__FLT_MAX__;
    const vec shrink = power_of_two(broadcast(rows.top[row] - floor));
    vec sum = zero();
    for (int64_t j = 0; j < call.count; j += kLanes) {
      vec p = power_of_two(sub(load(scores + j), broadcast(floor)));
      sum = add(sum, p);
      if (Features::kDropout && call.rules->dropout) {
        const float* const factor = factors(call) + row * width + j;
        p = mul(p, load_first(factor, smaller(call.count - j, kLanes)));
      }
      store(scores + j, p);
    }
    float factor[kLanes];
    store(factor, shrink);
    rows.sum[row] = rows.sum[row] * factor[0] + sum_of_lanes(sum);
    rows.top[row] = highest;
    float* const partial = call.partial + row * call.ld_o;
    for (int64_t i = 0; i < call.ld_o; i += kLanes) store(partial + i, mul(load(partial + i), shrink));
  }
};

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_ATTENTION_MICRO_FEW_HPP
