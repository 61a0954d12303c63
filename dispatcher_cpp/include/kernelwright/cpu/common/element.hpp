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

// 8 bits, e4m3 of OCP: 4 of the exponent, 3 of the fraction, no infinity. What is too large becomes the largest number.
struct fp8 {
  static constexpr kw_dtype kDtype = KW_FP8;
  using storage = uint8_t;
  static KW_CPU_INLINE vec load_float(const storage* p) { return mul(half_to_float(e4m3_to_half(p)), broadcast(256)); }
  static KW_CPU_INLINE void store_float(storage* p, vec v) { store_first(p, v, kLanes); }
  static KW_CPU_INLINE vec load_first(const storage* p, int64_t count) {
    storage copy[kLanes] = {};
    __builtin_memcpy(copy, p, static_cast<size_t>(count));
    return load_float(copy);
  }
  static KW_CPU_INLINE void store_first(storage* p, vec v, int64_t count) {
    float numbers[kLanes];
    store(numbers, v);
    for (int64_t i = 0; i < count; ++i) p[i] = rounded(numbers[i]);
  }

 private:
  static uint8_t rounded(float x) {
    constexpr uint32_t kInfinity = 0x7f800000, kLargest = 0x43e00000, kSmallestNormal = 0x3c800000, kShift = 20;
    constexpr float kGrid = 16384;  // its neighbours are as far apart as the smallest numbers here, 2^-9
    uint32_t number = word(x);
    const auto sign = static_cast<uint8_t>(number >> 24 & 0x80);
    number &= 0x7fffffff;
    if (number > kInfinity) return sign | 0x7f;
    if (number > kLargest) return sign | 0x7e;
    if (number < kSmallestNormal) return sign | static_cast<uint8_t>(word((x < 0 ? -x : x) + kGrid) - word(kGrid));
    number += 0x7ffff + (number >> kShift & 1);
    return sign | static_cast<uint8_t>((number >> kShift) - (120 << 3));
  }
  static uint32_t word(float x) {
    uint32_t made;
    __builtin_memcpy(&made, &x, sizeof made);
    return made;
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
