// dK and dV, or dQ, by mma.sync: 64 rows stay in shared memory, and tiles of 64 rows of the other side stream by.
//
// Both products that make scores and both that make gradients are of the same form, whichever side stays: with keys
// that stay the tiles are queries of all heads that share K and V, else the tiles are keys. So dQ takes the scores a
// second time, and no sum is shared by workgroups: results repeat bit by bit. Gradients have at most 128 columns, which
// registers have room for: with head dimension 256 two workgroups take the scores for halves of them.
#pragma once

#include "kernelwright/cuda/attention/addend.hpp"
#include "kernelwright/cuda/attention/keys.hpp"
#include "kernelwright/cuda/attention/mma.hpp"
#include "kernelwright/cuda/attention/rows.hpp"
#include "kernelwright/cuda/attention/tile.hpp"

namespace kernelwright::cuda::attention {

struct gradient_params {
  const void *q, *k, *v, *d_o;
  void *dq, *dk, *dv;
  const float *lse, *d;
  strides of_q, of_k, of_v, of_d_o, of_dq, of_dk, of_dv;
  const int32_t* cu_seqlens_q;  // group mode, else null
  key_rows keys;
  int64_t rows_per_head;  // of LSE and D
  window visible;
  int32_t seqlen_q, heads, group, hdim_q, hdim_v;
  float scale, cap, cap_scale;  // the cap times log2(e); 0: none
  addend kind;
  addend_numbers bias;
};

// Config: element, hdim, bias. KeysStay: dK and dV, else dQ.
template <class Config, bool KeysStay>
struct gradients {
  using element = typename Config::element;
  static constexpr int hdim = Config::hdim, chunks = hdim / 8, block = 64, threads = 128;
  static constexpr int columns = hdim < 128 ? hdim : 128, parts = hdim / columns;
  static constexpr int tile_bytes = block * hdim * 2, numbers_bytes = 2 * block * 4;
  static constexpr int stage_bytes = 2 * tile_bytes + numbers_bytes;
  static constexpr int shared_bytes = 2 * tile_bytes + 2 * stage_bytes;

  // One request and head; `first` and `tiles`: which tiles of the other side meet the 64 rows.
  struct work {
    tile of;  // of.index: of the side that stays
    band seen;
    int first, tiles;
    int column;  // of the gradients, the first one
  };

  CUTLASS_DEVICE static void run(gradient_params const& p, char* shared) {
    work w;
    w.of.request = blockIdx.z, w.of.index = blockIdx.x / parts;
    w.column = blockIdx.x % parts * columns;
    w.of.kv_head = KeysStay ? blockIdx.y : blockIdx.y / p.group;
    w.of.head = KeysStay ? blockIdx.y * p.group : blockIdx.y;
    const int start = p.cu_seqlens_q ? p.cu_seqlens_q[w.of.request] : 0;
    w.of.q = {start, p.cu_seqlens_q ? p.cu_seqlens_q[w.of.request + 1] - start : p.seqlen_q};
    w.of.k = {static_cast<int32_t>(p.keys.first(w.of.request)), p.keys.count(w.of.request)};
    w.seen = band::of(p.visible, w.of);
    if (w.of.index * block >= (KeysStay ? most_keys(p, w) : w.of.q.count)) return;
    tiles_of(w);
    compute(p, w, shared);
  }

 private:
  // Rows of K beyond those that count have gradients too: zeros.
  CUTLASS_DEVICE static int most_keys(gradient_params const& p, work const& w) {
    if (p.keys.cu_seqlens_k) return p.keys.cu_seqlens_k[w.of.request + 1] - w.of.k.start;
    return p.keys.seqlen_k;
  }

  CUTLASS_DEVICE static int64_t bounded(int64_t x, int most) {
    return cutlass::fast_max(int64_t(0), cutlass::fast_min(x, int64_t(most)));
  }

  // Query q sees the keys from q + right - left to q + right.
  CUTLASS_DEVICE static void tiles_of(work& w) {
    const int64_t mine = int64_t(w.of.index) * block, last = mine + block - 1;
    const int64_t right = w.seen.right, left = w.seen.left;
    int64_t from, to;
    if (KeysStay) {
      from = bounded(mine - right, w.of.q.count);
      to = mine < w.of.k.count ? bounded(last - right + left + 1, w.of.q.count) : 0;
    } else {
      from = bounded(mine + right - left, w.of.k.count);
      to = bounded(last + right + 1, w.of.k.count);
    }
    w.first = static_cast<int>(from / block);
    w.tiles = to > from ? static_cast<int>((to + block - 1) / block) - w.first : 0;
  }

  CUTLASS_DEVICE static const element* head_of(const void* x, strides const& by, int request, int head, int start) {
    return static_cast<const element*>(x) + request * by.request + head * by.head + start * by.row;
  }

  // 64 rows; those from `count` on, and columns from `width` on, are zeros.
  CUTLASS_DEVICE static void load(uint32_t to, const element* from, int64_t stride, int row, int count, int width) {
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < block * chunks / threads; ++i) {
      const int at = i * threads + threadIdx.x, r = at / chunks, c = at % chunks;
      const bool valid = row + r < count && c * 8 < width;
      copy_16_bytes(to + (r * chunks + (c ^ (r & 7))) * 16, valid ? from + (row + r) * stride + c * 8 : from, valid);
    }
  }

  // LSE and D of 64 queries, for scores that are powers of two; rows that do not exist have probability 0.
  CUTLASS_DEVICE static void load_numbers(gradient_params const& p, work const& w, float* to, int head, int query) {
    const int64_t row = (p.cu_seqlens_q ? 0 : w.of.request * int64_t(p.heads) * p.rows_per_head) +
                        head * p.rows_per_head + w.of.q.start + query;
    for (int i = threadIdx.x; i < block; i += threads) {
      const bool exists = query + i < w.of.q.count;
      const float lse = exists ? p.lse[row + i] : -infinity;
      to[i] = lse == -infinity ? infinity : lse * 1.4426950408889634f;
      to[block + i] = exists ? p.d[row + i] : 0;
    }
  }

  CUTLASS_DEVICE static void load_stage(gradient_params const& p, work const& w, char* shared, int stage, int step) {
    char* const to = shared + 2 * tile_bytes + stage * stage_bytes;
    const int head = w.of.head + (KeysStay ? step / w.tiles : 0);
    const int row = (w.first + (KeysStay ? step % w.tiles : step)) * block;
    if constexpr (KeysStay) {
      load(shared_address(to), head_of(p.q, p.of_q, w.of.request, head, w.of.q.start), p.of_q.row, row, w.of.q.count,
           p.hdim_q);
      load(shared_address(to) + tile_bytes, head_of(p.d_o, p.of_d_o, w.of.request, head, w.of.q.start), p.of_d_o.row,
           row, w.of.q.count, p.hdim_v);
      load_numbers(p, w, reinterpret_cast<float*>(to + 2 * tile_bytes), head, row);
    } else {
      load(shared_address(to), head_of(p.k, p.of_k, w.of.request, w.of.kv_head, w.of.k.start), p.of_k.row, row,
           w.of.k.count, p.hdim_q);
      load(shared_address(to) + tile_bytes, head_of(p.v, p.of_v, w.of.request, w.of.kv_head, w.of.k.start), p.of_v.row,
           row, w.of.k.count, p.hdim_v);
    }
    end_of_copies();
  }

  CUTLASS_DEVICE static void compute(gradient_params const& p, work const& w, char* shared) {
    const int mine = w.of.index * block;
    const uint32_t stay = shared_address(shared);
    if constexpr (KeysStay) {
      load(stay, head_of(p.k, p.of_k, w.of.request, w.of.kv_head, w.of.k.start), p.of_k.row, mine, w.of.k.count,
           p.hdim_q);
      load(stay + tile_bytes, head_of(p.v, p.of_v, w.of.request, w.of.kv_head, w.of.k.start), p.of_v.row, mine,
           w.of.k.count, p.hdim_v);
    } else {
      load(stay, head_of(p.q, p.of_q, w.of.request, w.of.head, w.of.q.start), p.of_q.row, mine, w.of.q.count, p.hdim_q);
      load(stay + tile_bytes, head_of(p.d_o, p.of_d_o, w.of.request, w.of.head, w.of.q.start), p.of_d_o.row, mine,
           w.of.q.count, p.hdim_v);
      load_numbers(p, w, reinterpret_cast<float*>(shared + 2 * tile_bytes + 2 * tile_bytes), w.of.head, mine);
    }
    float first[columns / 8][4] = {}, second[KeysStay ? columns / 8 : 1][4] = {};
    const int steps = w.tiles * (KeysStay ? p.group : 1);
    if (steps > 0) load_stage(p, w, shared, 0, 0);
    for (int step = 0; step < steps; ++step) {
      const bool more = step + 1 < steps;
      if (more) load_stage(p, w, shared, (step + 1) % 2, step + 1);
      if (more)
        wait_for_copies<1>();
      else
        wait_for_copies<0>();
      __syncthreads();
      const int row = (w.first + (KeysStay ? step % w.tiles : step)) * block;
      one_tile(p, w, shared, step % 2, row, KeysStay ? step / w.tiles : 0, first, second);
      __syncthreads();
    }
    if constexpr (KeysStay) {
      const int count = most_keys(p, w);
      store(p.dk, p.of_dk, w.of.request, w.of.kv_head, w.of.k.start, mine, count, w.column, p.hdim_q, first, p.scale);
      store(p.dv, p.of_dv, w.of.request, w.of.kv_head, w.of.k.start, mine, count, w.column, p.hdim_v, second, 1.0f);
    } else {
      store(p.dq, p.of_dq, w.of.request, w.of.head, w.of.q.start, mine, w.of.q.count, w.column, p.hdim_q, first,
            p.scale);
    }
  }

  template <int Count>
  CUTLASS_DEVICE static void store(void* to, strides const& by, int request, int head, int start, int row, int count,
                                   int column, int width, const float (&values)[Count][4], float scale) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    auto* const base = static_cast<element*>(to) + request * by.request + head * by.head + start * by.row;
    CUTLASS_PRAGMA_UNROLL
    for (int j = 0; j < 2; ++j) {
      const int r = row + warp * 16 + lane / 4 + 8 * j;
      if (r >= count) continue;
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < Count; ++i) {
        const int at = column + i * 8;
        if (at >= width) continue;
        *reinterpret_cast<uint32_t*>(base + r * by.row + at + lane % 4 * 2) =
            pair_of<element>(values[i][2 * j] * scale, values[i][2 * j + 1] * scale);
      }
    }
  }

  CUTLASS_DEVICE static uint32_t address(uint32_t tile, int row, int chunk) {
    return tile + (row * chunks + (chunk ^ (row & 7))) * 16;
  }

  // From Q K^T and dO V^T to probabilities and dS, without the scale. A kernel with a bias serves problems without it,
  // and one with an elementwise bias ALiBi too: what they need stands in loops of its own, for registers are full.
  template <bool Capped, addend Bias>
  CUTLASS_DEVICE static void become_gradients(gradient_params const& p, work const& w, const float* numbers, int row,
                                              int head, float (&x)[8][4], float (&y)[8][4]) {
    const int lane = threadIdx.x % 32, mine = w.of.index * block + threadIdx.x / 32 * 16 + lane / 4;
    const float scale = p.scale * 1.4426950408889634f;
    const int64_t request = w.of.request * p.bias.request;
    const int shift = p.bias.from_top ? 0 : w.of.k.count - w.of.q.count;
    float slope = 0;
    const element* bias = nullptr;
    if constexpr (Bias == addend::alibi) {
      slope = static_cast<const float*>(p.bias.data)[request + head] * 1.4426950408889634f;
    }
    if constexpr (Bias == addend::elementwise) {
      bias = static_cast<const element*>(p.bias.data) + request + head * p.bias.head + w.of.q.start * p.bias.row;
    }
    CUTLASS_PRAGMA_UNROLL
    for (int n = 0; n < 8; ++n) {
      CUTLASS_PRAGMA_UNROLL
      for (int e = 0; e < 4; ++e) {
        const int column = n * 8 + lane % 4 * 2 + e % 2, stays = mine + e / 2 * 8, comes = row + column;
        const int query = KeysStay ? comes : stays, key = KeysStay ? stays : comes;
        const int number = KeysStay ? column : stays - w.of.index * block;
        const int past = query + w.seen.right - key;  // 0 to left: the key is in the query's window
        const bool visible = past >= 0 && past <= w.seen.left && key < w.of.k.count;
        float score, slant = 1;
        if constexpr (Capped) {
          const float share = tanhf(x[n][e] * p.cap_scale);
          score = p.cap * share, slant = 1 - share * share;
        } else {
          score = x[n][e] * scale;
        }
        if constexpr (Bias == addend::alibi) score -= slope * fabsf(static_cast<float>(query + shift - key));
        if constexpr (Bias == addend::elementwise) {
          const bool exists = query < w.of.q.count && key < w.of.k.count;
          score += exists ? static_cast<float>(bias[query * p.bias.row + key]) * 1.4426950408889634f : 0;
        }
        const float probability = visible ? power_of_two(score - numbers[number]) : 0;
        x[n][e] = probability;
        y[n][e] = probability * (y[n][e] - numbers[block + number]);
        if constexpr (Capped) y[n][e] *= slant;
      }
    }
  }

  // 16 rows of each warp that stay against 64 that came.
  template <int Second>
  CUTLASS_DEVICE static void one_tile(gradient_params const& p, work const& w, char* shared, int stage, int row,
                                      int number_of_head, float (&first)[columns / 8][4], float (&second)[Second][4]) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, matrix = lane / 8, line = lane % 8;
    const uint32_t stay = shared_address(shared), came = stay + 2 * tile_bytes + stage * stage_bytes;
    float x[8][4] = {}, y[8][4] = {};
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < hdim / 16; ++i) {
      uint32_t a[4], b[4];
      load_matrices<false>(a, address(stay, warp * 16 + matrix % 2 * 8 + line, i * 2 + matrix / 2));
      CUTLASS_PRAGMA_UNROLL
      for (int j = 0; j < 4; ++j) {
        load_matrices<false>(b, address(came, j * 16 + matrix / 2 * 8 + line, i * 2 + matrix % 2));
        multiply<element>(x[2 * j], a, b[0], b[1]);
        multiply<element>(x[2 * j + 1], a, b[2], b[3]);
      }
      load_matrices<false>(a, address(stay + tile_bytes, warp * 16 + matrix % 2 * 8 + line, i * 2 + matrix / 2));
      CUTLASS_PRAGMA_UNROLL
      for (int j = 0; j < 4; ++j) {
        load_matrices<false>(b, address(came + tile_bytes, j * 16 + matrix / 2 * 8 + line, i * 2 + matrix % 2));
        multiply<element>(y[2 * j], a, b[0], b[1]);
        multiply<element>(y[2 * j + 1], a, b[2], b[3]);
      }
    }
    const float* const numbers =
        reinterpret_cast<const float*>(shared + 4 * tile_bytes + (KeysStay ? stage * stage_bytes : 0));
    const int head = w.of.head + (KeysStay ? number_of_head : 0);
    if (p.cap != 0) {
      become_gradients<true, addend::none>(p, w, numbers, row, head, x, y);
    } else if (Config::bias != addend::none && p.kind == addend::alibi) {
      become_gradients<false, addend::alibi>(p, w, numbers, row, head, x, y);
    } else if (Config::bias == addend::elementwise && p.kind == addend::elementwise) {
      become_gradients<false, addend::elementwise>(p, w, numbers, row, head, x, y);
    } else {
      become_gradients<false, addend::none>(p, w, numbers, row, head, x, y);
    }
    CUTLASS_PRAGMA_UNROLL
    for (int j = 0; j < 4; ++j) {
      const uint32_t ds[4] = {pair_of<element>(y[2 * j][0], y[2 * j][1]), pair_of<element>(y[2 * j][2], y[2 * j][3]),
                              pair_of<element>(y[2 * j + 1][0], y[2 * j + 1][1]),
                              pair_of<element>(y[2 * j + 1][2], y[2 * j + 1][3])};
      const uint32_t ps[4] = {pair_of<element>(x[2 * j][0], x[2 * j][1]), pair_of<element>(x[2 * j][2], x[2 * j][3]),
                              pair_of<element>(x[2 * j + 1][0], x[2 * j + 1][1]),
                              pair_of<element>(x[2 * j + 1][2], x[2 * j + 1][3])};
      CUTLASS_PRAGMA_UNROLL
      for (int c = 0; c < columns / 16; ++c) {
        uint32_t b[4];
        const int chunk = w.column / 8 + c * 2 + matrix / 2;
        load_matrices<true>(b, address(came, j * 16 + matrix % 2 * 8 + line, chunk));
        multiply<element>(first[2 * c], ds, b[0], b[1]);
        multiply<element>(first[2 * c + 1], ds, b[2], b[3]);
        if constexpr (KeysStay) {
          load_matrices<true>(b, address(came + tile_bytes, j * 16 + matrix % 2 * 8 + line, chunk));
          multiply<element>(second[2 * c], ps, b[0], b[1]);
          multiply<element>(second[2 * c + 1], ps, b[2], b[3]);
        }
      }
    }
  }
};

template <class Config, bool KeysStay>
__global__ void __launch_bounds__(gradients<Config, KeysStay>::threads)
    gradient_kernel(const __grid_constant__ gradient_params p) {
  extern __shared__ __align__(1024) char memory[];
  gradients<Config, KeysStay>::run(p, memory);
}

}  // namespace kernelwright::cuda::attention
