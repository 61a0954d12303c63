// The inner loops: a register block of Rows x Vectors accumulators, fed from packed panels.
#ifndef KERNELWRIGHT_CPU_GEMM_MICRO_MULTIPLY_HPP
#define KERNELWRIGHT_CPU_GEMM_MICRO_MULTIPLY_HPP

#include "kernelwright/cpu/common/register_block.hpp"
#include "kernelwright/cpu/gemm/micro/epilogue.hpp"
#include "kernelwright/cpu/gemm/micro/operation.hpp"

namespace kernelwright::cpu {
namespace {

// The output, begun `rows` and `cols` further on.
template <class Epilogue>
KW_CPU_INLINE output moved(const output& from, int64_t rows, int64_t cols) {
  using storage = typename Epilogue::storage;
  output to = from;
  const int64_t offset = rows * to.ldc + cols;
  to.d = static_cast<storage*>(to.d) + offset;
  if (to.c != nullptr) to.c = static_cast<const storage*>(to.c) + offset;
  for (uint32_t n = 0; n < Epilogue::num_d(from); ++n) {
    to.multi_d[n] = static_cast<const storage*>(to.multi_d[n]) + rows * to.ld_multi_d[n] + cols;
  }
  return to;
}

// MR x NR is the register block.
template <class Operation, class Epilogue, int MR, int NR>
class multiplier {
 public:
  // Columns outside, rows inside: one panel of B stays in the first-level cache while the panels of A stream by.
  static void multiply(const block& b) {
    const int64_t a_stride = panel_units(MR, b.steps);
    const int64_t b_stride = panel_units(NR, b.steps);
    for (int64_t j = 0; j < b.cols; j += NR) {
      for (int64_t i = 0; i < b.rows; i += MR) {
        tile t;
        t.a = static_cast<const float*>(b.a) + i / MR * a_stride;
        t.b = static_cast<const float*>(b.b) + j / NR * b_stride;
        t.to = moved<Epilogue>(b.to, i, j);
        t.partial = nullptr;
        if (b.partial != nullptr) {
          t.partial = static_cast<float*>(b.partial) + i / MR * b.partial_panel_stride + j / NR * (MR * NR);
        }
        t.cols = b.cols - j < NR ? b.cols - j : NR;
        t.whole = &b;
        const int64_t rows = b.rows - i < MR ? b.rows - i : MR;
        const int64_t vectors = divide_up(t.cols, kLanes);
        kTable.run[vectors - 1][rows - 1](t);
      }
    }
  }

 private:
  using Output = typename Epilogue::element;
  using storage = typename Output::storage;
  static constexpr int kVectors = NR / kLanes;

  struct tile {
    const float* a;
    const float* b;
    output to;
    float* partial;
    int64_t cols;
    const block* whole;
  };
  using tile_function = void (*)(const tile&);

  // The row behind the others is A's offset, if it carries one.
  template <int Rows>
  static constexpr int kSums = Rows + (Operation::kShifted ? 1 : 0);

  template <int Rows, int Vectors>
  static KW_CPU_INLINE void step(vec (&sum)[kSums<Rows>][Vectors], const float* a, const float* b) {
    vec line[Vectors];
    KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) line[v] = load(b + v * kLanes);
    if constexpr (Operation::kShifted) {
      KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) {
        sum[Rows][v] = Operation::multiply_add(Operation::offset(), line[v], sum[Rows][v]);
      }
    }
    KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
      const vec value = broadcast(a[i]);
      KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) sum[i][v] = Operation::multiply_add(value, line[v], sum[i][v]);
    }
  }

  template <int Rows, int Vectors>
  static void run(const tile& t) {
    vec sum[kSums<Rows>][Vectors];
    KW_CPU_UNROLL for (int i = 0; i < kSums<Rows>; ++i) {
      if (i < Rows) {
        const storage* line = static_cast<const storage*>(t.to.d) + i * t.to.ldc;
        __builtin_prefetch(line, 1);
        __builtin_prefetch(line + t.cols - 1, 1);
      }
      KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) sum[i][v] = zero();
    }
    const float* a = t.a;
    const float* b = t.b;
    constexpr int kUnroll = Rows == MR ? 4 : 1;  // edges are rare, and code is long
    int64_t left = t.whole->steps;
    for (; left >= kUnroll; left -= kUnroll, a += kUnroll * MR, b += kUnroll * NR) {
      KW_CPU_UNROLL for (int u = 0; u < kUnroll; ++u) step<Rows, Vectors>(sum, a + u * MR, b + u * NR);
    }
    for (; left > 0; --left, a += MR, b += NR) step<Rows, Vectors>(sum, a, b);
    if constexpr (Operation::kShifted) {
      KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
        KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) sum[i][v] = Operation::subtract_sums(sum[i][v], sum[Rows][v]);
      }
    }
    if (t.partial != nullptr) {
      if (!t.whole->first) add_partial<Rows, Vectors>(sum, t.partial);
      if (!t.whole->last) return store_sums<Rows, Vectors>(sum, t.partial);
    }
    if constexpr (Operation::kSumDtype == KW_FP32) {
      if ((Epilogue::is_plain(t.to) || !t.whole->last) && t.cols == Vectors * kLanes)
        return store_rows<Rows, Vectors>(sum, t);
    }
    alignas(64) float sums[Rows * NR];
    store_sums<Rows, Vectors>(sum, sums);
    if constexpr (!Epilogue::kPlain && Operation::kSumDtype == KW_FP32) {
      if (!t.whole->last) return epilogue<Output>::write(sums, NR, Rows, t.cols, t.to);
    }
    Epilogue::write(sums, NR, Rows, t.cols, t.to);
  }

  template <int Rows, int Vectors>
  static KW_CPU_INLINE void add_partial(vec (&sum)[kSums<Rows>][Vectors], const float* partial) {
    KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
      KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) {
        sum[i][v] = Operation::add_sums(sum[i][v], load(partial + i * NR + v * kLanes));
      }
    }
  }

  template <int Rows, int Vectors>
  static KW_CPU_INLINE void store_sums(const vec (&sum)[kSums<Rows>][Vectors], float* sums) {
    KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
      KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) store(sums + i * NR + v * kLanes, sum[i][v]);
    }
  }

  template <int Rows, int Vectors>
  static KW_CPU_INLINE void store_rows(const vec (&sum)[kSums<Rows>][Vectors], const tile& t) {
    const vec alpha = broadcast(t.to.alpha);
    const vec beta = broadcast(t.to.beta);
    const storage* c = static_cast<const storage*>(t.to.c);
    storage* d = static_cast<storage*>(t.to.d);
    const bool reads_c = t.to.beta != 0.0f;
    KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
      KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) {
        const int64_t at = i * t.to.ldc + v * kLanes;
        if (reads_c) {
          Output::store_float(d + at, fma(alpha, sum[i][v], mul(beta, Output::load_float(c + at))));
        } else {
          Output::store_float(d + at, mul(alpha, sum[i][v]));
        }
      }
    }
  }

  using blocks = register_blocks<multiplier, tile_function, kVectors, MR>;
  friend blocks;
  static constexpr blocks kTable{};
};

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_GEMM_MICRO_MULTIPLY_HPP
