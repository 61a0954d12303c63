// Stream-K: workgroups share the K tiles of all output tiles evenly; what is left of tiles at the borders of shares
// goes to the workspace and is added up by a second kernel, in an order that depends on nothing but the problem.
#ifndef KERNELWRIGHT_HIP_GEMM_STREAM_K_HPP
#define KERNELWRIGHT_HIP_GEMM_STREAM_K_HPP

#include "kernelwright/hip/gemm/finish.hpp"

namespace kernelwright::hip {

// K tiles counted over all tiles of all matrices, in their order. The first shares have one more than the others.
struct shares {
  int32_t loops; /* K tiles of a tile */
  int32_t share, more;

  CK_TILE_DEVICE shares(int32_t tiles, int32_t loops_, int32_t count)
      : loops(loops_), share(tiles * loops_ / count), more(tiles * loops_ % count) {}
  CK_TILE_DEVICE int32_t begin(int32_t index) const { return index * share + ck_tile::min(index, more); }
};

// Where a share leaves a tile that it does not have to itself: of these it has at most two, the one that an earlier
// share began and the one that it begins and a later share goes on with.
CK_TILE_DEVICE int64_t slot_of(int32_t share, bool begun_earlier) {
  return 2 * int64_t{share} + (begun_earlier ? 0 : 1);
}

// One after the other.
struct linear {
  template <class Vector, class Load>
  CK_TILE_DEVICE static Vector sum(int32_t count, Load load) {
    Vector total = load(0);
    for (int32_t i = 1; i < count; ++i) total = plus(total, load(i));
    return total;
  }
  template <class Vector>
  CK_TILE_DEVICE static Vector plus(Vector a, const Vector& b) {
    for (int i = 0; i < KW_HIP_SUM_VECTOR; ++i) a.element[i] += b.element[i];
    return a;
  }
};

// Neighbours in pairs, then pairs of pairs: errors grow with the logarithm of the count. Like carries of a binary
// number, level i holds the sum of 2^i parts where bit i of their number is set.
struct tree {
  static constexpr int levels = 16; /* more shares than any device gets */
  template <class Vector, class Load>
  CK_TILE_DEVICE static Vector sum(int32_t count, Load load) {
    Vector level[levels]{}, total{};
    for (int32_t i = 0; i < count; ++i) {
      total = load(i);
      bool carries = true;
#pragma unroll
      for (int at = 0; at < levels; ++at) {
        if (carries && (i >> at & 1) == 0) {
          level[at] = total;
          carries = false;
        } else if (carries) {
          total = linear::plus(level[at], total);
        }
      }
    }
    bool first = true;
#pragma unroll
    for (int at = 0; at < levels; ++at) {
      if ((count >> at & 1) == 0) continue;
      total = first ? level[at] : linear::plus(level[at], total);
      first = false;
    }
    return total;
  }
};

// KW_HIP_SUM_BLOCK vectors of the tile in which share `index` begins, if it does so within a tile and is the first one.
template <class T, class Tiles>
CK_TILE_DEVICE void sum_shares(kw_hip_gemm_arguments x) {
  using vector = sum_vector<typename T::acc>;
  constexpr int32_t tile_m = Tiles::MPerBlock, tile_n = Tiles::NPerBlock, per_row = tile_n / KW_HIP_SUM_VECTOR;
  constexpr int32_t blocks = (tile_m * per_row + KW_HIP_SUM_BLOCK - 1) / KW_HIP_SUM_BLOCK;
  const int32_t tiles = Tiles::GridSize(x.m, x.n);
  const shares work(tiles * x.batch, Tiles::GetLoopNum(x.k), x.shares);

  const auto block = static_cast<int32_t>(blockIdx.x);
  const int32_t index = block / blocks + 1, at = work.begin(index), first = at - at % work.loops;
  if (at == first || work.begin(index - 1) > first) return;
  int32_t last = index; /* the last share of this tile */
  while (last + 1 < x.shares && work.begin(last + 1) < first + work.loops) ++last;

  const int32_t number = first / work.loops, matrix = T::batched ? number / tiles : 0;
  if constexpr (T::batched) x = matrix_of_batch<T>(x, matrix);
  const auto tile = Tiles{x.m, x.n}.GetOutputTileIndex(number - matrix * tiles);
  const int32_t within = block % blocks * KW_HIP_SUM_BLOCK + static_cast<int32_t>(threadIdx.x);
  const int32_t tile_row = within / per_row, tile_column = within % per_row * KW_HIP_SUM_VECTOR;
  const int32_t row = tile.at(ck_tile::number<0>{}) * tile_m + tile_row;
  const int32_t column = tile.at(ck_tile::number<1>{}) * tile_n + tile_column;
  if (tile_row >= tile_m || row >= x.m || column >= x.n) return;

  const vector* slots = static_cast<const vector*>(x.partial) + within;
  const vector sum = T::stream_k::template sum<vector>(
      last - index + 2, [&](int32_t i) { return slots[slot_of(index - 1 + i, i > 0) * tile_m * per_row]; });
  finish_vector<T>(sum, x, row, column);
}

}  // namespace kernelwright::hip

#endif
