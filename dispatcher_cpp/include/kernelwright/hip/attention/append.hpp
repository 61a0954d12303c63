// The kernel of CK Tile that writes new keys and values into a cache. A rendered header only fills in the description.
#ifndef KERNELWRIGHT_HIP_ATTENTION_APPEND_HPP
#define KERNELWRIGHT_HIP_ATTENTION_APPEND_HPP

#include "kernelwright/hip/attention/beside.hpp"
#include "kernelwright/hip/attention/scores.hpp"

namespace kernelwright::hip::attention {

inline constexpr auto none = ck_tile::RotaryEmbeddingEnum::NONE;
inline constexpr auto interleaved = ck_tile::RotaryEmbeddingEnum::INTERLEAVED;
inline constexpr auto half = ck_tile::RotaryEmbeddingEnum::HALF_ROTATED;

// T has types in, numbers rows (queries), keys, hdim_q, hdim_v and block_per_cu, rope, and paged and the paddings.
template <class T>
struct append {
  using traits = ck_tile::TileFmhaFwdAppendKVTraits<T::pad_s, T::pad_sk, T::pad_d, T::pad_dv, T::block_per_cu>;
  using problem =
      ck_tile::BlockFmhaFwdAppendKVPipelineProblem<typename T::in, typename T::in, typename T::in, T::rows, T::keys,
                                                   T::hdim_q, T::hdim_v, true, T::rope, T::paged, traits>;
  using kernel = ck_tile::FmhaFwdAppendKVKernel<ck_tile::BlockFmhaFwdAppendKVPipeline<problem>>;
  static constexpr int block_size = kernel::kBlockSize, block_per_cu = kernel::kBlockPerCu;

  static constexpr auto facts() { return attention::facts<kw_hip_append_arguments>(block_size, T::keys); }

  // Writes K, V and, with a rotary embedding, Q. The grid is (tiles of queries or new keys, heads of Q, requests).
  CK_TILE_DEVICE static void run(const kw_hip_append_arguments& x) {
    typename kernel::Kargs all{};
    all.q_ptr = x.q, all.k_ptr = x.k, all.v_ptr = x.v, all.knew_ptr = x.k_new, all.vnew_ptr = x.v_new;
    all.seqlen_k_ptr = x.lengths_k;
    all.seqlen_q = x.seqlen_q, all.seqlen_knew = x.seqlen_new, all.hdim_q = x.hdim_q, all.hdim_v = x.hdim_v;
    all.num_head_q = x.heads, all.nhead_ratio_qk = x.head_ratio;
    all.stride_q = x.q_strides.row, all.nhead_stride_q = x.q_strides.head, all.batch_stride_q = x.q_strides.batch;
    all.stride_k = x.k_strides.row, all.nhead_stride_k = x.k_strides.head, all.batch_stride_k = x.k_strides.batch;
    all.stride_v = x.v_strides.row, all.nhead_stride_v = x.v_strides.head, all.batch_stride_v = x.v_strides.batch;
    all.stride_knew = x.k_new_strides.row, all.nhead_stride_knew = x.k_new_strides.head;
    all.stride_vnew = x.v_new_strides.row, all.nhead_stride_vnew = x.v_new_strides.head;
    all.batch_stride_knew = x.k_new_strides.batch, all.batch_stride_vnew = x.v_new_strides.batch;
    if constexpr (T::rope != none) {
      all.rotary_cos_ptr = x.cosines, all.rotary_sin_ptr = x.sines;
      all.rotary_dim = x.rotary_dim, all.has_mask = x.turn_by_row != 0;
    }
    if constexpr (T::paged) {
      all.block_table_ptr = x.pages, all.batch_stride_block_table = x.pages_stride, all.page_block_size = x.page_size;
    } else {
      all.cache_batch_idx = x.cache_rows;
    }
    kernel{}(all);
  }
};

}  // namespace kernelwright::hip::attention

#endif
