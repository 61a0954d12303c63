// How many keys each request has, and where they are: the forms of kernelwright/attention.h.
#pragma once

#include <cutlass/cutlass.h>
#include <cutlass/fast_math.h>

#include <cstdint>

namespace kernelwright::cuda::attention {

struct key_rows {
  const int32_t* page_table;   // null: no pages
  const int32_t* page_indptr;  // of a page list, else null
  const int32_t* last_page_lengths;
  const int32_t *cu_seqlens_k, *seqlens_k;  // or null
  int64_t page_table_stride;
  cutlass::FastDivmod page_size;
  int32_t seqlen_k;

  CUTLASS_DEVICE int count(int request) const {
    if (page_indptr != nullptr) {
      const int pages = page_indptr[request + 1] - page_indptr[request];
      return pages > 0 ? (pages - 1) * page_size.divisor + last_page_lengths[request] : 0;
    }
    if (seqlens_k != nullptr) return seqlens_k[request];
    return cu_seqlens_k != nullptr ? cu_seqlens_k[request + 1] - cu_seqlens_k[request] : seqlen_k;
  }

  // The first of a request's entries in the page table; without pages its first row.
  CUTLASS_DEVICE int64_t first(int request) const {
    if (page_indptr != nullptr) return page_indptr[request];
    if (page_table != nullptr) return request * page_table_stride;
    return cu_seqlens_k != nullptr ? cu_seqlens_k[request] : 0;
  }
};

}  // namespace kernelwright::cuda::attention
