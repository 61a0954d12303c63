// What is added to the scores before the softmax.
#pragma once

#include <cstdint>

namespace kernelwright::cuda::attention {

enum class addend { none, alibi, elementwise };

// What kernels add that choose by the problem, and its numbers.
struct addend_numbers {
  const void* data;  // elements, or slopes, whose strides are those of a request and 1
  int64_t request, head, row;
  int32_t from_top;  // ALiBi: query i stands at key i; else the last query stands at the last key
};

}  // namespace kernelwright::cuda::attention
