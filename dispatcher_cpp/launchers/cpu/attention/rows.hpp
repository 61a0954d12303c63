// Blocks of rows: which queries of which heads they hold, and what kernels need to know of each.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_ROWS_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_ROWS_HPP

#include "launchers/cpu/attention/request.hpp"

namespace kernelwright::cpu {

constexpr float kLog2OfE = 1.44269504088896341f;

// Queries [query, query + queries) of `heads` heads from `head` on.
struct row_range {
  int64_t head, heads, query, queries;
  int64_t rows() const { return heads * queries; }
};

// Few queries of several heads share a block; a block of many holds one head only.
inline int64_t heads_per_block(const request& r, int64_t group, int64_t tile) {
  return r.queries == 0 ? group : larger(1, smaller(group, tile / r.queries));
}

inline int64_t row_blocks(const request& r, int64_t group, int64_t tile) {
  if (r.queries == 0 || r.skipped) return 0;
  return divide_up(group, heads_per_block(r, group, tile)) * divide_up(r.queries, tile);
}

inline row_range row_range_at(const request& r, int64_t first_head, int64_t group, int64_t tile, int64_t index) {
  const int64_t heads = heads_per_block(r, group, tile), along = divide_up(r.queries, tile);
  row_range b = {index / along * heads, 0, index % along * tile, 0};
  b.heads = smaller(heads, group - b.head);
  b.queries = smaller(tile, r.queries - b.query);
  b.head += first_head;
  return b;
}

inline score_rules rules_of(const kw_attention_problem& p, const kw_attention_args& args, uint32_t keeps) {
  score_rules s = {};
  s.alpha = static_cast<float>(p.soft_cap != 0 ? p.scale / p.soft_cap : p.scale * double{kLog2OfE});
  s.cap = static_cast<float>(p.soft_cap * double{kLog2OfE});
  s.seed = args.seed;
  s.keeps = keeps;
  s.dropout = p.dropout != 0;
  s.biased = p.bias == KW_BIAS_ELEMENTWISE;
  return s;
}

template <class T>
void take_array(char*& memory, int64_t count, T*& array) {
  array = reinterpret_cast<T*>(memory);
  memory += count * static_cast<int64_t>(sizeof(T));
}

// Arrays for `tile` rows in memory of a thread.
inline row_block place_rows(char* memory, int64_t tile) {
  row_block b = {};
  take_array(memory, tile, b.dropout);
  take_array(memory, tile, b.o);
  take_array(memory, tile, b.lse);
  take_array(memory, tile, b.bias);
  float** const arrays[] = {&b.place, &b.low, &b.high, &b.slope, &b.top, &b.sum};
  for (float** array : arrays) take_array(memory, tile, *array);
  return b;
}

// Fills in all but where results go; returns the keys that some row sees. Rows behind the last one see everything.
inline range describe_rows(const kw_attention_problem& p, const kw_attention_args& args, const request& r,
                           const row_range& which, int64_t bias_bytes, int64_t tile, row_block& rows) {
  range seen = {r.keys, 0};
  rows.rows = which.rows();
  for (int64_t i = 0; i < tile; ++i) {
    const bool used = i < rows.rows;
    const int64_t head = which.head + i / larger(1, which.queries), query = which.query + i % larger(1, which.queries);
    const range own = used ? keys_seen(p, r, query) : range{0, r.keys};
    rows.place[i] = static_cast<float>(first_place(p, r) + query);
    rows.low[i] = static_cast<float>(own.begin);
    rows.high[i] = static_cast<float>(own.end - 1);
    rows.slope[i] = 0;
    rows.bias[i] = nullptr;
    rows.top[i] = -INFINITY;
    rows.sum[i] = 0;
    if (!used) continue;
    if (own.begin < own.end) seen = {smaller(seen.begin, own.begin), larger(seen.end, own.end)};
    if (p.bias == KW_BIAS_ALIBI) {
      rows.slope[i] = static_cast<const float*>(args.bias)[r.number * p.slopes_stride + head] * kLog2OfE;
    } else if (p.bias == KW_BIAS_ELEMENTWISE) {
      const int64_t offset = row_offset(p.bias_strides, r.number, head, r.first_query + query);
      rows.bias[i] = static_cast<const char*>(args.bias) + offset * bias_bytes;
    }
    rows.dropout[i] = {args.offset + 64u * static_cast<uint64_t>(r.number * p.heads_q + head), query};
  }
  return seen;
}

// The sink of a row takes part in its sum from the beginning.
inline void begin_with_sinks(const kw_attention_args& args, const row_range& which, row_block& rows) {
  for (int64_t i = 0; i < rows.rows; ++i) {
    rows.top[i] = args.sinks[which.head + i / which.queries] * kLog2OfE;
    rows.sum[i] = 1;
  }
}

// Widens 8-bit rows of Q, side by side.
inline void widen_queries(float* to, widen_rows_function widen, const kw_attention_problem& p,
                          const kw_attention_args& args, const request& r, const row_range& which) {
  const factor_source factors(p, args);
  const int64_t number = p.group != 0 ? 0 : r.number, last = which.query + which.queries;
  for (int64_t head = which.head; head < which.head + which.heads; ++head) {
    for (int64_t query = which.query, end = 0; query < last; query = end) {
      const auto run = factors.of_queries(r.number, head, query);
      end = smaller(last, run.end);
      const auto* const from =
          static_cast<const uint8_t*>(args.q) + row_offset(p.q, number, head, r.first_query + query);
      widen({from, p.q.row, end - query, p.hdim_q, run.factor, to});
      to += (end - query) * p.hdim_q;
    }
  }
}

// Copies rows of Q, or dO, side by side.
inline void copy_rows(char* to, const void* from, const kw_attention_strides& strides, const kw_attention_problem& p,
                      const request& r, const row_range& which, int64_t hdim, int64_t bytes) {
  const int64_t number = p.group != 0 ? 0 : r.number;
  for (int64_t head = 0; head < which.heads; ++head) {
    for (int64_t query = 0; query < which.queries; ++query, to += hdim * bytes) {
      const int64_t offset = row_offset(strides, number, which.head + head, r.first_query + which.query + query);
      memcpy(to, static_cast<const char*>(from) + offset * bytes, static_cast<size_t>(hdim * bytes));
    }
  }
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_ROWS_HPP
