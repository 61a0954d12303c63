// How threads share a row: vectors of it in registers, sums over its threads.
//
// A backend's device.hpp comes first. It defines KW_NORM_DEVICE, exchanged(value, mask) between lanes, and element
// types: each has its storage, widened() and, for vectors, narrowed().
#ifndef KERNELWRIGHT_NORM_GPU_ROW_HPP
#define KERNELWRIGHT_NORM_GPU_ROW_HPP

#include "kernelwright/norm/gpu/arguments.h"

namespace kernelwright::norm {

// Elements as they lie in memory, in registers of 32 bits.
template <class T, int kVector>
struct packed {
  static constexpr int kBytes = kVector * static_cast<int>(sizeof(typename T::storage));
  static constexpr int kStep = kBytes < 16 ? kBytes : 16;
  static_assert(kBytes % 4 == 0 && (kStep == 16 || kBytes == kStep), "whole registers, and whole accesses");
  uint32_t words[kBytes / 4] = {};  // lanes behind the row's end combine numbers, too

  KW_NORM_DEVICE float operator[](int i) const {
    constexpr int kOf = 4 / static_cast<int>(sizeof(typename T::storage));
    return T::widened(words[i / kOf] >> (32 / kOf * (i % kOf)));
  }
};

// The elements from `at` on; those behind the row's end are 0. `whole`: vectors are aligned.
template <class T, int kVector>
KW_NORM_DEVICE packed<T, kVector> load(const void* row, int at, int columns, bool whole) {
  using storage = typename T::storage;
  using values = packed<T, kVector>;
  const auto* from = static_cast<const storage*>(row) + at;
  values out;
  if (whole && at + kVector <= columns) {
    KW_NORM_UNROLL for (int i = 0; i < values::kBytes; i += values::kStep) {
      const auto part = *reinterpret_cast<const words_of<values::kStep>*>(from + i / int(sizeof(storage)));
      __builtin_memcpy(out.words + i / 4, &part, values::kStep);
    }
    return out;
  }
  KW_NORM_UNROLL for (int i = 0; i < kVector; ++i) {
    constexpr int kOf = 4 / static_cast<int>(sizeof(storage));
    if (at + i < columns) out.words[i / kOf] |= T::bits(from[i]) << (32 / kOf * (i % kOf));
  }
  return out;
}

template <class T, int kVector>
KW_NORM_DEVICE void store(void* row, int at, int columns, bool whole, const packed<T, kVector>& given) {
  using storage = typename T::storage;
  using values = packed<T, kVector>;
  auto* to = static_cast<storage*>(row) + at;
  if (whole && at + kVector <= columns) {
    KW_NORM_UNROLL for (int i = 0; i < values::kBytes; i += values::kStep) {
      words_of<values::kStep> part;
      __builtin_memcpy(&part, given.words + i / 4, values::kStep);
      *reinterpret_cast<words_of<values::kStep>*>(to + i / int(sizeof(storage))) = part;
    }
    return;
  }
  KW_NORM_UNROLL for (int i = 0; i < kVector; ++i) {
    constexpr int kOf = 4 / static_cast<int>(sizeof(storage));
    if (at + i < columns) to[i] = T::stored(given.words[i / kOf] >> (32 / kOf * (i % kOf)));
  }
}

template <int kVector>
struct numbers {
  float of[kVector];
};

template <class T, int kVector>
KW_NORM_DEVICE packed<T, kVector> rounded(const numbers<kVector>& given) {
  packed<T, kVector> out;
  T::narrowed(given.of, out.words, kVector);
  return out;
}

// Shape has the numbers `threads` of a row, `rows` of a workgroup, `vector`, `unroll` (vectors of a thread in
// registers) and `wave`. The n-th reduction between two barriers has slots of its own, so that each takes one barrier.
template <class Shape, int kReductions>
struct row_of_threads {
  static constexpr int kVector = Shape::vector, kStep = Shape::threads * kVector, kHeld = Shape::unroll * kStep;
  static constexpr int kWaves = Shape::threads / Shape::wave;  // of a row; 0 if several rows share one
  static constexpr int kSlots = kWaves > 1 ? Shape::rows * kWaves : 1;

  struct shared {
    float of[kReductions][kSlots];
  };

  int thread, group;  // of the row, of the workgroup
  shared* memory;

  KW_NORM_DEVICE explicit row_of_threads(shared& given)
      : thread(static_cast<int>(threadIdx.x) % Shape::threads),
        group(static_cast<int>(threadIdx.x) / Shape::threads),
        memory(&given) {}

  // Of every thread of the row, combined in an order that depends on the shape alone.
  template <int kReduction, class Combine>
  KW_NORM_DEVICE float over(float value, Combine combine) const {
    constexpr int kLanes = Shape::threads < Shape::wave ? Shape::threads : Shape::wave;
    KW_NORM_UNROLL for (int mask = kLanes / 2; mask > 0; mask /= 2) value = combine(value, exchanged(value, mask));
    if constexpr (kWaves > 1) {
      float* const slots = memory->of[kReduction] + group * kWaves;
      if (thread % Shape::wave == 0) slots[thread / Shape::wave] = value;
      __syncthreads();
      value = slots[0];
      KW_NORM_UNROLL for (int wave = 1; wave < kWaves; ++wave) value = combine(value, slots[wave]);
    }
    return value;
  }
  template <int kReduction>
  KW_NORM_DEVICE float sum(float value) const {
    return over<kReduction>(value, [](float a, float b) KW_NORM_INLINE { return a + b; });
  }
  template <int kReduction>
  KW_NORM_DEVICE float largest(float value) const {
    return over<kReduction>(value, [](float a, float b) KW_NORM_INLINE { return a > b ? a : b; });
  }

  // step(column, n) of the thread's vectors in registers; then step(column) of those beyond.
  template <class Held, class Beyond>
  KW_NORM_DEVICE void each(int columns, Held held, Beyond beyond) const {
    KW_NORM_UNROLL for (int n = 0; n < Shape::unroll; ++n) {
      const int at = n * kStep + thread * kVector;
      if (at < columns) held(at, n);
    }
    for (int at = kHeld + thread * kVector; at < columns; at += kStep) beyond(at);
  }
};

struct statistics {
  float mean;     // 0 of RMS norm
  float inverse;  // of the root
};

// Two passes of layer norm: squares of what is left of the mean lose no digits to it. `walk(step)` calls step(column,
// vector) of all that the thread has of the row.
template <bool kCentred, class Row, class Walk>
KW_NORM_DEVICE statistics statistics_of(const Row& row, int columns, float count, float epsilon, Walk walk) {
  float mean = 0;
  if constexpr (kCentred) {
    float sum = 0;
    walk([&](int, const auto& x) KW_NORM_INLINE { KW_NORM_UNROLL for (int i = 0; i < Row::kVector; ++i) sum += x[i]; });
    mean = row.template sum<0>(sum) / count;
  }
  float squares = 0;
  walk([&](int at, const auto& x) KW_NORM_INLINE {
    KW_NORM_UNROLL for (int i = 0; i < Row::kVector; ++i) {
      const float apart = kCentred ? (at + i < columns ? x[i] - mean : 0.0f) : x[i];
      squares = __builtin_fmaf(apart, apart, squares);
    }
  });
  return {mean, 1.0f / __builtin_sqrtf(row.template sum<1>(squares) / count + epsilon)};
}

// Weight or bias of a vector: 1 or 0 where the problem has none.
template <class T, int kVector>
KW_NORM_DEVICE numbers<kVector> row_vector(const void* from, bool has, float otherwise, int at,
                                           const kw_norm_gpu_arguments& p) {
  numbers<kVector> out;
  KW_NORM_UNROLL for (int i = 0; i < kVector; ++i) out.of[i] = otherwise;
  if (!has) return out;
  if (p.wide_weights != 0) {
    const auto found = load<fp32, kVector>(from, at, p.columns, p.whole_weights != 0);
    KW_NORM_UNROLL for (int i = 0; i < kVector; ++i) out.of[i] = found[i];
  } else {
    const auto found = load<T, kVector>(from, at, p.columns, p.whole_weights != 0);
    KW_NORM_UNROLL for (int i = 0; i < kVector; ++i) out.of[i] = found[i];
  }
  return out;
}

// A row of a matrix.
template <class T>
KW_NORM_DEVICE const void* row_at(const void* first, int64_t row, int64_t stride) {
  return static_cast<const typename T::storage*>(first) + row * stride;
}
template <class T>
KW_NORM_DEVICE void* row_at(void* first, int64_t row, int64_t stride) {
  return static_cast<typename T::storage*>(first) + row * stride;
}

}  // namespace kernelwright::norm

#endif  // KERNELWRIGHT_NORM_GPU_ROW_HPP
