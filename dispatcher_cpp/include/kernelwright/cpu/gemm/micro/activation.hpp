// Activations of a vector of fp32, to a few units in the last place; NaN stays NaN.
#ifndef KERNELWRIGHT_CPU_GEMM_MICRO_ACTIVATION_HPP
#define KERNELWRIGHT_CPU_GEMM_MICRO_ACTIVATION_HPP

#include "kernelwright/cpu/common/simd.hpp"
#include "kernelwright/epilogue.h"

namespace kernelwright::cpu {
namespace {

template <int Count>
KW_CPU_INLINE vec polynomial(vec x, const float (&coefficients)[Count]) {
  vec sum = broadcast(coefficients[Count - 1]);
  KW_CPU_UNROLL for (int i = Count - 2; i >= 0; --i) sum = fma(sum, x, broadcast(coefficients[i]));
  return sum;
}

// exp(x) = 2^n (1 + p), |p| < 0.42: Taylor's series of exp(r) - 1 for the rest r after n * ln 2, whose ends are at
// +-0.35: seven terms leave 6e-9.
struct exponential {
  vec n, p;

  KW_CPU_INLINE explicit exponential(vec x) {
    x = larger_of(broadcast(-126.0f), smaller_of(broadcast(126.0f), x));
    n = whole(mul(x, broadcast(1.44269504088896341f)));
    // ln 2 in two parts, the first with zeros at its end, so that n times it is exact
    vec r = fma(n, broadcast(-0.693359375f), x);
    r = fma(n, broadcast(2.12194440e-4f), r);
    p = mul(r, polynomial(r, {1.0f, 0.5f, 1.0f / 6, 1.0f / 24, 1.0f / 120, 1.0f / 720, 1.0f / 5040}));
  }
  KW_CPU_INLINE vec value() const { return scale(add(p, broadcast(1.0f)), n); }
  KW_CPU_INLINE vec minus_one() const { return add(scale(p, n), sub(scale(broadcast(1.0f), n), broadcast(1.0f))); }
};

KW_CPU_INLINE vec one_plus_exp_of_negative(vec x) { return add(broadcast(1.0f), exponential(sub(zero(), x)).value()); }

struct no_activation {
  static constexpr kw_activation kActivation = KW_ACTIVATION_NONE;
  static KW_CPU_INLINE vec apply(vec x) { return x; }
};

struct relu {
  static constexpr kw_activation kActivation = KW_ACTIVATION_RELU;
  static KW_CPU_INLINE vec apply(vec x) { return larger_of(zero(), x); }
};

struct sigmoid {
  static constexpr kw_activation kActivation = KW_ACTIVATION_SIGMOID;
  static KW_CPU_INLINE vec apply(vec x) { return div(broadcast(1.0f), one_plus_exp_of_negative(x)); }
};

struct silu {
  static constexpr kw_activation kActivation = KW_ACTIVATION_SILU;
  static KW_CPU_INLINE vec apply(vec x) { return div(x, one_plus_exp_of_negative(x)); }
};

// Of |x|, with e = exp(2|x|): (e - 1) / (e + 1) loses nothing near zero. Beyond 0.55 it is 1 - 2 / (e + 1), where what
// each rounding took is put back, so that little more than the error of e and a last rounding remain.
struct tanh {
  static constexpr kw_activation kActivation = KW_ACTIVATION_TANH;
  static KW_CPU_INLINE vec apply(vec x) {
    const vec one = broadcast(1.0f), two = broadcast(2.0f);
    const vec size = smaller_of(broadcast(10.0f), magnitude(x));
    const exponential e(add(size, size));
    const vec less = e.minus_one(), near = div(less, add(less, two));
    const vec power = e.value(), more = add(power, one), more_rest = sub(one, sub(more, power));
    const vec part = div(two, more);
    const vec unpaid = sub(fma(sub(zero(), part), more, two), mul(part, more_rest));
    const vec far = sub(one, part), far_rest = sub(sub(one, far), part);
    const vec exact = add(far, fma(mul(unpaid, part), broadcast(-0.5f), far_rest));
    const vec value = if_negative(sub(size, broadcast(0.55f)), near, exact);
    return if_negative(x, sub(zero(), value), value);
  }
};

// x * P(X < x) of a standard normal X. The smaller tail is erfc(z) / 2 at z = |x| / sqrt(2), and erfc(z) = exp(-z^2)
// times a polynomial in 1 / (1 + 0.4 z), fitted to a relative error of 2e-9 over 0 <= z <= 9.5.
struct gelu {
  static constexpr kw_activation kActivation = KW_ACTIVATION_GELU;
  static KW_CPU_INLINE vec apply(vec x) {
    const vec z = smaller_of(broadcast(14.0f), mul(magnitude(x), broadcast(0.70710678118654752f)));
    const vec t = div(broadcast(1.0f), fma(z, broadcast(0.4f), broadcast(1.0f)));
    const vec r = polynomial(
        t, {-1.0520481737e-05f, 0.22595205903f, 0.22247239947f, 0.22925305367f, 0.0772126019f, 0.39924311638f,
            -0.49136981368f, 0.77118653059f, -0.65278208256f, 0.25903069973f, -0.040188048035f});
    const vec square = mul(z, z);
    // What rounding took from the square would be a relative error of the power.
    const vec rest = fma(z, z, sub(zero(), square));
    const vec power = exponential(sub(zero(), square)).value();
    const vec tail = mul(broadcast(0.5f), mul(r, fma(power, sub(zero(), rest), power)));
    return mul(x, if_negative(x, tail, sub(broadcast(1.0f), tail)));
  }
};

// x / (1 + exp(-2 * 0.797885 * (x + 0.044715 x^3))), the form with tanh.
struct fast_gelu {
  static constexpr kw_activation kActivation = KW_ACTIVATION_FAST_GELU;
  static KW_CPU_INLINE vec apply(vec x) {
    const vec inner = mul(x, fma(mul(x, x), broadcast(0.044715f), broadcast(1.0f)));
    return div(x, one_plus_exp_of_negative(mul(inner, broadcast(1.595769121605731f))));
  }
};

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_GEMM_MICRO_ACTIVATION_HPP
