// The loading warps: one TMA copy after the other, as far ahead of the multiplications as shared memory reaches. They
// share the copies of a stage, because addresses of one copy take a thread longer than TMA needs for it.
#pragma once

#include <cutlass/arch/barrier.h>

#include <cute/arch/copy_sm90_tma.hpp>

#include "kernelwright/cuda/convolution/tile.hpp"

namespace kernelwright::cuda::conv {

constexpr int kStep = KW_CUDA_CONV_STEP;
constexpr int kBlockBytes = kStep * kStep * 2;  // of 64 rows of 64 elements
constexpr int kLoaders = 4;                     // warps that load

// The ring of stages that loads fill and multiplications empty.
template <int stages>
struct ring {
  uint64_t* full;
  uint64_t* empty;
  uint32_t step = 0;  // counts over all tiles of the workgroup

  CUTLASS_DEVICE int stage() const { return static_cast<int>(step % stages); }
  CUTLASS_DEVICE uint32_t phase() const { return step / stages & 1; }
  CUTLASS_DEVICE void wait_full() const { cutlass::arch::ClusterBarrier::wait(full + stage(), phase()); }
  // A barrier's first phase passes at once: all stages are empty to begin with.
  CUTLASS_DEVICE void wait_empty() const { cutlass::arch::ClusterBarrier::wait(empty + stage(), phase() ^ 1); }
  CUTLASS_DEVICE void expect(uint32_t bytes) const {
    cutlass::arch::ClusterTransactionBarrier::arrive_and_expect_tx(full + stage(), bytes);
  }
};

// kStep channels of consecutive outputs' image points, moved by `offset` points.
CUTLASS_DEVICE void load_image(const CUtensorMap& map, uint64_t* barrier, void* to, const kw_cuda_conv_shape& s,
                               int channel, const int* at, int image, const int* offset) {
  const auto w = static_cast<uint16_t>(offset[0]), h = static_cast<uint16_t>(offset[1]);
  if (s.volume) {
    cute::SM90_TMA_LOAD_IM2COL_5D::copy(&map, barrier, to, channel, at[0], at[1], at[2], image, w, h,
                                        static_cast<uint16_t>(offset[2]));
  } else {
    cute::SM90_TMA_LOAD_IM2COL_4D::copy(&map, barrier, to, channel, at[0], at[1], image, w, h);
  }
}

CUTLASS_DEVICE void load_matrix(const CUtensorMap& map, uint64_t* barrier, void* to, int c0, int c1, int c2, int c3) {
  cute::SM90_TMA_LOAD_4D::copy(&map, barrier, static_cast<uint64_t>(cute::TMA::CacheHintSm90::EVICT_NORMAL), to, c0, c1,
                               c2, c3);
}

// How many loaders announce bytes of a stage: of backward weight all that can have a block, otherwise the first.
template <class Config>
constexpr uint32_t announcing_loaders() {
  constexpr int blocks = (Config::tile_m + Config::tile_n) / kStep;
  return Config::weight ? (blocks < kLoaders ? blocks : kLoaders) : 1;
}

// Forward and backward data: image points of a tile's rows against weights. The first loader brings the image points.
template <class Config, class Ring>
CUTLASS_DEVICE void load_sum_over_filter(const kw_cuda_conv_params& p, const tile_of& tile, Ring& ring, char* a,
                                         char* b, int loader) {
  constexpr bool forward = !Config::data;
  constexpr int blocks_b = forward ? 1 : Config::tile_n / kStep;
  if (loader > blocks_b) return;
  const kw_cuda_conv_shape& s = p.shape;
  const grid_point first = locate(s, s.matrix ? 0 : tile.m * Config::tile_m);
  int start[3], offset[3];
  for (int i = 0; i < 3; ++i) start[i] = first.at[i] * s.axis[i].traverse + s.axis[i].lower;
  const kw_cuda_conv_taps taps[3] = {tile.taps(s, 0), tile.taps(s, 1), tile.taps(s, 2)};
  const int channel = tile.group * s.group_a, column = tile.n * Config::tile_n;
  for (int d = 0; d < taps[2].count; ++d) {
    for (int h = 0; h < taps[1].count; ++h) {
      for (int w = 0; w < taps[0].count; ++w) {
        const int at[3] = {w, h, d};
        int point = 0;
        for (int i = 2; i >= 0; --i) {
          offset[i] = taps[i].offset + at[i] * s.axis[i].move;
          point = point * s.axis[i].filter + taps[i].first + at[i] * s.axis[i].step;
        }
        for (int block = 0; block < s.blocks; ++block, ++ring.step) {
          ring.wait_empty();
          uint64_t* const barrier = ring.full + ring.stage();
          char* const to_a = a + ring.stage() * Config::a_bytes;
          char* const to_b = b + ring.stage() * Config::b_bytes;
          if (loader == 0) {
            ring.expect(Config::a_bytes + Config::b_bytes);
            if (s.matrix) {
              load_matrix(p.a, barrier, to_a, channel + block * kStep, tile.m * Config::tile_m, 0, 0);
            } else {
              load_image(p.a, barrier, to_a, s, channel + block * kStep, start, first.image, offset);
            }
          } else if (forward) {
            load_matrix(p.b, barrier, to_b, block * kStep, point, column, tile.group);
          } else {
            for (int i = loader - 1; i < blocks_b; i += kLoaders - 1) {
              load_matrix(p.b, barrier, to_b + i * kBlockBytes, column + i * kStep, point, block * kStep, tile.group);
            }
          }
        }
      }
    }
  }
}

// Backward weight: dy against x, output points in steps. Blocks of columns have filter points of their own. A loader
// has every kLoaders-th block of a stage. Each announces its own bytes, also none: a stage is full when all of them
// came by, so that a loader without blocks at the edge of the result cannot fall a round behind the others.
struct weight_block {
  bool from_x, matrix, exists;
  int channel, to;  // bytes from the beginning of the stage of its operand
  int offset[3];
};

template <class Config>
CUTLASS_DEVICE weight_block weight_block_of(const kw_cuda_conv_shape& s, const tile_of& tile, int number) {
  constexpr int blocks_a = Config::tile_m / kStep, blocks_b = Config::tile_n / kStep;
  weight_block block = {number >= blocks_a, false, false, 0, 0, {0, 0, 0}};
  if (!block.from_x) {
    const int row = tile.m * Config::tile_m + number * kStep;
    block.matrix = s.matrix;
    block.exists = row < s.rows;
    block.channel = tile.group * s.group_a + row;
    block.to = number * kBlockBytes;
    return block;
  }
  const int column = number - blocks_a;
  int point = tile.n * blocks_b + column;
  block.matrix = s.matrix_b;
  block.exists = number < blocks_a + blocks_b && point < s.columns / kStep;
  block.to = column * kBlockBytes;
  block.channel = tile.group * s.group_b + split_off(s.blocks_of_point, &point) * kStep;
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) {
    block.offset[axis] = point % s.axis[axis].filter * s.axis[axis].move;
    point /= s.axis[axis].filter;
  }
  return block;
}

template <class Config, class Ring>
CUTLASS_DEVICE void load_sum_over_points(const kw_cuda_conv_params& p, const tile_of& tile, Ring& ring, char* a,
                                         char* b, int loader) {
  constexpr int blocks = (Config::tile_m + Config::tile_n) / kStep, most = (blocks + kLoaders - 1) / kLoaders;
  const kw_cuda_conv_shape& s = p.shape;
  if (loader >= blocks) return;
  weight_block mine[most];
#pragma unroll
  for (int i = 0; i < most; ++i) mine[i] = weight_block_of<Config>(s, tile, loader + i * kLoaders);
  uint32_t bytes = 0;
#pragma unroll
  for (int i = 0; i < most; ++i) bytes += mine[i].exists ? kBlockBytes : 0;
  const int steps = steps_of<true>(s, tile);
  for (int step = 0; step < steps; ++step, ++ring.step) {
    const int row = (tile.part * s.of_slice + step) * kStep;
    const grid_point first = locate(s, row);
    ring.wait_empty();
    uint64_t* const barrier = ring.full + ring.stage();
    ring.expect(bytes);
#pragma unroll
    for (int i = 0; i < most; ++i) {
      const weight_block& block = mine[i];
      if (!block.exists) continue;
      int at[3];
#pragma unroll
      for (int j = 0; j < 3; ++j) {
        at[j] = block.from_x ? first.at[j] * s.axis[j].traverse + s.axis[j].lower : first.at[j];
      }
      char* const to =
          (block.from_x ? b + ring.stage() * Config::b_bytes : a + ring.stage() * Config::a_bytes) + block.to;
      const CUtensorMap& map = block.from_x ? p.b : p.a;
      if (block.matrix) {
        load_matrix(map, barrier, to, block.channel, row, 0, 0);
      } else {
        load_image(map, barrier, to, s, block.channel, at, first.image, block.offset);
      }
    }
  }
}

template <class Config, class Ring>
CUTLASS_DEVICE void load_tile(const kw_cuda_conv_params& p, const tile_of& tile, Ring& ring, char* a, char* b,
                              int loader) {
  if constexpr (Config::weight) {
    load_sum_over_points<Config>(p, tile, ring, a, b, loader);
  } else {
    load_sum_over_filter<Config>(p, tile, ring, a, b, loader);
  }
}

}  // namespace kernelwright::cuda::conv
