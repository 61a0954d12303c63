// The second half of a GEMM that shares K among workgroups: adds the slices up in their order and finishes. Without any
// slice, all of a GEMM whose K is empty.
#ifndef KERNELWRIGHT_HIP_GEMM_SUM_HPP
#define KERNELWRIGHT_HIP_GEMM_SUM_HPP

#include "kernelwright/hip/gemm/finish.hpp"

namespace kernelwright::hip {

// One work-item per KW_HIP_SUM_VECTOR elements of a row. The same order in every run, so the same bits.
template <class T>
CK_TILE_DEVICE void sum_slices(kw_hip_gemm_arguments x) {
  using vector = sum_vector<typename T::acc>;
  const int32_t per_row = (x.n + KW_HIP_SUM_VECTOR - 1) / KW_HIP_SUM_VECTOR;
  const int64_t per_matrix = int64_t{x.m} * per_row;
  const int32_t blocks = static_cast<int32_t>((per_matrix + KW_HIP_SUM_BLOCK - 1) / KW_HIP_SUM_BLOCK);
  const auto block = static_cast<int32_t>(blockIdx.x);
  const int32_t index = T::batched ? block / blocks : 0;
  const int64_t at = int64_t{block - index * blocks} * KW_HIP_SUM_BLOCK + static_cast<int32_t>(threadIdx.x);
  if (at >= per_matrix) return;
  if constexpr (T::batched) x = matrix_of_batch<T>(x, index);

  const vector* first = static_cast<const vector*>(x.partial) + index * per_matrix * x.shares + at;
  vector sum{};
  if (x.shares != 0) sum = *first;
  for (int32_t slice = 1; slice < x.shares; ++slice) {
    const vector next = first[slice * per_matrix];
    for (int i = 0; i < KW_HIP_SUM_VECTOR; ++i) sum.element[i] += next.element[i];
  }
  const auto row = static_cast<int32_t>(at / per_row);
  finish_vector<T>(sum, x, row, static_cast<int32_t>(at - int64_t{row} * per_row) * KW_HIP_SUM_VECTOR);
}

}  // namespace kernelwright::hip

#endif
