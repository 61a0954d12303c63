// Requests of a problem: their lengths, and where their rows are.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_REQUEST_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_REQUEST_HPP

#include <math.h>
#include <string.h>

#include "kernelwright/cpu/attention/kernel.hpp"

namespace kernelwright::cpu {

// Lengths of a request, and its first rows among those of all requests (group mode).
struct request {
  int64_t number, queries, keys, first_query, first_key;
  bool skipped;
};

inline int64_t keys_of(const kw_attention_problem& p, const kw_attention_args& args, int64_t number) {
  if (p.page_table == KW_PAGES_LIST) {
    const int64_t pages = int64_t{args.page_indptr[number + 1]} - args.page_indptr[number];
    return pages <= 0 ? 0 : (pages - 1) * p.page_size + args.last_page_lengths[number];
  }
  if (p.kv_lengths != 0) return args.seqlens_k[number];
  if (p.group != 0) return int64_t{args.cu_seqlens_k[number + 1]} - args.cu_seqlens_k[number];
  return p.max_seqlen_k;
}

// Of families that read no keys.
inline request request_of_queries(const kw_attention_problem& p, const kw_attention_args& args, int64_t number) {
  request r = {number, p.max_seqlen_q, 0, 0, 0, false};
  if (p.group != 0) {
    r.first_query = args.cu_seqlens_q[number];
    r.queries = args.cu_seqlens_q[number + 1] - r.first_query;
    r.skipped = r.queries < p.min_seqlen_q;
  }
  return r;
}

inline request request_at(const kw_attention_problem& p, const kw_attention_args& args, int64_t number) {
  request r = request_of_queries(p, args, number);
  r.keys = keys_of(p, args, number);
  if (p.group != 0 && p.page_table == KW_PAGES_NONE) r.first_key = args.cu_seqlens_k[number];
  return r;
}

// Elements from a tensor's beginning to row `row` of a head of a request.
inline int64_t row_offset(const kw_attention_strides& s, int64_t number, int64_t head, int64_t row) {
  return number * s.request + head * s.head + row * s.row;
}

// The number of a row in results that have one element, or dense rows, "per row".
inline int64_t row_number(const kw_attention_problem& p, const request& r, int64_t head, int64_t query) {
  if (p.group != 0) return head * p.total_q + r.first_query + query;
  return (r.number * p.heads_q + head) * p.max_seqlen_q + query;
}

// The place of a request's first query among its keys.
inline int64_t first_place(const kw_attention_problem& p, const request& r) {
  return p.mask == KW_MASK_TOP_LEFT ? 0 : r.keys - r.queries;
}

// The keys [begin, end) that a query sees.
inline range keys_seen(const kw_attention_problem& p, const request& r, int64_t query) {
  const int64_t place = first_place(p, r) + query;
  const int64_t begin = p.window_left < 0 ? 0 : larger(0, place - p.window_left);
  const int64_t end = p.window_right < 0 ? r.keys : smaller(r.keys, place + p.window_right + 1);
  return {begin, end};
}

// Factors of 8-bit operands, see kw_attention_qscale.
class factor_source {
 public:
  factor_source(const kw_attention_problem& p, const kw_attention_args& args) : p_(p), args_(args) {}

  // Queries, or keys, that have one factor reach up to `end`.
  struct run {
    float factor;
    int64_t end;
  };

  run of_queries(int64_t number, int64_t head, int64_t query) const {
    if (p_.qscale != KW_QSCALE_BLOCK_SCALE) return {whole(args_.descale_q), INT64_MAX};
    return in_blocks(args_.descale_q, number * p_.heads_q + head, p_.max_seqlen_q, p_.scale_block_q, query);
  }
  run of_keys(const float* factors, int64_t number, int64_t head, int64_t key, int64_t page) const {
    if (p_.qscale == KW_QSCALE_BLOCK_SCALE)
      return in_blocks(factors, number * p_.heads_kv + head, p_.max_seqlen_k, p_.scale_block_k, key);
    if (p_.qscale == KW_QSCALE_KV_BLOCK_SCALE)
      return {factors[page * p_.heads_kv + head], (key / p_.page_size + 1) * p_.page_size};
    return {whole(factors), INT64_MAX};
  }

 private:
  float whole(const float* factor) const { return p_.qscale != KW_QSCALE_NONE ? *factor : 1.0f; }
  static run in_blocks(const float* factors, int64_t line, int64_t rows, int64_t block, int64_t row) {
    return {factors[line * divide_up(rows, block) + row / block], (row / block + 1) * block};
  }

  const kw_attention_problem& p_;
  const kw_attention_args& args_;
};

// Rows of K or V of a head of a request, side by side as far as `ld` says.
struct key_rows {
  const void* at;
  int64_t ld;
};

// Where rows of K or V of one head of a request are; rows in several pages are copied together, and those of 8 bits
// are widened.
class key_source {
 public:
  key_source(const kw_attention_problem& p, const kw_attention_args& args, const void* cache,
             const kw_attention_strides& strides, int64_t hdim, const attention_kernel& kernel, const float* factors)
      : p_(p),
        args_(args),
        cache_(static_cast<const char*>(cache)),
        strides_(strides),
        hdim_(hdim),
        bytes_(kernel.input_bytes),
        widen_(kernel.widen_rows),
        factors_(factors) {}

  // `own` has room for `count` rows.
  key_rows rows(const request& r, int64_t head, int64_t first, int64_t count, char* own) const {
    if (widen_ != nullptr) return widened(r, head, first, count, reinterpret_cast<float*>(own));
    if (p_.page_table == KW_PAGES_NONE) return {in_line(r, head, first), strides_.row};
    const int64_t last = first + count - 1;
    if (count > 0 && first / p_.page_size == last / p_.page_size) return {in_page(r, head, first), strides_.row};
    for (int64_t key = first; key <= last;) {
      const int64_t end = smaller(last + 1, (key / p_.page_size + 1) * p_.page_size);
      const char* from = in_page(r, head, key);
      for (; key < end; ++key, from += strides_.row * bytes_) {
        memcpy(own + (key - first) * hdim_ * bytes_, from, static_cast<size_t>(hdim_ * bytes_));
      }
    }
    return {own, hdim_};
  }

 private:
  key_rows widened(const request& r, int64_t head, int64_t first, int64_t count, float* own) const {
    const bool paged = p_.page_table != KW_PAGES_NONE;
    const factor_source factors(p_, args_);
    for (int64_t key = first, end = 0; key < first + count; key = end) {
      const auto run = factors.of_keys(factors_, r.number, head, key, paged ? page_of(r, key) : 0);
      end = smaller(first + count, run.end);
      if (paged) end = smaller(end, (key / p_.page_size + 1) * p_.page_size);
      const char* const from = paged ? in_page(r, head, key) : in_line(r, head, key);
      widen_({from, strides_.row, end - key, hdim_, run.factor, own + (key - first) * hdim_});
    }
    return {own, hdim_};
  }

  const char* in_line(const request& r, int64_t head, int64_t key) const {
    return cache_ + row_offset(strides_, p_.group != 0 ? 0 : r.number, head, r.first_key + key) * bytes_;
  }
  int64_t page_of(const request& r, int64_t key) const {
    const int64_t entry =
        p_.page_table == KW_PAGES_BLOCK ? r.number * p_.page_table_stride : int64_t{args_.page_indptr[r.number]};
    return args_.page_table[entry + key / p_.page_size];
  }
  const char* in_page(const request& r, int64_t head, int64_t key) const {
    return cache_ + row_offset(strides_, page_of(r, key), head, key % p_.page_size) * bytes_;
  }

  const kw_attention_problem& p_;
  const kw_attention_args& args_;
  const char* cache_;
  const kw_attention_strides& strides_;
  int64_t hdim_, bytes_;
  widen_rows_function widen_;
  const float* factors_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_REQUEST_HPP
