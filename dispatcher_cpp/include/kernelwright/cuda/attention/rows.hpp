// "Per row" of kernelwright/attention.h: where the queries of all heads are.
#pragma once

#include <cstdint>

namespace kernelwright::cuda::attention {

struct strides {
  int64_t request, head, row;
};

struct rows_of_queries {
  int64_t count;     // all of them
  int64_t per_head;  // queries of a head: of one request, or of all in group mode
  int32_t heads;

  // Where a row of a tensor with these strides begins; in group mode `request` is 0 and there is one.
  __device__ int64_t offset(int64_t row, strides const& by) const {
    if (count <= UINT32_MAX) {  // divisions of 64 bits take longer than the row's load
      const uint32_t head = uint32_t(row) / uint32_t(per_head), of_head = uint32_t(row) - head * uint32_t(per_head);
      const uint32_t request = head / uint32_t(heads);
      return request * by.request + (head - request * heads) * by.head + of_head * by.row;
    }
    const int64_t head = row / per_head;
    return head / heads * by.request + head % heads * by.head + row % per_head * by.row;
  }
};

}  // namespace kernelwright::cuda::attention
