// New rows of K and V into a cache, and Q, with rotary embedding: a thread has two chunks of 16 bytes of each of some
// rows, a row lies within a warp.
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
  int32_t rotary_dim, places, capacity, hdim_q, hdim_v;
};

// Config: element, hdim, rope.
template <class Config>
struct append {
  using element = typename Config::element;
  static constexpr int hdim = Config::hdim, vector = 8, chunks = hdim / vector, threads = 256;
  static constexpr bool turns = Config::rope != rotation::none, halves = Config::rope == rotation::half;
  static constexpr int of_row = chunks / 2;  // threads
  static_assert(32 % of_row == 0, "a row lies within a warp");

  static constexpr int rows_at_once = threads / of_row, ahead = 2;  // rows of a thread that are on their way together

  struct alignas(16) values {
    element x[vector];
  };

  // A row of K, V or Q: where it comes from, which one it is, and its place among all keys.
  struct source {
    const element* from = nullptr;
    int request, head, number, place;
    bool queries, key, turned;  // turned: K and Q are
  };

  // The two chunks of a row that a thread has; rotation of halves turns the one with the other.
  struct columns {
    int low, high;
    bool turn_low, turn_high;

    CUTLASS_DEVICE explicit columns(int rotary_dim) {
      const int i = threadIdx.x % of_row, apart = halves ? rotary_dim / 2 / vector : of_row;
      low = (i < apart ? i : 2 * i) * vector, high = (i < apart ? i + apart : 2 * i + 1) * vector;
      turn_low = turns && low < rotary_dim, turn_high = turns && high < rotary_dim;
    }
  };

  // Of `low`, or of the first half of each chunk: neighbours are turned together there.
  struct angles {
    values cos, sin;
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
    const int64_t block = blockIdx.x * int64_t(rows_at_once * ahead) + threadIdx.x / of_row;
    const columns mine(p.rotary_dim);
    source rows[ahead];
    element* to[ahead];
    values low[ahead], high[ahead];
    angles by[ahead];
    each_row([&](auto i) {
      rows[i] = source_of(p, block + i * rows_at_once);
      if (rows[i].from == nullptr) return;
      rows[i].place = p.seqlens_k[rows[i].request] + rows[i].number;
      const int hdim = hdim_of(p, rows[i]);
      if (mine.low < hdim) load_16_bytes(low[i], rows[i].from + mine.low);
      if (mine.high < hdim) load_16_bytes(high[i], rows[i].from + mine.high);
    });
    // Where rows go depends on lengths and pages: these are read while the rows are on their way.
    each_row([&](auto i) {
      to[i] = nullptr;
      if (rows[i].from == nullptr) return;
      to[i] = rows[i].queries ? of_queries(p, rows[i]) : of_cache(p, rows[i]);
      if (mine.turn_low && rows[i].turned) load_angles(p, by[i], mine, rows[i].place);
    });
    each_row([&](auto i) {
      if (to[i] == nullptr) return;
      if (mine.turn_low && rows[i].turned) turn(low[i], high[i], by[i], mine.turn_high);
      const int hdim = hdim_of(p, rows[i]);
      if (mine.low < hdim) store_16_bytes(to[i] + mine.low, low[i]);
      if (mine.high < hdim) store_16_bytes(to[i] + mine.high, high[i]);
    });
  }

 private:
  // The problem's head dimensions may be smaller than the kernel's.
  CUTLASS_DEVICE static int hdim_of(append_params const& p, source const& row) {
    return row.queries || row.key ? p.hdim_q : p.hdim_v;
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
  CUTLASS_DEVICE static element* of_cache(append_params const& p, source const& row) {
    if (row.place >= p.capacity) return nullptr;
    strides const& into = row.key ? p.of_k_cache : p.of_v_cache;
    int64_t part = row.request;
    int in_part = row.place;
    if (p.page_table != nullptr) {
      int page;
      p.page_size(page, in_part, row.place);
      part = p.page_table[row.request * p.page_table_stride + page];
    }
    return static_cast<element*>(row.key ? p.k_cache : p.v_cache) + part * into.request + row.head * into.head +
           in_part * into.row;
  }

  CUTLASS_DEVICE static void load_angles(append_params const& p, angles& to, columns const& mine, int place) {
    const int64_t line = int64_t(min(place, p.places - 1)) * (p.rotary_dim / 2);
    const auto* const cos = static_cast<const element*>(p.cos) + line;
    const auto* const sin = static_cast<const element*>(p.sin) + line;
    if constexpr (halves) {
      load_angles<vector>(to.cos.x, cos + mine.low), load_angles<vector>(to.sin.x, sin + mine.low);
    } else {
      constexpr int half_of = vector / 2;
      load_angles<half_of>(to.cos.x, cos + mine.low / 2), load_angles<half_of>(to.sin.x, sin + mine.low / 2);
      if (!mine.turn_high) return;
      load_angles<half_of>(to.cos.x + half_of, cos + mine.high / 2);
      load_angles<half_of>(to.sin.x + half_of, sin + mine.high / 2);
    }
  }

  // Tables need not begin at a multiple of 16 bytes.
  template <int count>
  CUTLASS_DEVICE static void load_angles(element* to, const element* from) {
    using chunk = std::conditional_t<count == vector, uint4, uint2>;
    static_assert(sizeof(chunk) == count * sizeof(element));
    if (reinterpret_cast<uintptr_t>(from) % sizeof(chunk) == 0) {
      const chunk all = *reinterpret_cast<const chunk*>(from);
      __builtin_memcpy(to, &all, sizeof all);
    } else {
#pragma unroll
      for (int i = 0; i < count; ++i) to[i] = from[i];
    }
  }

  CUTLASS_DEVICE static void turn(values& low, values& high, angles const& by, bool turn_high) {
    if constexpr (halves) {
#pragma unroll
      for (int i = 0; i < vector; ++i) turn(low.x[i], high.x[i], by.cos.x[i], by.sin.x[i]);
    } else {
#pragma unroll
      for (int i = 0; i < vector / 2; ++i) {
        turn(low.x[2 * i], low.x[2 * i + 1], by.cos.x[i], by.sin.x[i]);
        if (turn_high) turn(high.x[2 * i], high.x[2 * i + 1], by.cos.x[vector / 2 + i], by.sin.x[vector / 2 + i]);
      }
    }
  }

  // (a, b) becomes (a c - b s, a s + b c).
  CUTLASS_DEVICE static void turn(element& first, element& second, float c, float s) {
    const float a = first, b = second;
    first = rounded<element>(a * c - b * s), second = rounded<element>(a * s + b * c);
  }
};

template <class Config>
__global__ void __launch_bounds__(append<Config>::threads) append_kernel(const __grid_constant__ append_params p) {
  append<Config>::run(p);
}

}  // namespace kernelwright::cuda::attention
