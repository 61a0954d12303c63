// What attention kernels share that compute scores: types made of a description, and CK Tile's arguments out of ours.
#ifndef KERNELWRIGHT_HIP_ATTENTION_SCORES_HPP
#define KERNELWRIGHT_HIP_ATTENTION_SCORES_HPP

// clang-format off: barriers come first
#include "kernelwright/hip/attention/barriers.hpp"
// clang-format on
#include "ck_tile/core.hpp"
#include "ck_tile/ops/epilogue/default_2d_epilogue.hpp"
#include "ck_tile/ops/fmha.hpp"
#include "kernelwright/hip/attention/arguments.h"

namespace kernelwright::hip::attention {

inline constexpr auto no_bias = ck_tile::BlockAttentionBiasEnum::NO_BIAS;
inline constexpr auto elementwise = ck_tile::BlockAttentionBiasEnum::ELEMENTWISE_BIAS;
inline constexpr auto alibi = ck_tile::BlockAttentionBiasEnum::ALIBI;

// T describes the kernel: types in (of Q, K and V), probability, bias and out; sequences tile (m0 n0 k0 n1 k1 k0max),
// wave0, wave1, warp_tile0 and warp_tile1; and the features that the spec names.
template <class T>
using shape = ck_tile::TileFmhaShape<typename T::tile, typename T::wave0, typename T::warp_tile0, typename T::wave1,
                                     typename T::warp_tile1, true>;
template <class T>
using variant = ck_tile::ComposedAttention<T::soft_cap * ck_tile::LOGITS_SOFT_CAP, CK_TILE_FMHA_FWD_FAST_EXP2>;
template <class T>
using visible = ck_tile::SimplifiedGenericAttentionMask<T::masked>;

template <class T>
inline constexpr int tile_rows = T::tile::at(ck_tile::number<0>{});

// Waves that each SIMD of CDNA must hold, the second argument of __launch_bounds__: as many as CK Tile asks for, and no
// more than LDS has room for, with which clang fails. RDNA has room for all that CK Tile asks for.
template <class Kernel>
constexpr int waves_per_simd() {
  constexpr int wave = ck_tile::get_warp_size(), simds = 4;
  if constexpr (wave != 64) return Kernel::kBlockPerCu;
  constexpr int workgroups = ck_tile::get_smem_capacity() / ck_tile::max(1, Kernel::GetSmemSize());
  constexpr int room = (workgroups * (Kernel::kBlockSize / wave) + simds - 1) / simds;
  return ck_tile::max(1, ck_tile::min(room, Kernel::kBlockPerCu));
}

// 8-bit operands. Probabilities become 8-bit numbers too: they are multiplied by the largest one of the format, so that
// small ones keep their bits, and O is divided by it. Those that dropout keeps are up to 1 / keep.
template <class T>
inline constexpr bool eight_bits = sizeof(typename T::in) == 1;
template <class T>
inline constexpr float largest = CK_TILE_USE_OCP_FP8 ? 448.0f : 240.0f;

CK_TILE_DEVICE float factor(const float* at) { return at ? *at : 1.0f; }

// What O = P * V of stored numbers is multiplied by, but for the probabilities' own factor.
template <class T>
CK_TILE_DEVICE float result_factor(const kw_hip_attention_arguments& x) {
  float made = 1.0f;
  if constexpr (T::scaled) made = factor(x.descale_v);
  if constexpr (sizeof(typename T::out) == 1) made *= factor(x.scale_o);
  return made;
}

// Constants of a kernel for its code object; Arguments is its argument struct.
template <class Arguments>
constexpr kw_hip_attention_facts facts(int block_size, int rows) {
  return {KW_HIP_ATTENTION_FACTS_MAGIC, sizeof(Arguments), static_cast<uint32_t>(block_size),
          static_cast<uint32_t>(rows)};
}

// Q, K, V: pointers, lengths and strides. Only requests in batch mode, and pages, are found by strides of the batch.
template <class T, class Kargs>
CK_TILE_DEVICE void set_operands(const kw_hip_attention_arguments& x, Kargs& all) {
  all.q_ptr = x.q, all.k_ptr = x.k, all.v_ptr = x.v;
  all.seqlen_q = x.seqlen_q, all.seqlen_k = x.seqlen_k, all.hdim_q = x.hdim_q, all.hdim_v = x.hdim_v;
  all.num_head_q = x.heads, all.nhead_ratio_qk = x.head_ratio;
  all.scale_s = x.scale * ck_tile::log2e_v<float>;  // exponentials are powers of two
  if constexpr (T::scaled) all.scale_s *= factor(x.descale_q) * factor(x.descale_k);
  all.stride_q = x.q_strides.row, all.nhead_stride_q = x.q_strides.head;
  all.stride_k = x.k_strides.row, all.nhead_stride_k = x.k_strides.head;
  all.stride_v = x.v_strides.row, all.nhead_stride_v = x.v_strides.head;
  if constexpr (T::group) {
    all.seqstart_q_ptr = x.seqstart_q;
  } else {
    all.batch_stride_q = x.q_strides.batch;
  }
  if constexpr (!T::group || T::paged) {
    all.batch_stride_k = x.k_strides.batch, all.batch_stride_v = x.v_strides.batch;
  }
}

template <class T, class Kargs>
CK_TILE_DEVICE void set_result(const kw_hip_attention_arguments& x, Kargs& all) {
  all.o_ptr = x.o, all.stride_o = x.o_strides.row, all.nhead_stride_o = x.o_strides.head;
  if constexpr (!T::group) all.batch_stride_o = x.o_strides.batch;
  if constexpr (T::lse) {
    all.lse_ptr = x.lse, all.nhead_stride_lse = x.lse_head_stride, all.batch_stride_lse = x.lse_batch_stride;
  }
  if constexpr (eight_bits<T>) {
    all.scale_p = T::dropout ? largest<T> * x.keep : largest<T>;
    all.scale_o = result_factor<T>(x) / all.scale_p;
  }
}

// Where K and V are in pages by a block table, or in a cache whose requests have lengths of their own.
template <class T, class Kargs>
CK_TILE_DEVICE void set_cache(const kw_hip_attention_arguments& x, Kargs& all) {
  all.seqlen_k_ptr = x.lengths_k;
  if constexpr (T::paged) {
    all.block_table_ptr = x.pages, all.batch_stride_block_table = x.pages_stride, all.page_block_size = x.page_size;
    if constexpr (T::group) all.is_gappy = false;
  } else if constexpr (!T::group) {
    all.cache_batch_idx = nullptr;
  }
  // CK Tile reads starts of keys in pages too, for offsets that it does not use.
  if constexpr (T::group) all.seqstart_k_ptr = x.seqstart_k ? x.seqstart_k : x.seqstart_q;
}

// Bias, mask and soft cap.
template <class T, class Kargs>
CK_TILE_DEVICE void set_features(const kw_hip_attention_arguments& x, Kargs& all) {
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
  if constexpr (T::soft_cap) all.logits_soft_cap = x.soft_cap, all.logits_soft_cap_rcp = 1.0f / x.soft_cap;
}

// Probabilities are kept where a random byte is at most keep * 255.
template <class T, class Arguments, class Kargs>
CK_TILE_DEVICE void set_dropout(const Arguments& x, Kargs& all) {
  if constexpr (T::dropout) {
    all.drop_seed.val = x.seed, all.drop_offset.val = x.offset, all.is_drop_seed_offset_from_host = true;
    all.p_undrop_in_uint8_t = static_cast<uint8_t>(x.keep * 255.0f);
    all.rp_undrop = 1.0f / x.keep;
    all.rand_val_ptr = x.random_bytes;
    all.stride_randval = x.random_strides.row, all.nhead_stride_randval = x.random_strides.head;
    if constexpr (!T::group) all.batch_stride_randval = x.random_strides.batch;
  }
}

}  // namespace kernelwright::hip::attention

#endif
