// A few vectors times a matrix that is read once, where it lies: the memory sets the pace.
#ifndef KERNELWRIGHT_CPU_GEMM_MICRO_SKINNY_HPP
#define KERNELWRIGHT_CPU_GEMM_MICRO_SKINNY_HPP

#include "kernelwright/cpu/common/element.hpp"
#include "kernelwright/cpu/gemm/kernel.hpp"

namespace kernelwright::cpu {
namespace {

template <class Element>
class skinny {
 public:
  using storage = typename Element::storage;

  static void widen(float* to, const void* from, int64_t stride, int64_t count) {
    const storage* p = static_cast<const storage*>(from);
    storage copy[kLanes];
    for (int64_t i = 0; i < count; i += kLanes) {
      const int64_t lanes = count - i < kLanes ? count - i : kLanes;
      const storage* source = p + i;
      if (stride != 1) {
        for (int64_t j = 0; j < lanes; ++j) copy[j] = p[(i + j) * stride];
        source = copy;
      }
      store(to + i, Element::load_first(source, lanes));
    }
  }

  static void along_k(const skinny_block& s) {
    switch (s.count) {
      case 1:  // eight short lines would share the sets of the first-level cache; long ones make prefetching busy
        return s.depth * static_cast<int64_t>(sizeof(storage)) <= kShortLine ? dots<1, 4>(s) : dots<1, 8>(s);
      case 2:
        return dots<2, 4>(s);
      case 3:
        return dots<3, 4>(s);
      default:
        return dots<4, kLanes == 16 ? 4 : 2>(s);
    }
  }

  static void along_lines(const skinny_block& s) {
    for (int64_t i = 0; i < s.count; ++i) {
      for (int64_t j = 0; j < s.lines; ++j) s.sums[i * s.sums_ld + j] = 0;
    }
    switch (s.count) {
      case 1:
        return rows<1, 8>(s);
      case 2:
        return rows<2, kLanes == 16 ? 8 : 4>(s);
      case 3:
        return rows<3, kLanes == 16 ? 4 : 2>(s);
      default:
        return rows<4, kLanes == 16 ? 4 : 2>(s);
    }
  }

 private:
  // Bytes. Sums of four lines of short vectors would wait for one another.
  static constexpr int64_t kShortLine = kLanes == 16 ? 4096 : 0;

  // Lines are contiguous along K: Lines of them at a time, a vector of sums for each pair.
  template <int Count, int Lines>
  static void dots(const skinny_block& s) {
    int64_t line = 0;
    for (; line + Lines <= s.lines; line += Lines) dot<Count, Lines>(s, line);
    for (; line < s.lines; ++line) dot<Count, 1>(s, line);
  }

  template <int Count, int Lines>
  static void dot(const skinny_block& s, int64_t line) {
    const storage* matrix = static_cast<const storage*>(s.matrix) + line * s.ld;
    vec sum[Count][Lines];
    KW_CPU_UNROLL for (int i = 0; i < Count; ++i) { KW_CPU_UNROLL for (int j = 0; j < Lines; ++j) sum[i][j] = zero(); }
    const int64_t whole_vectors = s.depth / kLanes * kLanes;
    for (int64_t k = 0; k < whole_vectors; k += kLanes) {
      KW_CPU_UNROLL for (int j = 0; j < Lines; ++j) {
        const vec value = Element::load_float(matrix + j * s.ld + k);
        KW_CPU_UNROLL for (int i = 0; i < Count; ++i) {
          sum[i][j] = fma(value, load(s.vectors + i * s.vector_ld + k), sum[i][j]);
        }
      }
    }
    if (whole_vectors < s.depth) {
      KW_CPU_UNROLL for (int j = 0; j < Lines; ++j) {
        const vec value = Element::load_first(matrix + j * s.ld + whole_vectors, s.depth - whole_vectors);
        KW_CPU_UNROLL for (int i = 0; i < Count; ++i) {
          sum[i][j] = fma(value, load(s.vectors + i * s.vector_ld + whole_vectors), sum[i][j]);
        }
      }
    }
    KW_CPU_UNROLL for (int i = 0; i < Count; ++i) {
      KW_CPU_UNROLL for (int j = 0; j < Lines; ++j) s.sums[i * s.sums_ld + line + j] = sum_of_lanes(sum[i][j]);
    }
  }

  // Values of K lie side by side over the lines: Depth of them at a time are added to the sums in memory. The next ones
  // are fetched meanwhile, as they begin another page each.
  template <int Count, int Depth>
  static void rows(const skinny_block& s) {
    int64_t k = 0;
    for (; k + Depth <= s.depth; k += Depth) add_rows<Count, Depth>(s, k);
    for (; k < s.depth; ++k) add_rows<Count, 1>(s, k);
  }

  template <int Count, int Depth>
  static void add_rows(const skinny_block& s, int64_t k) {
    const storage* matrix = static_cast<const storage*>(s.matrix) + k * s.ld;
    const int64_t ahead = k + 2 * Depth <= s.depth ? Depth * s.ld : 0;
    vec factor[Count][Depth];
    KW_CPU_UNROLL for (int i = 0; i < Count; ++i) {
      KW_CPU_UNROLL for (int u = 0; u < Depth; ++u) factor[i][u] = broadcast(s.vectors[i * s.vector_ld + k + u]);
    }
    int64_t line = 0;
    for (; line + kLanes <= s.lines; line += kLanes) {
      vec sum[Count];
      KW_CPU_UNROLL for (int i = 0; i < Count; ++i) sum[i] = load(s.sums + i * s.sums_ld + line);
      KW_CPU_UNROLL for (int u = 0; u < Depth; ++u) {
        const storage* p = matrix + u * s.ld + line;
        __builtin_prefetch(p + ahead, 0, 2);  // the rows share one set of the first-level cache
        const vec value = Element::load_float(p);
        KW_CPU_UNROLL for (int i = 0; i < Count; ++i) sum[i] = fma(value, factor[i][u], sum[i]);
      }
      KW_CPU_UNROLL for (int i = 0; i < Count; ++i) store(s.sums + i * s.sums_ld + line, sum[i]);
    }
    if (line < s.lines) {
      const int64_t left = s.lines - line;
      for (int i = 0; i < Count; ++i) {
        vec sum = load_first(s.sums + i * s.sums_ld + line, left);
        KW_CPU_UNROLL for (int u = 0; u < Depth; ++u) {
          sum = fma(Element::load_first(matrix + u * s.ld + line, left), factor[i][u], sum);
        }
        store_first(s.sums + i * s.sums_ld + line, sum, left);
      }
    }
  }
};

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_GEMM_MICRO_SKINNY_HPP
