// One tile of a forward kernel: a run of queries of one head of a request, and which keys they see.
#pragma once

#include <cutlass/cutlass.h>
#include <cutlass/fast_math.h>

#include <cstdint>

namespace kernelwright::cuda::attention {

constexpr int64_t edge = int64_t(1) << 30;  // there are fewer rows

// Rows of a request and where they begin: `start` counts rows of the packed tensor in group mode, else from 0.
struct rows {
  int32_t start, count;
};

// What producer and consumers of a workgroup exchange for each tile. request < 0: no tile is left.
struct alignas(16) tile {
  int32_t request, index, head, kv_head;
  rows q, k;
};

// The keys that queries see, as kw_attention_problem describes them. -1: no bound.
struct window {
  int32_t left, right;
  int32_t bottom_right;  // 1: the last query stands at the last key
};

// Query i sees the keys from i + right - left to i + right: `right` is where the last key of query 0 is, and `left` how
// many keys lie before it.
struct band {
  int32_t right, left;

  CUTLASS_DEVICE static band of(window const& w, tile const& t) {
    const int64_t place = w.bottom_right ? int64_t(t.k.count) - t.q.count : 0;
    const int64_t last = w.right < 0 ? t.k.count : cutlass::fast_min(place + w.right, int64_t(t.k.count));
    const int64_t width = w.left < 0 ? last + (1 << 30) : last - place + w.left;
    return {int32_t(last), int32_t(cutlass::fast_min(width, int64_t(INT32_MAX - 1)))};
  }

  // Tiles of keys from the first one on that some query of the tile sees; 0 or less: none.
  template <int M, int N>
  CUTLASS_DEVICE int key_tiles(bool bounded, tile const& t) const {
    return bounded ? key_tiles_before<N>(int64_t(t.index + 1) * M, t) : (t.k.count + N - 1) / N;
  }

  // The same of the queries before `query`.
  template <int N>
  CUTLASS_DEVICE int key_tiles_before(int64_t query, tile const& t) const {
    const int64_t behind = query + right;  // keys up to the last one of the last query
    return behind <= 0 ? 0 : cutlass::fast_min((t.k.count + N - 1) / N, int((behind + N - 1) / N));
  }

  // The first tile that is read, and the last one that holds keys left of some query's window (-1: none does).
  template <int M, int N>
  CUTLASS_DEVICE int first_tile(tile const& t) const {
    const int64_t key = int64_t(t.index) * M + right - left;
    return key <= 0 ? 0 : int(key / N);
  }
  template <int M, int N>
  CUTLASS_DEVICE int last_cut_tile(tile const& t) const {
    const int64_t key = int64_t(t.index + 1) * M - 1 + right - left;  // the first that the last query sees
    return key <= 0 ? -1 : int((key - 1) / N);
  }
};

}  // namespace kernelwright::cuda::attention
