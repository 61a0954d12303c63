// What is added to the scores that a thread has of a tile: a bias, read where it lies, or ALiBi.
#pragma once

#include <cutlass/cutlass.h>

#include "kernelwright/cuda/attention/addend.hpp"
#include "kernelwright/cuda/attention/tile.hpp"

namespace kernelwright::cuda::attention {

// Config: element, bias. One head and tile; `query` and `key` are those of the thread's first score.
template <class Config>
struct overlapped_addend {
  using element = typename Config::element;

  float slope, distance;  // ALiBi: times log2(e); of the first score
  const element* bias;    // at the first score
  int64_t row;            // from one query of the bias to the next
  int queries, keys;      // that the bias has from the first score on

  CUTLASS_DEVICE static overlapped_addend of(addend_numbers const& p, tile const& t, int head, int query, int key) {
    overlapped_addend out;
    if constexpr (Config::bias == addend::alibi) {
      out.slope = static_cast<const float*>(p.data)[t.request * p.request + head] * 1.4426950408889634f;
      out.distance = static_cast<float>(query + (p.from_top ? 0 : t.k.count - t.q.count) - key);
    }
    if constexpr (Config::bias == addend::elementwise) {
      out.bias = static_cast<const element*>(p.data) + t.request * p.request + head * p.head +
                 (t.q.start + query) * p.row + key;
      out.row = p.row, out.queries = t.q.count - query, out.keys = t.k.count - key;
    }
    return out;
  }

  // Times log2(e), of the score so many queries and keys behind the first one.
  CUTLASS_DEVICE float operator()(int query, int key) const {
    if constexpr (Config::bias == addend::alibi) return -slope * fabsf(distance + static_cast<float>(query - key));
    if constexpr (Config::bias == addend::elementwise) {
      const bool exists = query < queries && key < keys;
      return exists ? static_cast<float>(bias[query * row + key]) * 1.4426950408889634f : 0;
    }
    return 0;
  }
};

}  // namespace kernelwright::cuda::attention
