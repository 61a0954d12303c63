// One block of rows looks at one block of keys: scores, softmax as far as it is known, and what it adds to O.
#ifndef KERNELWRIGHT_CPU_ATTENTION_MICRO_ATTEND_HPP
#define KERNELWRIGHT_CPU_ATTENTION_MICRO_ATTEND_HPP

#include "kernelwright/cpu/attention/micro/dropout.hpp"
#include "kernelwright/cpu/attention/micro/scores.hpp"
#include "kernelwright/cpu/gemm/micro/multiply.hpp"

namespace kernelwright::cpu {
namespace {

// MR x NR is the register block of both products: NR rows are lanes, MR keys or elements of V's rows stand below.
template <class Operation, class Features, int MR, int NR>
class attender {
 public:
  static void attend(const attend_call& call) {
    for (int64_t row = 0; row < call.rows->rows; row += NR) panel(call, row).run();
  }

 private:
  using Element = typename Operation::element;
  using product = multiplier<Operation, epilogue<fp32>, MR, NR>;
  static constexpr int kVectors = NR / kLanes;

  // The rows from `row` on, and the keys [begin, end) of the block, which some of them see.
  struct panel {
    const attend_call& call;
    const row_block& rows;
    int64_t row, used, begin, end;
    bool masked;
    int vectors;

    panel(const attend_call& c, int64_t first) : call(c), rows(*c.rows), row(first) {
      used = smaller(rows.rows - row, NR);
      vectors = static_cast<int>(divide_up(used, kLanes));
      float low = rows.low[row], high = rows.high[row], last_low = low, first_high = high;
      for (int64_t i = row + 1; i < row + used; ++i) {
        low = rows.low[i] < low ? rows.low[i] : low;
        high = rows.high[i] > high ? rows.high[i] : high;
        last_low = rows.low[i] > last_low ? rows.low[i] : last_low;
        first_high = rows.high[i] < first_high ? rows.high[i] : first_high;
      }
      const auto base = static_cast<float>(c.keys.first), count = static_cast<float>(c.keys.count);
      // Whole panels of MR keys are left out at the front.
      begin = low > base ? static_cast<int64_t>(low - base < count ? low - base : count) / MR * MR : 0;
      end = high - base < count - 1 ? (high < base ? 0 : static_cast<int64_t>(high - base) + 1) : c.keys.count;
      masked = last_low > base + static_cast<float>(begin) || first_high < base + static_cast<float>(end - 1);
    }

    void run() {
      if (begin >= end) return;
      score();
      if constexpr (Features::kElementwise) {
        if (call.rules->biased) {
          add_bias<Element, NR>(call.scores, rows.bias + row, used, call.keys.first + begin, end - begin);
        }
      }
      if constexpr (Features::kDropout) {
        if (call.rules->dropout) {
          dropout_factors(factors(), 1, NR, rows.dropout + row, used, call.keys.first + begin, end - begin,
                          *call.rules);
        }
      }
      for (int v = 0; v < vectors; ++v) {
        if (Features::kCap && call.rules->cap != 0) {
          masked ? soften<true, true>(v) : soften<false, true>(v);
        } else {
          masked ? soften<true, false>(v) : soften<false, false>(v);
        }
      }
      if constexpr (Operation::kDepth == 2) pair_up_panel<NR>(call.scores, vectors, end - begin);
      add_values();
    }

    float* factors() const { return call.scores + call.keys.count * NR; }
    float* partial() const { return call.partial + row * divide_up(call.keys.hdim_v, MR) * MR; }

    void score() const {
      block b = {};
      b.rows = end - begin;
      b.cols = vectors * kLanes;
      b.steps = call.keys.k_steps;
      b.a = call.keys.k + begin / MR * panel_units(MR, b.steps);
      b.b = call.q + row / NR * panel_units(NR, b.steps);
      b.to.d = call.scores;
      b.to.ldc = NR;
      b.to.alpha = call.rules->alpha;
      b.first = b.last = true;
      product::multiply(b);
    }

    // The scores of one vector of rows become powers of two below the largest; what was summed before is scaled down.
    template <bool Masked, bool Capped>
    void soften(int v) const {
      const int64_t lane = row + v * kLanes, count = end - begin;
      float* const scores = call.scores + v * kLanes;
      const vec old = load(rows.top + lane);
      vec top = old;
      if constexpr (!Masked && !Capped && !Features::kAlibi) {
        for (int64_t j = 0; j < count; ++j) top = larger_of(top, load(scores + j * NR));
      } else {
        const score_place at = score_place::of_rows(rows, lane);
        vec key = broadcast(static_cast<float>(call.keys.first + begin));
        for (int64_t j = 0; j < count; ++j, key = add(key, broadcast(1.0f))) {
          const vec s = scored<Features, Masked, Capped>(load(scores + j * NR), key, at, *call.rules);
          store(scores + j * NR, s);
          top = larger_of(top, s);
        }
      }
      // Where nothing was seen so far, any finite number makes powers of 0.
      const vec floor = larger_of(top, broadcast(-__FLT_MAX__));
      const vec shrink = power_of_two(sub(old, floor));
      vec sum = mul(load(rows.sum + lane), shrink);
      if (Features::kDropout && call.rules->dropout) {
        const float* const factor = factors() + v * kLanes;
        for (int64_t j = 0; j < count; ++j) {
          const vec p = power_of_two(sub(load(scores + j * NR), floor));
          sum = add(sum, p);
          store(scores + j * NR, mul(p, load(factor + j * NR)));
        }
      } else {
        for (int64_t j = 0; j < count; ++j) {
          const vec p = power_of_two(sub(load(scores + j * NR), floor));
          sum = add(sum, p);
          store(scores + j * NR, p);
        }
      }
      store(rows.top + lane, top);
      store(rows.sum + lane, sum);
      if (sum_of_lanes(sub(broadcast(1.0f), shrink)) == 0.0f) return;
      float* const sums = partial() + v * kLanes;
      const int64_t lines = divide_up(call.keys.hdim_v, MR) * MR;
      for (int64_t i = 0; i < lines; ++i) store(sums + i * NR, mul(load(sums + i * NR), shrink));
    }

    void add_values() const {
      const int64_t stride = panel_units(MR, call.keys.v_steps);
      for (int64_t i = 0; i < call.keys.hdim_v; i += MR) {
        block b = {};
        b.rows = smaller(MR, call.keys.hdim_v - i);
        b.cols = vectors * kLanes;
        b.steps = divide_up(end - begin, Operation::kDepth);
        b.a = call.keys.v + i / MR * stride + begin / Operation::kDepth * MR;
        b.b = call.scores;
        b.to.d = call.scores;  // is not written
        b.partial = partial() + i * NR;
        product::multiply(b);
      }
    }
  };
};

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_ATTENTION_MICRO_ATTEND_HPP
