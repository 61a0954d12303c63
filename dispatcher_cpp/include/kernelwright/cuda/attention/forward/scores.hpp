// What becomes of Q K^T before the softmax: a cap, or a bias, or nothing.
#pragma once

#include "kernelwright/cuda/attention/addend.hpp"
#include "kernelwright/cuda/attention/forward/flashinfer.hpp"
#include "kernelwright/cuda/attention/tile.hpp"

namespace kernelwright::cuda::attention {

struct score_numbers {
  float scale;          // of Q K^T, times log2(e)
  float soft_cap;       // times log2(e); 0: none
  float cap_scale;      // scale of Q K^T / cap
  float inverse_scale;  // 1 / scale of Q K^T
  const float* sinks;   // of the heads, or null
  const void* bias;     // elements, or slopes, whose strides are those of a request and 1
  int64_t bias_request, bias_head, bias_row;
  int32_t from_top;  // ALiBi: query i stands at key i; else the last query stands at the last key
};

// As FlashInfer's loop calls it, once for each score of a tile. The softmax multiplies by the scale, so that a bias is
// divided by it before it is added. Config: element, soft_cap, bias.
template <class Config>
struct scores {
  using element = typename Config::element;

  float cap_scale, inverse_scale;
  float slope;            // ALiBi: over scale
  int32_t shift;          // ALiBi: the place of query 0
  const element* bias;    // of query 0
  int64_t row;            // from one query of the bias to the next
  int32_t queries, keys;  // that the bias has

  CUTLASS_DEVICE static scores of(score_numbers const& p, tile const& t) {
    scores out{p.cap_scale, p.inverse_scale};
    if constexpr (Config::bias == addend::alibi) {
      out.slope = static_cast<const float*>(p.bias)[t.request * p.bias_request + t.head] * p.inverse_scale;
      out.shift = p.from_top ? 0 : t.k.count - t.q.count;
    }
    if constexpr (Config::bias == addend::elementwise) {
      out.bias = static_cast<const element*>(p.bias) + t.request * p.bias_request + t.head * p.bias_head +
                 t.q.start * p.bias_row;
      out.row = p.bias_row, out.queries = t.q.count, out.keys = t.k.count;
    }
    return out;
  }

  template <class Params>
  CUTLASS_DEVICE float LogitsTransform(Params const&, float score, uint32_t, int query, int key, uint32_t, uint32_t) {
    if constexpr (Config::soft_cap) score = flashinfer::math::tanh(score * cap_scale);
    if constexpr (Config::bias == addend::alibi) {
      score -= slope * fabsf(static_cast<float>(query + shift - key));
    }
    if constexpr (Config::bias == addend::elementwise) {
      if (query < queries && key < keys) score += static_cast<float>(bias[query * row + key]) * inverse_scale;
    }
    return score;
  }
};

}  // namespace kernelwright::cuda::attention
