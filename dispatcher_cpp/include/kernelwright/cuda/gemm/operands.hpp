// Which side of a problem is CUTLASS's A: the same one, or the other (C^T = B^T A^T).
//
// wgmma computes 64 rows at a time. Where C has few rows, its columns take their place: the kernel then computes the
// transposed product on the same memory, a row-major matrix being its transpose in column-major order.
#pragma once

#include <cutlass/layout/matrix.h>

#include <cute/tensor.hpp>

#include "kernelwright/cuda/common/resources.hpp"
#include "kernelwright/cuda/gemm/launcher.h"

namespace kernelwright::cuda {

template <class Element>
constexpr int tma_alignment = 128 / cutlass::sizeof_bits<Element>::value;

struct operand {
  const void* pointer;
  int64_t leading, batch;
};

struct operand_sides {
  int m, n;
  operand a, b;
};

// One product has no distance to the next; whatever the problem says there, TMA would check it.
inline int64_t batch_stride(const kw_gemm_problem& p, int64_t stride) { return p.batch > 1 ? stride : 0; }

inline operand operand_a(const kw_gemm_problem& p, const kw_gemm_args& args) {
  return {args.a, p.lda, batch_stride(p, p.stride_a)};
}
inline operand operand_b(const kw_gemm_problem& p, const kw_gemm_args& args) {
  return {args.b, p.ldb, batch_stride(p, p.stride_b)};
}

// Its descriptor is made even where beta is 0 and nothing reads it: it needs some valid address.
inline operand operand_c(const kw_gemm_problem& p, const kw_gemm_args& args) {
  return {args.c ? args.c : args.d, p.ldc, batch_stride(p, p.stride_c)};
}

template <class Layout>
using transposed = cute::conditional_t<cute::is_same_v<Layout, cutlass::layout::RowMajor>, cutlass::layout::ColumnMajor,
                                       cutlass::layout::RowMajor>;

template <class Config, bool swap = Config::swap>
struct operands_of {
  using element_a = typename Config::element_a;
  using element_b = typename Config::element_b;
  using layout_a = typename Config::layout_a;
  using layout_b = typename Config::layout_b;
  using layout_c = cutlass::layout::RowMajor;
  using tile = typename Config::tile;
  using cluster = typename Config::cluster;

  static operand_sides sides(const kw_gemm_problem& p, const kw_gemm_args& args) {
    return {static_cast<int>(p.m), static_cast<int>(p.n), operand_a(p, args), operand_b(p, args)};
  }
};

template <class Config>
struct operands_of<Config, true> {
  using element_a = typename Config::element_b;
  using element_b = typename Config::element_a;
  using layout_a = transposed<typename Config::layout_b>;
  using layout_b = transposed<typename Config::layout_a>;
  using layout_c = cutlass::layout::ColumnMajor;
  using tile = decltype(cute::select<1, 0, 2>(typename Config::tile{}));
  using cluster = decltype(cute::select<1, 0, 2>(typename Config::cluster{}));

  static operand_sides sides(const kw_gemm_problem& p, const kw_gemm_args& args) {
    return {static_cast<int>(p.n), static_cast<int>(p.m), operand_b(p, args), operand_a(p, args)};
  }
};

// A leading dimension as CuTe's stride of (rows, columns, batch).
inline auto stride(int64_t leading, int64_t batch, cute::Stride<int64_t, cute::Int<1>, int64_t>) {
  return cute::Stride<int64_t, cute::Int<1>, int64_t>{leading, cute::Int<1>{}, batch};
}
inline auto stride(int64_t leading, int64_t batch, cute::Stride<cute::Int<1>, int64_t, int64_t>) {
  return cute::Stride<cute::Int<1>, int64_t, int64_t>{cute::Int<1>{}, leading, batch};
}

}  // namespace kernelwright::cuda
