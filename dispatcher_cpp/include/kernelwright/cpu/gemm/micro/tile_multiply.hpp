// Products by AMX: tiles of 16 rows by 16 units of 4 bytes, and what packs A for them.
//
// Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1 chapter 18 (tiles and their
// configuration) and volume 2 (TDPBF16PS, TDPBSSD). TDPBF16PS treats subnormal inputs and results as zero and rounds to
// nearest even, whatever MXCSR says; TDPBSSD wraps at 2^31.
#ifndef KERNELWRIGHT_CPU_GEMM_MICRO_TILE_MULTIPLY_HPP
#define KERNELWRIGHT_CPU_GEMM_MICRO_TILE_MULTIPLY_HPP

#include "kernelwright/cpu/gemm/micro/multiply.hpp"

#if defined(__AMX_TILE__)

namespace kernelwright::cpu {
namespace {

constexpr int kTile = 16;  // rows of a tile, and units of 4 bytes in each

// The state of tiles belongs to a thread and to nobody for long: whoever multiplies sets it up, and clears it so that a
// change of threads need not save it.
struct tile_state {
  static void enter() {
    struct {
      uint8_t palette, start_row, reserved[14];
      uint16_t row_bytes[16];
      uint8_t rows[16];
    } config = {};
    config.palette = 1;
    for (int i = 0; i < 8; ++i) {
      config.row_bytes[i] = kTile * 4;
      config.rows[i] = kTile;
    }
    _tile_loadconfig(&config);
  }
  static void leave() { _tile_release(); }
};

// Products of tiles by an intrinsic, which takes literals: GCC writes them into assembly.
#define KW_CPU_TILES(name, units, intrinsic)      \
  struct name : units, tile_state {               \
    static constexpr int kSteps = kTile;          \
                                                  \
    template <int Sum>                            \
    static KW_CPU_INLINE void multiply_add() {    \
      if constexpr (Sum == 0) intrinsic(0, 4, 6); \
      if constexpr (Sum == 1) intrinsic(1, 4, 7); \
      if constexpr (Sum == 2) intrinsic(2, 5, 6); \
      if constexpr (Sum == 3) intrinsic(3, 5, 7); \
    }                                             \
  }
#if defined(__AMX_BF16__)
KW_CPU_TILES(bf16_tiles, bf16_pairs, _tile_dpbf16ps);
#endif
#if defined(__AMX_INT8__)
KW_CPU_TILES(int8_tiles, int8_quads, _tile_dpbssd);
#endif
#undef KW_CPU_TILES

// A as tiles want it: for each 16 units along K the rows of a panel, each with its units side by side. What is missing
// at the edges is zero.
template <class Loader, bool AlongK, int Width>
struct pack_rows {
  static_assert(Width % kTile == 0 && kLanes == kTile, "a panel is whole tiles, and a row of a tile is a vector");
  using storage = typename Loader::storage;
  static constexpr int kDepth = Loader::kDepth, kValues = kTile * kDepth;

  static void panels(void* packed, const void* source, int64_t ld, int64_t count, int64_t depth) {
    const int64_t steps = round_up(divide_up(depth, kDepth), kTile);
    float* panel = static_cast<float*>(packed);
    const storage* from = static_cast<const storage*>(source);
    for (int64_t i = 0; i < count; i += Width, panel += panel_units(Width, steps)) {
      for (int64_t row = 0; row < Width && i + row < count; row += kTile) {
        const int64_t rows = count - i - row < kTile ? count - i - row : kTile;
        for (int64_t k = 0; k < depth; k += kValues) {
          float* tile = panel + k / kValues * (Width * kTile) + row * kTile;
          const int64_t values = depth - k < kValues ? depth - k : kValues;
          if constexpr (AlongK) {
            lines(tile, from + (i + row) * ld + k, ld, rows, values);
          } else {
            columns(tile, from + k * ld + i + row, ld, rows, values);
          }
        }
      }
    }
  }

 private:
  static KW_CPU_INLINE void lines(float* tile, const storage* from, int64_t ld, int64_t rows, int64_t values) {
    if (values == kValues) {
      for (int64_t i = 0; i < rows; ++i) store(tile + i * kTile, Loader::load_along_k(from + i * ld));
    } else {
      for (int64_t i = 0; i < rows; ++i) store(tile + i * kTile, Loader::load_first_along_k(from + i * ld, values));
    }
    for (int64_t i = rows; i < kTile; ++i) store(tile + i * kTile, zero());
  }

  static KW_CPU_INLINE void columns(float* tile, const storage* from, int64_t ld, int64_t rows, int64_t values) {
    vec units[kTile];
    if (rows == kTile && values == kValues) {
      KW_CPU_UNROLL for (int i = 0; i < kTile; ++i) units[i] = Loader::load_along_panel(from + i * kDepth * ld, ld);
    } else {
      storage copy[kValues][kTile] = {};
      for (int64_t k = 0; k < values; ++k) {
        for (int64_t j = 0; j < rows; ++j) copy[k][j] = from[k * ld + j];
      }
      KW_CPU_UNROLL for (int i = 0; i < kTile; ++i) units[i] = Loader::load_along_panel(copy[i * kDepth], kTile);
    }
    transpose(units);
    KW_CPU_UNROLL for (int i = 0; i < kTile; ++i) store(tile + i * kTile, units[i]);
  }
};

// MR x NR is the register block: up to 2 x 2 tiles of sums, 2 of A and 2 of B.
template <class Operation, class Epilogue, int MR, int NR>
class tile_multiplier {
  static_assert((MR == 16 || MR == 32) && (NR == 16 || NR == 32), "there are eight tiles");

 public:
  // Chunks of a panel of B stay in the first-level cache while some panels of A stream by; their sums stay there too.
  static void multiply(const block& b) {
    for (int64_t j = 0; j < b.cols; j += NR) {
      for (int64_t i = 0; i < b.rows; i += kGroup * MR) {
        const int64_t rows = b.rows - i < kGroup * MR ? b.rows - i : kGroup * MR;
        multiply_group(b, i, rows, j);
      }
    }
  }

 private:
  using Output = typename Epilogue::element;
  static constexpr int kGroup = 256 / MR;        // panels of A
  static constexpr int64_t kChunk = 128;         // units along K: 16 KiB of B in 32 columns
  static constexpr int64_t kLineBytes = NR * 4;  // of B, and of sums

  static void multiply_group(const block& b, int64_t row, int64_t rows, int64_t col) {
    alignas(64) float own[kGroup * MR * NR];
    const int64_t cols = b.cols - col < NR ? b.cols - col : NR;
    const float* panel_a = static_cast<const float*>(b.a) + row / MR * panel_units(MR, b.steps);
    const float* panel_b = static_cast<const float*>(b.b) + col / NR * panel_units(NR, b.steps);
    float* sums = own;
    int64_t sums_stride = MR * NR;
    bool adds = false;
    if (b.partial != nullptr) {
      sums = static_cast<float*>(b.partial) + row / MR * b.partial_panel_stride + col / NR * (MR * NR);
      sums_stride = b.partial_panel_stride;
      adds = !b.first;
    }
    int64_t k = 0;
    do {  // once where K is empty, for the zeros
      const int64_t steps = b.steps - k < kChunk ? b.steps - k : kChunk;
      for (int64_t i = 0; i < rows; i += MR) {
        const float* a = panel_a + i / MR * panel_units(MR, b.steps) + k * MR;
        float* to = sums + i / MR * sums_stride;
        sum(rows - i, cols, a, panel_b + k * NR, steps, to, adds || k != 0);
      }
      k += steps;
    } while (k < b.steps);
    if (b.partial != nullptr && !b.last) return;
    for (int64_t i = 0; i < rows; i += MR) {
      const float* from = sums + i / MR * sums_stride;
      const int64_t count = rows - i < MR ? rows - i : MR;
      const output to = moved<Epilogue>(b.to, row + i, col);
      if constexpr (!Epilogue::kPlain && Operation::kSumDtype == KW_FP32) {
        if (!b.last) {
          epilogue<Output>::write(from, NR, count, cols, to);
          continue;
        }
      }
      Epilogue::write(from, NR, count, cols, to);
    }
  }

  static KW_CPU_INLINE void sum(int64_t rows, int64_t cols, const float* a, const float* b, int64_t steps, float* sums,
                                bool adds) {
    if (MR > kTile && rows > kTile) {
      NR > kTile&& cols > kTile ? run<2, 2>(a, b, steps, sums, adds) : run<2, 1>(a, b, steps, sums, adds);
    } else {
      NR > kTile&& cols > kTile ? run<1, 2>(a, b, steps, sums, adds) : run<1, 1>(a, b, steps, sums, adds);
    }
  }

  // Sums of TilesM x TilesN tiles; A is MR rows of 16 units for each 16 steps along K, B is 16 lines of NR.
  template <int TilesM, int TilesN>
  static void run(const float* a, const float* b, int64_t steps, float* sums, bool adds) {
    if (adds) {
      _tile_loadd(0, sums, kLineBytes);
      if constexpr (TilesN > 1) _tile_loadd(1, sums + kTile, kLineBytes);
      if constexpr (TilesM > 1) _tile_loadd(2, sums + kTile * NR, kLineBytes);
      if constexpr (TilesM > 1 && TilesN > 1) _tile_loadd(3, sums + kTile * NR + kTile, kLineBytes);
    } else {
      _tile_zero(0);
      if constexpr (TilesN > 1) _tile_zero(1);
      if constexpr (TilesM > 1) _tile_zero(2);
      if constexpr (TilesM > 1 && TilesN > 1) _tile_zero(3);
    }
    for (; steps > 0; steps -= kTile, a += MR * kTile, b += NR * kTile) {
      _tile_loadd(6, b, kLineBytes);
      _tile_loadd(4, a, kTile * 4);
      Operation::template multiply_add<0>();
      if constexpr (TilesN > 1) {
        _tile_loadd(7, b + kTile, kLineBytes);
        Operation::template multiply_add<1>();
      }
      if constexpr (TilesM > 1) {
        _tile_loadd(5, a + kTile * kTile, kTile * 4);
        Operation::template multiply_add<2>();
        if constexpr (TilesN > 1) Operation::template multiply_add<3>();
      }
    }
    _tile_stored(0, sums, kLineBytes);
    if constexpr (TilesN > 1) _tile_stored(1, sums + kTile, kLineBytes);
    if constexpr (TilesM > 1) _tile_stored(2, sums + kTile * NR, kLineBytes);
    if constexpr (TilesM > 1 && TilesN > 1) _tile_stored(3, sums + kTile * NR + kTile, kLineBytes);
  }
};

}  // namespace
}  // namespace kernelwright::cpu

#endif  // defined(__AMX_TILE__)

#endif  // KERNELWRIGHT_CPU_GEMM_MICRO_TILE_MULTIPLY_HPP
