// What lies between a sum of products and what is stored: act((alpha * sum + beta * C) op D0 op D1 ...), in fp32 (int32
// for integers), rounded once.
#ifndef KERNELWRIGHT_HIP_GEMM_FINISH_HPP
#define KERNELWRIGHT_HIP_GEMM_FINISH_HPP

#include <hip/hip_runtime.h>

#include <type_traits>

#include "ck_tile/core.hpp"
#include "kernelwright/gemm.h"
#include "kernelwright/hip/common/activation.hpp"
#include "kernelwright/hip/gemm/arguments.h"

namespace kernelwright::hip {

struct add {
  template <class X>
  CK_TILE_DEVICE static X of(X a, X b) {
    return a + b;
  }
};
struct multiply {
  template <class X>
  CK_TILE_DEVICE static X of(X a, X b) {
    return a * b;
  }
};

// The arguments of one matrix of a batch.
template <class T>
CK_TILE_DEVICE kw_hip_gemm_arguments matrix_of_batch(kw_hip_gemm_arguments x, int32_t index) {
  x.a = static_cast<const typename T::a*>(x.a) + index * x.stride_a;
  x.b = static_cast<const typename T::b*>(x.b) + index * x.stride_b;
  x.c = static_cast<const typename T::d*>(x.c) + index * x.stride_c;
  x.d = static_cast<typename T::d*>(x.d) + index * x.stride_c;
  for (int i = 0; i < T::num_d; ++i)
    x.multi_d[i] = static_cast<const typename T::d*>(x.multi_d[i]) + index * x.stride_multi_d[i];
  return x;
}

// The elements of C or D that belong to rows of accumulators, in the same lanes. Rows beyond m lie behind the buffer's
// end, columns beyond n are masked: both read zeros.
template <class T, class Tile>
CK_TILE_DEVICE auto load_beside(const Tile& sums, const void* from, const kw_hip_gemm_arguments& x, int32_t leading,
                                int32_t at_m, int32_t at_n) {
  using namespace ck_tile;
  constexpr auto lengths = Tile::get_lengths();
  const auto view = make_naive_tensor_view<address_space_enum::global>(
      static_cast<const typename T::d*>(from), make_tuple(x.m, x.n), make_tuple(leading, 1), number<1>{}, number<1>{});
  const auto padded = pad_tensor_view(view, lengths, sequence<false, T::pad_n>{});
  return load_tile(make_tile_window(padded, lengths, {at_m, at_n}, sums.get_tile_distribution()));
}

// The same lanes with another number of warp tiles along M.
template <int Count, class Encoding>
struct with_rows;
template <int Count, class R, int All, int... M, class N, class... P>
struct with_rows<Count, ck_tile::tile_distribution_encoding<R, ck_tile::tuple<ck_tile::sequence<All, M...>, N>, P...>> {
  static constexpr int all = All;
  using type = ck_tile::tile_distribution_encoding<R, ck_tile::tuple<ck_tile::sequence<Count, M...>, N>, P...>;
};

// Slice `index` of a tile's accumulators, of `Count` warp tiles along M for each wave: in a lane they are the
// outermost, so a slice is a part of what the lane holds.
template <int Count, class Tile, class Index>
CK_TILE_DEVICE auto rows_of(const Tile& sums, Index index) {
  using encoding = typename Tile::StaticTileDistribution::DstrEncode;
  using slice_encoding = with_rows<Count, encoding>;
  static_assert(encoding::Ys2RHsMajor::front() == 1 && encoding::Ys2RHsMinor::front() == 0);
  constexpr auto lanes = ck_tile::make_static_tile_distribution(typename slice_encoding::type{});
  auto slice = ck_tile::make_static_distributed_tensor<typename Tile::DataType>(lanes);
  constexpr int length = slice.get_thread_buffer_size();
  static_assert(length * slice_encoding::all == Count * Tile::get_thread_buffer_size());
  ck_tile::static_for<0, length, 1>{}([&](auto i) {
    slice.get_thread_buffer()(i) = sums.get_thread_buffer()[ck_tile::number<index.value * length + i.value>{}];
  });
  return slice;
}

// An element of an array of arguments. By selects: an index known at run time would move the arguments to scratch
// memory.
template <class Element>
CK_TILE_DEVICE Element one_of(const Element (&of)[KW_HIP_MAX_MULTI_D], int32_t index) {
  return index == 0 ? of[0] : index == 1 ? of[1] : index == 2 ? of[2] : of[3];
}

// Accumulators of a tile, or of some of its rows, whose first element is (at_m, at_n).
template <class T, class Tile>
CK_TILE_DEVICE void finish_tile(Tile& sums, const kw_hip_gemm_arguments& x, int32_t at_m, int32_t at_n) {
  using acc = typename T::acc;
  if constexpr (std::is_floating_point_v<acc>) {
    if (x.beta != 0) {
      const auto old = load_beside<T>(sums, x.c, x, x.ldc, at_m, at_n);
      ck_tile::tile_elementwise_inout(
          [&](acc& sum, const auto& c) { sum = x.alpha * sum + x.beta * ck_tile::type_convert<acc>(c); }, sums, old);
    } else {
      ck_tile::tile_elementwise_inout([&](acc& sum) { sum *= x.alpha; }, sums);
    }
  }
  const auto combine = [&](auto op, const void* from, int32_t leading) {
    const auto other = load_beside<T>(sums, from, x, leading, at_m, at_n);
    ck_tile::tile_elementwise_inout(
        [](acc& sum, const auto& d) { sum = decltype(op)::template of<acc>(sum, ck_tile::type_convert<acc>(d)); }, sums,
        other);
  };
  const auto activate = [&](auto activation) {
    ck_tile::tile_elementwise_inout([](acc& sum) { sum = decltype(activation)::of(sum); }, sums);
  };
  if constexpr (any_epilogue<T>) {
#pragma unroll 1
    for (int32_t i = 0; i < x.num_d; ++i) {
      const void* from = one_of(x.multi_d, i);
      const int32_t leading = one_of(x.ld_multi_d, i);
      if (x.d_op == KW_D_ADD)
        combine(add{}, from, leading);
      else
        combine(multiply{}, from, leading);
    }
    with_activation(x.activation, activate);
  } else {
    ck_tile::static_for<0, T::num_d, 1>{}([&](auto i) { combine(typename T::d_op{}, x.multi_d[i], x.ld_multi_d[i]); });
    if constexpr (!std::is_same_v<typename T::activation, none>) activate(typename T::activation{});
  }
}

// One element.
template <class T>
CK_TILE_DEVICE typename T::d finish_element(typename T::acc sum, const kw_hip_gemm_arguments& x, int32_t row,
                                            int32_t column, typename T::d c) {
  using acc = typename T::acc;
  if constexpr (std::is_floating_point_v<acc>) {
    sum *= x.alpha;
    if (x.beta != 0) sum += x.beta * ck_tile::type_convert<acc>(c);
  }
  const auto other = [&](int i) {
    return ck_tile::type_convert<acc>(
        static_cast<const typename T::d*>(x.multi_d[i])[int64_t{row} * x.ld_multi_d[i] + column]);
  };
  if constexpr (any_epilogue<T>) {
#pragma unroll
    for (int i = 0; i < T::num_d; ++i)
      if (i < x.num_d) sum = x.d_op == KW_D_ADD ? add::of(sum, other(i)) : multiply::of(sum, other(i));
    with_activation(x.activation, [&](auto activation) { sum = decltype(activation)::of(sum); });
  } else {
    for (int i = 0; i < T::num_d; ++i) sum = T::d_op::template of<acc>(sum, other(i));
    if constexpr (!std::is_same_v<typename T::activation, none>) sum = T::activation::of(sum);
  }
  return ck_tile::type_convert<typename T::d>(sum);
}

// KW_HIP_SUM_VECTOR elements of a row, as far as they are inside. D may be C; rows of both are aligned as the epilogue
// asks.
template <class D, int RowBytes>
struct alignas(RowBytes) alignas(D) narrow_vector {
  D element[KW_HIP_SUM_VECTOR];
};
template <class Acc>
struct alignas(KW_HIP_SUM_VECTOR * sizeof(Acc)) sum_vector {
  Acc element[KW_HIP_SUM_VECTOR];
};

template <class T>
CK_TILE_DEVICE void finish_vector(const sum_vector<typename T::acc>& sum, const kw_hip_gemm_arguments& x, int32_t row,
                                  int32_t column) {
  using element = typename T::d;
  using narrow = narrow_vector<element, T::epilogue::row_bytes>;
  const int64_t offset = int64_t{row} * x.ldc + column;
  const element* c = static_cast<const element*>(x.c) + offset;
  element* d = static_cast<element*>(x.d) + offset;
  if (x.n - column >= KW_HIP_SUM_VECTOR) {
    narrow old{}, out;
    if (x.beta != 0) old = *reinterpret_cast<const narrow*>(c);
    for (int i = 0; i < KW_HIP_SUM_VECTOR; ++i)
      out.element[i] = finish_element<T>(sum.element[i], x, row, column + i, old.element[i]);
    *reinterpret_cast<narrow*>(d) = out;
  } else {
    // Unrolled: an index known at run time would move the sum to scratch memory.
#pragma unroll
    for (int i = 0; i < KW_HIP_SUM_VECTOR - 1; ++i)
      if (i < x.n - column)
        d[i] = finish_element<T>(sum.element[i], x, row, column + i, x.beta != 0 ? c[i] : element{});
  }
}

}  // namespace kernelwright::hip

#endif
