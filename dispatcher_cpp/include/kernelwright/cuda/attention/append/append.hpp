// New rows of K and V into a cache, and Q, with rotary embedding: a thread for each 16 bytes, a row within a warp.
#pragma once

#include <cutlass/fast_math.h>

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

  struct alignas(16) values {
    element x[vector];
  };

  __device__ static void run(append_params const& p) {
    const int64_t row = blockIdx.x * int64_t(threads / chunks) + threadIdx.x / chunks;
    const int chunk = threadIdx.x % chunks;
    const bool exists = row < p.rows;
    const element* from = nullptr;
    element* to = nullptr;
    int place = 0;
    bool turned = false;
    if (exists && row < p.rows_of_kv) turned = of_cache(p, static_cast<int>(row), from, to, place);
    if (exists && row >= p.rows_of_kv) turned = of_queries(p, static_cast<int>(row - p.rows_of_kv), from, to, place);
    values mine{}, other{};
    const int first = chunk * vector;
    if (to != nullptr) mine = *reinterpret_cast<const values*>(from + first);
    if constexpr (Config::rope == rotation::half) {
      const int half_of = p.rotary_dim / 2, there = first < half_of ? first + half_of : first - half_of;
      if (turned && first < p.rotary_dim) other = *reinterpret_cast<const values*>(from + there);
      __syncwarp();  // Q may be turned where it lies
    }
    if (to == nullptr) return;
    if (turns && turned && first < p.rotary_dim) turn(p, mine, other, first, place);
    *reinterpret_cast<values*>(to + first) = mine;
  }

 private:
  __device__ static bool of_cache(append_params const& p, int row, const element*& from, element*& to, int& place) {
    const bool key = row < p.rows_of_kv / 2;
    if (!key) row -= static_cast<int>(p.rows_of_kv / 2);
    int rest, head, request, number;
    p.heads_kv(rest, head, row);
    p.seqlen_new(request, number, rest);
    place = p.seqlens_k[request] + number;
    if (place >= p.capacity) return false;  // there is no room for it
    strides const& by = key ? p.of_k : p.of_v;
    strides const& into = key ? p.of_k_cache : p.of_v_cache;
    from = static_cast<const element*>(key ? p.k : p.v) + request * by.request + head * by.head + number * by.row;
    int64_t part = request;
    int in_part = place;
    if (p.page_table != nullptr) {
      int page;
      p.page_size(page, in_part, place);
      part = p.page_table[request * p.page_table_stride + page];
    }
    to = static_cast<element*>(key ? p.k_cache : p.v_cache) + part * into.request + head * into.head +
         in_part * into.row;
    return key;
  }

  __device__ static bool of_queries(append_params const& p, int row, const element*& from, element*& to, int& place) {
    int rest, head, request, number;
    p.heads_q(rest, head, row);
    p.seqlen_q(request, number, rest);
    place = p.seqlens_k[request] + number;
    from = static_cast<const element*>(p.q) + request * p.of_q.request + head * p.of_q.head + number * p.of_q.row;
    to = static_cast<element*>(p.q_out) + request * p.of_q_out.request + head * p.of_q_out.head +
         number * p.of_q_out.row;
    return true;
  }

  // (a, b) becomes (a c - b s, a s + b c).
  __device__ static void turn(append_params const& p, values& mine, values const& other, int first, int place) {
    const int half_of = p.rotary_dim / 2;
    const int64_t line = int64_t(min(place, p.places - 1)) * half_of;
    const auto* const cos = static_cast<const element*>(p.cos) + line;
    const auto* const sin = static_cast<const element*>(p.sin) + line;
    if constexpr (Config::rope == rotation::half) {
      const bool low = first < half_of;
      const int angle = low ? first : first - half_of;
#pragma unroll
      for (int i = 0; i < vector; ++i) {
        const float c = cos[angle + i], s = sin[angle + i], x = mine.x[i], y = other.x[i];
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
