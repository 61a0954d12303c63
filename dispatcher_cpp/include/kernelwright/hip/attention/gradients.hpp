// The kernel of CK Tile that computes the gradients of Q (as fp32 sums), K, V and the bias. A
// rendered header only fills in the description.
#ifndef KERNELWRIGHT_HIP_ATTENTION_GRADIENTS_HPP
#define KERNELWRIGHT_HIP_ATTENTION_GRADIENTS_HPP

#include "kernelwright/hip/attention/beside.hpp"
#include "kernelwright/hip/attention/gradient_arguments.h"
#include "kernelwright/hip/attention/scores.hpp"

namespace kernelwright::hip::attention {

// T describes the kernel: types in and sequences tile (m0 n0 k0 … k4 hdim_q hdim_v), wave0 to wave2, warp_tile0 to
// warp_tile2; max_seqlen_q, pad_q and pad_v (what divides a padded head dimension, 0 for none), and features.
template <class T>
struct gradients {
  using element = typename T::in;
  using shape =
      ck_tile::TileFmhaBwdShape<typename T::tile, typename T::wave0, typename T::warp_tile0, typename T::wave1,
                                typename T::warp_tile1, typename T::wave0, typename T::warp_tile0, typename T::wave1,
                                typename T::warp_tile1, typename T::wave2, typename T::warp_tile2, T::max_seqlen_q>;
  using traits = ck_tile::TileFmhaBwdTraits<T::pad_q, T::pad_v, T::bias_kind, T::dbias, T::block_per_cu>;
  // The second argument: warp tiles of 32 rows; no dropout is written so too.
  using dropout = ck_tile::BlockDropoutBwd<T::dropout, !T::dropout, T::store_random>;
  using problem =
      ck_tile::BlockFmhaBwdPipelineProblem<element, element, element, element, float, float, float, element, uint8_t,
                                           element, element, element, element, element, element, shape, T::group,
                                           T::deterministic, visible<T>, dropout, T::trload, traits>;
  template <int Pad>
  using epilogue = ck_tile::Default2DEpilogue<ck_tile::Default2DEpilogueProblem<float, element, false, (Pad > 0)>>;
  using kernel = ck_tile::FmhaBwdDQDKDVKernel<ck_tile::BlockFmhaBwdDQDKDVPipeline<problem>, epilogue<T::pad_q>,
                                              epilogue<T::pad_v>, epilogue<T::pad_q>>;
  static constexpr int block_size = kernel::kBlockSize, block_per_cu = ck_tile::max(1, kernel::kBlockPerCu);
  static constexpr int keys = shape::kN0;

  static constexpr auto facts() { return attention::facts<kw_hip_gradient_arguments>(block_size, keys); }

  // Adds to dq_sums, writes dK, dV and, where the spec says so, dBias and random bytes; a kernel for few queries writes
  // dQ itself. The grid is (tiles of keys, heads of Q, requests), of a kernel for few queries (1, heads, requests).
  CK_TILE_DEVICE static void run(const kw_hip_gradient_arguments& x) {
    if (clear_unseen(x)) return;
    if constexpr (T::dbias && (T::masked || T::group)) clear_bias(x);
    typename kernel::Kargs all{};
    operands(x, all);
    features(x, all);
    kernel{}(all);
  }

 private:
  template <class Kargs>
  CK_TILE_DEVICE static void operands(const kw_hip_gradient_arguments& x, Kargs& all) {
    constexpr bool whole = T::max_seqlen_q != 0;
    const kw_hip_attention_strides& dq = whole ? x.dq_strides : x.sums_strides;
    all.q_ptr = x.q, all.k_ptr = x.k, all.v_ptr = x.v, all.do_ptr = x.d_o, all.lse_ptr = x.lse, all.d_ptr = x.d;
    all.dq_acc_ptr = whole ? x.dq : x.dq_sums, all.dk_ptr = x.dk, all.dv_ptr = x.dv;
    all.seqlen_q = x.seqlen_q, all.seqlen_k = x.seqlen_k, all.hdim_q = x.hdim_q, all.hdim_v = x.hdim_v;
    all.num_head_q = x.heads, all.nhead_ratio_qk = x.head_ratio;
    all.raw_scale = x.scale, all.scale = x.scale * ck_tile::log2e_v<float>;
    all.stride_q = x.q_strides.row, all.nhead_stride_q = x.q_strides.head;
    all.stride_k = x.k_strides.row, all.nhead_stride_k = x.k_strides.head;
    all.stride_v = x.v_strides.row, all.nhead_stride_v = x.v_strides.head;
    all.stride_do = x.do_strides.row, all.nhead_stride_do = x.do_strides.head;
    all.stride_dq_acc = dq.row, all.nhead_stride_dq_acc = dq.head;
    all.stride_dk = x.dk_strides.row, all.nhead_stride_dk = x.dk_strides.head;
    all.stride_dv = x.dv_strides.row, all.nhead_stride_dv = x.dv_strides.head;
    all.nhead_stride_lsed = x.lse_head_stride;
    if constexpr (T::group) {
      all.seqstart_q_ptr = x.seqstart_q, all.seqstart_k_ptr = x.seqstart_k;
      all.seqlen_q_ptr = x.lengths_q, all.seqlen_k_ptr = x.lengths_k;
    } else {
      all.batch_stride_q = x.q_strides.batch, all.batch_stride_k = x.k_strides.batch;
      all.batch_stride_v = x.v_strides.batch, all.batch_stride_do = x.do_strides.batch;
      all.batch_stride_dq_acc = dq.batch, all.batch_stride_lsed = x.lse_batch_stride;
      all.batch_stride_dk = x.dk_strides.batch, all.batch_stride_dv = x.dv_strides.batch;
    }
    if constexpr (T::deterministic) all.split_stride_dq_acc = x.split_stride_sums;
  }

  template <class Kargs>
  CK_TILE_DEVICE static void features(const kw_hip_gradient_arguments& x, Kargs& all) {
    if constexpr (T::bias_kind == elementwise) {
      all.bias_ptr = x.bias, all.stride_bias = x.bias_strides.row, all.nhead_stride_bias = x.bias_strides.head;
      if constexpr (!T::group) all.batch_stride_bias = x.bias_strides.batch;
    } else if constexpr (T::bias_kind == alibi) {
      all.alibi_slope_ptr = x.bias, all.alibi_slope_stride = x.slopes_batch_stride;
    }
    if constexpr (T::dbias) {
      all.dbias_ptr = x.dbias, all.stride_dbias = x.dbias_strides.row, all.nhead_stride_dbias = x.dbias_strides.head;
      if constexpr (!T::group) all.batch_stride_dbias = x.dbias_strides.batch;
    }
    if constexpr (T::masked) {
      all.window_size_left = x.window_left, all.window_size_right = x.window_right;
      all.mask_type = static_cast<ck_tile::GenericAttentionMaskEnum>(x.mask);
    }
    set_dropout<T>(x, all);
    if constexpr (T::dropout) all.scale_rp_undrop = x.scale / x.keep;
  }

  // CK Tile leaves requests without queries out; the gradients of their keys are zeros.
  CK_TILE_DEVICE static bool clear_unseen(const kw_hip_gradient_arguments& x) {
    const int32_t request = blockIdx.z, head = blockIdx.y;
    int32_t queries = x.seqlen_q, first = 0, length = x.seqlen_k;
    if constexpr (T::group) {
      queries = x.lengths_q ? x.lengths_q[request] : x.seqstart_q[request + 1] - x.seqstart_q[request];
      first = x.seqstart_k[request], length = x.seqstart_k[request + 1] - first;
    }
    if (queries != 0) return false;
    const int32_t from = blockIdx.x * keys, until = from + keys < length ? from + keys : length;
    const auto clear = [&](void* to, const kw_hip_attention_strides& strides, int32_t hdim) {
      element* rows = static_cast<element*>(to) + int64_t{head} * strides.head + int64_t{first} * strides.row;
      if constexpr (!T::group) rows += int64_t{request} * strides.batch;
      for (int32_t row = from; row < until; ++row)
        for (int32_t i = threadIdx.x; i < hdim; i += block_size)
          rows[int64_t{row} * strides.row + i] = ck_tile::type_convert<element>(0.0f);
    };
    clear(x.dk, x.dk_strides, x.hdim_q);
    clear(x.dv, x.dv_strides, x.hdim_v);
    return true;
  }

  // CK Tile leaves out tiles of which no query sees a key, and what lies behind a request's keys; the gradients of
  // their biases are zeros. A workgroup writes those of its own keys alone.
  CK_TILE_DEVICE static void clear_bias(const kw_hip_gradient_arguments& x) {
    const int32_t request = blockIdx.z, head = blockIdx.y, from = blockIdx.x * keys;
    const int32_t until = from + keys < x.seqlen_k ? from + keys : x.seqlen_k;
    int32_t queries = x.seqlen_q;
    element* rows = static_cast<element*>(x.dbias) + int64_t{head} * x.dbias_strides.head;
    if constexpr (T::group) {
      queries = x.seqstart_q[request + 1] - x.seqstart_q[request];
      rows += int64_t{x.seqstart_q[request]} * x.dbias_strides.row;
    } else {
      rows += int64_t{request} * x.dbias_strides.batch;
    }
    for (int32_t row = 0; row < queries; ++row)
      for (int32_t key = from + threadIdx.x; key < until; key += block_size)
        rows[int64_t{row} * x.dbias_strides.row + key] = ck_tile::type_convert<element>(0.0f);
    __syncthreads();
  }
};

}  // namespace kernelwright::hip::attention

#endif
