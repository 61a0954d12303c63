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
    constexpr int kUnroll = Rows == MR ? 4 : 1;  // edges are rare, and code is long
    int64_t left = t.whole->steps;
    for (; left >= kUnroll; left -= kUnroll, a += kUnroll * MR, b += kUnroll * NR) {
      TW_CPU_UNROLL for (int u = 0; u < kUnroll; ++u) step<Rows, Vectors>(sum, a + u * MR, b + u * NR);
    }
    for (; left > 0; --left, a += MR, b += NR) step<Rows, Vectors>(sum, a, b);
    if (t.partial != nullptr) {
      if (!t.whole->first) add_partial<Rows, Vectors>(sum, t.partial);
      if (!t.whole->last) return store_sums<Rows, Vectors>(sum, t.partial);
    }
    if (t.cols == Vectors * kLanes) {
      store_rows<Rows, Vectors>(sum, t);
    } else {
      alignas(64) float sums[Rows * NR];
      store_sums<Rows, Vectors>(sum, sums);
      store_edge(sums, Rows, t);
    }
  }

  template <int Rows, int Vectors>
  static TW_CPU_INLINE void add_partial(vec (&sum)[Rows][Vectors], const float* partial) {
    TW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
      TW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) sum[i][v] = add(sum[i][v], load(partial + i * NR + v * kLanes));
    }
  }

  template <int Rows, int Vectors>
  static TW_CPU_INLINE void store_sums(const vec (&sum)[Rows][Vectors], float* sums) {
    TW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
      TW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) store(sums + i * NR + v * kLanes, sum[i][v]);
    }
  }

  static TW_CPU_INLINE void store_vector(vec sum, vec alpha, vec beta, const storage* c, storage* d) {
    if (c == nullptr) {
      Output::store_float(d, mul(alpha, sum));
    } else {
      Output::store_float(d, fma(alpha, sum, mul(beta, Output::load_float(c))));
    }
  }

  template <int Rows, int Vectors>
  static TW_CPU_INLINE void store_rows(const vec (&sum)[Rows][Vectors], const tile& t) {
    const vec alpha = broadcast(t.whole->alpha);
    const vec beta = broadcast(t.whole->beta);
    const int64_t ldc = t.whole->ldc;
    if (t.c == nullptr) {
      TW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
        TW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) {
          store_vector(sum[i][v], alpha, beta, nullptr, t.d + i * ldc + v * kLanes);
        }
      }
    } else {
      TW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
        TW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) {
          const int64_t at = i * ldc + v * kLanes;
          store_vector(sum[i][v], alpha, beta, t.c + at, t.d + at);
        }
      }
    }
  }

  // Rows that end inside a vector go through a copy, so that nothing beyond them is read or written.
  static __attribute__((noinline)) void store_edge(const float* sums, int64_t rows, const tile& t) {
    const vec alpha = broadcast(t.whole->alpha);
    const vec beta = broadcast(t.whole->beta);
    for (int64_t i = 0; i < rows; ++i) {
      storage copy[NR] = {};
      if (t.c != nullptr) __builtin_memcpy(copy, t.c + i * t.whole->ldc, static_cast<size_t>(t.cols) * sizeof(storage));
      for (int64_t j = 0; j < t.cols; j += kLanes) {
        store_vector(load(sums + i * NR + j), alpha, beta, t.c == nullptr ? nullptr : copy + j, copy + j);
      }
      __builtin_memcpy(t.d + i * t.whole->ldc, copy, static_cast<size_t>(t.cols) * sizeof(storage));
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
