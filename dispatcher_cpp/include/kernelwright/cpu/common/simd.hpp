// Vectors of AVX2 or AVX-512, whichever the translation unit is compiled for, under one set of names.
//
// Everything here and in the headers above it has internal linkage: kernels of one library are compiled for different
// processor features, and a linker that merged their inline functions could hand one kernel another's instructions.
#ifndef KERNELWRIGHT_CPU_COMMON_SIMD_HPP
#define KERNELWRIGHT_CPU_COMMON_SIMD_HPP

#if defined(__GNUC__) && !defined(__clang__)  // gcc bug 105593: its own header "may be used uninitialized"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#include <immintrin.h>
#endif
#include <stdint.h>

#define KW_CPU_INLINE inline __attribute__((always_inline))
#define KW_CPU_UNROLL _Pragma("GCC unroll 64")

namespace kernelwright::cpu {
namespace {

#if defined(__AVX512F__)
using vec = __m512;
using ivec = __m512i;
using half_ivec = __m256i;  // as many 16-bit values as vec has lanes
constexpr int kLanes = 16;
KW_CPU_INLINE vec zero() { return _mm512_setzero_ps(); }
KW_CPU_INLINE vec broadcast(float x) { return _mm512_set1_ps(x); }
KW_CPU_INLINE vec load(const void* p) { return _mm512_loadu_ps(p); }
KW_CPU_INLINE void store(void* p, vec v) { _mm512_storeu_ps(p, v); }
KW_CPU_INLINE half_ivec load_half(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
KW_CPU_INLINE void store_half(void* p, half_ivec v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
// The first `count` of kLanes values, 1 to kLanes; nothing beyond them is touched, and lanes without a value are zero.
KW_CPU_INLINE __mmask16 first_lanes(int64_t count) { return static_cast<__mmask16>(0xffffu >> (kLanes - count)); }
KW_CPU_INLINE vec load_first(const void* p, int64_t count) { return _mm512_maskz_loadu_ps(first_lanes(count), p); }
KW_CPU_INLINE void store_first(void* p, vec v, int64_t count) { _mm512_mask_storeu_ps(p, first_lanes(count), v); }
KW_CPU_INLINE half_ivec load_half_first(const void* p, int64_t count) {
  return _mm256_maskz_loadu_epi16(first_lanes(count), p);
}
KW_CPU_INLINE void store_half_first(void* p, half_ivec v, int64_t count) {
  _mm256_mask_storeu_epi16(p, first_lanes(count), v);
}
KW_CPU_INLINE float sum_of_lanes(vec v) { return _mm512_reduce_add_ps(v); }
// Of a NaN and a number the second operand is the result.
KW_CPU_INLINE vec smaller_of(vec a, vec b) { return _mm512_min_ps(a, b); }
KW_CPU_INLINE vec larger_of(vec a, vec b) { return _mm512_max_ps(a, b); }
KW_CPU_INLINE vec sub(vec a, vec b) { return _mm512_sub_ps(a, b); }
KW_CPU_INLINE vec div(vec a, vec b) { return _mm512_div_ps(a, b); }
KW_CPU_INLINE vec magnitude(vec v) { return _mm512_abs_ps(v); }
KW_CPU_INLINE vec whole(vec v) { return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
KW_CPU_INLINE vec if_negative(vec sign, vec negative, vec other) {
  return _mm512_mask_mov_ps(other, _mm512_cmp_ps_mask(sign, zero(), _CMP_LT_OQ), negative);
}
// v * 2^n of a whole n.
KW_CPU_INLINE vec scale(vec v, vec n) { return _mm512_scalef_ps(v, n); }
KW_CPU_INLINE vec fma(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
KW_CPU_INLINE vec add(vec a, vec b) { return _mm512_add_ps(a, b); }
KW_CPU_INLINE vec mul(vec a, vec b) { return _mm512_mul_ps(a, b); }
KW_CPU_INLINE ivec bits(vec v) { return _mm512_castps_si512(v); }
KW_CPU_INLINE vec from_bits(ivec v) { return _mm512_castsi512_ps(v); }
KW_CPU_INLINE ivec widen(half_ivec v) { return _mm512_cvtepu16_epi32(v); }
KW_CPU_INLINE ivec shift_left_16(ivec v) { return _mm512_slli_epi32(v, 16); }
KW_CPU_INLINE ivec bit_or(ivec a, ivec b) { return _mm512_or_si512(a, b); }
KW_CPU_INLINE vec half_to_float(half_ivec v) { return _mm512_cvtph_ps(v); }
KW_CPU_INLINE half_ivec float_to_half(vec v) {
  return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
KW_CPU_INLINE half_ivec float_to_bf16(vec v) {
  // Round to nearest even in integers: vcvtneps2bf16 would flush subnormals.
  const ivec x = bits(v);
  const ivec odd = _mm512_and_si512(_mm512_srli_epi32(x, 16), _mm512_set1_epi32(1));
  const ivec rounded = _mm512_add_epi32(x, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const ivec quiet = _mm512_or_si512(x, _mm512_set1_epi32(0x400000));
  const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_mov_epi32(rounded, nan, quiet), 16));
}

// Lane i of the result is lane lanes[i] of v.
KW_CPU_INLINE vec permute(vec v, ivec lanes) { return _mm512_permutexvar_ps(lanes, v); }
KW_CPU_INLINE ivec load_int32(const int32_t* p) { return _mm512_loadu_si512(p); }
KW_CPU_INLINE ivec broadcast_int32(int64_t value) { return _mm512_set1_epi32(static_cast<int>(value)); }
KW_CPU_INLINE ivec add_int32(ivec a, ivec b) { return _mm512_add_epi32(a, b); }
KW_CPU_INLINE int32_t sum_of_int32_lanes(ivec v) { return _mm512_reduce_add_epi32(v); }
KW_CPU_INLINE ivec multiply_pairs(ivec a, ivec b) { return _mm512_madd_epi16(a, b); }
KW_CPU_INLINE ivec low_halves(ivec v) { return _mm512_and_si512(v, _mm512_set1_epi32(0xffff)); }
KW_CPU_INLINE ivec widen_int8(const void* p) {  // to 32 bits
  return _mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
KW_CPU_INLINE ivec widen_int8_pairs(const void* p) {  // to 16 bits
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
}
KW_CPU_INLINE half_ivec widen_uint8(const void* p) {  // to 16 bits
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}

// rows[i] lane j becomes rows[j] lane i.
KW_CPU_INLINE void transpose(vec (&rows)[16]) {
  vec t[16];
  KW_CPU_UNROLL for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
  }
  KW_CPU_UNROLL for (int i = 0; i < 16; i += 4) {
    rows[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(t[i]), _mm512_castps_pd(t[i + 2])));
    rows[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(t[i]), _mm512_castps_pd(t[i + 2])));
    rows[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(t[i + 1]), _mm512_castps_pd(t[i + 3])));
    rows[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(t[i + 1]), _mm512_castps_pd(t[i + 3])));
  }
  KW_CPU_UNROLL for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(rows[i], rows[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_f32x4(rows[i], rows[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_f32x4(rows[i + 8], rows[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_f32x4(rows[i + 8], rows[i + 12], 0xdd);
  }
  KW_CPU_UNROLL for (int i = 0; i < 8; ++i) {
    rows[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
    rows[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
  }
}
#else
using vec = __m256;
using ivec = __m256i;
using half_ivec = __m128i;
constexpr int kLanes = 8;
KW_CPU_INLINE vec zero() { return _mm256_setzero_ps(); }
KW_CPU_INLINE vec broadcast(float x) { return _mm256_set1_ps(x); }
KW_CPU_INLINE vec load(const void* p) { return _mm256_loadu_ps(static_cast<const float*>(p)); }
KW_CPU_INLINE void store(void* p, vec v) { _mm256_storeu_ps(static_cast<float*>(p), v); }
KW_CPU_INLINE half_ivec load_half(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
KW_CPU_INLINE void store_half(void* p, half_ivec v) { _mm_storeu_si128(static_cast<__m128i*>(p), v); }
KW_CPU_INLINE ivec first_lanes(int64_t count) {
  const ivec lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lanes);
}
KW_CPU_INLINE vec load_first(const void* p, int64_t count) {
  return _mm256_maskload_ps(static_cast<const float*>(p), first_lanes(count));
}
KW_CPU_INLINE void store_first(void* p, vec v, int64_t count) {
  _mm256_maskstore_ps(static_cast<float*>(p), first_lanes(count), v);
}
KW_CPU_INLINE half_ivec load_half_first(const void* p, int64_t count) {
  uint16_t copy[kLanes] = {};
  __builtin_memcpy(copy, p, static_cast<size_t>(count) * 2);
  return load_half(copy);
}
KW_CPU_INLINE void store_half_first(void* p, half_ivec v, int64_t count) {
  uint16_t copy[kLanes];
  store_half(copy, v);
  __builtin_memcpy(p, copy, static_cast<size_t>(count) * 2);
}
KW_CPU_INLINE float sum_of_lanes(vec v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
KW_CPU_INLINE vec fma(vec a, vec b, vec c) { return _mm256_fmadd_ps(a, b, c); }
KW_CPU_INLINE vec add(vec a, vec b) { return _mm256_add_ps(a, b); }
KW_CPU_INLINE vec mul(vec a, vec b) { return _mm256_mul_ps(a, b); }
KW_CPU_INLINE ivec bits(vec v) { return _mm256_castps_si256(v); }
KW_CPU_INLINE vec from_bits(ivec v) { return _mm256_castsi256_ps(v); }
KW_CPU_INLINE ivec widen(half_ivec v) { return _mm256_cvtepu16_epi32(v); }
KW_CPU_INLINE ivec shift_left_16(ivec v) { return _mm256_slli_epi32(v, 16); }
KW_CPU_INLINE ivec bit_or(ivec a, ivec b) { return _mm256_or_si256(a, b); }
KW_CPU_INLINE vec half_to_float(half_ivec v) { return _mm256_cvtph_ps(v); }
KW_CPU_INLINE half_ivec float_to_half(vec v) { return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT); }
KW_CPU_INLINE half_ivec float_to_bf16(vec v) {
  const ivec x = bits(v);
  const ivec odd = _mm256_and_si256(_mm256_srli_epi32(x, 16), _mm256_set1_epi32(1));
  const ivec rounded = _mm256_add_epi32(x, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const ivec quiet = _mm256_or_si256(x, _mm256_set1_epi32(0x400000));
  const ivec nan = bits(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  const ivec high = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}
KW_CPU_INLINE vec smaller_of(vec a, vec b) { return _mm256_min_ps(a, b); }
KW_CPU_INLINE vec larger_of(vec a, vec b) { return _mm256_max_ps(a, b); }
KW_CPU_INLINE vec sub(vec a, vec b) { return _mm256_sub_ps(a, b); }
KW_CPU_INLINE vec div(vec a, vec b) { return _mm256_div_ps(a, b); }
KW_CPU_INLINE vec magnitude(vec v) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v); }
KW_CPU_INLINE vec whole(vec v) { return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
KW_CPU_INLINE vec if_negative(vec sign, vec negative, vec other) {
  return _mm256_blendv_ps(other, negative, _mm256_cmp_ps(sign, zero(), _CMP_LT_OQ));
}
KW_CPU_INLINE vec scale(vec v, vec n) {  // in two steps: 2^n itself may be no number
  const ivec all = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(all, 1);
  const auto power = [](ivec e) {
    return from_bits(_mm256_slli_epi32(_mm256_add_epi32(e, _mm256_set1_epi32(127)), 23));
  };
  return mul(mul(v, power(half)), power(_mm256_sub_epi32(all, half)));
}
KW_CPU_INLINE vec permute(vec v, ivec lanes) { return _mm256_permutevar8x32_ps(v, lanes); }
KW_CPU_INLINE ivec load_int32(const int32_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
KW_CPU_INLINE ivec broadcast_int32(int64_t value) { return _mm256_set1_epi32(static_cast<int>(value)); }
KW_CPU_INLINE ivec add_int32(ivec a, ivec b) { return _mm256_add_epi32(a, b); }
KW_CPU_INLINE int32_t sum_of_int32_lanes(ivec v) {
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}
KW_CPU_INLINE ivec multiply_pairs(ivec a, ivec b) { return _mm256_madd_epi16(a, b); }
KW_CPU_INLINE ivec low_halves(ivec v) { return _mm256_and_si256(v, _mm256_set1_epi32(0xffff)); }
KW_CPU_INLINE ivec widen_int8(const void* p) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
}
KW_CPU_INLINE ivec widen_int8_pairs(const void* p) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
KW_CPU_INLINE half_ivec widen_uint8(const void* p) {
  return _mm_cvtepu8_epi16(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
}

KW_CPU_INLINE void transpose(vec (&rows)[8]) {
  vec t[8];
  KW_CPU_UNROLL for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  KW_CPU_UNROLL for (int i = 0; i < 8; i += 4) {
    rows[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    rows[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    rows[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    rows[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  KW_CPU_UNROLL for (int i = 0; i < 4; ++i) {
    t[i] = _mm256_permute2f128_ps(rows[i], rows[i + 4], 0x20);
    t[i + 4] = _mm256_permute2f128_ps(rows[i], rows[i + 4], 0x31);
  }
  KW_CPU_UNROLL for (int i = 0; i < 8; ++i) rows[i] = t[i];
}
#endif

// 8-bit floats (e4m3 of OCP) as halves, times 2^-8, which makes all their numbers halves.
KW_CPU_INLINE half_ivec e4m3_to_half(const void* p) {
  using words = uint16_t __attribute__((vector_size(sizeof(half_ivec))));
  const auto x = reinterpret_cast<words>(widen_uint8(p));
  const words number = x & 0x7f, sign = (x & 0x80) << 8;
  const words nan = reinterpret_cast<words>(number == 0x7f) >> 1;
  return reinterpret_cast<half_ivec>((number << 7) | sign | nan);
}

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_COMMON_SIMD_HPP
