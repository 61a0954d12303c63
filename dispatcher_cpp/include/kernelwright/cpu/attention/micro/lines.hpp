// Work on single rows, without products: D of the backward pass, the combination of splits, the end of sums of dQ.
#ifndef KERNELWRIGHT_CPU_ATTENTION_MICRO_LINES_HPP
#define KERNELWRIGHT_CPU_ATTENTION_MICRO_LINES_HPP

#include "kernelwright/cpu/attention/micro/finish_rows.hpp"

namespace kernelwright::cpu {
namespace {

// D = factor * sum of O * dO.
template <class Element>
void dot_lines(const line_call& call) {
  using storage = typename Element::storage;
  for (int64_t row = 0; row < call.rows; ++row) {
    const auto* const a = static_cast<const storage*>(call.a) + row * call.ld_a;
    const auto* const b = static_cast<const storage*>(call.b) + row * call.ld_b;
    vec sum = zero();
    for (int64_t i = 0; i < call.hdim; i += kLanes) {
      const int64_t count = smaller(call.hdim - i, kLanes);
      sum = fma(Element::load_first(a + i, count), Element::load_first(b + i, count), sum);
    }
    call.numbers[row] = sum_of_lanes(sum) * call.factor;
  }
}

// A row of O is the sum of those of its splits, each times its share of all exponentials.
template <class Element>
void combine_lines(const line_call& call) {
  for (int64_t row = 0; row < call.rows; ++row) {
    const float* const lse = call.lse_splits + row;
    float top = -__FLT_MAX__;
    for (int64_t s = 0; s < call.slices; ++s) top = lse[s * call.lse_stride] > top ? lse[s * call.lse_stride] : top;
    const auto weight = [&](int64_t s) { return power_of_two(broadcast((lse[s * call.lse_stride] - top) * kLog2E)); };
    float total[kLanes];
    vec sum = zero();
    for (int64_t s = 0; s < call.slices; ++s) sum = add(sum, weight(s));
    store(total, sum);
    const vec inverse = broadcast(total[0] == 0 ? 0.0f : call.factor / total[0]);
    for (int64_t i = 0; i < call.hdim; i += kLanes) {
      const int64_t count = smaller(call.hdim - i, kLanes);
      vec o = zero();
      for (int64_t s = 0; s < call.slices; ++s) {
        if (lse[s * call.lse_stride] == -__builtin_inff()) continue;  // its O was not written
        const float* const from = static_cast<const float*>(call.a) + s * call.slice_stride + row * call.ld_a + i;
        o = fma(load_first(from, count), mul(weight(s), inverse), o);
      }
      write_elements<Element>(call.to, row * call.ld_to + i, o, count);
    }
    if (call.numbers == nullptr) continue;
    call.numbers[row] = static_cast<float>(logarithm(total[0]) * kLn2 + top);
  }
}

// Slices are added up in order, and rounded once.
template <class Element>
void convert_lines(const line_call& call) {
  for (int64_t row = 0; row < call.rows; ++row) {
    for (int64_t i = 0; i < call.hdim; i += kLanes) {
      const int64_t count = smaller(call.hdim - i, kLanes);
      const float* const from = static_cast<const float*>(call.a) + row * call.ld_a + i;
      vec sum = load_first(from, count);
      for (int64_t s = 1; s < call.slices; ++s) sum = add(sum, load_first(from + s * call.slice_stride, count));
      write_elements<Element>(call.to, row * call.ld_to + i, sum, count);
    }
  }
}

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_ATTENTION_MICRO_LINES_HPP
