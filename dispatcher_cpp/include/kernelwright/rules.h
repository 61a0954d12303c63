/* What generated rules and formulas call beside kernelwright/widths.h.
 *
 * C99.
 */
#ifndef KERNELWRIGHT_RULES_H
#define KERNELWRIGHT_RULES_H

#include <float.h>
#include <stdbool.h>

#include "kernelwright/widths.h"

/* A value of a struct, by all of its fields; and a struct as an argument, which C++ does not copy. */
#ifdef __cplusplus
#define KW_RECORD(type, ...) \
  type { __VA_ARGS__ }
#define KW_GIVEN(type) const type&
#else
#define KW_RECORD(type, ...) ((type){__VA_ARGS__})
#define KW_GIVEN(type) const type
#endif

static inline int64_t kw_larger(int64_t left, int64_t right) { return left > right ? left : right; }
static inline int64_t kw_smaller(int64_t left, int64_t right) { return left < right ? left : right; }

/* Does a set of traits, made with KW_SERVES, hold a value? */
static inline bool kw_in_set(uint32_t set, uint32_t value) { return value < 32 && (set >> value & 1u) != 0; }

/* Is a number below 2^63 whole? */
static inline bool kw_is_whole(double value) {
  return value > -9.0e18 && value < 9.0e18 && value == (double)(int64_t)value;
}

/* Is a number finite as fp32? */
static inline bool kw_finite_fp32(double value) {
  const float narrow = (float)value;
  return narrow >= -FLT_MAX && narrow <= FLT_MAX;
}

#endif /* KERNELWRIGHT_RULES_H */
