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
    const int64_t head = row / per_head;
    return head / heads * by.request + head % heads * by.head + row % per_head * by.row;
  }
};

}  // namespace kernelwright::cuda::attention
