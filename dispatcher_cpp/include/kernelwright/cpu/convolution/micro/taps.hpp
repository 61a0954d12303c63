// The inner loops of forward and backward data: a register block of outputs x channels, summed over filter points.
#ifndef KERNELWRIGHT_CPU_CONVOLUTION_MICRO_TAPS_HPP
#define KERNELWRIGHT_CPU_CONVOLUTION_MICRO_TAPS_HPP

#include "kernelwright/cpu/common/register_block.hpp"
#include "kernelwright/cpu/convolution/kernel.hpp"
#include "kernelwright/cpu/convolution/micro/moved.hpp"
#include "kernelwright/cpu/gemm/micro/operation.hpp"

namespace kernelwright::cpu {
namespace {

// MR x NR is the register block. Its outputs are two runs, so that a block also fills where lines are short.
template <class Operation, class Epilogue, int MR, int NR>
class taps_multiplier {
 public:
  static void multiply(const taps_block& b) {
    const int64_t vectors = divide_up(b.cols, kLanes);
    float* partial = b.partial;
    for (int64_t i = 0; i < b.tile_count; ++i) {
      const pixel_tile& t = b.tiles[i];
      kTable.run[vectors - 1][t.rows[0] + t.rows[1] - 1](b, t, partial);
      if (partial != nullptr) partial += MR * NR;
    }
  }

 private:
  using Output = typename Epilogue::element;
  using storage = typename Output::storage;
  static constexpr int kVectors = NR / kLanes;
  static constexpr int kHalf = (MR + 1) / 2;
  static constexpr int kBases = (kHalf + 2) / 3;  // pointers of a run: each reaches three outputs by an index register
  using tile_function = void (*)(const taps_block&, const pixel_tile&, float*);

  template <int Rows, int Vectors>
  static KW_CPU_INLINE void step(vec (&sum)[Rows][Vectors], const float* const (&a)[2 * kBases], int64_t row, int u,
                                 const float* b) {
    vec line[Vectors];
    KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) line[v] = load(b + v * kLanes);
    KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
      const int j = i < kHalf ? i : i - kHalf;
      const vec value = broadcast(a[(i < kHalf ? 0 : kBases) + j / 3][j % 3 * row + u]);
      KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) sum[i][v] = Operation::multiply_add(value, line[v], sum[i][v]);
    }
  }

  template <int Rows, int Vectors>
  static void run(const taps_block& b, const pixel_tile& t, float* partial) {
    vec sum[Rows][Vectors];
    KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) { KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) sum[i][v] = zero(); }
    const int64_t row = b.a_row;
    constexpr int kUnroll = Rows >= MR - 1 ? 4 : 1;  // edges are rare, and code is long
    for (int64_t tap = 0; tap < b.tap_count; ++tap) {
      const float* weights = b.b + b.b_taps[tap];
      const float* a[2 * kBases];
      KW_CPU_UNROLL for (int base = 0; base < kBases; ++base) {
        a[base] = b.slab + t.a[0] + b.a_taps[tap] + 3 * base * row;
        a[kBases + base] = b.slab + t.a[1] + b.a_taps[tap] + 3 * base * row;
      }
      int64_t left = b.run;
      for (; left >= kUnroll; left -= kUnroll, weights += kUnroll * NR) {
        KW_CPU_UNROLL for (int u = 0; u < kUnroll; ++u) step<Rows, Vectors>(sum, a, row, u, weights + u * NR);
        KW_CPU_UNROLL for (int base = 0; base < 2 * kBases; ++base) a[base] += kUnroll;
      }
      for (; left > 0; --left, weights += NR) {
        step<Rows, Vectors>(sum, a, row, 0, weights);
        KW_CPU_UNROLL for (int base = 0; base < 2 * kBases; ++base) a[base] += 1;
      }
    }
    if (partial != nullptr) {
      if (!b.first) add_partial<Rows, Vectors>(sum, partial);
      if (!b.last) return store_sums<Rows, Vectors>(sum, partial);
    }
    if (Epilogue::is_plain(b.to) && b.cols == Vectors * kLanes) return store_rows<Rows, Vectors>(sum, b, t);
    alignas(64) float sums[Rows * NR];
    store_sums<Rows, Vectors>(sum, sums);
    Epilogue::write(sums, NR, t.rows[0], b.cols, moved_point<Epilogue>(b.to, t.d[0]));
    if (Rows > kHalf) Epilogue::write(sums + kHalf * NR, NR, t.rows[1], b.cols, moved_point<Epilogue>(b.to, t.d[1]));
  }

  template <int Rows, int Vectors>
  static KW_CPU_INLINE void add_partial(vec (&sum)[Rows][Vectors], const float* partial) {
    KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
      KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) {
        sum[i][v] = Operation::add_sums(sum[i][v], load(partial + i * NR + v * kLanes));
      }
    }
  }

  template <int Rows, int Vectors>
  static KW_CPU_INLINE void store_sums(const vec (&sum)[Rows][Vectors], float* sums) {
    KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
      KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) store(sums + i * NR + v * kLanes, sum[i][v]);
    }
  }

  template <int Rows, int Vectors>
  static KW_CPU_INLINE void store_rows(const vec (&sum)[Rows][Vectors], const taps_block& b, const pixel_tile& t) {
    const vec alpha = broadcast(b.to.alpha), beta = broadcast(b.to.beta);
    const bool reads_c = b.to.beta != 0.0f;
    const storage* c = static_cast<const storage*>(b.to.c);
    storage* d = static_cast<storage*>(b.to.d);
    KW_CPU_UNROLL for (int i = 0; i < Rows; ++i) {
      const int64_t line = i < kHalf ? t.d[0] + i * b.to.ldc : t.d[1] + (i - kHalf) * b.to.ldc;
      KW_CPU_UNROLL for (int v = 0; v < Vectors; ++v) {
        const int64_t at = line + v * kLanes;
        const vec value = mul(alpha, sum[i][v]);
        Output::store_float(d + at, reads_c ? fma(beta, Output::load_float(c + at), value) : value);
      }
    }
  }

  using blocks = register_blocks<taps_multiplier, tile_function, kVectors, MR>;
  friend blocks;
  static constexpr blocks kTable{};
};

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_CONVOLUTION_MICRO_TAPS_HPP
