// Small fp32 matrices: A is read where it lies, and B too if its rows are contiguous; packing would cost more than it
// saves.
#ifndef KERNELWRIGHT_CPU_GEMM_MICRO_DIRECT_HPP
#define KERNELWRIGHT_CPU_GEMM_MICRO_DIRECT_HPP

#include "kernelwright/cpu/gemm/micro/multiply.hpp"

namespace kernelwright::cpu {
namespace {

template <class Epilogue, int NR>
class direct {
 public:
  static void multiply(const direct_block& b) {
    for (int64_t j = 0; j < b.cols;) {
      const int64_t in_panel = j % NR;  // a panel wider than a tile is read in several
      const int64_t end = b.panel_stride != 0 ? smaller(b.cols, j - in_panel + NR) : b.cols;
      const int64_t cols = smaller(end - j, kMaxVectors * kLanes);
      const int64_t vectors = divide_up(cols, kLanes);
      for (int64_t i = 0; i < b.rows;) {
        const int64_t rows = b.rows - i < kMaxRows ? b.rows - i : kMaxRows;
        tile t;
        t.a = b.a + i * b.a_row;
        t.b = b.panel_stride != 0 ? b.b + j / NR * b.panel_stride + in_panel : b.b + j;
        t.last_lanes = cols - (vectors - 1) * kLanes;
        t.whole = &b;
        t.to = moved<Epilogue>(b.to, i, j);
        kTable.run[vectors - 1][rows - 1](t);
        i += rows;
      }
      j += cols;
    }
  }

 private:
  using Output = typename Epilogue::element;
  // 6 x 4 sums, a line of 4 and a value of A fit 32 registers; 6 x 2 fit 16.
  static constexpr int kMaxRows = 6;
  static constexpr int kMaxVectors = kLanes == 16 ? 4 : 2;

  struct tile {
    const float* a;
    const float* b;
    int64_t last_lanes;  // columns of the last vector
    const direct_block* whole;
    output to;
  };
  using tile_function = void (*)(const tile&);

  template <int Rows, int Vectors>
  static void run(const tile& t) {
    const int64_t a_row = t.whole->a_row, a_step = t.whole->a_step, b_step = t.whole->b_step;
    const float* a = t.a;
    const float* a3 = t.a + 3 * a_row;
    const float* b = t.b;
    vec sum[Rows][Vectors];
    KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) { KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) sum[i][v] = zero(); }
    for (int64_t k = t.whole->depth; k > 0; --k, a += a_step, a3 += a_step, b += b_step) {
      vec line[Vectors];
      KW_CPU_UNROLL for (int v = 0; v < Vectors - 1; ++v) line[v] = load(b + v * kLanes);
      line[Vectors - 1] = load_first(b + (Vectors - 1) * kLanes, t.last_lanes);
      KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
        const vec value = broadcast(i < 3 ? a[i * a_row] : a3[(i - 3) * a_row]);
        KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) sum[i][v] = fma(value, line[v], sum[i][v]);
      }
    }
    if (Epilogue::is_plain(t.to)) {
      store_rows<Rows, Vectors>(sum, t);
    } else {
      alignas(64) float sums[Rows * Vectors * kLanes];
      KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
        KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) store(sums + (i * Vectors + v) * kLanes, sum[i][v]);
      }
      Epilogue::write(sums, Vectors * kLanes, Rows, (Vectors - 1) * kLanes + t.last_lanes, t.to);
    }
  }

  template <int Rows, int Vectors>
  static KW_CPU_INLINE void store_rows(const vec (&sum)[Rows][Vectors], const tile& t) {
    const vec alpha = broadcast(t.to.alpha), beta = broadcast(t.to.beta);
    const float* c = static_cast<const float*>(t.to.c);
    float* d = static_cast<float*>(t.to.d);
    const bool reads_c = t.to.beta != 0.0f;
    KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
      KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) {
        const int64_t at = i * t.to.ldc + v * kLanes;
        const int64_t lanes = v == Vectors - 1 ? t.last_lanes : kLanes;
        const vec value = reads_c ? fma(alpha, sum[i][v], mul(beta, load_first(c + at, lanes))) : mul(alpha, sum[i][v]);
        store_first(d + at, value, lanes);
      }
    }
  }

  struct table {
    tile_function run[kMaxVectors][kMaxRows];

    template <int Vectors, int Rows>
    constexpr void fill() {
      run[Vectors - 1][Rows - 1] = &direct::run<Rows, Vectors>;
      if constexpr (Rows > 1) {
        fill<Vectors, Rows - 1>();
      } else if constexpr (Vectors > 1) {
        fill<Vectors - 1, kMaxRows>();
      }
    }
    constexpr table() : run() { fill<kMaxVectors, kMaxRows>(); }
  };
  static constexpr table kTable{};
};

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_GEMM_MICRO_DIRECT_HPP
