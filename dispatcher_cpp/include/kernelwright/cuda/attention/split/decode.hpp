// Attention of few queries: the keys of a request are cut into splits, and the queries of all heads that share a head
// of K and V are the 16 rows of a tile. K and V are read once, in pages or not, by 16 keys for each warp; every warp
// keeps a softmax of its own, and the workgroup puts them together.
#pragma once

#include <cfloat>

#include "kernelwright/cuda/attention/addend.hpp"
#include "kernelwright/cuda/attention/early.hpp"
#include "kernelwright/cuda/attention/keys.hpp"
#include "kernelwright/cuda/attention/mma.hpp"
#include "kernelwright/cuda/attention/rows.hpp"
#include "kernelwright/cuda/attention/tile.hpp"

namespace kernelwright::cuda::attention {

// K and V of all requests.
struct cache : key_rows {
  const void *k, *v;
  strides of_k, of_v;  // with pages `request` leads from page to page

  // Page (or request) and row in it of a key that exists.
  CUTLASS_DEVICE void find(int request, int64_t first, int key, int& part, int& row) const {
    if (page_table == nullptr) {
      part = cu_seqlens_k != nullptr ? 0 : request, row = static_cast<int>(first) + key;
      return;
    }
    int page;
    page_size(page, row, key);
    part = page_table[first + page];
  }
};

struct decode_params {
  cache keys;
  const void* q;
  void* o;
  float *lse, *o_splits, *lse_splits;
  const float* sinks;
  const int32_t* cu_seqlens_q;
  strides of_q, of_o;
  int64_t rows;  // per row in kernelwright/attention.h: of one split
  int64_t rows_per_head;
  window visible;
  int32_t seqlen_q, heads, kv_heads, splits, hdim_q, hdim_v;
  cutlass::FastDivmod group, tiles;  // heads of Q for each of K and V; tiles of queries of a request
  float scale, cap, cap_scale;       // as in softmax.hpp: times log2(e)
  addend kind;
  addend_numbers bias;
};

// Config: element, hdim, soft_cap, bias, stages.
template <class Config>
struct decode {
  using element = typename Config::element;
  static constexpr int hdim = Config::hdim, chunks = hdim / 8, stages = Config::stages;  // chunks of 16 bytes in a row
  static constexpr int warps = 4, threads = 32 * warps, rows = 16, block = 16;           // keys that a warp takes
  static constexpr int block_bytes = block * hdim * 2, stage_bytes = 2 * block_bytes;    // K, then V
  // Kernels with a cap, or a bias, serve problems without it, and those with an elementwise one ALiBi too.
  static constexpr bool capped = Config::soft_cap, biased = Config::bias != addend::none;
  static constexpr bool elementwise = Config::bias == addend::elementwise;
  static constexpr int shared_bytes = warps * stages * stage_bytes;
  static constexpr int merge_bytes = warps * rows * (hdim + 4 + 2) * 4;
  static_assert(merge_bytes <= shared_bytes);

  struct place {
    int request, kv_head, split, tile, queries, keys, first_query;
  };

  // Of the two rows that a thread holds results of (lane / 4, and 8 more): which keys they see.
  struct limits {
    int low[2], high[2];
  };

  // What is added to the scores of the same rows: a slope and the place of the query, or a row of the bias.
  struct additions {
    float slope[2], place[2];
    const element* row[2];
  };

  struct state {
    float sums[hdim / 8][4];
    float highest[2], total[2];
  };

  CUTLASS_DEVICE static void run(decode_params const& p, char* shared) {
    let_next_kernel_begin();
    place at;
    at.kv_head = blockIdx.y, at.split = blockIdx.z;
    p.tiles(at.request, at.tile, blockIdx.x);
    at.first_query = p.cu_seqlens_q ? p.cu_seqlens_q[at.request] : 0;
    at.queries = p.cu_seqlens_q ? p.cu_seqlens_q[at.request + 1] - at.first_query : p.seqlen_q;
    if (at.tile * rows >= at.queries * p.group.divisor) return;
    at.keys = p.keys.count(at.request);
    int first, last;
    split_of(p, at, first, last);
    state mine;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < hdim / 8; ++i) {
      CUTLASS_PRAGMA_UNROLL
      for (int j = 0; j < 4; ++j) mine.sums[i][j] = 0;
    }
    mine.highest[0] = mine.highest[1] = -infinity, mine.total[0] = mine.total[1] = 0;
    if (first < last) attend(p, at, shared, first, last, mine);
    __syncthreads();
    merge(p, at, reinterpret_cast<float*>(shared), mine);
  }

 private:
  // Queries and keys meet at `place` = query + shift; the row of a tile is a query and a head of the group.
  CUTLASS_DEVICE static int64_t shift_of(decode_params const& p, place const& at) {
    return p.visible.bottom_right ? int64_t(at.keys) - at.queries : 0;
  }
  CUTLASS_DEVICE static int low_of(decode_params const& p, place const& at, int query) {
    const int64_t low = p.visible.left < 0 ? 0 : query + shift_of(p, at) - p.visible.left;
    return low > 0 ? static_cast<int>(cutlass::fast_min(low, int64_t(at.keys))) : 0;
  }
  CUTLASS_DEVICE static int high_of(decode_params const& p, place const& at, int query) {
    const int64_t high = p.visible.right < 0 ? at.keys : query + shift_of(p, at) + p.visible.right + 1;
    return high > 0 ? static_cast<int>(cutlass::fast_min(high, int64_t(at.keys))) : 0;
  }

  // The keys that the tile sees are cut into equal parts of whole rounds of the workgroup.
  CUTLASS_DEVICE static void split_of(decode_params const& p, place const& at, int& first, int& last) {
    const int last_row = cutlass::fast_min(at.tile * rows + rows, at.queries * int(p.group.divisor)) - 1;
    const int low = low_of(p, at, p.group.divide(at.tile * rows)) / block * block;
    const int high = high_of(p, at, p.group.divide(last_row));
    const int round = warps * block, count = high > low ? high - low : 0;
    const int part = ((count + p.splits - 1) / p.splits + round - 1) / round * round;
    first = low + at.split * part;
    last = cutlass::fast_min(high, first + part);
  }

  CUTLASS_DEVICE static void attend(decode_params const& p, place const& at, char* shared, int first, int last,
                                    state& mine) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint32_t ring = shared_address(shared) + warp * stages * stage_bytes;
    uint32_t q[hdim / 16][4];
    limits seen;
    additions of_rows;
    load_queries(p, at, q, seen, of_rows);
    const int64_t entry = p.keys.first(at.request);
    const auto* const k = static_cast<const element*>(p.keys.k) + at.kv_head * p.keys.of_k.head;
    const auto* const v = static_cast<const element*>(p.keys.v) + at.kv_head * p.keys.of_v.head;
    // Half of the lanes look a key up each.
    const auto look_up = [&](int key, int& part, int& row) {
      part = row = 0;
      const int own = key + lane % block;
      if (own < last) p.keys.find(at.request, entry, own, part, row);
    };
    const auto load = [&](int key, int part, int row, int stage) {
      const uint32_t to = ring + stage * stage_bytes;
      constexpr int rows_at_once = 32 / (chunks < 32 ? chunks : 32);
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < block / rows_at_once; ++i) {
        const int r = i * rows_at_once + lane / chunks, c = lane % chunks;
        const int64_t page = __shfl_sync(~0u, part, r), in_page = __shfl_sync(~0u, row, r);
        const bool valid = key + r < last;
        const uint32_t offset = (r * chunks + (c ^ (r & 7))) * 16;
        const int64_t from_k = page * p.keys.of_k.request + in_page * p.keys.of_k.row + c * 8;
        const int64_t from_v = page * p.keys.of_v.request + in_page * p.keys.of_v.row + c * 8;
        const bool valid_k = valid && c * 8 < p.hdim_q, valid_v = valid && c * 8 < p.hdim_v;
        copy_16_bytes(to + offset, valid_k ? k + from_k : k, valid_k);
        copy_16_bytes(to + block_bytes + offset, valid_v ? v + from_v : v, valid_v);
      }
    };
    constexpr int step = warps * block;
    int part, row, ahead = first + warp * block;
    look_up(ahead, part, row);
    CUTLASS_PRAGMA_UNROLL
    for (int stage = 0; stage < stages - 1; ++stage) {
      if (ahead < last) load(ahead, part, row, stage);
      end_of_copies();
      ahead += step;
      look_up(ahead, part, row);
    }
    int stage = 0;
    for (int key = first + warp * block; key < last; key += step) {
      wait_for_copies<stages - 2>();
      __syncwarp();
      const int next = stage == 0 ? stages - 1 : stage - 1;
      if (ahead < last) load(ahead, part, row, next);
      end_of_copies();
      ahead += step;
      look_up(ahead, part, row);
      one_block(p, ring + stage * stage_bytes, key, q, seen, of_rows, mine);
      __syncwarp();
      stage = stage == stages - 1 ? 0 : stage + 1;
    }
    wait_for_copies<0>();
  }

  CUTLASS_DEVICE static void load_queries(decode_params const& p, place const& at, uint32_t (&q)[hdim / 16][4],
                                          limits& seen, additions& of_rows) {
    const int lane = threadIdx.x % 32;
    CUTLASS_PRAGMA_UNROLL
    for (int half_of = 0; half_of < 2; ++half_of) {
      const int packed = at.tile * rows + lane / 4 + 8 * half_of;
      int query, head;
      p.group(query, head, packed);
      const bool exists = query < at.queries;
      seen.low[half_of] = exists ? low_of(p, at, query) : 0;
      seen.high[half_of] = exists ? high_of(p, at, query) : 0;
      if constexpr (biased) find_bias(p, at, query, at.kv_head * int(p.group.divisor) + head, half_of, of_rows);
      const auto* const from = static_cast<const element*>(p.q) + (p.cu_seqlens_q ? 0 : at.request * p.of_q.request) +
                               (at.kv_head * int64_t(p.group.divisor) + head) * p.of_q.head +
                               (int64_t(at.first_query) + query) * p.of_q.row;
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < hdim / 16; ++i) {
        CUTLASS_PRAGMA_UNROLL
        for (int j = 0; j < 2; ++j) {
          const int column = i * 16 + j * 8 + lane % 4 * 2;
          const bool read = exists && column < p.hdim_q;
          q[i][half_of + 2 * j] = read ? *reinterpret_cast<const uint32_t*>(from + column) : 0;
        }
      }
    }
  }

  CUTLASS_DEVICE static void find_bias(decode_params const& p, place const& at, int query, int head, int half_of,
                                       additions& to) {
    const int64_t request = at.request * p.bias.request;
    to.row[half_of] = nullptr, to.slope[half_of] = to.place[half_of] = 0;
    if (query >= at.queries) return;
    if (elementwise && p.kind == addend::elementwise) {
      to.row[half_of] = static_cast<const element*>(p.bias.data) + request + head * p.bias.head +
                        (int64_t(at.first_query) + query) * p.bias.row;
    } else if (p.kind == addend::alibi) {
      to.slope[half_of] = static_cast<const float*>(p.bias.data)[request + head] * 1.4426950408889634f;
      to.place[half_of] = static_cast<float>(query + (p.bias.from_top ? 0 : at.keys - at.queries));
    }
  }

  // Times log2(e), of one of the two rows; keys from `end` on have no bias.
  CUTLASS_DEVICE static float added(decode_params const& p, additions const& rows, int j, int key, int end) {
    if (!elementwise || p.kind != addend::elementwise) {
      return -rows.slope[j] * fabsf(rows.place[j] - static_cast<float>(key));
    }
    return key < end ? static_cast<float>(rows.row[j][key]) * 1.4426950408889634f : 0;
  }

  // 16 keys: S = Q K^T, the softmax of what came so far, O += P V.
  CUTLASS_DEVICE static void one_block(decode_params const& p, uint32_t buffer, int key,
                                       const uint32_t (&q)[hdim / 16][4], limits const& seen, additions const& of_rows,
                                       state& mine) {
    const int lane = threadIdx.x % 32, matrix = lane / 8, line = lane % 8;
    float s[2][4] = {};
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < hdim / 16; ++i) {
      uint32_t b[4];
      const int r = matrix / 2 * 8 + line, c = i * 2 + matrix % 2;
      load_matrices<false>(b, buffer + (r * chunks + (c ^ (r & 7))) * 16);
      multiply<element>(s[0], q[i], b[0], b[1]);
      multiply<element>(s[1], q[i], b[2], b[3]);
    }
    float scale[2];
    CUTLASS_PRAGMA_UNROLL
    for (int j = 0; j < 2; ++j) {
      float highest = mine.highest[j];
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < 4; ++i) {
        float& score = s[i / 2][2 * j + i % 2];
        const int at = key + i / 2 * 8 + lane % 4 * 2 + i % 2;
        score = capped && p.cap != 0 ? p.cap * tanhf(score * p.cap_scale) : score * p.scale;
        if constexpr (biased) score += added(p, of_rows, j, at, seen.high[j]);
        if (at < seen.low[j] || at >= seen.high[j]) score = -infinity;
        highest = fmaxf(highest, score);
      }
      highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, 1));
      highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, 2));
      const float subtracted = fmaxf(highest, -FLT_MAX);  // a row that sees nothing: -inf - -inf
      scale[j] = power_of_two(mine.highest[j] - subtracted);
      mine.highest[j] = highest;
      float total = 0;
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < 4; ++i) {
        float& score = s[i / 2][2 * j + i % 2];
        score = power_of_two(score - subtracted);
        total += score;
      }
      mine.total[j] = mine.total[j] * scale[j] + total;
    }
    if (__any_sync(~0u, scale[0] != 1 || scale[1] != 1)) {
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < hdim / 8; ++i) {
        mine.sums[i][0] *= scale[0], mine.sums[i][1] *= scale[0];
        mine.sums[i][2] *= scale[1], mine.sums[i][3] *= scale[1];
      }
    }
    const uint32_t probabilities[4] = {pair_of<element>(s[0][0], s[0][1]), pair_of<element>(s[0][2], s[0][3]),
                                       pair_of<element>(s[1][0], s[1][1]), pair_of<element>(s[1][2], s[1][3])};
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < hdim / 16; ++i) {
      uint32_t b[4];
      const int r = matrix % 2 * 8 + line, c = i * 2 + matrix / 2;
      load_matrices<true>(b, buffer + block_bytes + (r * chunks + (c ^ (r & 7))) * 16);
      multiply<element>(mine.sums[2 * i], probabilities, b[0], b[1]);
      multiply<element>(mine.sums[2 * i + 1], probabilities, b[2], b[3]);
    }
  }

  // The softmaxes of the warps become one, and its result is stored.
  CUTLASS_DEVICE static void merge(decode_params const& p, place const& at, float* shared, state& mine) {
    constexpr int width = hdim + 4;  // of a row of sums: neighbours lie in other banks
    float* const sums = shared;
    float* const highs = shared + warps * rows * width;
    float* const totals = highs + warps * rows;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    CUTLASS_PRAGMA_UNROLL
    for (int j = 0; j < 2; ++j) {
      float total = mine.total[j];
      total += __shfl_xor_sync(~0u, total, 1);
      total += __shfl_xor_sync(~0u, total, 2);
      const int r = warp * rows + lane / 4 + 8 * j;
      highs[r] = mine.highest[j], totals[r] = total;
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < hdim / 8; ++i) {
        *reinterpret_cast<float2*>(sums + r * width + i * 8 + lane % 4 * 2) =
            float2{mine.sums[i][2 * j], mine.sums[i][2 * j + 1]};
      }
    }
    __syncthreads();
    // Eight threads for each row.
    const int r = threadIdx.x / 8, packed = at.tile * rows + r;
    int query, head;
    p.group(query, head, packed);
    if (query >= at.queries) return;
    head += at.kv_head * p.group.divisor;
    const float sink = p.sinks && at.split == 0 ? p.sinks[head] * 1.4426950408889634f : -infinity;
    float top = sink;
    CUTLASS_PRAGMA_UNROLL
    for (int w = 0; w < warps; ++w) top = fmaxf(top, highs[w * rows + r]);
    const float subtracted = fmaxf(top, -FLT_MAX);
    float weights[warps], total = power_of_two(sink - subtracted);
    CUTLASS_PRAGMA_UNROLL
    for (int w = 0; w < warps; ++w) {
      weights[w] = power_of_two(highs[w * rows + r] - subtracted);
      total += weights[w] * totals[w * rows + r];
    }
    const float factor = total > 0 ? 1 / total : 0;
    const float lse = total > 0 ? (subtracted + logarithm_of_two(total)) * natural_log_of_2 : -infinity;
    const int64_t row = (p.cu_seqlens_q ? 0 : at.request * int64_t(p.heads) * p.rows_per_head) +
                        head * p.rows_per_head + at.first_query + query;
    const bool whole = p.splits == 1;
    float* const to_lse = whole ? p.lse : p.lse_splits + at.split * p.rows;
    if (to_lse && threadIdx.x % 8 == 0) to_lse[row] = lse;
    auto* const to = static_cast<element*>(p.o) + (p.cu_seqlens_q ? 0 : at.request * p.of_o.request) +
                     head * p.of_o.head + (int64_t(at.first_query) + query) * p.of_o.row;
    for (int c = threadIdx.x % 8 * 4; c < p.hdim_v; c += 32) {
      float4 x{};
      CUTLASS_PRAGMA_UNROLL
      for (int w = 0; w < warps; ++w) {
        const float4 one = *reinterpret_cast<const float4*>(sums + (w * rows + r) * width + c);
        x.x += weights[w] * one.x, x.y += weights[w] * one.y, x.z += weights[w] * one.z, x.w += weights[w] * one.w;
      }
      x.x *= factor, x.y *= factor, x.z *= factor, x.w *= factor;
      if (whole) {
        *reinterpret_cast<uint2*>(to + c) = uint2{pair_of<element>(x.x, x.y), pair_of<element>(x.z, x.w)};
      } else {
        *reinterpret_cast<float4*>(p.o_splits + (at.split * p.rows + row) * p.hdim_v + c) = x;
      }
    }
  }
};

template <class Config>
__global__ void __launch_bounds__(decode<Config>::threads) decode_kernel(const __grid_constant__ decode_params p) {
  extern __shared__ __align__(1024) char memory[];
  decode<Config>::run(p, memory);
}

}  // namespace kernelwright::cuda::attention
