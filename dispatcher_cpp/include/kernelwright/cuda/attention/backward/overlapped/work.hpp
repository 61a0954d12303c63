// What a workgroup computes: 128 keys of a request against the queries of all heads that share them.
#pragma once

#include "kernelwright/cuda/attention/addend.hpp"
#include "kernelwright/cuda/attention/backward/gradients.hpp"

namespace kernelwright::cuda::attention {

struct overlapped_params {
  CUtensorMap q, k, v, d_o;
  gradient_params all;
  addend_numbers bias;
  float* sums;                     // of dQ: tiles of queries of every head, in the order of the kernel's registers
  int32_t* turns;                  // deterministic: how many workgroups added to each half of a tile
  int32_t key_tiles, query_tiles;  // of the longest request
  int32_t kv_heads, all_kv_heads;  // of a request, of all
  int32_t section, last_section;   // heads that are computed together
};

// Blocks start in this order: sections of heads, whose operands fit into L2; in a section the first keys of all its
// heads, which see the most queries under a causal mask, then the next ones. The last section has more heads, so that
// short blocks end the launch. Deterministic: this is also the order in which blocks add to a tile of dQ, since a block
// must never wait for one that starts after it.
CUTLASS_DEVICE tile tile_of_block(overlapped_params const& p, int block) {
  const int whole = p.all_kv_heads - p.last_section, number = block / (p.section * p.key_tiles);
  const bool last = number * p.section >= whole;
  const int first = last ? whole : number * p.section, heads = last ? p.last_section : p.section;
  const int inside = block - first * p.key_tiles, head = first + inside % heads;
  tile out;
  out.index = inside / heads;
  out.request = head / p.kv_heads, out.kv_head = head % p.kv_heads;
  out.head = out.kv_head * p.all.group;
  const int start = p.all.cu_seqlens_q ? p.all.cu_seqlens_q[out.request] : 0;
  out.q = {start, p.all.cu_seqlens_q ? p.all.cu_seqlens_q[out.request + 1] - start : p.all.seqlen_q};
  out.k = {static_cast<int32_t>(p.all.keys.first(out.request)), p.all.keys.count(out.request)};
  return out;
}

// Rows of K beyond those that count have gradients too: zeros.
CUTLASS_DEVICE int rows_of_keys(gradient_params const& p, tile const& t) {
  if (p.keys.cu_seqlens_k) return p.keys.cu_seqlens_k[t.request + 1] - t.k.start;
  return p.keys.seqlen_k;
}

// Where the tiles of M queries of a request and head begin among those of dQ. In group mode the tiles of a request
// begin at one of their own; there are total_q / M + batch at most of a head.
template <int M>
CUTLASS_DEVICE int64_t first_tile_of_sums(overlapped_params const& p, int request, int head, int start) {
  if (p.all.cu_seqlens_q) return int64_t(head) * p.query_tiles + start / M + request;
  return (int64_t(request) * p.all.heads + head) * p.query_tiles;
}

// Query q sees the keys from q + right - left to q + right.
template <int M, int N>
struct query_range {
  int first, tiles;

  CUTLASS_DEVICE static query_range of(tile const& t, band const& seen) {
    const int64_t mine = int64_t(t.index) * N, right = seen.right, left = seen.left, most = t.q.count;
    const int64_t from = cutlass::fast_max(int64_t(0), cutlass::fast_min(mine - right, most));
    int64_t to = cutlass::fast_max(int64_t(0), cutlass::fast_min(mine + N - right + left, most));
    if (mine >= t.k.count) to = 0;
    const int begin = static_cast<int>(from / M);
    return {begin, to > from ? static_cast<int>((to + M - 1) / M) - begin : 0};
  }

  // The first tile of keys that a tile of queries sees: all that see it add to its dQ in turn, this one first.
  CUTLASS_DEVICE static int first_key_tile(band const& seen, int query_tile) {
    const int64_t key = int64_t(query_tile) * M + seen.right - seen.left;
    return key <= 0 ? 0 : static_cast<int>(key / N);
  }
};

// The steps of a workgroup: tiles of queries of all heads that share its keys.
//
// In turn: the last queries first, and every head's at a tile. Workgroups of one head begin with the same tile then,
// whatever part of the queries they see, and one that waits for another does so at the tile where both are. Else: one
// head after the other, from the first queries on, which begin where a causal mask lets the keys in, so that workgroups
// that start together add to different tiles.
template <bool InTurn>
struct query_steps {
  int head = 0, tile;
  int first, tiles, heads;

  template <class Range>
  CUTLASS_DEVICE query_steps(Range const& queries, int group)
      : tile(queries.first + (InTurn ? queries.tiles - 1 : 0)),
        first(queries.first),
        tiles(queries.tiles),
        heads(group) {}

  CUTLASS_DEVICE int count() const { return tiles * heads; }

  CUTLASS_DEVICE void next() {
    if constexpr (InTurn) {
      if (++head == heads) head = 0, --tile;
    } else if (++tile == first + tiles) {
      tile = first, ++head;
    }
  }
};

}  // namespace kernelwright::cuda::attention
