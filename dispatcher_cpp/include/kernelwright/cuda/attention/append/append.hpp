// New rows of K and V into a cache, and Q, with rotary embedding: a thread has 16 bytes of each of some rows, a row
// lies within a warp.
#pragma once

#include <cutlass/fast_math.h>

#include <utility>

#include "kernelwright/cuda/attention/mma.hpp"
#include "kernelwright/cuda/attention/rows.hpp"

namespace kernelwright::cuda::attention {

enum class rotation { none, interleaved, half };

struct append_params {
  const void *q, *k, *v;
  void *q_out, *k_cache, *v_cache;
  strides of_q, of_q_out, of_k, of_v, of_k_cache,
      of_v_cache;  // of a cache with pages `request` leads from page to page
  const int32_t *seqlens_k, *page_table;
  const void *cos, *sin;
  int64_t page_table_stride, rows, rows_of_kv;  // of K and V together
  cutlass::FastDivmod page_size, heads_q, heads_kv, seqlen_q, seqlen_new;
  int32_t rotary_dim, places, capacity;
};

// Config: element, hdim, rope.
template <class Config>
struct append {
  using element = typename Config::element;
  static constexpr int hdim = Config::hdim, vector = 8, chunks = hdim / vector, threads = 256;
  static constexpr bool turns = Config::rope != rotation::none;
  static_assert(32 % chunks == 0, "a row lies within a warp");

  static constexpr int rows_at_once = threads / chunks, ahead = 4;  // rows of a thread that are on their way together

  struct alignas(16) values {
    element x[vector];
  };

  // A row of K, V or Q: where it comes from, and which one it is.
  struct source {
    const element* from = nullptr;
    int request, head, number;
    bool queries, key, turned;  // turned: K and Q are
  };

  // A loop that is unrolled before the compiler decides what lies in registers.
  template <class Use>
  CUTLASS_DEVICE static void each_row(Use const& use) {
    each_row(use, std::make_integer_sequence<int, ahead>{});
  }
  template <class Use, int... I>
  CUTLASS_DEVICE static void each_row(Use const& use, std::integer_sequence<int, I...>) {
    (use(std::integral_constant<int, I>{}), ...);
  }

  CUTLASS_DEVICE static void run(append_params const& p) {
    const int64_t block = blockIdx.x * int64_t(rows_at_once * ahead) + threadIdx.x / chunks;
    const int first = threadIdx.x % chunks * vector, half_of = p.rotary_dim / 2;
    const int there = first < half_of ? first + half_of : first - half_of;
    const bool turning = turns && first < p.rotary_dim;
    source rows[ahead];
    values mine[ahead] = {};
    // Where rows go depends on lengths and pages, where they come from does not.
    each_row([&](auto i) {
      rows[i] = source_of(p, block + i * rows_at_once);
      if (rows[i].from != nullptr) load_16_bytes(mine[i], rows[i].from + first);
    });
    each_row([&](auto i) {
      values other;
      if constexpr (Config::rope == rotation::half) other = of_lane(mine[i], there / vector);
      if (rows[i].from == nullptr) return;
      const int place = p.seqlens_k[rows[i].request] + rows[i].number;
      element* const to = rows[i].queries ? of_queries(p, rows[i]) : of_cache(p, rows[i], place);
      if (to == nullptr) return;
      if (turning && rows[i].turned) turn(p, mine[i], other, first, place);
      store_16_bytes(to + first, mine[i]);
    });
  }

 private:
  // What the thread with another chunk of the same row has.
  CUTLASS_DEVICE static values of_lane(values const& mine, int chunk) {
    uint32_t x[4];
    values out;
    __builtin_memcpy(x, &mine, sizeof x);
#pragma unroll
    for (uint32_t& each : x) each = __shfl_sync(~0u, each, chunk, chunks);
    __builtin_memcpy(&out, x, sizeof x);
    return out;
  }

  // The rows of K come first, then those of V, then those of Q.
  CUTLASS_DEVICE static source source_of(append_params const& p, int64_t row) {
    source out;
    if (row >= p.rows) return out;
    int rest;
    out.queries = row >= p.rows_of_kv;
    if (out.queries) {
      p.heads_q(rest, out.head, static_cast<int>(row - p.rows_of_kv));
      p.seqlen_q(out.request, out.number, rest);
      out.key = false, out.turned = true;
      out.from = static_cast<const element*>(p.q) + out.request * p.of_q.request + out.head * p.of_q.head +
                 out.number * p.of_q.row;
      return out;
    }
    const int64_t keys = p.rows_of_kv / 2;
    out.key = out.turned = row < keys;
    p.heads_kv(rest, out.head, static_cast<int>(out.key ? row : row - keys));
    p.seqlen_new(out.request, out.number, rest);
    strides const& by = out.key ? p.of_k : p.of_v;
    out.from = static_cast<const element*>(out.key ? p.k : p.v) + out.request * by.request + out.head * by.head +
               out.number * by.row;
    return out;
  }

  CUTLASS_DEVICE static element* of_queries(append_params const& p, source const& row) {
    return static_cast<element*>(p.q_out) + row.request * p.of_q_out.request + row.head * p.of_q_out.head +
           row.number * p.of_q_out.row;
  }

  // Null where the cache has no room for it.
  CUTLASS_DEVICE static element* of_cache(append_params const& p, source const& row, int place) {
    if (place >= p.capacity) return nullptr;
    strides const& into = row.key ? p.of_k_cache : p.of_v_cache;
    int64_t part = row.request;
    int in_part = place;
    if (p.page_table != nullptr) {
      int page;
      p.page_size(page, in_part, place);
      part = p.page_table[row.request * p.page_table_stride + page];
    }
    return static_cast<element*>(row.key ? p.k_cache : p.v_cache) + part * into.request + row.head * into.head +
           in_part * into.row;
  }

  CUTLASS_DEVICE static void load_angles(values& to, const element* from) {
    if (reinterpret_cast<uintptr_t>(from) % sizeof to == 0) {
      load_16_bytes(to, from);
    } else {
#pragma unroll
      for (int i = 0; i < vector; ++i) to.x[i] = from[i];
    }
  }

  // (a, b) becomes (a c - b s, a s + b c).
  CUTLASS_DEVICE static void turn(append_params const& p, values& mine, values const& other, int first, int place) {
    const int half_of = p.rotary_dim / 2;
    const int64_t line = int64_t(min(place, p.places - 1)) * half_of;
    const auto* const cos = static_cast<const element*>(p.cos) + line;
    const auto* const sin = static_cast<const element*>(p.sin) + line;
    if constexpr (Config::rope == rotation::half) {
      const bool low = first < half_of;
      const int angle = low ? first : first - half_of;
      values c_of, s_of;
      load_angles(c_of, cos + angle);
      load_angles(s_of, sin + angle);
#pragma unroll
      for (int i = 0; i < vector; ++i) {
        const float c = c_of.x[i], s = s_of.x[i], x = mine.x[i], y = other.x[i];
        mine.x[i] = rounded<element>(low ? x * c - y * s : x * c + y * s);
      }
    } else {
#pragma unroll
      for (int i = 0; i < vector; i += 2) {
        const float c = cos[(first + i) / 2], s = sin[(first + i) / 2], a = mine.x[i], b = mine.x[i + 1];
        mine.x[i] = rounded<element>(a * c - b * s);
        mine.x[i + 1] = rounded<element>(a * s + b * c);
      }
    }
  }
};

template <class Config>
__global__ void __launch_bounds__(append<Config>::threads) append_kernel(const __grid_constant__ append_params p) {
  append<Config>::run(p);
}

}  // namespace kernelwright::cuda::attention
