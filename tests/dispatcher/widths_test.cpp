// Products and sums of extents: what does not fit into 63 bits stays too large, however it is used.
#include "kernelwright/widths.h"

#include "handle.hpp"

namespace {

void products_and_sums_never_wrap() {
  CHECK(kw_mul(INT64_C(1) << 31, INT64_C(1) << 31) == INT64_C(1) << 62);
  CHECK(kw_mul(INT64_C(1) << 32, INT64_C(1) << 31) == KW_TOO_LARGE);
  CHECK(kw_mul(INT64_C(1) << 32, INT64_C(1) << 32) == KW_TOO_LARGE);  // wraps to 0
  CHECK(kw_mul(INT64_C(3) << 61, 3) == KW_TOO_LARGE);                 // wraps to a positive number
  CHECK(kw_mul(-1, 1) == KW_TOO_LARGE && kw_mul(0, -1) == KW_TOO_LARGE && kw_add(-1, 2) == KW_TOO_LARGE);
  CHECK(kw_mul(0, INT64_MAX - 1) == 0 && kw_mul(1, INT64_MAX - 1) == INT64_MAX - 1);
  CHECK(kw_mul3(INT64_C(1) << 32, INT64_C(1) << 32, 0) == KW_TOO_LARGE);  // what was lost does not come back
  CHECK(kw_add(INT64_MAX - 1, 2) == KW_TOO_LARGE && kw_add(kw_mul(INT64_MAX, 2), 0) == KW_TOO_LARGE);
  CHECK(kw_parts(INT64_MAX - 1, 2) == (INT64_C(1) << 62) - 1 && kw_parts(7, 3) == 3 && kw_parts(0, 3) == 0);
  CHECK(kw_parts(KW_TOO_LARGE, 1 << 20) == KW_TOO_LARGE && kw_parts(5, 0) == KW_TOO_LARGE);
}

void spans_are_those_of_tensors() {
  const int64_t extents[] = {3, 4}, strides[] = {10, 2}, wide[] = {INT64_MAX / 2, 1}, none[] = {0, 4};
  CHECK(kw_span(2, extents, strides) == 2 * 10 + 3 * 2 + 1);
  CHECK(kw_span(2, extents, wide) == KW_TOO_LARGE);
  CHECK(kw_span(2, none, wide) == 0);
}

void widths_are_those_of_types() {
  CHECK(kw_fits_int32(INT32_MAX) && !kw_fits_int32(INT64_C(1) << 31) && !kw_fits_int32(-1) && kw_fits_int32(0));
  CHECK(kw_fits_uint32(UINT32_MAX) && !kw_fits_uint32(INT64_C(1) << 32) && !kw_fits_uint32(KW_TOO_LARGE));
  CHECK(kw_fits_int64(KW_TOO_LARGE - 1) && !kw_fits_int64(KW_TOO_LARGE));
  CHECK(kw_bytes_fit_int32(INT32_MAX / 4, 4) && !kw_bytes_fit_int32(INT64_C(1) << 29, 4));
  int lost = 0;
  CHECK(kw_as_int32(INT32_MAX, &lost) == INT32_MAX && kw_as_uint32(UINT32_MAX, &lost) == UINT32_MAX && lost == 0);
  CHECK(kw_as_int32((INT64_C(1) << 32) + 5, &lost) == 0 && lost == 1);
  CHECK(kw_as_int32(5, &lost) == 5 && lost == 1);  // one look at the end finds it
}

}  // namespace

void widths() {
  products_and_sums_never_wrap();
  spans_are_those_of_tensors();
  widths_are_those_of_types();
}
