// The inner loops: a register block of Rows x Vectors accumulators, fed from packed panels.
#ifndef TILEWRIGHT_CPU_MULTIPLY_HPP
#define TILEWRIGHT_CPU_MULTIPLY_HPP

#include "tilewright/cpu/kernel.hpp"
#include "tilewright/cpu/operation.hpp"

namespace tilewright::cpu {
namespace {

// MR x NR is the register block; Output is the element type of C and D.
template <class Operation, class Output, int MR, int NR>
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
        t.c = b.beta != 0.0f ? static_cast<const storage*>(b.c) + i * b.ldc + j : nullptr;
        t.d = static_cast<storage*>(b.d) + i * b.ldc + j;
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
  using storage = typename Output::storage;
  static constexpr int kVectors = NR / kLanes;
  static constexpr int kUnroll = 4;

  struct tile {
    const float* a;
    const float* b;
    const storage* c;
    storage* d;
    float* partial;
    int64_t cols;
    const block* whole;
  };
  using tile_function = void (*)(const tile&);

  template <int Rows, int Vectors>
  static TW_CPU_INLINE void step(vec (&sum)[Rows][Vectors], const float* a, const float* b) {
    vec line[Vectors];
    TW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) line[v] = load(b + v * kLanes);
    TW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
      const vec value = broadcast(a[i]);
      TW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) sum[i][v] = Operation::multiply_add(value, line[v], sum[i][v]);
    }
  }

  template <int Rows, int Vectors>
  static void run(const tile& t) {
    vec sum[Rows][Vectors];
    TW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
      __builtin_prefetch(t.d + i * t.whole->ldc, 1);
      __builtin_prefetch(t.d + i * t.whole->ldc + t.cols - 1, 1);
      TW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) sum[i][v] = zero();
    }
    const float* a = t.a;
    const float* b = t.b;
    int64_t left = t.whole->steps;
    for (; left >= kUnroll; left -= kUnroll, a += kUnroll * MR, b += kUnroll * NR) {
      TW_CPU_UNROLL for (int u = 0; u < kUnroll; ++u) step<Rows, Vectors>(sum, a + u * MR, b + u * NR);
    }
    for (; left > 0; --left, a += MR, b += NR) step<Rows, Vectors>(sum, a, b);
    if (t.partial != nullptr) {
      if (!t.whole->first) add_partial<Rows, Vectors>(sum, t.partial);
      if (!t.whole->last) return store_partial<Rows, Vectors>(sum, t.partial);
    }
    if (t.cols == Vectors * kLanes) {
      store_rows<Rows, Vectors, true>(sum, t);
    } else {
      store_rows<Rows, Vectors, false>(sum, t);
    }
  }

  template <int Rows, int Vectors>
  static TW_CPU_INLINE void add_partial(vec (&sum)[Rows][Vectors], const float* partial) {
    TW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
      TW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) sum[i][v] = add(sum[i][v], load(partial + i * NR + v * kLanes));
    }
  }

  template <int Rows, int Vectors>
  static TW_CPU_INLINE void store_partial(const vec (&sum)[Rows][Vectors], float* partial) {
    TW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
      TW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) store(partial + i * NR + v * kLanes, sum[i][v]);
    }
  }

  // A row that ends inside a vector goes through a copy, so that nothing beyond it is read or written.
  template <int Rows, int Vectors, bool Full>
  static TW_CPU_INLINE void store_rows(const vec (&sum)[Rows][Vectors], const tile& t) {
    const vec alpha = broadcast(t.whole->alpha);
    const vec beta = broadcast(t.whole->beta);
    TW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
      storage* d = t.d + i * t.whole->ldc;
      const storage* c = t.c == nullptr ? nullptr : t.c + i * t.whole->ldc;
      storage copy[NR];
      if (!Full && c != nullptr) {
        for (int64_t j = 0; j < NR; ++j) copy[j] = j < t.cols ? c[j] : storage(0);
      }
      TW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) {
        vec value = mul(alpha, sum[i][v]);
        if (c != nullptr) {
          value = fma(alpha, sum[i][v], mul(beta, Output::load_float((Full ? c : copy) + v * kLanes)));
        }
        Output::store_float((Full ? d : copy) + v * kLanes, value);
      }
      if (!Full) {
        for (int64_t j = 0; j < t.cols; ++j) d[j] = copy[j];
      }
    }
  }

  // One function for every number of rows and vectors that an edge can leave.
  struct table {
    tile_function run[kVectors][MR];

    template <int Vectors, int Rows>
    constexpr void fill() {
      run[Vectors - 1][Rows - 1] = &multiplier::run<Rows, Vectors>;
      if constexpr (Rows > 1) {
        fill<Vectors, Rows - 1>();
      } else if constexpr (Vectors > 1) {
        fill<Vectors - 1, MR>();
      }
    }
    constexpr table() : run() { fill<kVectors, MR>(); }
  };
  static constexpr table kTable{};
};

}  // namespace
}  // namespace tilewright::cpu

#endif  // TILEWRIGHT_CPU_MULTIPLY_HPP
