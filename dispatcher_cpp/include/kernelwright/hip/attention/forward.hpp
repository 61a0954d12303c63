// A forward attention kernel of CK Tile from one description of types, extents and features; a rendered header only
// fills in the description.
#ifndef KERNELWRIGHT_HIP_ATTENTION_FORWARD_HPP
#define KERNELWRIGHT_HIP_ATTENTION_FORWARD_HPP

#include <hip/hip_runtime.h>

#include "ck_tile/core.hpp"
#include "ck_tile/ops/epilogue/default_2d_epilogue.hpp"
#include "ck_tile/ops/fmha.hpp"
#include "kernelwright/hip/attention/arguments.h"

namespace kernelwright::hip::attention {

template <class P>
using qr = ck_tile::BlockFmhaPipelineQRKSVS<P>;
template <class P>
using qr_async = ck_tile::BlockFmhaPipelineQRKSVSAsync<P>;
template <class P>
using qs = ck_tile::BlockFmhaPipelineQSKSVS<P>;
template <class P>
using qr_async_trload = ck_tile::BlockFmhaPipelineQRKSVSAsyncTrload<P>;

inline constexpr auto no_bias = ck_tile::BlockAttentionBiasEnum::NO_BIAS;
inline constexpr auto elementwise = ck_tile::BlockAttentionBiasEnum::ELEMENTWISE_BIAS;
inline constexpr auto alibi = ck_tile::BlockAttentionBiasEnum::ALIBI;

// T describes the kernel: types in (of Q, K and V), probability, bias and out; sequences tile (m0 n0 k0 n1 k1 k0max),
// wave0, wave1, warp_tile0 and warp_tile1; template pipeline; and what `traits`, `problem` and `run` read.
template <class T>
struct forward {
  using shape = ck_tile::TileFmhaShape<typename T::tile, typename T::wave0, typename T::warp_tile0, typename T::wave1,
                                       typename T::warp_tile1, true>;
  using traits = ck_tile::TileFmhaTraits<T::pad_s, T::pad_sk, T::pad_d, T::pad_dv, T::soft_cap, T::bias_kind, false,
                                         T::lse, T::dropout, T::scaled, T::block_per_cu, T::skip_min_seqlen_q>;
  using problem = ck_tile::BlockFmhaPipelineProblem<
      typename T::in, typename T::in, typename T::in, float, float, typename T::bias, uint8_t, float,
      typename T::probability, float, typename T::out, shape, T::group,
      ck_tile::ComposedAttention<T::soft_cap * ck_tile::LOGITS_SOFT_CAP, CK_TILE_FMHA_FWD_FAST_EXP2>,
      ck_tile::SimplifiedGenericAttentionMask<T::masked>, T::trload, traits>;
  using epilogue =
      ck_tile::Default2DEpilogue<ck_tile::Default2DEpilogueProblem<float, typename T::out, T::pad_s, T::pad_dv>>;
  using kernel = ck_tile::FmhaFwdKernel<typename T::template pipeline<problem>, epilogue>;
  static constexpr int block_size = kernel::kBlockSize;
  static constexpr int block_per_cu = kernel::kBlockPerCu;

  // Writes O and, where the spec says so, LSE and random bytes. The grid is heads x tiles of queries x requests; in
  // group mode with lengths of keys heads x requests x tiles.
  CK_TILE_DEVICE static void run(const kw_hip_attention_arguments& x) {
    typename kernel::Kargs all{};
    all.q_ptr = x.q, all.k_ptr = x.k, all.v_ptr = x.v, all.o_ptr = x.o;
    all.seqlen_q = x.seqlen_q, all.seqlen_k = x.seqlen_k, all.hdim_q = x.hdim_q, all.hdim_v = x.hdim_v;
    all.num_head_q = x.heads, all.nhead_ratio_qk = x.head_ratio;
    all.scale_s = x.scale * ck_tile::log2e_v<float>;  // exponentials are powers of two
    all.stride_q = x.q_strides.row, all.nhead_stride_q = x.q_strides.head;
    all.stride_k = x.k_strides.row, all.nhead_stride_k = x.k_strides.head;
    all.stride_v = x.v_strides.row, all.nhead_stride_v = x.v_strides.head;
    all.stride_o = x.o_strides.row, all.nhead_stride_o = x.o_strides.head;
    if constexpr (T::group) {
      all.seqstart_q_ptr = x.seqstart_q, all.seqstart_k_ptr = x.seqstart_k;
      all.seqlen_k_ptr = x.lengths_k;
    } else {
      all.batch_stride_q = x.q_strides.batch, all.batch_stride_k = x.k_strides.batch;
      all.batch_stride_v = x.v_strides.batch, all.batch_stride_o = x.o_strides.batch;
    }
    features(x, all);
    kernel{}(all);
  }

 private:
  template <class Kargs>
  CK_TILE_DEVICE static void features(const kw_hip_attention_arguments& x, Kargs& all) {
    if constexpr (T::bias_kind == elementwise) {
      all.bias_ptr = x.bias, all.stride_bias = x.bias_strides.row, all.nhead_stride_bias = x.bias_strides.head;
      if constexpr (!T::group) all.batch_stride_bias = x.bias_strides.batch;
    } else if constexpr (T::bias_kind == alibi) {
      all.alibi_slope_ptr = x.bias, all.alibi_slope_stride = x.slopes_batch_stride;
    }
    if constexpr (T::masked) {
      all.window_size_left = x.window_left, all.window_size_right = x.window_right;
      all.mask_type = static_cast<ck_tile::GenericAttentionMaskEnum>(x.mask);
    }
    if constexpr (T::lse) {
      all.lse_ptr = x.lse, all.nhead_stride_lse = x.lse_head_stride, all.batch_stride_lse = x.lse_batch_stride;
    }
    if constexpr (T::scaled) all.scale_p = x.scale_p, all.scale_o = x.scale_o;
    if constexpr (T::soft_cap) all.logits_soft_cap = x.soft_cap, all.logits_soft_cap_rcp = 1.0f / x.soft_cap;
    if constexpr (T::skip_min_seqlen_q && T::group) all.min_seqlen_q = x.min_seqlen_q;
    if constexpr (T::dropout) {
      all.drop_seed.val = x.seed, all.drop_offset.val = x.offset, all.is_drop_seed_offset_from_host = true;
      all.p_undrop_in_uint8_t = static_cast<uint8_t>(x.keep * 255.0f);
      all.rp_undrop = 1.0f / x.keep;
      all.rand_val_ptr = x.random_bytes, all.is_store_randval = x.random_bytes != nullptr;
      all.stride_randval = x.random_strides.row, all.nhead_stride_randval = x.random_strides.head;
      if constexpr (!T::group) all.batch_stride_randval = x.random_strides.batch;
    }
  }
};

}  // namespace kernelwright::hip::attention

#endif
