// The inner loops of backward weight: a register block of channels of dy and x, summed over outputs.
#ifndef KERNELWRIGHT_CPU_CONVOLUTION_MICRO_WEIGHT_HPP
#define KERNELWRIGHT_CPU_CONVOLUTION_MICRO_WEIGHT_HPP

#include "kernelwright/cpu/common/register_block.hpp"
#include "kernelwright/cpu/convolution/kernel.hpp"
#include "kernelwright/cpu/gemm/micro/operation.hpp"

namespace kernelwright::cpu {
namespace {

template <class Operation, int MR, int NR>
class weight_multiplier {
 public:
  static void multiply(const weight_block& b) { kTable.run[divide_up(b.cols, kLanes) - 1][b.rows - 1](b); }

 private:
  static_assert(Operation::kDepth == 1, "outputs are summed one by one");
  static constexpr int kVectors = NR / kLanes;
  using tile_function = void (*)(const weight_block&);

  // Values beyond the last column are read too: slabs have room for a panel behind their ends.
  template <int Rows, int Vectors>
  static void run(const weight_block& b) {
    vec sum[Rows][Vectors];
    KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) { KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) sum[i][v] = zero(); }
    const int64_t next_a = b.a_stride[3], next_b = b.b_stride[3];
    for (int64_t n = 0; n < b.count[0]; ++n) {
      for (int64_t d = 0; d < b.count[1]; ++d) {
        for (int64_t h = 0; h < b.count[2]; ++h) {
          const float* values = b.a + n * b.a_stride[0] + d * b.a_stride[1] + h * b.a_stride[2];
          const float* lines = b.b + n * b.b_stride[0] + d * b.b_stride[1] + h * b.b_stride[2];
          for (int64_t w = b.count[3]; w > 0; --w, values += next_a, lines += next_b) {
            vec line[Vectors];
            KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) line[v] = load(lines + v * kLanes);
            KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
              const vec value = broadcast(values[i]);
              KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) sum[i][v] = fma(value, line[v], sum[i][v]);
            }
          }
        }
      }
    }
    KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
      KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) {
        float* to = b.sums + i * NR + v * kLanes;
        store(to, b.first ? sum[i][v] : add(load(to), sum[i][v]));
      }
    }
  }

  using blocks = register_blocks<weight_multiplier, tile_function, kVectors, MR>;
  friend blocks;
  static constexpr blocks kTable{};
};

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_CONVOLUTION_MICRO_WEIGHT_HPP
