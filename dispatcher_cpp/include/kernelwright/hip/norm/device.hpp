// What kernels of norms need of an AMD GPU: exchanges between lanes and conversions.
#ifndef KERNELWRIGHT_HIP_NORM_DEVICE_HPP
#define KERNELWRIGHT_HIP_NORM_DEVICE_HPP

#include <hip/hip_runtime.h>
#include <stdint.h>

#define KW_NORM_DEVICE __device__ __forceinline__
#define KW_NORM_UNROLL _Pragma("unroll")
#define KW_NORM_INLINE __attribute__((always_inline))  // of lambdas: a call would put registers into memory

namespace kernelwright::norm {

template <int kBytes>
using words_of = uint32_t __attribute__((ext_vector_type(kBytes / 4)));

KW_NORM_DEVICE float exchanged(float value, int mask) { return __shfl_xor(value, mask); }

// kLargest of results that are quantised: what the largest number of a row becomes.
struct fp32 {
  static constexpr float kLargest = 0;
  using storage = float;
  KW_NORM_DEVICE static uint32_t bits(float x) { return __builtin_bit_cast(uint32_t, x); }
  KW_NORM_DEVICE static float stored(uint32_t word) { return __builtin_bit_cast(float, word); }
  KW_NORM_DEVICE static float widened(uint32_t word) { return stored(word); }
  KW_NORM_DEVICE static uint32_t narrow(float x) { return bits(x); }
  KW_NORM_DEVICE static void narrowed(const float* from, uint32_t* to, int count) {
    KW_NORM_UNROLL for (int i = 0; i < count; ++i) to[i] = bits(from[i]);
  }
};

// Of 16 bits; Number is the compiler's type.
template <class Number>
struct half_word {
  static constexpr float kLargest = 0;
  using storage = uint16_t;
  KW_NORM_DEVICE static uint32_t bits(uint16_t x) { return x; }
  KW_NORM_DEVICE static uint16_t stored(uint32_t word) { return static_cast<uint16_t>(word); }
  KW_NORM_DEVICE static float widened(uint32_t word) {
    return static_cast<float>(__builtin_bit_cast(Number, static_cast<uint16_t>(word)));
  }
  KW_NORM_DEVICE static uint32_t narrow(float x) { return __builtin_bit_cast(uint16_t, static_cast<Number>(x)); }
  KW_NORM_DEVICE static void narrowed(const float* from, uint32_t* to, int count) {
    KW_NORM_UNROLL for (int i = 0; i < count; i += 2) to[i / 2] = narrow(from[i]) | narrow(from[i + 1]) << 16;
  }
};
using fp16 = half_word<_Float16>;
using bf16 = half_word<__bf16>;

// Numbers are at most 127 but for rounding.
struct quantised_int8 {
  static constexpr float kLargest = 127;
  using storage = int8_t;
  KW_NORM_DEVICE static int8_t stored(uint32_t word) { return static_cast<int8_t>(word); }
  KW_NORM_DEVICE static void narrowed(const float* from, uint32_t* to, int count) {
    KW_NORM_UNROLL for (int i = 0; i < count; i += 4) {
      uint32_t word = 0;
      KW_NORM_UNROLL for (int j = 0; j < 4; ++j) {
        word |= (static_cast<uint32_t>(static_cast<int32_t>(__builtin_rintf(from[i + j]))) & 0xffu) << (8 * j);
      }
      to[i / 4] = word;
    }
  }
};

// Of the format that the architecture has: 448 is the largest number of OCP's e4m3, 240 that of FNUZ.
template <int kMost>
struct quantised_fp8 {
  static constexpr float kLargest = kMost;
  using storage = uint8_t;
  KW_NORM_DEVICE static uint8_t stored(uint32_t word) { return static_cast<uint8_t>(word); }
  KW_NORM_DEVICE static void narrowed(const float* from, uint32_t* to, int count) {
    KW_NORM_UNROLL for (int i = 0; i < count; i += 4) {
      const int low = __builtin_amdgcn_cvt_pk_fp8_f32(from[i], from[i + 1], 0, false);
      to[i / 4] = static_cast<uint32_t>(__builtin_amdgcn_cvt_pk_fp8_f32(from[i + 2], from[i + 3], low, true));
    }
  }
};

}  // namespace kernelwright::norm

#endif  // KERNELWRIGHT_HIP_NORM_DEVICE_HPP
