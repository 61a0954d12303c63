// Which rows of pages a launch writes: threads must not write one of them twice.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_WRITTEN_ROWS_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_WRITTEN_ROWS_HPP

#include "launchers/cpu/attention/request.hpp"
#include "launchers/cpu/common/library.hpp"

namespace kernelwright::cpu {

// A bit for each row of the cache; so many words lie on the stack, more in the workspace.
constexpr int64_t kRowsOfWord = 64, kWordsOnStack = 128;

inline int64_t words_of_rows(const kw_append_problem& p) {
  if (p.page_table == KW_PAGES_NONE || p.batch == 0 || p.seqlen_new == 0) return 0;
  return divide_up(p.pages * p.page_size, kRowsOfWord);
}

inline uint64_t bytes_of_rows(const kw_append_problem& p) {
  const int64_t words = words_of_rows(p);
  return words <= kWordsOnStack ? 0 : align_bytes(8u * static_cast<uint64_t>(words));
}

// The row of the cache, counted over all pages, at place `place` of a request.
inline int64_t row_of_place(const kw_append_problem& p, const kw_append_args& a, int64_t number, int64_t place) {
  const int64_t page = a.page_table[number * p.page_table_stride + place / p.page_size];
  return page * p.page_size + place % p.page_size;
}

// The first request that writes the row, and the last one up to request `end`, at its place `last`.
inline kw_status refuse_row(const kw_append_problem& p, const kw_append_args& a, int64_t row, int64_t end,
                            int64_t last) {
  for (int64_t b = 0; b <= end; ++b) {
    for (int64_t place = a.seqlens_k[b]; place < a.seqlens_k[b] + p.seqlen_new; ++place) {
      if (row_of_place(p, a, b, place) != row || (b == end && place == last)) continue;
      return fail(KW_INVALID_ARGUMENT, nullptr, 0,
                  "page_table: requests %lld and %lld both write row %lld of page %lld; give each request pages of its "
                  "own behind seqlens_k",
                  static_cast<long long>(b), static_cast<long long>(end), static_cast<long long>(row % p.page_size),
                  static_cast<long long>(row / p.page_size));
    }
  }
  return KW_OK;
}

// KW_INVALID_ARGUMENT where two requests, or one request twice, would write a row. Pages are known to be in the cache.
// workspace: bytes_of_rows().
inline kw_status check_written_rows(const kw_append_problem& p, const kw_append_args& a, void* workspace) {
  const int64_t words = words_of_rows(p);
  uint64_t few[kWordsOnStack];
  uint64_t* const taken = words <= kWordsOnStack ? few : static_cast<uint64_t*>(workspace);
  // Of a large cache a launch writes few rows: only their words are cleared.
  for (int64_t b = 0; words != 0 && b < p.batch; ++b) {
    for (int64_t place = a.seqlens_k[b]; place < a.seqlens_k[b] + p.seqlen_new; ++place) {
      taken[row_of_place(p, a, b, place) / kRowsOfWord] = 0;
    }
  }
  for (int64_t b = 0; words != 0 && b < p.batch; ++b) {
    for (int64_t place = a.seqlens_k[b]; place < a.seqlens_k[b] + p.seqlen_new; ++place) {
      const int64_t row = row_of_place(p, a, b, place);
      uint64_t& word = taken[row / kRowsOfWord];
      const uint64_t bit = uint64_t{1} << (row % kRowsOfWord);
      if ((word & bit) != 0) return refuse_row(p, a, row, b, place);
      word |= bit;
    }
  }
  return KW_OK;
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_WRITTEN_ROWS_HPP
