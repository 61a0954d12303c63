// The two ways to multiply: fp32 fused multiply-add of widened inputs, and bf16 dot products of pairs along K.
#ifndef TILEWRIGHT_CPU_OPERATION_HPP
#define TILEWRIGHT_CPU_OPERATION_HPP

#include "tilewright/cpu/element.hpp"

namespace tilewright::cpu {
namespace {

// Units are fp32; inputs are widened while packing.
template <class Element>
struct widened_fma {
  using element = Element;
  using storage = typename Element::storage;
  static constexpr int kDepth = 1;  // values of K in a unit

  // kLanes units that follow each other along K, then along the panel.
  static TW_CPU_INLINE vec load_along_k(const storage* p) { return Element::load_float(p); }
  static TW_CPU_INLINE vec load_along_panel(const storage* p, int64_t) { return Element::load_float(p); }
  static TW_CPU_INLINE vec multiply_add(vec a, vec b, vec sum) { return fma(a, b, sum); }
};

#if defined(__AVX512BF16__)
// Units are pairs of bf16. vdpbf16ps treats subnormal inputs and results as zero, whatever MXCSR says.
struct bf16_dot {
  using element = bf16;
  using storage = uint16_t;
  static constexpr int kDepth = 2;

  static TW_CPU_INLINE vec load_along_k(const storage* p) { return load(p); }
  static TW_CPU_INLINE vec load_along_panel(const storage* p, int64_t ld) {
    return from_bits(bit_or(widen(load_half(p)), shift_left_16(widen(load_half(p + ld)))));
  }
  static TW_CPU_INLINE vec multiply_add(vec a, vec b, vec sum) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
  }
};
#endif

}  // namespace
}  // namespace tilewright::cpu

#endif  // TILEWRIGHT_CPU_OPERATION_HPP
