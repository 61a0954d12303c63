// Copies a row into a cache, with rotary embedding.
//
// Source: Su et al., "RoFormer", 2021.
#ifndef KERNELWRIGHT_CPU_ATTENTION_MICRO_ROTATE_HPP
#define KERNELWRIGHT_CPU_ATTENTION_MICRO_ROTATE_HPP

#include "kernelwright/cpu/attention/kernel.hpp"
#include "kernelwright/cpu/gemm/micro/skinny.hpp"

namespace kernelwright::cpu {
namespace {

// In fp32, rounded once.
template <class Element>
void rotate_row(const rotate_call& call) {
  using storage = typename Element::storage;
  float x[kMaxRotary], c[kMaxRotary / 2], s[kMaxRotary / 2];
  const int64_t half = call.rotary_dim / 2;
  skinny<Element>::widen(x, call.from, 1, call.rotary_dim);
  skinny<Element>::widen(c, call.cos, 1, half);
  skinny<Element>::widen(s, call.sin, 1, half);
  const int64_t step = call.interleaved ? 2 : 1, apart = call.interleaved ? 1 : half;
  for (int64_t i = 0; i < half; ++i) {
    const float a = x[i * step], b = x[i * step + apart];
    x[i * step] = a * c[i] - b * s[i];
    x[i * step + apart] = a * s[i] + b * c[i];
  }
  auto* const to = static_cast<storage*>(call.to);
  for (int64_t i = 0; i < call.rotary_dim; i += kLanes) {
    const int64_t count = smaller(call.rotary_dim - i, kLanes);
    Element::store_first(to + i, load(x + i), count);
  }
}

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_ATTENTION_MICRO_ROTATE_HPP
