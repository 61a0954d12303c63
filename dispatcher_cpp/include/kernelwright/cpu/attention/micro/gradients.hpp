// What a panel of rows adds to the gradients of a block of keys, and these keys to the gradients of the rows.
//
// Scores are transposed as in attend.hpp. With P of the forward pass, from LSE: dV += P^T dO, dP^T = V dO^T,
// dS = P * (dP - D), dK += dS^T Q, and dQ^T += K^T dS^T.
#ifndef KERNELWRIGHT_CPU_ATTENTION_MICRO_GRADIENTS_HPP
#define KERNELWRIGHT_CPU_ATTENTION_MICRO_GRADIENTS_HPP

#include "kernelwright/cpu/attention/micro/dropout.hpp"
#include "kernelwright/cpu/attention/micro/finish_rows.hpp"
#include "kernelwright/cpu/attention/micro/scores.hpp"
#include "kernelwright/cpu/gemm/micro/multiply.hpp"
#include "kernelwright/cpu/gemm/micro/pack.hpp"

namespace kernelwright::cpu {
namespace {

template <class Operation, class Features, int MR, int NR>
class gradients {
 public:
  static void add(const gradient_call& call) {
    const row_block& rows = *call.rows;
    float low = rows.low[0], high = rows.high[0];
    for (int64_t i = 1; i < rows.rows; ++i) {
      low = rows.low[i] < low ? rows.low[i] : low;
      high = rows.high[i] > high ? rows.high[i] : high;
    }
    const auto base = static_cast<float>(call.first), count = static_cast<float>(call.count);
    const int64_t begin = low > base ? static_cast<int64_t>(low - base < count ? low - base : count) / MR * MR : 0;
    const int64_t end =
        high - base < count - 1 ? (high < base ? 0 : static_cast<int64_t>(high - base) + 1) : call.count;
    if (begin < end) gradients(call, begin, end).run();
  }

 private:
  using Element = typename Operation::element;
  using product = multiplier<Operation, epilogue<fp32>, MR, NR>;
  static constexpr int kDepth = Operation::kDepth;

  const gradient_call& call_;
  const row_block& rows_;
  int64_t begin_, count_, vectors_;

  gradients(const gradient_call& call, int64_t begin, int64_t end)
      : call_(call),
        rows_(*call.rows),
        begin_(begin),
        count_(end - begin),
        vectors_(divide_up(call.rows->rows, kLanes)) {}

  void run() const {
    const float factor = call_.rules->alpha;
    multiply_keys(call_.k, call_.hdim_q, call_.q, factor, call_.scores);
    if constexpr (Features::kElementwise) {
      if (call_.rules->biased) {
        add_bias<Element, NR>(call_.scores, rows_.bias, rows_.rows, call_.first + begin_, count_);
      }
    }
    multiply_keys(call_.v, call_.hdim_v, call_.d_o, 1, call_.slopes);
    if (call_.rules->dropout) {
      dropout_factors(call_.factors, 1, NR, rows_.dropout, rows_.rows, call_.first + begin_, count_, *call_.rules);
    }
    for (int64_t v = 0; v < vectors_; ++v) {
      if (call_.rules->cap != 0) {
        call_.rules->dropout ? derive<true, true>(v) : derive<false, true>(v);
      } else {
        call_.rules->dropout ? derive<true, false>(v) : derive<false, false>(v);
      }
    }
    if (call_.dbias != nullptr) write_dbias();
    if (call_.dk != nullptr) {
      add_to_keys(call_.scores, call_.d_o_columns, call_.hdim_v, call_.kept_factor, call_.dv);
      add_to_keys(call_.slopes, call_.q_columns, call_.hdim_q, call_.scale, call_.dk);
    }
    if (call_.dq != nullptr) add_to_queries();
  }

  // K Q^T or V dO^T of the keys in question.
  void multiply_keys(const float* keys, int64_t hdim, const float* rows, float alpha, float* to) const {
    block b = {};
    b.rows = count_;
    b.cols = vectors_ * kLanes;
    b.steps = divide_up(hdim, kDepth);
    b.a = keys + begin_ / MR * panel_units(MR, b.steps);
    b.b = rows;
    b.to.d = to;
    b.to.ldc = NR;
    b.to.alpha = alpha;
    b.first = b.last = true;
    product::multiply(b);
  }

  // Scores become probabilities, as far as dropout keeps them; products with V become gradients of scores.
  template <bool Dropout, bool Cap>
  void derive(int64_t v) const {
    const int64_t lane = v * kLanes;
    const score_place at = score_place::of_rows(rows_, lane);
    const vec lse = load(rows_.top + lane), d = load(rows_.sum + lane), kept = broadcast(call_.kept_factor);
    vec key = broadcast(static_cast<float>(call_.first + begin_));
    for (int64_t j = 0; j < count_; ++j, key = cpu::add(key, broadcast(1.0f))) {
      float* const score = call_.scores + j * NR + lane;
      float* const slope = call_.slopes + j * NR + lane;
      vec s = load(score), rise = broadcast(1.0f);
      if constexpr (Cap) {
        s = tanh::apply(s);
        rise = fma(sub(zero(), s), s, rise);
        s = mul(s, broadcast(call_.rules->cap));
      }
      s = scored<Features, true, false>(s, key, at, *call_.rules);
      const vec p = power_of_two(sub(s, lse));
      vec dp = load(slope), used = p;
      if constexpr (Dropout) {
        const vec factor = load(call_.factors + j * NR + lane);
        dp = mul(dp, factor);
        used = mul(p, factor);
      }
      store(score, used);
      dp = mul(mul(p, kept), sub(dp, d));
      store(slope, Cap ? mul(dp, rise) : dp);
    }
  }

  // Probabilities or gradients of scores, `rows` lanes of each key, times columns of dO or Q.
  void add_to_keys(const float* from, const float* columns, int64_t hdim, float alpha, float* to) const {
    const int64_t ld = round_up(hdim, kSpareUnits);
    if constexpr (kDepth == 1) {
      pack_along_k<widened_fma<fp32>, MR>::panels(call_.packed, from, NR, count_, rows_.rows);
    } else {
      for (int64_t i = 0; i < count_ * NR; i += kLanes) Element::store_float(call_.narrow + i, load(from + i));
      pack_along_k<Operation, MR>::panels(call_.packed, call_.narrow, NR, count_, rows_.rows);
    }
    block b = {};
    b.rows = count_;
    b.cols = round_up(hdim, kLanes);
    b.steps = divide_up(rows_.rows, kDepth);
    b.a = call_.packed;
    b.b = columns;
    b.to.c = b.to.d = to + begin_ * ld;
    b.to.ldc = ld;
    b.to.alpha = alpha;
    b.to.beta = 1;
    b.first = b.last = true;
    product::multiply(b);
  }

  // dQ^T of the panel, which is transposed onto the rows' sums.
  void add_to_queries() const {
    const int64_t stride = panel_units(MR, divide_up(call_.count, kDepth)), lines = round_up(call_.hdim_q, kLanes);
    float* const panel = call_.slopes;
    if constexpr (kDepth == 2) pair_up_panel<NR>(panel, vectors_, count_);
    for (int64_t i = 0; i < call_.hdim_q; i += MR) {
      block b = {};
      b.rows = smaller(MR, call_.hdim_q - i);
      b.cols = vectors_ * kLanes;
      b.steps = divide_up(count_, kDepth);
      b.a = call_.k_columns + i / MR * stride + begin_ / kDepth * MR;
      b.b = panel;
      b.to.d = call_.turned + i * NR;
      b.to.ldc = NR;
      b.to.alpha = call_.scale;
      b.first = b.last = true;
      product::multiply(b);
    }
    for (int64_t row = 0; row < rows_.rows; row += kLanes) {
      const int64_t used = smaller(rows_.rows - row, kLanes);
      for (int64_t at = 0; at < lines; at += kLanes) {
        const int64_t wanted = smaller(call_.hdim_q - at, kLanes);
        vec v[kLanes];
        KW_CPU_UNROLL for (int i = 0; i < kLanes; ++i) {
          v[i] = i < wanted ? load(call_.turned + (at + i) * NR + row) : zero();
        }
        transpose(v);
        KW_CPU_UNROLL for (int i = 0; i < kLanes; ++i) {
          if (i >= used) continue;
          float* const sums = call_.dq[row + i] + at;
          store_first(sums, cpu::add(load_first(sums, wanted), v[i]), wanted);
        }
      }
    }
  }

  // Before the scale; a vector of keys of each row.
  void write_dbias() const {
    for (int64_t row = 0; row < rows_.rows; row += kLanes) {
      const int64_t used = smaller(rows_.rows - row, kLanes);
      for (int64_t key = 0; key < count_; key += kLanes) {
        const int64_t wanted = smaller(count_ - key, kLanes);
        vec v[kLanes];
        KW_CPU_UNROLL for (int i = 0; i < kLanes; ++i) {
          v[i] = i < wanted ? load(call_.slopes + (key + i) * NR + row) : zero();
        }
        transpose(v);
        KW_CPU_UNROLL for (int i = 0; i < kLanes; ++i) {
          if (i < used) write_elements<Element>(call_.dbias[row + i], call_.first + begin_ + key, v[i], wanted);
        }
      }
    }
  }
};

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_ATTENTION_MICRO_GRADIENTS_HPP
