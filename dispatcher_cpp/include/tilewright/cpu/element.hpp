// Element types of A, B, C and D, and how they become fp32 and back; rounding is to nearest even.
#ifndef TILEWRIGHT_CPU_ELEMENT_HPP
#define TILEWRIGHT_CPU_ELEMENT_HPP

#include "tilewright/cpu/simd.hpp"

namespace tilewright::cpu {
namespace {

struct fp32 {
  static constexpr tw_dtype kDtype = TW_FP32;
  using storage = float;
  static TW_CPU_INLINE vec load_float(const storage* p) { return load(p); }
  static TW_CPU_INLINE void store_float(storage* p, vec v) { store(p, v); }
};

struct fp16 {
  static constexpr tw_dtype kDtype = TW_FP16;
  using storage = uint16_t;
  static TW_CPU_INLINE vec load_float(const storage* p) { return half_to_float(load_half(p)); }
  static TW_CPU_INLINE void store_float(storage* p, vec v) { store_half(p, float_to_half(v)); }
};

struct bf16 {
  static constexpr tw_dtype kDtype = TW_BF16;
  using storage = uint16_t;
  static TW_CPU_INLINE vec load_float(const storage* p) { return from_bits(shift_left_16(widen(load_half(p)))); }
  static TW_CPU_INLINE void store_float(storage* p, vec v) { store_half(p, float_to_bf16(v)); }
};

}  // namespace
}  // namespace tilewright::cpu

#endif  // TILEWRIGHT_CPU_ELEMENT_HPP
