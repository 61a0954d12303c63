// Vectors of AVX2 or AVX-512, whichever the translation unit is compiled for, under one set of names.
//
// Everything here and in the headers above it has internal linkage: kernels of one library are compiled for different
// processor features, and a linker that merged their inline functions could hand one kernel another's instructions.
#ifndef TILEWRIGHT_CPU_SIMD_HPP
#define TILEWRIGHT_CPU_SIMD_HPP

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

#define TW_CPU_INLINE inline __attribute__((always_inline))
#define TW_CPU_UNROLL _Pragma("GCC unroll 64")

namespace tilewright::cpu {
namespace {

#if defined(__AVX512F__)
using vec = __m512;
using ivec = __m512i;
using half_ivec = __m256i;  // as many 16-bit values as vec has lanes
constexpr int kLanes = 16;
TW_CPU_INLINE vec zero() { return _mm512_setzero_ps(); }
TW_CPU_INLINE vec broadcast(float x) { return _mm512_set1_ps(x); }
TW_CPU_INLINE vec load(const void* p) { return _mm512_loadu_ps(p); }
TW_CPU_INLINE void store(void* p, vec v) { _mm512_storeu_ps(p, v); }
TW_CPU_INLINE half_ivec load_half(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
TW_CPU_INLINE void store_half(void* p, half_ivec v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
TW_CPU_INLINE vec fma(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
TW_CPU_INLINE vec add(vec a, vec b) { return _mm512_add_ps(a, b); }
TW_CPU_INLINE vec mul(vec a, vec b) { return _mm512_mul_ps(a, b); }
TW_CPU_INLINE ivec bits(vec v) { return _mm512_castps_si512(v); }
TW_CPU_INLINE vec from_bits(ivec v) { return _mm512_castsi512_ps(v); }
TW_CPU_INLINE ivec widen(half_ivec v) { return _mm512_cvtepu16_epi32(v); }
TW_CPU_INLINE ivec shift_left_16(ivec v) { return _mm512_slli_epi32(v, 16); }
TW_CPU_INLINE ivec bit_or(ivec a, ivec b) { return _mm512_or_si512(a, b); }
TW_CPU_INLINE vec half_to_float(half_ivec v) { return _mm512_cvtph_ps(v); }
TW_CPU_INLINE half_ivec float_to_half(vec v) {
  return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
TW_CPU_INLINE half_ivec float_to_bf16(vec v) {
  // Round to nearest even in integers: vcvtneps2bf16 would flush subnormals.
  const ivec x = bits(v);
  const ivec odd = _mm512_and_si512(_mm512_srli_epi32(x, 16), _mm512_set1_epi32(1));
  const ivec rounded = _mm512_add_epi32(x, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const ivec quiet = _mm512_or_si512(x, _mm512_set1_epi32(0x400000));
  const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_mov_epi32(rounded, nan, quiet), 16));
}

// rows[i] lane j becomes rows[j] lane i.
TW_CPU_INLINE void transpose(vec (&rows)[16]) {
  vec t[16];
  TW_CPU_UNROLL for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
  }
  TW_CPU_UNROLL for (int i = 0; i < 16; i += 4) {
    rows[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(t[i]), _mm512_castps_pd(t[i + 2])));
    rows[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(t[i]), _mm512_castps_pd(t[i + 2])));
    rows[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(t[i + 1]), _mm512_castps_pd(t[i + 3])));
    rows[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(t[i + 1]), _mm512_castps_pd(t[i + 3])));
  }
  TW_CPU_UNROLL for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(rows[i], rows[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_f32x4(rows[i], rows[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_f32x4(rows[i + 8], rows[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_f32x4(rows[i + 8], rows[i + 12], 0xdd);
  }
  TW_CPU_UNROLL for (int i = 0; i < 8; ++i) {
    rows[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
    rows[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
  }
}
#else
using vec = __m256;
using ivec = __m256i;
using half_ivec = __m128i;
constexpr int kLanes = 8;
TW_CPU_INLINE vec zero() { return _mm256_setzero_ps(); }
TW_CPU_INLINE vec broadcast(float x) { return _mm256_set1_ps(x); }
TW_CPU_INLINE vec load(const void* p) { return _mm256_loadu_ps(static_cast<const float*>(p)); }
TW_CPU_INLINE void store(void* p, vec v) { _mm256_storeu_ps(static_cast<float*>(p), v); }
TW_CPU_INLINE half_ivec load_half(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
TW_CPU_INLINE void store_half(void* p, half_ivec v) { _mm_storeu_si128(static_cast<__m128i*>(p), v); }
TW_CPU_INLINE vec fma(vec a, vec b, vec c) { return _mm256_fmadd_ps(a, b, c); }
TW_CPU_INLINE vec add(vec a, vec b) { return _mm256_add_ps(a, b); }
TW_CPU_INLINE vec mul(vec a, vec b) { return _mm256_mul_ps(a, b); }
TW_CPU_INLINE ivec bits(vec v) { return _mm256_castps_si256(v); }
TW_CPU_INLINE vec from_bits(ivec v) { return _mm256_castsi256_ps(v); }
TW_CPU_INLINE ivec widen(half_ivec v) { return _mm256_cvtepu16_epi32(v); }
TW_CPU_INLINE ivec shift_left_16(ivec v) { return _mm256_slli_epi32(v, 16); }
TW_CPU_INLINE ivec bit_or(ivec a, ivec b) { return _mm256_or_si256(a, b); }
TW_CPU_INLINE vec half_to_float(half_ivec v) { return _mm256_cvtph_ps(v); }
TW_CPU_INLINE half_ivec float_to_half(vec v) { return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT); }
TW_CPU_INLINE half_ivec float_to_bf16(vec v) {
  const ivec x = bits(v);
  const ivec odd = _mm256_and_si256(_mm256_srli_epi32(x, 16), _mm256_set1_epi32(1));
  const ivec rounded = _mm256_add_epi32(x, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const ivec quiet = _mm256_or_si256(x, _mm256_set1_epi32(0x400000));
  const ivec nan = bits(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  const ivec high = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}

TW_CPU_INLINE void transpose(vec (&rows)[8]) {
  vec t[8];
  TW_CPU_UNROLL for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  TW_CPU_UNROLL for (int i = 0; i < 8; i += 4) {
    rows[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    rows[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    rows[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    rows[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  TW_CPU_UNROLL for (int i = 0; i < 4; ++i) {
    t[i] = _mm256_permute2f128_ps(rows[i], rows[i + 4], 0x20);
    t[i + 4] = _mm256_permute2f128_ps(rows[i], rows[i + 4], 0x31);
  }
  TW_CPU_UNROLL for (int i = 0; i < 8; ++i) rows[i] = t[i];
}
#endif

}  // namespace
}  // namespace tilewright::cpu

#endif  // TILEWRIGHT_CPU_SIMD_HPP
