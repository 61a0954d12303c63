// Forward and backward data with few channels written: vectors hold channels that are read, and are added up at the
// end.
#ifndef KERNELWRIGHT_CPU_CONVOLUTION_MICRO_FEW_HPP
#define KERNELWRIGHT_CPU_CONVOLUTION_MICRO_FEW_HPP

#include "kernelwright/cpu/common/register_block.hpp"
#include "kernelwright/cpu/convolution/kernel.hpp"
#include "kernelwright/cpu/convolution/micro/moved.hpp"
#include "kernelwright/cpu/gemm/micro/operation.hpp"

namespace kernelwright::cpu {
namespace {

// A run of at most half of MR outputs by at most kFewColumns channels, from weights with the channels that are summed
// side by side: b.b + b_taps is the first column, the next ones follow b.run units apart. All of K is one block.
template <class Operation, class Epilogue, int MR>
class few_multiplier {
 public:
  static void multiply(const taps_block& b) {
    for (int64_t i = 0; i < b.tile_count; ++i) {
      const pixel_tile& t = b.tiles[i];
      for (int part = 0; part < 2; ++part) {
        if (t.rows[part] != 0) multiply_run(b, t.a[part], t.d[part], t.rows[part]);
      }
    }
  }

 private:
  static constexpr int kRows = (MR + 1) / 2, kColumns = static_cast<int>(kFewColumns);
  static constexpr int kRegisters = 2 * kLanes;  // AVX-512 has 32, AVX2 16
  using run_function = void (*)(const taps_block&, int64_t, int64_t);

  // Sums, weights and one point fit the registers: long runs are cut into parts as large as one another.
  static void multiply_run(const taps_block& b, int64_t from, int64_t to, int64_t rows) {
    const int64_t parts = divide_up(rows, larger(1, (kRegisters - 1 - b.cols) / b.cols));
    for (int64_t index = 0; index < parts; ++index) {
      const int64_t count = rows / parts + (index < rows % parts ? 1 : 0);
      kTable.run[b.cols - 1][count - 1](b, from, to);
      from += count * b.a_row;
      to += count * b.to.ldc;
    }
  }

  template <int Rows, int Columns, class Load>
  static KW_CPU_INLINE void step(vec (&sum)[Rows][Columns], const float* a, int64_t row, const float* w, int64_t column,
                                 const Load& load_some) {
    vec weights[Columns];
    KW_CPU_UNROLL for (int j = 0; j < Columns; ++j) weights[j] = load_some(w + j * column);
    KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
      const vec points = load_some(a + i * row);
      KW_CPU_UNROLL for (int j = 0; j < Columns; ++j) {
        sum[i][j] = Operation::multiply_add(points, weights[j], sum[i][j]);
      }
    }
  }

  template <int Rows, int Columns>
  static void run(const taps_block& b, int64_t from, int64_t to) {
    vec sum[Rows][Columns];
    KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) { KW_CPU_UNROLL for (int j = 0; j < Columns; ++j) sum[i][j] = zero(); }
    const int64_t row = b.a_row, column = b.run, whole = column / kLanes * kLanes, rest = column - whole;
    for (int64_t tap = 0; tap < b.tap_count; ++tap) {
      const float* a = b.slab + from + b.a_taps[tap];
      const float* w = b.b + b.b_taps[tap];
      for (int64_t k = 0; k < whole; k += kLanes) {
        step<Rows, Columns>(sum, a + k, row, w + k, column, [](const float* p) { return load(p); });
      }
      if (rest == 0) continue;
      step<Rows, Columns>(sum, a + whole, row, w + whole, column, [&](const float* p) { return load_first(p, rest); });
    }
    float sums[Rows][Columns];
    KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
      KW_CPU_UNROLL for (int j = 0; j < Columns; ++j) sums[i][j] = sum_of_lanes(sum[i][j]);
    }
    Epilogue::write(&sums[0][0], Columns, Rows, Columns, moved_point<Epilogue>(b.to, to));
  }

  using blocks = register_blocks<few_multiplier, run_function, kColumns, kRows>;
  friend blocks;
  static constexpr blocks kTable{};
};

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_CONVOLUTION_MICRO_FEW_HPP
