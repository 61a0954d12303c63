// The second half of a GEMM that shares K among workgroups: adds the slices up in their order, scales, converts.
#ifndef TILEWRIGHT_HIP_SUM_HPP
#define TILEWRIGHT_HIP_SUM_HPP

#include <hip/hip_runtime.h>

#include <type_traits>

#include "ck_tile/core.hpp"
#include "tilewright/hip/arguments.h"

namespace tilewright::hip {

// Rows of C and D are aligned to 4 bytes, whatever the element.
template <class T>
struct alignas(4) narrow_vector {
  T element[TW_HIP_SUM_VECTOR];
};

template <class Acc>
struct alignas(TW_HIP_SUM_VECTOR * sizeof(Acc)) slice_vector {
  Acc element[TW_HIP_SUM_VECTOR];
};

// The same order in every run, so the same bits.
template <class Acc>
CK_TILE_DEVICE slice_vector<Acc> add_slices(const slice_vector<Acc>* first, int64_t distance, int32_t count) {
  slice_vector<Acc> sum = *first;
  for (int32_t slice = 1; slice < count; ++slice) {
    const slice_vector<Acc> next = first[slice * distance];
    for (int i = 0; i < TW_HIP_SUM_VECTOR; ++i) sum.element[i] += next.element[i];
  }
  return sum;
}

template <class D, class Acc>
CK_TILE_DEVICE D finish(Acc sum, const tw_hip_sum_arguments& x, const D* c) {
  if constexpr (std::is_floating_point_v<Acc>) {
    sum *= x.alpha;
    if (x.beta != 0) sum += x.beta * ck_tile::type_convert<Acc>(*c);
  }
  return ck_tile::type_convert<D>(sum);
}

// One work-item per TW_HIP_SUM_VECTOR elements of a row. D may be C.
template <class D, class Acc>
CK_TILE_DEVICE void sum_slices(const tw_hip_sum_arguments& x) {
  const int32_t per_row = x.slice_ldd / TW_HIP_SUM_VECTOR;
  const int32_t at = static_cast<int32_t>(blockIdx.x * TW_HIP_SUM_BLOCK + threadIdx.x);
  if (at >= x.m * per_row) return;
  const int32_t row = at / per_row, column = at % per_row * TW_HIP_SUM_VECTOR;
  const int64_t distance = static_cast<int64_t>(x.m) * per_row;
  const slice_vector<Acc> sum = add_slices(static_cast<const slice_vector<Acc>*>(x.slices) + at, distance, x.count);

  const int64_t offset = static_cast<int64_t>(row) * x.ldd + column;
  const D* c = static_cast<const D*>(x.c) + offset;
  D* d = static_cast<D*>(x.d) + offset;
  if (x.n - column >= TW_HIP_SUM_VECTOR) {
    narrow_vector<D> old{}, out;
    if (x.beta != 0) old = *reinterpret_cast<const narrow_vector<D>*>(c);
    for (int i = 0; i < TW_HIP_SUM_VECTOR; ++i) out.element[i] = finish<D>(sum.element[i], x, &old.element[i]);
    *reinterpret_cast<narrow_vector<D>*>(d) = out;
  } else {
    // Unrolled: an index known at run time would move the sum to scratch memory.
#pragma unroll
    for (int i = 0; i < TW_HIP_SUM_VECTOR - 1; ++i)
      if (i < x.n - column) d[i] = finish<D>(sum.element[i], x, c + i);
  }
}

}  // namespace tilewright::hip

#endif
