// From the sums in registers to memory: scale, add what the result was, bias and residual, activate, convert, store.
//
// All of it happens in registers, where each lane has pairs of neighbouring columns. A warp then turns 16 rows of 64
// columns in shared memory, so that results are stored in lines of 128 bytes.
#pragma once

#include <cute/tensor.hpp>

#include "kernelwright/cuda/common/activation.hpp"
#include "kernelwright/cuda/convolution/loads.hpp"
#include "kernelwright/cuda/convolution/vectors.hpp"

namespace kernelwright::cuda::conv {

constexpr int kRows = 16;           // of a warp in a block of 64 rows
constexpr int kPairs = kStep / 8;   // of a lane in a row
constexpr int kLine = kStep + 8;    // staged elements: lines 144 bytes apart are in different banks
constexpr int kVector = 8;          // elements that a lane stores
constexpr int kPasses = kRows / 4;  // of 4 lines of a warp
constexpr int kStagedBytes = kRows * kLine * 2;

// 64 columns: where they lie in a line of the result, how many are valid, and the number of the first channel.
struct column_block {
  int64_t at;
  int valid, channel;
};

// Two numbers, rounded to nearest, the first one in the lower half.
template <class Element>
CUTLASS_DEVICE uint32_t narrow(float first, float second) {
  uint32_t both;
  if constexpr (cute::is_same_v<Element, cutlass::half_t>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  }
  return both;
}

template <class Config>
struct epilogue {
  using element = typename Config::element;

  // What a lane has of 16 rows of 64 columns: two rows, 8 lines apart, of pairs.
  struct fragment {
    float2 pairs[2][kPairs];
    int64_t line[2];  // of both rows; negative: not stored
  };

  template <class Function>
  CUTLASS_DEVICE static void each(Function function) {
    CUTLASS_PRAGMA_UNROLL
    for (int half = 0; half < 2; ++half) {
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < kPairs; ++i) function(half, i);
    }
  }

  CUTLASS_DEVICE static int column(int pair) { return 8 * pair + 2 * (threadIdx.x % 4); }

  // Where the line of a row begins; negative for rows that are not stored.
  CUTLASS_DEVICE static int64_t line_of(const kw_cuda_conv_shape& s, const tile_of& tile, int row) {
    if (row >= s.rows) return -1;
    if constexpr (Config::weight) {
      return (static_cast<int64_t>(tile.group) * s.k + row) * s.filter_points * s.c;
    } else {
      if (s.row) return row * s.row;
      const grid_point found = locate(s, row);
      int64_t at = found.image * s.image;
      bool inside = true;
      for (int i = 0; i < 3; ++i) {
        const int point = found.at[i] * s.axis[i].residues + tile.residue[i];
        inside = inside && point < s.axis[i].written;
        at += point * s.point[i];
      }
      return inside ? at : -1;
    }
  }

  CUTLASS_DEVICE static column_block columns_of(const kw_cuda_conv_shape& s, const tile_of& tile, int part) {
    const int number = tile.n * (Config::tile_n / kStep) + part;
    if constexpr (Config::weight) {
      int point = number;
      const int channel = split_off(s.blocks_of_point, &point) * kStep;
      return {static_cast<int64_t>(point) * s.c + channel, point < s.filter_points ? s.c - channel : 0, channel};
    } else {
      const int channel = tile.group * s.columns + number * kStep;
      return {channel, s.columns - number * kStep, channel};
    }
  }

  // Two neighbours in fp32, in one access where lines are aligned.
  CUTLASS_DEVICE static float2 read(const element* from, bool second, bool aligned) {
    struct alignas(4) both {
      element x, y;
    };
    if (aligned && second) {
      const both two = *reinterpret_cast<const both*>(from);
      return {static_cast<float>(two.x), static_cast<float>(two.y)};
    }
    return {static_cast<float>(from[0]), second ? static_cast<float>(from[1]) : 0.0f};
  }

  // Adds factor times a tensor of the result's shape.
  CUTLASS_DEVICE static void add(const kw_cuda_conv_params& p, const void* from, float factor,
                                 const column_block& block, fragment& f) {
    each([&](int half, int i) {
      if (f.line[half] < 0 || column(i) >= block.valid) return;
      const auto* const at = static_cast<const element*>(from) + f.line[half] + block.at + column(i);
      const float2 more = read(at, column(i) + 1 < block.valid, p.vectors);
      f.pairs[half][i].x += factor * more.x;
      f.pairs[half][i].y += factor * more.y;
    });
  }

  CUTLASS_DEVICE static void add_bias(const kw_cuda_conv_params& p, const column_block& block, fragment& f) {
    const auto* const bias = static_cast<const element*>(p.bias) + block.channel;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < kPairs; ++i) {
      if (column(i) >= block.valid) continue;
      const float2 more = read(bias + column(i), column(i) + 1 < block.valid, false);
      CUTLASS_PRAGMA_UNROLL
      for (int half = 0; half < 2; ++half) {
        f.pairs[half][i].x += more.x;
        f.pairs[half][i].y += more.y;
      }
    }
  }

  CUTLASS_DEVICE static void finish(const kw_cuda_conv_params& p, const column_block& block, fragment& f) {
    using act = typename Config::activation;
    if (p.alpha != 1.0f) {
      each([&](int half, int i) {
        f.pairs[half][i].x *= p.alpha;
        f.pairs[half][i].y *= p.alpha;
      });
    }
    if (p.beta != 0.0f) add(p, p.d, p.beta, block, f);
    if (Config::bias && p.bias != nullptr) add_bias(p, block, f);
    if (Config::residual && p.residual != nullptr) add(p, p.residual, 1.0f, block, f);
    if constexpr (!cutlass::platform::is_same<act, function::any>::value) {
      activate<act>(f);
    } else if (p.activation == KW_ACTIVATION_RELU) {
      activate<function::relu>(f);
    } else if (__builtin_expect(p.activation == KW_ACTIVATION_SILU, 0)) {
      activate<function::silu>(f);
    } else if (__builtin_expect(p.activation != KW_ACTIVATION_NONE, 0)) {
      activate_in_turns(p.activation, f);
    }
  }

  template <class Activation>
  CUTLASS_DEVICE static void activate(fragment& f) {
    each([&](int half, int i) {
      f.pairs[half][i] = {Activation::of(f.pairs[half][i].x), Activation::of(f.pairs[half][i].y)};
    });
  }

  // The others, one pair of each row after the other: unrolled, all of them for each block of a tile would not stay in
  // the cache of instructions. Pairs turn round, for registers have no numbers at run time.
  CUTLASS_DEVICE static void activate_in_turns(uint32_t activation, fragment& f) {
    CUTLASS_PRAGMA_NO_UNROLL
    for (int turn = 0; turn < kPairs; ++turn) {
      CUTLASS_PRAGMA_UNROLL
      for (int half = 0; half < 2; ++half) {
        float2 first = f.pairs[half][0];
        with_activation<function::any>(activation, [&](auto act) { first = {act.of(first.x), act.of(first.y)}; });
        CUTLASS_PRAGMA_UNROLL
        for (int i = 0; i + 1 < kPairs; ++i) f.pairs[half][i] = f.pairs[half][i + 1];
        f.pairs[half][kPairs - 1] = first;
      }
    }
  }

  // 16 rows through shared memory. lane i < 16 knows the line of row i.
  CUTLASS_DEVICE static void store_lines(const kw_cuda_conv_params& p, const fragment& f, int64_t line,
                                         const column_block& block, element* staged) {
    const int lane = threadIdx.x % 32, first = lane % 8 * kVector;
    __syncwarp();  // the lines before have been read
    each([&](int half, int i) {
      auto* const to = staged + (lane / 4 + 8 * half) * kLine + column(i);
      *reinterpret_cast<uint32_t*>(to) = narrow<element>(f.pairs[half][i].x, f.pairs[half][i].y);
    });
    __syncwarp();
    int64_t at[kPasses];
    vector_16 values[kPasses];
    CUTLASS_PRAGMA_UNROLL
    for (int pass = 0; pass < kPasses; ++pass) {
      at[pass] = __shfl_sync(~0u, line, pass * 4 + lane / 8);
      values[pass] = load_shared(staged + (pass * 4 + lane / 8) * kLine + first);
    }
    element* const to = static_cast<element*>(p.d) + block.at + first;
    if (p.vectors && first + kVector <= block.valid) {
      CUTLASS_PRAGMA_UNROLL
      for (int pass = 0; pass < kPasses; ++pass) {
        if (at[pass] >= 0) store_global(to + at[pass], values[pass]);
      }
    } else {
      CUTLASS_PRAGMA_UNROLL
      for (int pass = 0; pass < kPasses; ++pass) {
        if (at[pass] < 0) continue;
        const element* const from = staged + (pass * 4 + lane / 8) * kLine + first;
        CUTLASS_PRAGMA_NO_UNROLL
        for (int i = 0; i < kVector && first + i < block.valid; ++i) to[at[pass] + i] = from[i];
      }
    }
  }

  // Sums in fp32, whole sectors of 32 bytes straight from the registers of four lanes: a slice of backward weight, or
  // backward data whose channels are yet to be unfolded.
  CUTLASS_DEVICE static void store_slice(const kw_cuda_conv_params& p, const tile_of& tile, const fragment& f,
                                         const column_block& block) {
    const kw_cuda_conv_shape& s = p.shape;
    const int64_t slice = static_cast<int64_t>(s.groups.divisor) * s.k * s.filter_points * s.c;
    float* const out = static_cast<float*>(p.d) + (Config::weight ? tile.part * slice : 0) + block.at;
    const bool even = s.c % 2 == 0;
    each([&](int half, int i) {
      if (f.line[half] < 0 || column(i) >= block.valid) return;
      float* const to = out + f.line[half] + column(i);
      if (even) {
        store_global(to, f.pairs[half][i]);
      } else {
        to[0] = f.pairs[half][i].x;
        if (column(i) + 1 < block.valid) to[1] = f.pairs[half][i].y;
      }
    });
  }

  template <class Sums>
  CUTLASS_DEVICE static void store(const kw_cuda_conv_params& p, const tile_of& tile, const Sums& sums, int warp_group,
                                   char* staging) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    CUTLASS_PRAGMA_UNROLL
    for (int block_m = 0; block_m < cute::size<1>(Sums{}); ++block_m) {
      const int row = tile.m * Config::tile_m + (block_m * Config::groups_per_tile + warp_group) * 64 + warp * kRows;
      const int64_t line = line_of(p.shape, tile, row + lane % kRows);
      fragment f;
      f.line[0] = __shfl_sync(~0u, line, lane / 4);
      f.line[1] = __shfl_sync(~0u, line, lane / 4 + 8);
      CUTLASS_PRAGMA_UNROLL
      for (int part = 0; part < Config::tile_n / kStep; ++part) {
        const column_block block = columns_of(p.shape, tile, part);
        if (block.valid <= 0) continue;
        each([&](int half, int i) {
          f.pairs[half][i] = {sums(cute::make_coord(0, half, part * kPairs + i), block_m, 0),
                              sums(cute::make_coord(1, half, part * kPairs + i), block_m, 0)};
        });
        if ((Config::weight || Config::data) && p.slices) {
          store_slice(p, tile, f, block);
        } else {
          finish(p, block, f);
          store_lines(p, f, line, block, reinterpret_cast<element*>(staging));
        }
      }
    }
  }
};

}  // namespace kernelwright::cuda::conv
