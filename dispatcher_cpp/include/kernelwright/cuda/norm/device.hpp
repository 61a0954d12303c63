// What kernels of norms need of an NVIDIA GPU: exchanges between lanes and conversions, in PTX, which every compiler
// takes.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#define KW_NORM_DEVICE __device__ __forceinline__
#define KW_NORM_UNROLL _Pragma("unroll")
#define KW_NORM_INLINE __attribute__((always_inline))  // of lambdas: a call would put registers into memory

namespace kernelwright::norm {

template <int kBytes>
struct words_type;
template <>
struct words_type<4> {
  using type = uint32_t;
};
template <>
struct words_type<8> {
  using type = uint2;
};
template <>
struct words_type<16> {
  using type = uint4;
};
template <int kBytes>
using words_of = typename words_type<kBytes>::type;

KW_NORM_DEVICE float exchanged(float value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }

// kLargest of results that are quantised: what the largest number of a row becomes.
struct fp32 {
  static constexpr float kLargest = 0;
  using storage = float;
  KW_NORM_DEVICE static uint32_t bits(float x) { return __float_as_uint(x); }
  KW_NORM_DEVICE static float stored(uint32_t word) { return __uint_as_float(word); }
  KW_NORM_DEVICE static float widened(uint32_t word) { return __uint_as_float(word); }
  KW_NORM_DEVICE static uint32_t narrow(float x) { return __float_as_uint(x); }
  KW_NORM_DEVICE static void narrowed(const float* from, uint32_t* to, int count) {
    KW_NORM_UNROLL for (int i = 0; i < count; ++i) to[i] = __float_as_uint(from[i]);
  }
};

// Of 16 bits; Number converts one, and two into a word.
template <class Number>
struct half_word {
  static constexpr float kLargest = 0;
  using storage = uint16_t;
  KW_NORM_DEVICE static uint32_t bits(uint16_t x) { return x; }
  KW_NORM_DEVICE static uint16_t stored(uint32_t word) { return static_cast<uint16_t>(word); }
  KW_NORM_DEVICE static float widened(uint32_t word) { return Number::widened(static_cast<uint16_t>(word)); }
  KW_NORM_DEVICE static uint32_t narrow(float x) { return Number::narrow(x); }
  KW_NORM_DEVICE static void narrowed(const float* from, uint32_t* to, int count) {
    KW_NORM_UNROLL for (int i = 0; i < count; i += 2) to[i / 2] = Number::narrow(from[i], from[i + 1]);
  }
};
struct fp16_number {
  KW_NORM_DEVICE static float widened(uint16_t x) {
    float out;
    asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(x));
    return out;
  }
  KW_NORM_DEVICE static uint16_t narrow(float x) {
    uint16_t out;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out) : "f"(x));
    return out;
  }
  KW_NORM_DEVICE static uint32_t narrow(float low, float high) {
    uint32_t out;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
    return out;
  }
};
struct bf16_number {
  KW_NORM_DEVICE static float widened(uint16_t x) { return __uint_as_float(static_cast<uint32_t>(x) << 16); }
  KW_NORM_DEVICE static uint16_t narrow(float x) {
    uint16_t out;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out) : "f"(x));
    return out;
  }
  KW_NORM_DEVICE static uint32_t narrow(float low, float high) {
    uint32_t out;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
    return out;
  }
};
using fp16 = half_word<fp16_number>;
using bf16 = half_word<bf16_number>;

// Numbers are at most 127 but for rounding.
struct quantised_int8 {
  static constexpr float kLargest = 127;
  using storage = int8_t;
  KW_NORM_DEVICE static int8_t stored(uint32_t word) { return static_cast<int8_t>(word); }
  KW_NORM_DEVICE static void narrowed(const float* from, uint32_t* to, int count) {
    KW_NORM_UNROLL for (int i = 0; i < count; i += 4) {
      uint32_t word = 0;
      KW_NORM_UNROLL for (int j = 0; j < 4; ++j) {
        word |= (static_cast<uint32_t>(__float2int_rn(from[i + j])) & 0xffu) << (8 * j);
      }
      to[i / 4] = word;
    }
  }
};

struct quantised_fp8 {
  static constexpr float kLargest = 448;
  using storage = uint8_t;
  KW_NORM_DEVICE static uint8_t stored(uint32_t word) { return static_cast<uint8_t>(word); }
  KW_NORM_DEVICE static void narrowed(const float* from, uint32_t* to, int count) {
    KW_NORM_UNROLL for (int i = 0; i < count; i += 4) {
      uint16_t low, high;
      asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(from[i + 1]), "f"(from[i]));
      asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(from[i + 3]), "f"(from[i + 2]));
      to[i / 4] = low | static_cast<uint32_t>(high) << 16;
    }
  }
};

}  // namespace kernelwright::norm
