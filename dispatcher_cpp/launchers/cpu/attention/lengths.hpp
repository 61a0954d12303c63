// Lengths and pages, which the host can read here: no row that is not there is read or written.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_LENGTHS_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_LENGTHS_HPP

#include "launchers/cpu/attention/request.hpp"
#include "launchers/cpu/common/library.hpp"

namespace kernelwright::cpu {

// First rows of requests, whose lengths are not negative: they lie within the rows that the problem states.
inline kw_status check_starts(const char* name, const int32_t* starts, int64_t batch, int64_t total) {
  if (batch == 0 || (starts[0] >= 0 && starts[batch] <= total)) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, nullptr, 0, "%s goes from %d to %d; allowed: from 0 to %lld", name, starts[0],
              starts[batch], static_cast<long long>(total));
}

// The pages of the keys [first, end) of a request are in the cache. `table` has the request's pages.
inline kw_status check_pages(const int32_t* table, int64_t number, int64_t first, int64_t end, int64_t page_size,
                             int64_t pages) {
  for (int64_t i = first / page_size; first < end && i <= (end - 1) / page_size; ++i) {
    if (table[i] >= 0 && table[i] < pages) continue;
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "page %lld of request %lld is %d; allowed: 0 to %lld",
                static_cast<long long>(i), static_cast<long long>(number), table[i], static_cast<long long>(pages - 1));
  }
  return KW_OK;
}

// Keys that K has for a request.
inline int64_t keys_held(const kw_attention_problem& p, const kw_attention_args& a, int64_t number) {
  if (p.page_table == KW_PAGES_LIST) {
    return larger(0, int64_t{a.page_indptr[number + 1]} - a.page_indptr[number]) * p.page_size;
  }
  if (p.group == 0 || p.page_table != KW_PAGES_NONE) return p.max_seqlen_k;
  return int64_t{a.cu_seqlens_k[number + 1]} - a.cu_seqlens_k[number];
}

// The last page of a list holds at least one key, and no more than a page does.
inline kw_status check_last_page(const kw_attention_problem& p, const kw_attention_args& a, int64_t number) {
  if (p.page_table != KW_PAGES_LIST || a.page_indptr[number + 1] <= a.page_indptr[number]) return KW_OK;
  const int64_t keys = a.last_page_lengths[number];
  if (keys >= 1 && keys <= p.page_size) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, nullptr, 0,
              "last_page_lengths of request %lld is %lld; allowed: 1 to page_size = %lld",
              static_cast<long long>(number), static_cast<long long>(keys), static_cast<long long>(p.page_size));
}

inline kw_status check_keys(const kw_attention_problem& p, const kw_attention_args& a, const request& r) {
  if (r.keys > keys_held(p, a, r.number)) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "request %lld has %lld keys; allowed: up to %lld, which K holds",
                static_cast<long long>(r.number), static_cast<long long>(r.keys),
                static_cast<long long>(keys_held(p, a, r.number)));
  }
  if (p.page_table == KW_PAGES_NONE || r.skipped || r.keys == 0) return KW_OK;
  const int64_t entry = p.page_table == KW_PAGES_BLOCK ? r.number * p.page_table_stride : a.page_indptr[r.number];
  if (entry < 0) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "page_indptr of request %lld is %lld; allowed: 0 or more",
                static_cast<long long>(r.number), static_cast<long long>(entry));
  }
  return check_pages(a.page_table + entry, r.number, 0, r.keys, p.page_size, p.pages);
}

// Plans have room for the longest request that the problem stated.
inline kw_status check_lengths(const kw_attention_problem& p, const kw_attention_args& a) {
  const bool keys = p.base.op == KW_OP_ATTENTION_PART || p.base.op == KW_OP_ATTENTION_DQ_DK_DV;
  kw_status status = KW_OK;
  for (int64_t b = 0; b < p.batch && status == KW_OK; ++b) {
    if (keys) status = check_last_page(p, a, b);
    if (status != KW_OK) return status;
    const request r = keys ? request_at(p, a, b) : request_of_queries(p, a, b);
    if (r.queries < 0 || r.queries > p.max_seqlen_q || r.keys < 0 || r.keys > p.max_seqlen_k)
      return fail(KW_INVALID_ARGUMENT, nullptr, 0,
                  "request %lld has %lld queries and %lld keys; allowed: up to %lld, %lld", static_cast<long long>(b),
                  static_cast<long long>(r.queries), static_cast<long long>(r.keys),
                  static_cast<long long>(p.max_seqlen_q), static_cast<long long>(p.max_seqlen_k));
    if (keys) status = check_keys(p, a, r);
  }
  if (status == KW_OK && p.group != 0) status = check_starts("cu_seqlens_q", a.cu_seqlens_q, p.batch, p.total_q);
  if (status == KW_OK && keys && p.group != 0 && p.page_table == KW_PAGES_NONE)
    status = check_starts("cu_seqlens_k", a.cu_seqlens_k, p.batch, p.total_k);
  return status;
}

// New rows lie within the cache, and cosines and sines reach as far.
inline kw_status check_append_places(const kw_append_problem& p, const kw_append_args& a) {
  for (int64_t b = 0; b < p.batch; ++b) {
    const int64_t first = a.seqlens_k[b], end = first + p.seqlen_new;
    const int64_t last = larger(end, p.rotates_q != 0 ? first + p.seqlen_q : 0);
    if (first < 0 || end > p.capacity)
      return fail(KW_INVALID_ARGUMENT, nullptr, 0, "request %lld has %lld keys and gets %lld; the cache holds %lld",
                  static_cast<long long>(b), static_cast<long long>(first), static_cast<long long>(p.seqlen_new),
                  static_cast<long long>(p.capacity));
    if (p.rope != KW_ROPE_NONE && last > p.rotary_places)
      return fail(KW_INVALID_ARGUMENT, nullptr, 0, "request %lld reaches place %lld; cos and sin have %lld",
                  static_cast<long long>(b), static_cast<long long>(last - 1), static_cast<long long>(p.rotary_places));
    if (p.page_table == KW_PAGES_NONE) continue;
    const int32_t* const table = a.page_table + b * p.page_table_stride;
    const kw_status status = check_pages(table, b, first, end, p.page_size, p.pages);
    if (status != KW_OK) return status;
  }
  return KW_OK;
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_LENGTHS_HPP
