// Attention kernels of CK Tile that read K and V out of a cache: in parts (fwd_splitkv), out of pages (fwd_pagedkv),
// and the one that puts parts together.
#ifndef KERNELWRIGHT_HIP_ATTENTION_CACHED_HPP
#define KERNELWRIGHT_HIP_ATTENTION_CACHED_HPP

#include "kernelwright/hip/attention/scores.hpp"

namespace kernelwright::hip::attention {

template <class P>
using split_qr = ck_tile::BlockFmhaFwdSplitKVPipelineQRKSVS<P>;
template <class P>
using split_qr_nwarp_sshuffle = ck_tile::BlockFmhaFwdSplitKVPipelineNWarpSShuffleQRKSVS<P>;

// A pipeline of 8-bit operands. CK Tile's kernels of caches tell it what to multiply probabilities by, and of O
// nothing, or that it has 8 bits. Here the number that they tell is the factor of O.
template <class T, class Pipeline>
struct rescaled : Pipeline {
  template <class Q, class QF, class KL, class KN, class KF, class VL, class VN, class VF, class B, class BF, class L,
            class LF, class SF, class PF, class OF, class... Rest>
  CK_TILE_DEVICE auto operator()(const Q& q, const QF& q_f, const KL& k_lengths, const KN& k, const KF& k_f,
                                 const VL& v_lengths, const VN& v, const VF& v_f, const B& bias, const BF& bias_f,
                                 L& lse, const LF& lse_f, const SF& s_f, const PF& factor, const OF&,
                                 Rest&&... rest) const {
    const auto result = [&] {
      const ck_tile::scales<float> scaled{factor(1.0f) / largest<T>};
      if constexpr (std::is_same_v<typename Pipeline::ODataType, typename T::in>)
        return ck_tile::composes(ck_tile::saturates<typename T::in>{}, scaled);
      else
        return scaled;
    }();
    return Pipeline::operator()(q, q_f, k_lengths, k, k_f, v_lengths, v, v_f, bias, bias_f, lse, lse_f, s_f,
                                ck_tile::scales<float>{largest<T>}, result, static_cast<Rest&&>(rest)...);
  }
};
template <class T, class Pipeline>
using for_operands = std::conditional_t<eight_bits<T>, rescaled<T, Pipeline>, Pipeline>;

// Results are fp32 parts. Stores check bounds by themselves: CK Tile's own kernels are built with these epilogues.
template <class From, class To>
using bounded_epilogue = ck_tile::Default2DEpilogue<ck_tile::Default2DEpilogueProblem<From, To, false, false>>;

template <class T>
struct split {
  // Parts of the keys may end anywhere, so all are compared with the number of keys.
  using traits =
      ck_tile::TileFmhaFwdSplitKVTraits<T::pad_s, T::pad_sk, T::pad_d, T::pad_dv, T::soft_cap, T::bias_kind, false,
                                        T::lse, eight_bits<T>, T::paged, true, false, T::block_per_cu>;
  using problem =
      ck_tile::BlockFmhaFwdSplitKVPipelineProblem<typename T::in, typename T::in, typename T::in, float, float,
                                                  typename T::bias, float, typename T::probability, float, float,
                                                  shape<T>, T::group, variant<T>, visible<T>, traits>;
  using kernel = ck_tile::FmhaFwdSplitKVKernel<for_operands<T, typename T::template pipeline<problem>>,
                                               bounded_epilogue<float, float>>;
  static constexpr int block_size = kernel::kBlockSize, block_per_cu = waves_per_simd<kernel>();

  static constexpr auto facts() { return attention::facts<kw_hip_attention_arguments>(block_size, tile_rows<T>); }

  // Writes the parts of O and LSE. The grid is (tiles of queries x splits, heads, requests).
  CK_TILE_DEVICE static void run(const kw_hip_attention_arguments& x) {
    typename kernel::Kargs all{};
    set_operands<T>(x, all);
    set_cache<T>(x, all);
    set_features<T>(x, all);
    all.o_acc_ptr = x.o, all.stride_o_acc = x.o_strides.row, all.nhead_stride_o_acc = x.o_strides.head;
    all.lse_acc_ptr = x.lse, all.nhead_stride_lse_acc = x.lse_head_stride;
    if constexpr (!T::group) {
      all.batch_stride_o_acc = x.o_strides.batch, all.batch_stride_lse_acc = x.lse_batch_stride;
    }
    all.batch = x.batch, all.num_splits = x.splits;
    all.split_stride_o_acc = x.split_stride_o, all.split_stride_lse_acc = x.split_stride_lse;
    if constexpr (T::scaled) {
      all.scale_p = factor(x.descale_v);
    } else if constexpr (eight_bits<T>) {
      all.scale_p = 1.0f;
    }
    kernel{}(all);
  }
};

template <class T>
struct paged {
  using traits =
      ck_tile::TileFmhaFwdPagedKVTraits<T::pad_s, T::pad_sk, T::pad_d, T::pad_dv, T::soft_cap, T::bias_kind, false,
                                        T::lse, T::paged, eight_bits<T>, T::block_per_cu, T::skip_min_seqlen_q>;
  using problem =
      ck_tile::BlockFmhaFwdPagedKVPipelineProblem<typename T::in, typename T::in, typename T::in, float, float,
                                                  typename T::bias, float, typename T::probability, float,
                                                  typename T::out, shape<T>, T::group, variant<T>, visible<T>, traits>;
  using kernel = ck_tile::FmhaFwdPagedKVKernel<
      for_operands<T, ck_tile::BlockFmhaFwdPagedKVPipelineQRKSVS<problem>>,
      ck_tile::Default2DEpilogue<ck_tile::Default2DEpilogueProblem<float, typename T::out, T::pad_s, T::pad_dv>>>;
  static constexpr int block_size = kernel::kBlockSize, block_per_cu = waves_per_simd<kernel>();

  static constexpr auto facts() { return attention::facts<kw_hip_attention_arguments>(block_size, tile_rows<T>); }

  // Writes O and, where the spec says so, LSE. The grid is (tiles of queries, heads, requests), or in group mode, where
  // lengths of keys are given, (heads, requests, tiles).
  CK_TILE_DEVICE static void run(const kw_hip_attention_arguments& x) {
    typename kernel::Kargs all{};
    set_operands<T>(x, all);
    set_cache<T>(x, all);
    set_result<T>(x, all);
    set_features<T>(x, all);
    if constexpr (eight_bits<T>) all.scale_p = result_factor<T>(x);
    if constexpr (T::skip_min_seqlen_q && T::group) all.min_seqlen_q = x.min_seqlen_q;
    kernel{}(all);
  }
};

// T has types out, numbers hdim, columns (of a workgroup) and block_per_cu, and group, lse, pad_s and pad_dv.
// LogSplits: at most 2^LogSplits parts.
template <class T, int LogSplits>
struct combine {
  static constexpr bool scaled = sizeof(typename T::out) == 1;
  using traits =
      ck_tile::TileFmhaFwdSplitKVCombineTraits<T::pad_s, T::pad_dv, T::lse, scaled, LogSplits, T::block_per_cu>;
  using problem = ck_tile::BlockFmhaSplitKVCombinePipelineProblem<float, float, typename T::out, T::hdim, T::group,
                                                                  T::columns, traits>;
  using kernel = ck_tile::FmhaFwdSplitKVCombineKernel<ck_tile::BlockFmhaFwdSplitKVCombinePipeline<problem>,
                                                      bounded_epilogue<float, typename T::out>>;
  static constexpr int block_size = kernel::kBlockSize, block_per_cu = kernel::kBlockPerCu;

  static constexpr auto facts() { return attention::facts<kw_hip_combine_arguments>(block_size, problem::kM0); }

  // Writes O and, where the spec says so, LSE. The grid is (tiles of queries x tiles of columns, heads, requests).
  CK_TILE_DEVICE static void run(const kw_hip_combine_arguments& x) {
    typename kernel::Kargs all{};
    all.lse_acc_ptr = x.lse_parts, all.o_acc_ptr = x.o_parts, all.o_ptr = x.o;
    all.batch = x.batch, all.seqlen_q = x.seqlen_q, all.hdim_v = x.hdim_v, all.num_splits = x.splits;
    all.row_stride_o_acc = x.part_strides.row, all.nhead_stride_o_acc = x.part_strides.head;
    all.row_stride_o = x.o_strides.row, all.nhead_stride_o = x.o_strides.head;
    all.nhead_stride_lse_acc = x.part_lse_head_stride;
    all.split_stride_o_acc = x.split_stride_o, all.split_stride_lse_acc = x.split_stride_lse;
    if constexpr (T::lse) {
      all.lse_ptr = x.lse, all.nhead_stride_lse = x.lse_head_stride, all.batch_stride_lse = x.lse_batch_stride;
    }
    if constexpr (scaled) all.scale_o = factor(x.scale_o);
    if constexpr (T::group) {
      all.seqstart_q_ptr = x.seqstart_q;
    } else {
      all.batch_stride_lse_acc = x.part_lse_batch_stride;
      all.batch_stride_o_acc = x.part_strides.batch, all.batch_stride_o = x.o_strides.batch;
    }
    kernel{}(all);
  }
};

}  // namespace kernelwright::hip::attention

#endif
