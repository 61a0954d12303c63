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

inline request request_at(const kw_attention_problem& p, const kw_attention_args& args, int64_t number) {
  request r = {number, p.max_seqlen_q, keys_of(p, args, number), 0, 0, false};
  if (p.group != 0) {
    r.first_query = args.cu_seqlens_q[number];
    r.queries = args.cu_seqlens_q[number + 1] - r.first_query;
    if (p.page_table == KW_PAGES_NONE) r.first_key = args.cu_seqlens_k[number];
    r.skipped = r.queries < p.min_seqlen_q;
  }
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

// Rows of K or V of a head of a request, side by side as far as `ld` says.
struct key_rows {
  const void* at;
  int64_t ld;
};

// Where rows of K or V of one head of a request are; rows in several pages are copied together.
class key_source {
 public:
  key_source(const kw_attention_problem& p, const kw_attention_args& args, const void* cache,
             const kw_attention_strides& strides, int64_t hdim, int64_t element_bytes)
      : p_(p),
        args_(args),
        cache_(static_cast<const char*>(cache)),
        strides_(strides),
        hdim_(hdim),
        bytes_(element_bytes) {}

  // `own` has room for `count` rows.
  key_rows rows(const request& r, int64_t head, int64_t first, int64_t count, char* own) const {
    if (p_.page_table == KW_PAGES_NONE) {
      const int64_t offset = row_offset(strides_, p_.group != 0 ? 0 : r.number, head, r.first_key + first);
      return {cache_ + offset * bytes_, strides_.row};
    }
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
  const char* in_page(const request& r, int64_t head, int64_t key) const {
    const int64_t entry =
        p_.page_table == KW_PAGES_BLOCK ? r.number * p_.page_table_stride : int64_t{args_.page_indptr[r.number]};
    const int64_t page = args_.page_table[entry + key / p_.page_size];
    return cache_ + row_offset(strides_, page, head, key % p_.page_size) * bytes_;
  }

  const kw_attention_problem& p_;
  const kw_attention_args& args_;
  const char* cache_;
  const kw_attention_strides& strides_;
  int64_t hdim_, bytes_;
};

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_REQUEST_HPP
