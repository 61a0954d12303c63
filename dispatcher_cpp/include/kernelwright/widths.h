/* Products and sums of extents and strides, and the widths of the types that they go into: for dispatcher and
 * launchers.
 *
 * C99. Every product of extents and strides that reaches a kernel is computed by these functions and compared with the
 * type of its argument. Operands are counts: none is negative. KW_TOO_LARGE stands for a result that 63 bits do not
 * hold, and for what is computed of it or of a negative operand; no width holds it, so one comparison at the end is
 * enough. Kernels do not include this file.
 */
#ifndef KERNELWRIGHT_WIDTHS_H
#define KERNELWRIGHT_WIDTHS_H

#include <stdint.h>

#define KW_TOO_LARGE INT64_MAX

static inline int64_t kw_mul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (a < 0 || b < 0 || a == KW_TOO_LARGE || b == KW_TOO_LARGE) return KW_TOO_LARGE;
  return __builtin_mul_overflow(a, b, &product) ? KW_TOO_LARGE : product;
}

static inline int64_t kw_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (a < 0 || b < 0) return KW_TOO_LARGE;
  return __builtin_add_overflow(a, b, &sum) ? KW_TOO_LARGE : sum;
}

static inline int64_t kw_mul3(int64_t a, int64_t b, int64_t c) { return kw_mul(kw_mul(a, b), c); }

/* Parts of `size` that cover `count`, the last of them perhaps in part; size is 1 or more. */
static inline int64_t kw_parts(int64_t count, int64_t size) {
  if (count < 0 || count == KW_TOO_LARGE || size < 1) return KW_TOO_LARGE;
  return count / size + (count % size != 0);
}

/* Elements from the first to behind the last one of a tensor with so many dimensions; 0 if it has none. */
static inline int64_t kw_span(int dims, const int64_t* extents, const int64_t* strides) {
  int64_t last = 0;
  for (int i = 0; i < dims; ++i) {
    if (extents[i] == 0) return 0;
    last = kw_add(last, kw_mul(extents[i] - 1, strides[i]));
  }
  return kw_add(last, 1);
}

static inline int kw_fits_int16(int64_t value) { return value >= 0 && value <= INT16_MAX; }
static inline int kw_fits_int32(int64_t value) { return value >= 0 && value <= INT32_MAX; }
static inline int kw_fits_uint32(int64_t value) { return value >= 0 && value <= (int64_t)UINT32_MAX; }
static inline int kw_fits_int64(int64_t value) { return value >= 0 && value != KW_TOO_LARGE; }

/* Do byte offsets of so many elements of so many bytes fit into 31 bits? */
static inline int kw_bytes_fit_int32(int64_t elements, uint32_t size) { return kw_fits_int32(kw_mul(elements, size)); }

/* The value as an argument of a kernel. Sets *lost and gives 0 where the type does not hold it; leaves *lost alone
 * otherwise, so that many arguments are filled in before one look at it. */
static inline int32_t kw_as_int32(int64_t value, int* lost) {
  if (kw_fits_int32(value)) return (int32_t)value;
  *lost = 1;
  return 0;
}
static inline uint32_t kw_as_uint32(int64_t value, int* lost) {
  if (kw_fits_uint32(value)) return (uint32_t)value;
  *lost = 1;
  return 0;
}

#endif /* KERNELWRIGHT_WIDTHS_H */
