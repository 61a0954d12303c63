// The ways to multiply: fp32 fused multiply-add of widened inputs, dot products of neighbours along K, and AMX.
#ifndef KERNELWRIGHT_CPU_GEMM_MICRO_OPERATION_HPP
#define KERNELWRIGHT_CPU_GEMM_MICRO_OPERATION_HPP

#include "kernelwright/cpu/common/element.hpp"

namespace kernelwright::cpu {
namespace {

// Units are fp32; inputs are widened while packing.
template <class Element>
struct widened_fma {
  using element = Element;
  using storage = typename Element::storage;
  using a_loader = widened_fma;
  using b_loader = widened_fma;
  static constexpr kw_dtype kDtype = Element::kDtype, kSumDtype = KW_FP32;
  static constexpr int kDepth = 1;         // values of K in a unit
  static constexpr int kSteps = 1;         // units along K that one instruction sums
  static constexpr bool kShifted = false;  // does A carry an offset that must be taken from the sums?

  // kLanes units that follow each other along K, or the first `count` values and zeros, then along the panel.
  static KW_CPU_INLINE vec load_along_k(const storage* p) { return Element::load_float(p); }
  static KW_CPU_INLINE vec load_first_along_k(const storage* p, int64_t count) { return Element::load_first(p, count); }
  static KW_CPU_INLINE vec load_along_panel(const storage* p, int64_t) { return Element::load_float(p); }
  static KW_CPU_INLINE vec multiply_add(vec a, vec b, vec sum) { return fma(a, b, sum); }
  static KW_CPU_INLINE vec add_sums(vec a, vec b) { return add(a, b); }
};

#if defined(__AVX512BW__)
// Units are pairs of bf16 as they are.
struct bf16_pairs {
  using element = bf16;
  using storage = uint16_t;
  using a_loader = bf16_pairs;
  using b_loader = bf16_pairs;
  static constexpr kw_dtype kDtype = KW_BF16, kSumDtype = KW_FP32;
  static constexpr int kDepth = 2;
  static constexpr bool kShifted = false;

  static KW_CPU_INLINE vec load_along_k(const storage* p) { return load(p); }
  static KW_CPU_INLINE vec load_first_along_k(const storage* p, int64_t count) {
    return from_bits(_mm512_maskz_loadu_epi16(0xffffffffu >> (2 * kLanes - count), p));
  }
  static KW_CPU_INLINE vec load_along_panel(const storage* p, int64_t ld) {
    return from_bits(bit_or(widen(load_half(p)), shift_left_16(widen(load_half(p + ld)))));
  }
  static KW_CPU_INLINE vec add_sums(vec a, vec b) { return add(a, b); }
};

// Units are four int8 as they are.
struct int8_quads {
  using storage = int8_t;
  using a_loader = int8_quads;
  using b_loader = int8_quads;
  static constexpr kw_dtype kDtype = KW_INT8, kSumDtype = KW_INT32;
  static constexpr int kDepth = 4;
  static constexpr bool kShifted = false;

  static KW_CPU_INLINE vec load_along_k(const storage* p) { return load(p); }
  static KW_CPU_INLINE vec load_first_along_k(const storage* p, int64_t count) {
    return from_bits(_mm512_maskz_loadu_epi8(~uint64_t{0} >> (4 * kLanes - count), p));
  }
  static KW_CPU_INLINE vec load_along_panel(const storage* p, int64_t ld) {
    const auto row = [&](int k) { return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)(p + k * ld))); };
    const ivec low = bit_or(row(0), _mm512_slli_epi32(row(1), 8));
    return from_bits(bit_or(low, bit_or(_mm512_slli_epi32(row(2), 16), _mm512_slli_epi32(row(3), 24))));
  }
  static KW_CPU_INLINE vec add_sums(vec a, vec b) { return from_bits(add_int32(bits(a), bits(b))); }
};
#endif

#if defined(__AVX512BF16__)
// vdpbf16ps treats subnormal inputs and results as zero, whatever MXCSR says.
struct bf16_dot : bf16_pairs {
  static constexpr int kSteps = 1;

  static KW_CPU_INLINE vec multiply_add(vec a, vec b, vec sum) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
  }
};
#endif

// Units are pairs of int8 widened to int16; their two products are summed exactly.
struct int16_dot {
  using storage = int8_t;
  using a_loader = int16_dot;
  using b_loader = int16_dot;
  static constexpr kw_dtype kDtype = KW_INT8, kSumDtype = KW_INT32;
  static constexpr int kDepth = 2, kSteps = 1;
  static constexpr bool kShifted = false;

  static KW_CPU_INLINE vec load_along_k(const storage* p) { return from_bits(widen_int8_pairs(p)); }
  static KW_CPU_INLINE vec load_first_along_k(const storage* p, int64_t count) {
    storage copy[2 * kLanes] = {};
    __builtin_memcpy(copy, p, static_cast<size_t>(count));
    return load_along_k(copy);
  }
  static KW_CPU_INLINE vec load_along_panel(const storage* p, int64_t ld) {
    return from_bits(bit_or(low_halves(widen_int8(p)), shift_left_16(widen_int8(p + ld))));
  }
  static KW_CPU_INLINE vec multiply_add(vec a, vec b, vec sum) {
    return from_bits(add_int32(bits(sum), multiply_pairs(bits(a), bits(b))));
  }
  static KW_CPU_INLINE vec add_sums(vec a, vec b) { return from_bits(add_int32(bits(a), bits(b))); }
};

#if defined(__AVX512VNNI__)
// vpdpbusd wants one operand without sign: A is packed with 128 added, and 128 times the sum of a column of B is taken
// from its results.
struct int8_dot : int8_quads {
  static constexpr int kSteps = 1;
  static constexpr bool kShifted = true;

  struct a_loader {
    using storage = int8_t;
    static constexpr int kDepth = int8_quads::kDepth;
    static KW_CPU_INLINE vec shifted(vec v) { return from_bits(_mm512_xor_si512(bits(v), bits(offset()))); }
    static KW_CPU_INLINE vec load_along_k(const storage* p) { return shifted(int8_quads::load_along_k(p)); }
    static KW_CPU_INLINE vec load_first_along_k(const storage* p, int64_t count) {
      return shifted(int8_quads::load_first_along_k(p, count));
    }
    static KW_CPU_INLINE vec load_along_panel(const storage* p, int64_t ld) {
      return shifted(int8_quads::load_along_panel(p, ld));
    }
  };

  static KW_CPU_INLINE vec offset() { return from_bits(_mm512_set1_epi8(-128)); }
  static KW_CPU_INLINE vec multiply_add(vec a, vec b, vec sum) {
    return from_bits(_mm512_dpbusd_epi32(bits(sum), bits(a), bits(b)));
  }
  static KW_CPU_INLINE vec subtract_sums(vec a, vec b) { return from_bits(_mm512_sub_epi32(bits(a), bits(b))); }
};
#endif

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_GEMM_MICRO_OPERATION_HPP
