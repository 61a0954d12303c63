// A few int8 vectors times a matrix whose lines are contiguous along K, read once, where it lies.
#ifndef KERNELWRIGHT_CPU_GEMM_MICRO_SKINNY_DOTS_HPP
#define KERNELWRIGHT_CPU_GEMM_MICRO_SKINNY_DOTS_HPP

#include "kernelwright/cpu/gemm/kernel.hpp"
#include "kernelwright/cpu/gemm/micro/operation.hpp"

namespace kernelwright::cpu {
namespace {

// Of an operation that sums several values of K into int32. Vectors are in its units, as packed B is; the matrix is
// loaded as A is: where that carries an offset, what the offset adds depends on the vector alone.
template <class Operation>
class skinny_dots {
 public:
  using storage = typename Operation::storage;

  static void widen(float* to, const void* from, int64_t stride, int64_t count) {
    const storage* p = static_cast<const storage*>(from);
    storage copy[kValues];
    for (int64_t i = 0; i < count; i += kValues, to += kLanes) {
      const int64_t used = count - i < kValues ? count - i : kValues;
      for (int64_t j = 0; j < used; ++j) copy[j] = p[(i + j) * stride];
      store(to, Operation::b_loader::load_first_along_k(copy, used));
    }
  }

  static void along_k(const skinny_block& s) {
    switch (s.count) {
      case 1:
        return dots<1, 8>(s);
      case 2:
        return dots<2, 4>(s);
      case 3:
        return dots<3, kLanes == 16 ? 4 : 2>(s);
      default:
        return dots<4, kLanes == 16 ? 4 : 2>(s);
    }
  }

 private:
  static constexpr int kValues = kLanes * Operation::kDepth;  // in a vector of units

  template <int Count, int Lines>
  static void dots(const skinny_block& s) {
    int32_t offset[Count] = {};
    if constexpr (Operation::kShifted) {
      for (int i = 0; i < Count; ++i) {
        vec sum = zero();
        for (int64_t k = 0; k < divide_up(s.depth, Operation::kDepth); k += kLanes) {
          sum = Operation::multiply_add(Operation::offset(), load(s.vectors + i * s.vector_ld + k), sum);
        }
        offset[i] = sum_of_int32_lanes(bits(sum));
      }
    }
    int64_t line = 0;
    for (; line + Lines <= s.lines; line += Lines) dot<Count, Lines>(s, line, offset);
    for (; line < s.lines; ++line) dot<Count, 1>(s, line, offset);
  }

  template <int Count, int Lines>
  static void dot(const skinny_block& s, int64_t line, const int32_t (&offset)[Count]) {
    const storage* matrix = static_cast<const storage*>(s.matrix) + line * s.ld;
    const float* vectors = s.vectors;
    vec sum[Count][Lines];
    KW_CPU_UNROLL for (int i = 0; i < Count; ++i) { KW_CPU_UNROLL for (int j = 0; j < Lines; ++j) sum[i][j] = zero(); }
    int64_t left = s.depth;
    for (; left >= kValues; left -= kValues, matrix += kValues, vectors += kLanes) {
      KW_CPU_UNROLL for (int j = 0; j < Lines; ++j) {
        add<Count, Lines>(sum, j, Operation::a_loader::load_along_k(matrix + j * s.ld), vectors, s.vector_ld);
      }
    }
    if (left > 0) {
      KW_CPU_UNROLL for (int j = 0; j < Lines; ++j) {
        const vec value = Operation::a_loader::load_first_along_k(matrix + j * s.ld, left);
        add<Count, Lines>(sum, j, value, vectors, s.vector_ld);
      }
    }
    KW_CPU_UNROLL for (int i = 0; i < Count; ++i) {
      KW_CPU_UNROLL for (int j = 0; j < Lines; ++j) {
        // Sums may wrap on the way; that of unsigned numbers is defined.
        const uint32_t total = static_cast<uint32_t>(sum_of_int32_lanes(bits(sum[i][j])));
        const uint32_t result = total - static_cast<uint32_t>(offset[i]);
        __builtin_memcpy(s.sums + i * s.sums_ld + line + j, &result, 4);
      }
    }
  }

  template <int Count, int Lines>
  static KW_CPU_INLINE void add(vec (&sum)[Count][Lines], int j, vec value, const float* vectors, int64_t vector_ld) {
    KW_CPU_UNROLL for (int i = 0; i < Count; ++i) {
      sum[i][j] = Operation::multiply_add(value, load(vectors + i * vector_ld), sum[i][j]);
    }
  }
};

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_GEMM_MICRO_SKINNY_DOTS_HPP
