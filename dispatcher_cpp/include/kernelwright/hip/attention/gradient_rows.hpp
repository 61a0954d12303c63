// The kernels of CK Tile before and after the gradients: D, the row sums of dO * O, and dQ out of its fp32 sums.
#ifndef KERNELWRIGHT_HIP_ATTENTION_GRADIENT_ROWS_HPP
#define KERNELWRIGHT_HIP_ATTENTION_GRADIENT_ROWS_HPP

#include "kernelwright/hip/attention/gradient_arguments.h"
#include "kernelwright/hip/attention/scores.hpp"

namespace kernelwright::hip::attention {

// T has types in, numbers rows, hdim and block_per_cu, and group, pad_s and pad_dv.
template <class T>
struct dot {
  using traits = ck_tile::TileFmhaBwdOGradDotOTraits<T::pad_s, T::pad_dv, T::block_per_cu>;
  using problem = ck_tile::BlockFmhaBwdOGradDotOPipelineProblem<typename T::in, typename T::in, float, T::rows, T::hdim,
                                                                T::group, traits>;
  using kernel = ck_tile::FmhaBwdOGradDotOKernel<ck_tile::BlockFmhaBwdOGradDotO<problem>>;
  static constexpr int block_size = kernel::kBlockSize, block_per_cu = ck_tile::max(1, kernel::kBlockPerCu);

  static constexpr auto facts() { return attention::facts<kw_hip_gradient_arguments>(block_size, kernel::kM0); }

  // Writes d. The grid is (tiles of queries, heads, requests).
  CK_TILE_DEVICE static void run(const kw_hip_gradient_arguments& x) {
    typename kernel::Kargs all{};
    all.o_ptr = x.o, all.do_ptr = x.d_o, all.d_ptr = x.d, all.p_undrop = x.keep;
    all.seqlen_q = x.seqlen_q, all.hdim_v = x.hdim_v;
    all.stride_o = x.o_strides.row, all.nhead_stride_o = x.o_strides.head;
    all.stride_do = x.do_strides.row, all.nhead_stride_do = x.do_strides.head;
    all.nhead_stride_d = x.lse_head_stride;
    if constexpr (T::group) {
      all.seqstart_q_ptr = x.seqstart_q, all.seqlen_q_ptr = x.lengths_q;
    } else {
      all.batch_stride_o = x.o_strides.batch, all.batch_stride_do = x.do_strides.batch;
      all.batch_stride_d = x.lse_batch_stride;
    }
    kernel{}(all);
  }
};

// T has types in, numbers rows, keys (of the kernel whose parts are added up), hdim and block_per_cu, and group,
// deterministic, pad_s and pad_d.
template <class T>
struct convert {
  static constexpr int work_items = 256;
  using traits = ck_tile::TileFmhaBwdConvertQGradTraits<T::pad_s, T::pad_d, T::block_per_cu>;
  using problem = ck_tile::BlockFmhaBwdConvertQGradPipelineProblem<float, typename T::in, work_items, T::rows, T::keys,
                                                                   T::hdim, T::group, T::deterministic, traits>;
  using kernel = ck_tile::FmhaBwdConvertQGradKernel<ck_tile::BlockFmhaBwdConvertQGrad<problem>>;
  static constexpr int block_size = kernel::kBlockSize, block_per_cu = ck_tile::max(1, kernel::kBlockPerCu);

  static constexpr auto facts() { return attention::facts<kw_hip_gradient_arguments>(block_size, T::rows); }

  // Writes dQ. The grid is (tiles of queries, heads, requests).
  CK_TILE_DEVICE static void run(const kw_hip_gradient_arguments& x) {
    typename kernel::Kargs all{};
    all.dq_acc_ptr = x.dq_sums, all.dq_ptr = x.dq;
    all.seqlen_q = x.seqlen_q, all.seqlen_k = x.seqlen_k, all.hdim_q = x.hdim_q;
    all.stride_dq = x.dq_strides.row, all.nhead_stride_dq = x.dq_strides.head;
    all.stride_dq_acc = x.sums_strides.row, all.nhead_stride_dq_acc = x.sums_strides.head;
    if constexpr (T::deterministic) all.split_stride_dq_acc = x.split_stride_sums;
    if constexpr (T::group) {
      all.seqstart_q_ptr = x.seqstart_q, all.seqstart_k_ptr = x.seqstart_k;
      all.seqlen_q_ptr = x.lengths_q, all.seqlen_k_ptr = x.lengths_k;
    } else {
      all.batch_stride_dq = x.dq_strides.batch, all.batch_stride_dq_acc = x.sums_strides.batch;
    }
    kernel{}(all);
  }
};

}  // namespace kernelwright::hip::attention

#endif
