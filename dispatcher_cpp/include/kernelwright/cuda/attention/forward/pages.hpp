// K and V out of pages by TMA: a tile of keys takes a copy for each page, or part of a page, and 64 elements.
//
// A warp issues one copy after the other, and with pages of 16 rows a tile takes more of them than one warp can issue
// while the tile before is multiplied. So two warps share the parts of K, and two those of V; every lane looks up and
// copies a part of its own. Parts are as long as the largest power of two that divides the page and the tile; rows
// behind the last key of a request are zeros (see load.hpp).
#pragma once

#include "kernelwright/cuda/attention/forward/load.hpp"

namespace kernelwright::cuda::attention {

constexpr int page_columns = 64;    // elements of a row that one copy brings: 128 bytes, the width of the swizzle
constexpr int least_page_part = 8;  // rows of a swizzle atom

struct pages {
  CUtensorMap k, v;
  const int32_t* table;
  cutlass::FastDivmod page_size;
  int32_t k_rows, v_rows;  // from one page to the next
  int32_t part;            // rows of one copy
};

inline int32_t part_of_page(int64_t page_size, int tile) {
  int32_t part = least_page_part;
  while (2 * part <= tile && page_size % (2 * part) == 0 && tile % (2 * part) == 0) part *= 2;
  return part;
}

// The descriptor of a cache whose pages are `part` rows or multiples of it: element, row, head, d and c of load.hpp.
template <class Element>
CUresult encode_pages(CUtensorMap* map, const void* cache, int64_t row, int64_t head, int heads, int hdim, int part) {
  const cuuint64_t extents[] = {cuuint64_t(hdim), cuuint64_t(edge), cuuint64_t(heads), 0x7fff0000, 0x7fff0000};
  const cuuint64_t bytes = sizeof(Element);
  const cuuint64_t strides[] = {row * bytes, head * bytes, row * bytes, (wrap - row) * bytes};
  const cuuint32_t box[] = {page_columns, cuuint32_t(part), 1, 1, 1}, steps[] = {1, 1, 1, 1, 1};
  constexpr bool bfloat = cute::is_same_v<Element, cutlass::bfloat16_t>;
  return cuTensorMapEncodeTiled(map, bfloat ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 5,
                                const_cast<void*>(cache), extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

// One of the warps that fill the tiles of K, or of V, with every second part.
template <class Traits>
struct page_loader {
  using pipeline = typename Traits::MainloopPipeline;
  using position = typename Traits::PipelineState;
  using element = typename Traits::DTypeQ;
  static constexpr int N = Traits::CTA_KV, hdim = Traits::HEAD_DIM_QK, warps = 2;
  static_assert(hdim == Traits::HEAD_DIM_VO, "tiles of K and V are of one size");

  pages const& in;
  CUtensorMap const& map;
  int rows_of_page;
  element* buffer;
  pipeline& filled;  // its leader, a thread of the first of the two warps, says how much will come
  int row;           // of a tile: where this lane's part begins
  position at = cutlass::make_producer_start_state<pipeline>();

  CUTLASS_DEVICE page_loader(pages const& in, CUtensorMap const& map, int rows_of_page, element* buffer,
                             pipeline& filled, int warp)
      : in(in),
        map(map),
        rows_of_page(rows_of_page),
        buffer(buffer),
        filled(filled),
        row((int(threadIdx.x % 32) * warps + warp) * in.part) {}

  // The tiles from `last` down to `first`, one at least; page numbers are read a tile ahead. t.k.start is the first
  // entry of the request in the page table. `between` runs behind the first tile.
  template <class Between>
  CUTLASS_DEVICE void load(tile const& t, int first, int last, Between between) {
    int page = look_up(t, last);
    for (int index = last; index >= cutlass::fast_min(first, last); --index) {
      const int ahead = look_up(t, index - 1);
      copy(t, index, page);
      if (index == last) between();
      page = ahead;
    }
  }

 private:
  // The page of this lane's part of a tile, or -1.
  CUTLASS_DEVICE int look_up(tile const& t, int index) const {
    const int key = index * N + row;
    return index >= 0 && row < N && key < t.k.count ? in.table[t.k.start + in.page_size.divide(key)] : -1;
  }

  CUTLASS_DEVICE void copy(tile const& t, int index, int page) {
    filled.producer_acquire(at);
    if (row < N) {
      int number, in_page, key = index * N + row;
      in.page_size(number, in_page, key);
      const int count = page < 0 ? 0 : cutlass::fast_min(in.part, t.k.count - key);
      const int start = page < 0 ? 0 : page * rows_of_page + in_page;
      element* const to = buffer + at.index() * N * hdim + row * page_columns;
      CUTLASS_PRAGMA_UNROLL
      for (int c = 0; c < hdim / page_columns; ++c) {
        cute::SM90_TMA_LOAD_5D::copy(
            &map, filled.producer_get_barrier(at), static_cast<uint64_t>(cute::TMA::CacheHintSm90::EVICT_NORMAL),
            to + c * N * page_columns, c * page_columns, int(edge) - count, t.kv_head, start + count, int(edge));
      }
    }
    __syncwarp();
    ++at;
  }
};

}  // namespace kernelwright::cuda::attention
