// Walks along a row, vector by vector, and the statistics of a row.
#ifndef KERNELWRIGHT_CPU_NORM_MICRO_ROW_HPP
#define KERNELWRIGHT_CPU_NORM_MICRO_ROW_HPP

#include "kernelwright/cpu/common/element.hpp"

namespace kernelwright::cpu {
namespace {

// How a vector of a row is read and written: whole, or the last `count` elements.
struct whole_vector {
  template <class T>
  KW_CPU_INLINE vec load(const typename T::storage* p) const {
    return T::load_float(p);
  }
  template <class T>
  KW_CPU_INLINE void store(typename T::storage* p, vec v) const {
    T::store_float(p, v);
  }
  KW_CPU_INLINE vec kept(vec v) const { return v; }
};

struct last_vector {
  int64_t count;  // 1 to kLanes - 1
  template <class T>
  KW_CPU_INLINE vec load(const typename T::storage* p) const {
    return T::load_first(p, count);
  }
  template <class T>
  KW_CPU_INLINE void store(typename T::storage* p, vec v) const {
    T::store_first(p, v, count);
  }
  // Lanes behind the row's end are 0 in sums.
  KW_CPU_INLINE vec kept(vec v) const {
    float lanes[kLanes];
    cpu::store(lanes, v);
    return cpu::load_first(lanes, count);
  }
};

// step(vector, column, i) for every vector of a row; i is that of the sums, 0 to kUnroll - 1, which it adds to.
template <int kUnroll, class Step>
KW_CPU_INLINE void along_row(int64_t columns, const Step& step) {
  int64_t at = 0;
  for (; at + kUnroll * kLanes <= columns; at += kUnroll * kLanes) {
    KW_CPU_UNROLL for (int i = 0; i < kUnroll; ++i) step(whole_vector{}, at + i * kLanes, i);
  }
  for (; at + kLanes <= columns; at += kLanes) step(whole_vector{}, at, 0);
  if (at < columns) step(last_vector{columns - at}, at, 0);
}

// Sums of their own for each vector of an iteration, so that additions need not wait for each other.
template <int kUnroll>
struct sums_of_row {
  vec lanes[kUnroll];
  KW_CPU_INLINE sums_of_row() { KW_CPU_UNROLL for (int i = 0; i < kUnroll; ++i) lanes[i] = zero(); }
  KW_CPU_INLINE float total() const {
    vec all = lanes[0];
    KW_CPU_UNROLL for (int i = 1; i < kUnroll; ++i) all = add(all, lanes[i]);
    return sum_of_lanes(all);
  }
};

struct row_statistics {
  float mean;     // 0 of RMS norm
  float inverse;  // of the root
};

// Two passes of layer norm: squares of what is left of the mean lose no digits to it.
template <bool kCentred, class T, int kUnroll>
KW_CPU_INLINE row_statistics statistics_of(const typename T::storage* row, int64_t columns, float epsilon) {
  const float count = static_cast<float>(columns);
  float mean = 0;
  if constexpr (kCentred) {
    sums_of_row<kUnroll> sums;
    along_row<kUnroll>(columns, [&](auto part, int64_t at, int i) {
      sums.lanes[i] = add(sums.lanes[i], part.template load<T>(row + at));
    });
    mean = sums.total() / count;
  }
  sums_of_row<kUnroll> squares;
  const vec middle = broadcast(mean);
  along_row<kUnroll>(columns, [&](auto part, int64_t at, int i) {
    const vec x = part.template load<T>(row + at);
    const vec apart = kCentred ? part.kept(sub(x, middle)) : x;
    squares.lanes[i] = fma(apart, apart, squares.lanes[i]);
  });
  return {mean, 1.0f / __builtin_sqrtf(squares.total() / count + epsilon)};
}

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_NORM_MICRO_ROW_HPP
