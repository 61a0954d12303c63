// From the sums in registers to memory: scale, add what the result was, bias and residual, activate, convert, store.
//
// A warp stages 16 rows of 32 columns in fp32 and stores them line by line, so operands of the epilogue are read, and
// results written, in whole vectors.
#pragma once

#include <cute/tensor.hpp>

#include "kernelwright/cuda/common/activation.hpp"
#include "kernelwright/cuda/convolution/loads.hpp"

namespace kernelwright::cuda::conv {

constexpr int kColumns = 32;          // that are staged at a time
constexpr int kLine = kColumns + 8;   // floats: pairs of four neighbouring lines are in different banks
constexpr int kRows = 16;             // of a warp in a block of 64 rows
constexpr int kVector = 8;            // elements that a lane stores
constexpr int kStagedBytes = kRows * kLine * 4;

// Staged columns: where they lie in a line of the result, how many are valid, and the number of the first channel.
struct column_block {
  int64_t at;
  int valid, channel;
};

template <class Config>
struct epilogue {
  using element = typename Config::element;
  struct alignas(16) vector {
    element values[kVector];
  };

  // Where the line of a row begins; negative for rows that are not stored.
  CUTLASS_DEVICE static int64_t line_of(const kw_cuda_conv_shape& s, const tile_of& tile, int row) {
    if (row >= s.rows) return -1;
    if constexpr (Config::weight) {
      return (static_cast<int64_t>(tile.group) * s.k + row) * s.filter_points * s.c;
    } else {
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

  CUTLASS_DEVICE static column_block columns_of(const kw_cuda_conv_shape& s, const tile_of& tile, int column) {
    const int number = tile.n * Config::tile_n + column;
    if constexpr (Config::weight) {
      int point = number / kStep;
      const int channel = split_off(s.blocks_of_point, &point) * kStep + number % kStep;
      return {static_cast<int64_t>(point) * s.c + channel, point < s.filter_points ? s.c - channel : 0, channel};
    } else {
      const int channel = tile.group * s.columns + number;
      return {channel, s.columns - number, channel};
    }
  }

  // Adds factor times up to kVector elements to values.
  CUTLASS_DEVICE static void add(float* values, const element* from, int count, bool vectors, float factor) {
    if (vectors && count >= kVector) {
      const vector whole = *reinterpret_cast<const vector*>(from);
#pragma unroll
      for (int i = 0; i < kVector; ++i) values[i] += factor * static_cast<float>(whole.values[i]);
    } else {
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        if (i < count) values[i] += factor * static_cast<float>(from[i]);
      }
    }
  }

  CUTLASS_DEVICE static void store_vector(const kw_cuda_conv_params& p, float* values, int64_t at, int channel, int count) {
    element* const to = static_cast<element*>(p.d) + at;
#pragma unroll
    for (int i = 0; i < kVector; ++i) values[i] *= p.alpha;
    if (p.beta != 0.0f) add(values, to, count, p.vectors, p.beta);
    if constexpr (Config::bias) add(values, static_cast<const element*>(p.bias) + channel, count, false, 1.0f);
    if constexpr (Config::residual) {
      add(values, static_cast<const element*>(p.residual) + at, count, p.vectors, 1.0f);
    }
    vector whole;
#pragma unroll
    for (int i = 0; i < kVector; ++i) whole.values[i] = static_cast<element>(Config::activation::of(values[i]));
    if (p.vectors && count >= kVector) {
      *reinterpret_cast<vector*>(to) = whole;
    } else {
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        if (i < count) to[i] = whole.values[i];
      }
    }
  }

  CUTLASS_DEVICE static void store_slice(const kw_cuda_conv_params& p, const tile_of& tile, const float* values, int64_t at,
                                     int count) {
    const kw_cuda_conv_shape& s = p.shape;
    const int64_t slice = static_cast<int64_t>(s.groups.divisor) * s.k * s.filter_points * s.c;
    float* const to = static_cast<float*>(p.d) + tile.part * slice + at;
    if (s.c % 4 == 0 && count >= kVector) {
      reinterpret_cast<float4*>(to)[0] = {values[0], values[1], values[2], values[3]};
      reinterpret_cast<float4*>(to)[1] = {values[4], values[5], values[6], values[7]};
    } else {
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        if (i < count) to[i] = values[i];
      }
    }
  }

  // Staged lines to memory. lane i < 16 knows the line of row i.
  CUTLASS_DEVICE static void copy_out(const kw_cuda_conv_params& p, const tile_of& tile, const float* staged, int64_t line,
                                  const column_block& block) {
    const int lane = threadIdx.x % 32, column = lane % 4 * kVector, count = block.valid - column;
#pragma unroll 1
    for (int row = lane / 4; row < kRows; row += 8) {
      const int64_t at = __shfl_sync(~0u, line, row);
      if (at < 0 || count <= 0) continue;
      const auto* const from = reinterpret_cast<const float4*>(staged + row * kLine + column);
      const float4 left = from[0], right = from[1];
      float values[kVector] = {left.x, left.y, left.z, left.w, right.x, right.y, right.z, right.w};
      if (Config::weight && p.slices) {
        store_slice(p, tile, values, at + block.at + column, count);
      } else {
        store_vector(p, values, at + block.at + column, block.channel + column, count);
      }
    }
  }

  template <class Sums>
  CUTLASS_DEVICE static void store(const kw_cuda_conv_params& p, const tile_of& tile, const Sums& sums, int warp_group,
                               char* staging) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    auto* const staged = reinterpret_cast<float*>(staging);
    CUTLASS_PRAGMA_UNROLL
    for (int block_m = 0; block_m < cute::size<1>(Sums{}); ++block_m) {
      const int row = tile.m * Config::tile_m + (block_m * Config::groups_per_tile + warp_group) * 64 + warp * kRows;
      const int64_t line = line_of(p.shape, tile, row + lane % kRows);
      CUTLASS_PRAGMA_UNROLL
      for (int part = 0; part < Config::tile_n / kColumns; ++part) {
        const column_block block = columns_of(p.shape, tile, part * kColumns);
        if (block.valid <= 0) continue;
        CUTLASS_PRAGMA_UNROLL
        for (int half = 0; half < 2; ++half) {
          CUTLASS_PRAGMA_UNROLL
          for (int i = 0; i < kColumns / 8; ++i) {
            const int eighth = part * (kColumns / 8) + i;
            *reinterpret_cast<float2*>(staged + (lane / 4 + 8 * half) * kLine + 8 * i + 2 * (lane % 4)) = {
                sums(cute::make_coord(0, half, eighth), block_m, 0),
                sums(cute::make_coord(1, half, eighth), block_m, 0)};
          }
        }
        __syncwarp();
        copy_out(p, tile, staged, line, block);
        __syncwarp();
      }
    }
  }
};

}  // namespace kernelwright::cuda::conv
