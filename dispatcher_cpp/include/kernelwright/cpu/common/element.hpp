// Element types of A, B, C and D, and how they become fp32 and back; rounding is to nearest even.
#ifndef KERNELWRIGHT_CPU_COMMON_ELEMENT_HPP
#define KERNELWRIGHT_CPU_COMMON_ELEMENT_HPP

#include "kernelwright/abi.h"
#include "kernelwright/cpu/common/simd.hpp"

namespace kernelwright::cpu {
namespace {

// load_first and store_first touch the first `count` values only, 1 to kLanes.
struct fp32 {
  static constexpr kw_dtype kDtype = KW_FP32;
  using storage = float;
  static KW_CPU_INLINE vec load_float(const storage* p) { return load(p); }
  static KW_CPU_INLINE void store_float(storage* p, vec v) { store(p, v); }
  static KW_CPU_INLINE vec load_first(const storage* p, int64_t count) { return cpu::load_first(p, count); }
  static KW_CPU_INLINE void store_first(storage* p, vec v, int64_t count) { cpu::store_first(p, v, count); }
};

struct fp16 {
  static constexpr kw_dtype kDtype = KW_FP16;
  using storage = uint16_t;
  static KW_CPU_INLINE vec load_float(const storage* p) { return half_to_float(load_half(p)); }
  static KW_CPU_INLINE void store_float(storage* p, vec v) { store_half(p, float_to_half(v)); }
  static KW_CPU_INLINE vec load_first(const storage* p, int64_t count) {
    return half_to_float(load_half_first(p, count));
  }
  static KW_CPU_INLINE void store_first(storage* p, vec v, int64_t count) {
    store_half_first(p, float_to_half(v), count);
  }
};

struct bf16 {
  static constexpr kw_dtype kDtype = KW_BF16;
  using storage = uint16_t;
  static KW_CPU_INLINE vec widened(half_ivec v) { return from_bits(shift_left_16(widen(v))); }
  static KW_CPU_INLINE vec load_float(const storage* p) { return widened(load_half(p)); }
  static KW_CPU_INLINE void store_float(storage* p, vec v) { store_half(p, float_to_bf16(v)); }
  static KW_CPU_INLINE vec load_first(const storage* p, int64_t count) { return widened(load_half_first(p, count)); }
  static KW_CPU_INLINE void store_first(storage* p, vec v, int64_t count) {
    store_half_first(p, float_to_bf16(v), count);
  }
};

// What int8 products are summed in, and written as.
struct int32 {
  static constexpr kw_dtype kDtype = KW_INT32;
  using storage = int32_t;
};

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_COMMON_ELEMENT_HPP
