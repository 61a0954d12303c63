// Powers of two and logarithms for softmax: scores are kept in units of log 2.
#ifndef KERNELWRIGHT_CPU_ATTENTION_MICRO_POWER_HPP
#define KERNELWRIGHT_CPU_ATTENTION_MICRO_POWER_HPP

#include "kernelwright/cpu/common/simd.hpp"
#include "kernelwright/cpu/gemm/micro/activation.hpp"

namespace kernelwright::cpu {
namespace {

constexpr float kLog2E = 1.44269504088896341f;
constexpr double kLn2 = 0.69314718055994530942;

// 2^x for x <= 0; exactly 0 at -inf, and NaN stays NaN. The polynomial is 2^f of the rest f after rounding x, |f| <=
// 0.5: fitted to the least relative error, which is 1.1e-7 with coefficients in fp32.
KW_CPU_INLINE vec power_of_two(vec x) {
#if defined(__AVX512F__)
  // What is left after rounding, and 0 of an infinity.
  const vec rest = _mm512_reduce_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const vec n = sub(x, rest);
#else
  x = larger_of(broadcast(-200.0f), x);  // of a NaN the second operand is the result
  const vec n = whole(x), rest = sub(x, n);
#endif
  return scale(polynomial(rest, {1.0f, 0.6931470036506653f, 0.24022242426872253f, 0.05550733581185341f,
                                 0.009671512991189957f, 0.001326472731307149f}),
               n);
}

// The logarithm to base 2 of a number above 0; -inf of 0. Artanh's series of (m - 1) / (m + 1) with m within a factor
// of sqrt(2) of 1: eight terms leave 1e-14.
inline double logarithm(double x) {
  if (x == 0) return -__builtin_inf();
  uint64_t word = 0;
  __builtin_memcpy(&word, &x, 8);
  int64_t exponent = static_cast<int64_t>(word >> 52) - 1023;
  word = (word & 0xfffffffffffffu) | 0x3ff0000000000000u;
  double m = 0;
  __builtin_memcpy(&m, &word, 8);
  if (m > 1.4142135623730951) {
    m /= 2;
    ++exponent;
  }
  const double t = (m - 1) / (m + 1), square = t * t;
  double sum = 0;
  for (int i = 15; i >= 1; i -= 2) sum = sum * square + 1.0 / i;
  return static_cast<double>(exponent) + 2 * t * sum / kLn2;
}

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_ATTENTION_MICRO_POWER_HPP
