// Small kernels of our own that run before or after those of CK Tile.
#ifndef KERNELWRIGHT_HIP_ATTENTION_BESIDE_HPP
#define KERNELWRIGHT_HIP_ATTENTION_BESIDE_HPP

#include "kernelwright/hip/attention/gradient_arguments.h"
#include "kernelwright/hip/attention/scores.hpp"

namespace kernelwright::hip::attention {

// Writes places of keys. The grid is (places of a request, requests); each work-item writes one.
CK_TILE_DEVICE void list_pages(const kw_hip_page_list_arguments& x) {
  const int32_t request = blockIdx.y, key = blockIdx.x * KW_HIP_ATTENTION_BLOCK + threadIdx.x;
  const int32_t begin = request * x.places_stride;
  const int32_t* pages = x.pages;
  int32_t length = 0;
  if (x.page_starts) {
    const int32_t count = x.page_starts[request + 1] - x.page_starts[request];
    pages += x.page_starts[request];
    length = count ? (count - 1) * x.page_size + x.last_lengths[request] : 0;
  } else {
    pages += int64_t{request} * x.pages_stride;
    length = x.lengths_k[request];
  }
  if (key == 0) x.ends[2 * request] = begin, x.ends[2 * request + 1] = begin + length;
  // Neighbours write the same number to the same place.
  if (x.query_starts && key < 2) x.query_starts[request + key] = (request + key) * x.queries;
  if (key >= x.places_stride) return;
  x.places[begin + key] = key < length ? pages[key / x.page_size] * x.page_size + key % x.page_size : x.past_end;
}

// Adds up the rows of the heads of Q that share a head of K and V. The grid is flat, an element for each work-item.
template <class Element>
CK_TILE_DEVICE void sum_heads(const kw_hip_head_sum_arguments& x) {
  int64_t at = int64_t{blockIdx.x} * KW_HIP_ATTENTION_BLOCK + threadIdx.x;
  const int32_t i = at % x.hdim;
  at /= x.hdim;
  const int32_t head = at % x.heads;
  at /= x.heads;
  const int64_t row = at % x.rows, request = at / x.rows;
  if (request >= x.batch) return;
  const Element* from = static_cast<const Element*>(x.from) + request * x.from_strides.batch +
                        row * x.from_strides.row + int64_t{head} * x.head_ratio * x.from_strides.head + i;
  float sum = 0;
  for (int32_t one = 0; one < x.head_ratio; ++one)
    sum += ck_tile::type_convert<float>(from[int64_t{one} * x.from_strides.head]);
  static_cast<Element*>(
      x.to)[request * x.to_strides.batch + row * x.to_strides.row + int64_t{head} * x.to_strides.head + i] =
      ck_tile::type_convert<Element>(sum);
}

// Clears what workgroups add to.
CK_TILE_DEVICE void clear(const kw_hip_clear_arguments& x) {
  const uint64_t at = uint64_t{blockIdx.x} * KW_HIP_ATTENTION_BLOCK + threadIdx.x;
  if (at < x.count) x.to[at] = 0.0f;
}

}  // namespace kernelwright::hip::attention

#endif
