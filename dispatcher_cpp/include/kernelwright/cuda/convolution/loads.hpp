// The loading warp: one TMA copy after the other, as far ahead of the multiplications as shared memory reaches.
#pragma once

#include <cutlass/arch/barrier.h>

#include <cute/arch/copy_sm90_tma.hpp>

#include "kernelwright/cuda/convolution/tile.hpp"

namespace kernelwright::cuda::conv {

constexpr int kStep = KW_CUDA_CONV_STEP;
constexpr int kBlockBytes = kStep * kStep * 2;  // of 64 rows of 64 elements

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

CUTLASS_DEVICE void load_matrix(const CUtensorMap& map, uint64_t* barrier, void* to, int c0, int c1, int c2,
                                   int c3) {
  cute::SM90_TMA_LOAD_4D::copy(&map, barrier, static_cast<uint64_t>(cute::TMA::CacheHintSm90::EVICT_NORMAL), to, c0, c1,
                               c2, c3);
}

// Forward and backward data: image points of a tile's rows against weights.
template <class Config, class Ring>
CUTLASS_DEVICE void load_sum_over_filter(const kw_cuda_conv_params& p, const tile_of& tile, Ring& ring, char* a, char* b) {
  constexpr bool forward = !Config::data;
  const kw_cuda_conv_shape& s = p.shape;
  const grid_point first = locate(s, tile.m * Config::tile_m);
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
          ring.expect(Config::a_bytes + Config::b_bytes);
          uint64_t* const barrier = ring.full + ring.stage();
          char* const to_a = a + ring.stage() * Config::a_bytes;
          char* const to_b = b + ring.stage() * Config::b_bytes;
          if (s.matrix) {
            load_matrix(p.a, barrier, to_a, channel + block * kStep, tile.m * Config::tile_m, 0, 0);
          } else {
            load_image(p.a, barrier, to_a, s, channel + block * kStep, start, first.image, offset);
          }
          if (forward) {
            load_matrix(p.b, barrier, to_b, block * kStep, point, column, tile.group);
          } else {
            for (int i = 0; i < Config::tile_n / kStep; ++i) {
              load_matrix(p.b, barrier, to_b + i * kBlockBytes, column + i * kStep, point, block * kStep, tile.group);
            }
          }
        }
      }
    }
  }
}

// Backward weight: dy against x, output points in steps. Blocks of columns have filter points of their own.
template <class Config, class Ring>
CUTLASS_DEVICE void load_sum_over_points(const kw_cuda_conv_params& p, const tile_of& tile, Ring& ring, char* a, char* b) {
  constexpr int blocks_a = Config::tile_m / kStep, blocks_b = Config::tile_n / kStep;
  const kw_cuda_conv_shape& s = p.shape;
  const int row = tile.m * Config::tile_m;
  int offset[blocks_b][3], channel[blocks_b];
  int rows = (s.rows - row + kStep - 1) / kStep, columns = s.columns / kStep - tile.n * blocks_b;
  rows = rows < blocks_a ? rows : blocks_a;
  columns = columns < blocks_b ? columns : blocks_b;
#pragma unroll
  for (int i = 0; i < blocks_b; ++i) {
    int point = tile.n * blocks_b + i;
    channel[i] = tile.group * s.group_b + split_off(s.blocks_of_point, &point) * kStep;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      offset[i][axis] = point % s.axis[axis].filter * s.axis[axis].move;
      point /= s.axis[axis].filter;
    }
  }
  const int none[3] = {0, 0, 0}, steps = steps_of<true>(s, tile);
  for (int step = 0; step < steps; ++step, ++ring.step) {
    const grid_point first = locate(s, (tile.part * s.of_slice + step) * kStep);
    int start[3];
    for (int i = 0; i < 3; ++i) start[i] = first.at[i] * s.axis[i].traverse + s.axis[i].lower;
    ring.wait_empty();
    ring.expect(static_cast<uint32_t>(rows + columns) * kBlockBytes);
    uint64_t* const barrier = ring.full + ring.stage();
    char* const to_a = a + ring.stage() * Config::a_bytes;
    char* const to_b = b + ring.stage() * Config::b_bytes;
#pragma unroll
    for (int i = 0; i < blocks_a; ++i) {
      if (i >= rows) break;
      load_image(p.a, barrier, to_a + i * kBlockBytes, s, tile.group * s.group_a + row + i * kStep, first.at, first.image,
                 none);
    }
#pragma unroll
    for (int i = 0; i < blocks_b; ++i) {
      if (i < columns) load_image(p.b, barrier, to_b + i * kBlockBytes, s, channel[i], start, first.image, offset[i]);
    }
  }
}

template <class Config, class Ring>
CUTLASS_DEVICE void load_tile(const kw_cuda_conv_params& p, const tile_of& tile, Ring& ring, char* a, char* b) {
  if constexpr (Config::weight) {
    load_sum_over_points<Config>(p, tile, ring, a, b);
  } else {
    load_sum_over_filter<Config>(p, tile, ring, a, b);
  }
}

}  // namespace kernelwright::cuda::conv
