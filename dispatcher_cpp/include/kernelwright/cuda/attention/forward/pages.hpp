// K and V out of pages by TMA: a tile of keys takes a copy for each page, or part of a page, and 64 elements.
//
// Every lane of the producing warp looks up and copies a part of its own. Parts are as long as the largest power of two
// that divides the page and the tile; rows behind the last key of a request are zeros (see load.hpp).
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

// The producer of a kernel whose K and V are in pages.
template <class Traits>
struct page_loader {
  using contiguous = loader<Traits>;
  using pipeline = typename contiguous::pipeline;
  using position = typename contiguous::position;
  using element = typename contiguous::element;
  static constexpr int N = Traits::CTA_KV;

  // As loader::load; t.k.start is the first entry of the request in the page table.
  template <class Storage>
  CUTLASS_DEVICE static void load(operands<Traits> const& from, pages const& in, Storage& shared, pipeline& keys,
                                  position& at_key, pipeline& values, position& at_value, tile const& t, int first,
                                  int last, int done) {
    const bool leader = cute::elect_one_sync();
    int of_keys = look_up(in, t, last);
    copy<Traits::HEAD_DIM_QK>(in.k, in.k_rows, in, keys, at_key, shared.smem_k.data(), t, last, of_keys);
    cutlass::arch::NamedBarrier::sync(contiguous::waiting, static_cast<int>(flashinfer::NamedBarriers::kQueryEmpty));
    if (leader) contiguous::load_queries(from, shared, t);
    shared.barrier_O.wait((done + 1) % 2);
    int of_values = of_keys;
    for (int index = last; index > first; --index) {
      of_keys = look_up(in, t, index - 1);
      copy<Traits::HEAD_DIM_QK>(in.k, in.k_rows, in, keys, at_key, shared.smem_k.data(), t, index - 1, of_keys);
      copy<Traits::HEAD_DIM_VO>(in.v, in.v_rows, in, values, at_value, shared.smem_v.data(), t, index, of_values);
      of_values = of_keys;
    }
    copy<Traits::HEAD_DIM_VO>(in.v, in.v_rows, in, values, at_value, shared.smem_v.data(), t,
                              cutlass::fast_min(first, last), of_values);
  }

 private:
  // The page of this lane's part of a tile, or -1.
  CUTLASS_DEVICE static int look_up(pages const& in, tile const& t, int index) {
    const int row = int(threadIdx.x % 32) * in.part, key = index * N + row;
    return row < N && key < t.k.count ? in.table[t.k.start + in.page_size.divide(key)] : -1;
  }

  template <int HDim>
  CUTLASS_DEVICE static void copy(CUtensorMap const& map, int rows_of_page, pages const& in, pipeline& barriers,
                                  position& at, element* buffer, tile const& t, int index, int page) {
    barriers.producer_acquire(at);
    __syncwarp();  // one lane has told the barrier how much will come
    const int row = int(threadIdx.x % 32) * in.part, key = index * N + row;
    if (row < N) {
      int number, in_page;
      in.page_size(number, in_page, key);
      const int count = page < 0 ? 0 : cutlass::fast_min(in.part, t.k.count - key);
      const int start = page < 0 ? 0 : page * rows_of_page + in_page;
      element* const to = buffer + at.index() * N * HDim + row * page_columns;
      CUTLASS_PRAGMA_UNROLL
      for (int c = 0; c < HDim / page_columns; ++c) {
        cute::SM90_TMA_LOAD_5D::copy(
            &map, barriers.producer_get_barrier(at), static_cast<uint64_t>(cute::TMA::CacheHintSm90::EVICT_NORMAL),
            to + c * N * page_columns, c * page_columns, int(edge) - count, t.kv_head, start + count, int(edge));
      }
    }
    ++at;
  }
};

}  // namespace kernelwright::cuda::attention
