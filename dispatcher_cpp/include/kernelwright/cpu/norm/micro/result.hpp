// How a row of results is written: converted, or quantised with a scale of its own.
#ifndef KERNELWRIGHT_CPU_NORM_MICRO_RESULT_HPP
#define KERNELWRIGHT_CPU_NORM_MICRO_RESULT_HPP

#include "kernelwright/cpu/norm/micro/row.hpp"

namespace kernelwright::cpu {
namespace {

struct quantised_fp8 : fp8 {
  static constexpr float kLargest = 448;
};

// Numbers are at most 127 but for rounding.
struct quantised_int8 {
  static constexpr kw_dtype kDtype = KW_INT8;
  static constexpr float kLargest = 127;
  using storage = int8_t;
  static KW_CPU_INLINE void store_float(storage* p, vec v) { store_first(p, v, kLanes); }
  static KW_CPU_INLINE void store_first(storage* p, vec v, int64_t count) {
    float numbers[kLanes];
    store(numbers, whole(v));
    for (int64_t i = 0; i < count; ++i) p[i] = static_cast<int8_t>(static_cast<int32_t>(numbers[i]));
  }
};

template <class Y, class = void>
struct is_quantised {
  static constexpr bool value = false;
};
template <class Y>
struct is_quantised<Y, decltype(static_cast<void>(Y::kLargest))> {
  static constexpr bool value = true;
};

// value(vector, column) are the numbers of the row.
template <class Y, int kUnroll, class Value>
KW_CPU_INLINE void write_row(typename Y::storage* y, float* scale, int64_t columns, const Value& value) {
  if constexpr (!is_quantised<Y>::value) {
    along_row<kUnroll>(columns, [&](auto part, int64_t at, int) { part.template store<Y>(y + at, value(part, at)); });
  } else {
    vec largest = zero(), poison = zero();
    along_row<kUnroll>(columns, [&](auto part, int64_t at, int) {
      const vec v = part.kept(value(part, at));
      largest = larger_of(largest, magnitude(v));
      poison = fma(v, zero(), poison);  // NaN once a number is not finite
    });
    float lanes[kLanes], most = 0;
    store(lanes, largest);
    for (float lane : lanes) most = lane > most ? lane : most;
    const float bad = sum_of_lanes(poison);
    *scale = most / Y::kLargest + bad;
    // A row of zeros stays one; so does what has no scale.
    const float inverse = most / Y::kLargest > 0 && bad == 0 ? Y::kLargest / most : 0.0f;
    const vec scaled = broadcast(inverse < __builtin_inff() ? inverse : 0.0f);
    along_row<kUnroll>(columns, [&](auto part, int64_t at, int) {
      part.template store<Y>(y + at, bad == 0 ? mul(value(part, at), scaled) : zero());
    });
  }
}

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_NORM_MICRO_RESULT_HPP
