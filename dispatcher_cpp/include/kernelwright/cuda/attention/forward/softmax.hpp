// The softmax of one tile as FlashInfer's loop over keys calls it: row maxima and sums that are updated tile by tile.
//
// Exponentials are powers of two by ex2.approx.ftz: exp2f costs a multiplication and a comparison more for results
// below 2^-126, which no sum keeps.
#pragma once

#include <cfloat>

#include "kernelwright/cuda/attention/forward/flashinfer.hpp"

namespace kernelwright::cuda::attention {

// Holds: exponentials of a thread's first row come before the loop waits for the products of V.
template <int Rows, bool Holds>
struct softmax {
  using values = decltype(cute::make_tensor<float>(cute::Shape<cute::Int<Rows>>{}));
  static constexpr float fill_value = -flashinfer::math::inf;
  values row_max, row_sum, scores_scale;
  float scale;
  float sink;      // times log2(e); -inf: none
  uint32_t still;  // the shared address of 8 bytes that nobody writes

  CUTLASS_DEVICE softmax(float scale, float sink, uint32_t still) : scale(scale), sink(sink), still(still) {
    cute::clear(scores_scale);
  }

  CUTLASS_DEVICE static float exponential(float x) { return flashinfer::math::ptx_exp2(x); }
  CUTLASS_DEVICE static float finite(float x) { return fmaxf(x, -FLT_MAX); }

  template <class Scores>
  CUTLASS_DEVICE static auto by_rows(Scores& scores) {
    return cute::make_tensor(scores.data(), flashinfer::convert_layout_acc_rowcol(scores.layout()));
  }

  // Scores become probabilities, unnormalised. A row without a visible key has the maximum -inf: its probabilities are
  // 0.
  template <bool first, class Scores>
  CUTLASS_DEVICE void update(Scores& in) {
    auto scores = by_rows(in);
    values before;
    if constexpr (!first) cute::copy(row_max, before);
    flashinfer::reduce_max<first>(scores, row_max);
    CUTLASS_PRAGMA_UNROLL
    for (int row = 0; row < Rows; ++row) {
      if constexpr (!first) {
        scores_scale(row) = exponential((before(row) - finite(row_max(row))) * scale);
        row_sum(row) *= scores_scale(row);
      }
      const float subtracted = finite(row_max(row) * scale);
      CUTLASS_PRAGMA_UNROLL
      for (int key = 0; key < cute::size<1>(scores); ++key) {
        scores(row, key) = exponential(scores(row, key) * scale - subtracted);
      }
      if constexpr (Holds && !first) {
        if (row == 0) hold(scores(0, cute::size<1>(scores) - 1));
      }
    }
    flashinfer::reduce_sum<first, false>(scores, row_sum);
  }

  // ptxas moves the wait for the products of V from behind the softmax, where FlashInfer has it, to its maxima. Then
  // the exponentials are computed beside no products, which costs up to 4 % with head dimension 128. It does not
  // move the wait across this load, whose address depends on an exponential: these have no sign.
  CUTLASS_DEVICE void hold(float computed) const {
    uint32_t unused;
    asm volatile("ld.volatile.shared.u32 %0, [%1];\n"
                 : "=r"(unused)
                 : "r"(still + (__float_as_uint(computed) >> 31) * 4)
                 : "memory");
  }

  // row_sum becomes LSE (natural), scores_scale what O is multiplied by.
  template <class Scores>
  CUTLASS_DEVICE void finalize(Scores&, float) {
    flashinfer::SumOp<float> add;
    flashinfer::quad_allreduce_(row_sum, row_sum, add);
    CUTLASS_PRAGMA_UNROLL
    for (int row = 0; row < Rows; ++row) {
      const float highest = row_max(row) * scale, top = finite(fmaxf(highest, sink));
      const float factor = exponential(highest - top);
      const float sum = row_sum(row) * factor + exponential(sink - top);
      scores_scale(row) = sum > 0 ? factor / sum : 0;
      row_sum(row) = (top + flashinfer::math::ptx_log2(sum)) * 0.69314718055994531f;
    }
  }

  template <class Out>
  CUTLASS_DEVICE void rescale_o(Out& out) {
    auto rows = by_rows(out);
    CUTLASS_PRAGMA_UNROLL
    for (int row = 0; row < Rows; ++row) {
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < cute::size<1>(rows); ++i) rows(row, i) *= scores_scale(row);
    }
  }
};

}  // namespace kernelwright::cuda::attention
