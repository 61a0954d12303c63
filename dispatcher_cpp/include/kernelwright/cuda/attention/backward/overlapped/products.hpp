// wgmma on operands that TMA brings: rows of 64 16-bit elements, swizzled over 128 bytes, 8 rows to 1,024 bytes.
#pragma once

#include <cutlass/cutlass.h>

#include <cute/arch/mma_sm90.hpp>
#include <cute/numeric/integral_constant.hpp>
#include <utility>

namespace kernelwright::cuda::attention {

constexpr int atom_columns = 64, atom_row_bytes = 128, atom_bytes = 8 * atom_row_bytes;

using major = cute::SM90::GMMA::Major;
using scale_out = cute::SM90::GMMA::ScaleOut;

// The matrix descriptor of an operand at a shared address. Bytes from one group of 8 rows to the next are those of an
// atom; `columns_apart` is how far the next 64 columns lie, which matters where columns are the wider side of the
// product (Major::MN).
CUTLASS_DEVICE uint64_t operand_at(uint32_t address, int columns_apart = 16) {
  const uint64_t swizzle_128 = uint64_t(1) << 62;
  return swizzle_128 | uint64_t(atom_bytes / 16) << 32 | uint64_t((columns_apart / 16) & 0x3fff) << 16 |
         uint64_t((address & 0x3ffff) / 16);
}

template <class Element, int N, major A, major B>
using from_shared = decltype(cute::SM90::GMMA::ss_op_selector<Element, Element, float,
                                                              cute::Shape<cute::_64, cute::Int<N>, cute::_16>, A, B>());
template <class Element, int N, major B>
using from_registers =
    decltype(cute::SM90::GMMA::rs_op_selector<Element, Element, float, cute::Shape<cute::_64, cute::Int<N>, cute::_16>,
                                              major::K, B>());

template <class Op, int Count, size_t... I>
CUTLASS_DEVICE void issue(uint64_t a, uint64_t b, float (&sums)[Count], scale_out scale, std::index_sequence<I...>) {
  Op::fma(a, b, sums[I]..., scale);
}
template <class Op, int Count, size_t... I>
CUTLASS_DEVICE void issue(const uint32_t* a, uint64_t b, float (&sums)[Count], std::index_sequence<I...>) {
  Op::fma(a[0], a[1], a[2], a[3], b, sums[I]..., scale_out::One);
}

// The compiler must not move reads and writes of registers across a wait for the products that fill them.
template <int Count>
CUTLASS_DEVICE void settle(float (&sums)[Count]) {
  CUTLASS_PRAGMA_UNROLL
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// sums = A B of 64 x N, `Steps` times 16 deep; the addresses of step i are a(i) and b(i).
template <class Op, int Steps, int Count, class A, class B>
CUTLASS_DEVICE void multiply_shared(float (&sums)[Count], A a, B b) {
  cute::warpgroup_arrive();
  CUTLASS_PRAGMA_UNROLL
  for (int i = 0; i < Steps; ++i) {
    issue<Op>(a(i), b(i), sums, i == 0 ? scale_out::Zero : scale_out::One, std::make_index_sequence<Count>{});
  }
  cute::warpgroup_commit_batch();
}

// sums += A B, A in registers.
template <class Op, int Steps, int Count, class B>
CUTLASS_DEVICE void add_product(float (&sums)[Count], const uint32_t (&a)[4 * Steps], B b) {
  cute::warpgroup_arrive();
  CUTLASS_PRAGMA_UNROLL
  for (int i = 0; i < Steps; ++i) issue<Op>(&a[4 * i], b(i), sums, std::make_index_sequence<Count>{});
  cute::warpgroup_commit_batch();
}

}  // namespace kernelwright::cuda::attention
