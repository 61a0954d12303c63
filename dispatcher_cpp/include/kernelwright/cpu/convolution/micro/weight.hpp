// The inner loops of backward weight: a register block of output channels x input channels, summed over outputs.
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

  // Points beyond the last channel are read too: the slab has room for a panel behind its end.
  template <int Rows, int Vectors>
  static void run(const weight_block& b) {
    vec sum[Rows][Vectors];
    KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) { KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) sum[i][v] = zero(); }
    const float* line_of_dy = b.a;
    const int64_t next = b.slab_stride[3];
    for (int64_t n = 0; n < b.count[0]; ++n) {
      for (int64_t d = 0; d < b.count[1]; ++d) {
        for (int64_t h = 0; h < b.count[2]; ++h, line_of_dy += b.a_line) {
          const float* a = line_of_dy;
          const float* x = b.b + n * b.slab_stride[0] + d * b.slab_stride[1] + h * b.slab_stride[2];
          for (int64_t w = b.count[3]; w > 0; --w, a += MR, x += next) {
            vec line[Vectors];
            KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) line[v] = load(x + v * kLanes);
            KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
              const vec value = broadcast(a[i]);
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
