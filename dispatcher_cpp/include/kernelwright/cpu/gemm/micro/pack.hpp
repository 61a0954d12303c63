// Copies blocks of A and B into panels of units, widening and transposing on the way, so that layouts cost nothing
// later.
#ifndef KERNELWRIGHT_CPU_GEMM_MICRO_PACK_HPP
#define KERNELWRIGHT_CPU_GEMM_MICRO_PACK_HPP

#include "kernelwright/cpu/gemm/kernel.hpp"
#include "kernelwright/cpu/gemm/micro/operation.hpp"

namespace kernelwright::cpu {
namespace {

// The source runs along K: A row-major, B column-major. kLanes source lines are transposed at a time. Panels have a
// multiple of Steps units along K, zeros behind the last values.
template <class Loader, int Width, int Steps = 1>
struct pack_along_k {
  using storage = typename Loader::storage;
  static constexpr int kDepth = Loader::kDepth;

  static void panels(void* packed, const void* source, int64_t ld, int64_t count, int64_t depth) {
    const int64_t steps = round_up(divide_up(depth, kDepth), Steps);
    float* panel = static_cast<float*>(packed);
    const storage* lines = static_cast<const storage*>(source);
    for (int64_t i = 0; i < count; i += Width, panel += panel_units(Width, steps), lines += Width * ld) {
      const int64_t left = count - i < Width ? count - i : Width;
      // The last group first: where it is not whole, its vectors reach over the first values of the next step.
      for (int group = (Width - 1) / kLanes * kLanes; group >= 0; group -= kLanes) {
        const int64_t used = left - group;
        const int64_t wanted = Width - group < kLanes ? Width - group : kLanes;
        if (used >= kLanes && wanted == kLanes) {
          lanes<kLanes>(panel + group, lines + group * ld, ld, kLanes, depth);
        } else if (used >= wanted) {
          lanes<Width % kLanes>(panel + group, lines + group * ld, ld, wanted, depth);
        } else if (used > 0) {
          lanes<0>(panel + group, lines + group * ld, ld, used, depth);
        } else {
          for (int64_t step = 0; step < steps; ++step) store(panel + group + step * Width, zero());
        }
      }
    }
  }

 private:
  // Up to kLanes lines, the others are zero; Full says at compile time how many, 0 = only `used` knows.
  template <int Full>
  static void lanes(float* panel, const storage* lines, int64_t ld, int64_t used, int64_t depth) {
    const int64_t lines_used = Full != 0 ? Full : used;
    const int64_t whole = depth / (kLanes * kDepth) * kLanes;  // units
    for (int64_t step = 0; step < whole; step += kLanes) {
      vec rows[kLanes];
      KW_CPU_UNROLL for (int i = 0; i < kLanes; ++i) {
        rows[i] = i < lines_used ? Loader::load_along_k(lines + i * ld + step * kDepth) : zero();
      }
      transpose(rows);
      KW_CPU_UNROLL for (int i = 0; i < kLanes; ++i) store(panel + (step + i) * Width, rows[i]);
    }
    const int64_t rest = depth - whole * kDepth;
    if (rest > 0) tail<Full>(panel + whole * Width, lines + whole * kDepth, ld, used, rest);
  }

  // The last values of K, which a vector would read beyond.
  template <int Full>
  static KW_CPU_INLINE void tail(float* panel, const storage* lines, int64_t ld, int64_t used, int64_t rest) {
    vec rows[kLanes];
    const int64_t lines_used = Full != 0 ? Full : used;
    KW_CPU_UNROLL for (int i = 0; i < kLanes; ++i) {
      rows[i] = i < lines_used ? Loader::load_first_along_k(lines + i * ld, rest) : zero();
    }
    transpose(rows);
    const int64_t steps = round_up(divide_up(rest, kDepth), Steps);
    KW_CPU_UNROLL for (int i = 0; i < kLanes; ++i) {
      if (i < steps) store(panel + i * Width, rows[i]);
    }
  }
};

// The source runs along the panel: A column-major, B row-major.
template <class Loader, int Width, int Steps = 1>
struct pack_along_panel {
  using storage = typename Loader::storage;
  static constexpr int kDepth = Loader::kDepth;

  static void panels(void* packed, const void* source, int64_t ld, int64_t count, int64_t depth) {
    const int64_t used = divide_up(depth, kDepth), steps = round_up(used, Steps);
    const int64_t whole = depth / kDepth;
    float* panel = static_cast<float*>(packed);
    const storage* values = static_cast<const storage*>(source);
    for (int64_t i = 0; i < count; i += Width, panel += panel_units(Width, steps), values += Width) {
      // Reads whole vectors, so a panel that is not one vector wide needs its neighbour to exist.
      const bool readable = count - i >= round_up(Width, kLanes);
      if (readable) {
        for (int64_t step = 0; step < whole; ++step) row(panel + step * Width, values + step * kDepth * ld, ld);
      } else {
        for (int64_t step = 0; step < whole; ++step) {
          edge(panel + step * Width, values + step * kDepth * ld, ld, count - i, kDepth);
        }
      }
      if (whole < used)
        edge(panel + whole * Width, values + whole * kDepth * ld, ld, count - i, depth - whole * kDepth);
      if constexpr (Steps > 1)
        __builtin_memset(panel + used * Width, 0, static_cast<size_t>((steps - used) * Width) * 4);
    }
  }

 private:
  static KW_CPU_INLINE void row(float* panel, const storage* values, int64_t ld) {
    KW_CPU_UNROLL for (int j = 0; j < Width; j += kLanes) {
      store(panel + j, Loader::load_along_panel(values + j, ld));
    }
  }

  static void edge(float* panel, const storage* values, int64_t ld, int64_t count, int64_t depth) {
    constexpr int kPadded = (Width + kLanes - 1) / kLanes * kLanes;
    storage copy[kDepth][kPadded] = {};
    const int64_t used = count < Width ? count : Width;
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t j = 0; j < used; ++j) copy[k][j] = values[k * ld + j];
    }
    row(panel, copy[0], kPadded);
  }
};

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_GEMM_MICRO_PACK_HPP
