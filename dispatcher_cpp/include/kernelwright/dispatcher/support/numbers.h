/* What formulas call: C99 without libm, and C++. */
#ifndef KERNELWRIGHT_DISPATCHER_SUPPORT_NUMBERS_H
#define KERNELWRIGHT_DISPATCHER_SUPPORT_NUMBERS_H

#include "kernelwright/rules.h"

static inline double kw_min(double left, double right) { return left < right ? left : right; }
static inline double kw_max(double left, double right) { return left > right ? left : right; }
static inline double kw_abs(double value) { return value < 0 ? -value : value; }

/* To the nearest whole number: behind 1.5 * 2^52 doubles have no fractions. Exact below 2^51, to a rounding error above
 * it, and without a conversion, which would be undefined for numbers beyond 2^63. */
static inline double kw_whole(double value) {
  const double large = 6755399441055744.0;
  return (value + large) - large;
}

static inline double kw_floor(double value) {
  const double whole = kw_whole(value);
  return whole - (whole > value ? 1.0 : 0.0);
}

static inline double kw_ceil(double value) {
  const double whole = kw_whole(value);
  return whole + (whole < value ? 1.0 : 0.0);
}

#endif /* KERNELWRIGHT_DISPATCHER_SUPPORT_NUMBERS_H */
