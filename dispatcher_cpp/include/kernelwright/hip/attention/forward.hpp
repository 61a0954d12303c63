// Attention kernels of CK Tile whose K and V lie one after another (fwd), or in pages whose keys
// have any places (batch_prefill). A rendered header only fills in the description.
#ifndef KERNELWRIGHT_HIP_ATTENTION_FORWARD_HPP
#define KERNELWRIGHT_HIP_ATTENTION_FORWARD_HPP

#include "kernelwright/hip/attention/beside.hpp"
#include "kernelwright/hip/attention/masked_keys.hpp"
#include "kernelwright/hip/attention/scores.hpp"

namespace kernelwright::hip::attention {

template <class P>
using qr = ck_tile::BlockFmhaPipelineQRKSVS<P>;
template <class P>
using qr_async = masked_keys<ck_tile::BlockFmhaPipelineQRKSVSAsync<P>>;
template <class P>
using qs = ck_tile::BlockFmhaPipelineQSKSVS<P>;
template <class P>
using qr_async_trload = ck_tile::BlockFmhaPipelineQRKSVSAsyncTrload<P>;
template <class P>
using prefill_qr_async = masked_keys<ck_tile::BlockFmhaBatchPrefillPipelineQRKSVSAsync<P>>;

template <class T>
using forward_traits =
    ck_tile::TileFmhaTraits<T::pad_s, T::pad_sk, T::pad_d, T::pad_dv, T::soft_cap, T::bias_kind, false, T::lse,
                            T::dropout, eight_bits<T>, T::block_per_cu, T::skip_min_seqlen_q>;
template <class T>
using forward_problem =
    ck_tile::BlockFmhaPipelineProblem<typename T::in, typename T::in, typename T::in, float, float, typename T::bias,
                                      uint8_t, float, typename T::probability, float, typename T::out, shape<T>,
                                      T::group, variant<T>, visible<T>, T::trload, forward_traits<T>>;
template <class T>
using forward_epilogue =
    ck_tile::Default2DEpilogue<ck_tile::Default2DEpilogueProblem<float, typename T::out, T::pad_s, T::pad_dv>>;

template <class T>
struct forward {
  using kernel = ck_tile::FmhaFwdKernel<typename T::template pipeline<forward_problem<T>>, forward_epilogue<T>>;
  static constexpr int block_size = kernel::kBlockSize, block_per_cu = waves_per_simd<kernel>();

  static constexpr auto facts() { return attention::facts<kw_hip_attention_arguments>(block_size, tile_rows<T>); }

  // Writes O and, where the spec says so, LSE and random bytes. The grid is tiles of queries x heads x requests as
  // CK Tile orders them: (heads, tiles, requests), or in group mode with lengths of keys (heads, requests, tiles).
  CK_TILE_DEVICE static void run(const kw_hip_attention_arguments& x) {
    typename kernel::Kargs all{};
    set_operands<T>(x, all);
    set_result<T>(x, all);
    set_features<T>(x, all);
    set_dropout<T>(x, all);
    if constexpr (T::dropout) all.is_store_randval = x.random_bytes != nullptr;
    if constexpr (T::group) all.seqstart_k_ptr = x.seqstart_k, all.seqlen_k_ptr = x.lengths_k;
    if constexpr (T::skip_min_seqlen_q && T::group) all.min_seqlen_q = x.min_seqlen_q;
    kernel{}(all);
  }
};

// A pipeline whose O is wider than its operands of 8 bits. CK Tile's kernel of batch prefill clamps O to 8 bits,
// whatever its type; a small number passes, and shows the factor.
template <class T, class Pipeline>
struct unclamped : Pipeline {
  template <class Q, class QF, class K, class KF, class V, class VF, class B, class BF, class R, class L, class LF,
            class SF, class PF, class OF, class... Rest>
  CK_TILE_DEVICE auto operator()(const Q& q, const QF& q_f, const K& k, const KF& k_f, const V& v, const VF& v_f,
                                 const B& bias, const BF& bias_f, R& random, L& lse, const LF& lse_f, const SF& s_f,
                                 const PF& p_f, const OF& clamped, Rest&&... rest) const {
    const ck_tile::scales<float> scaled{clamped(0x1p-30f) * 0x1p30f};
    return Pipeline::operator()(q, q_f, k, k_f, v, v_f, bias, bias_f, random, lse, lse_f, s_f, p_f, scaled,
                                static_cast<Rest&&>(rest)...);
  }
};
template <class T, class Pipeline>
using for_result = std::conditional_t<eight_bits<T> && sizeof(typename T::out) != 1, unclamped<T, Pipeline>, Pipeline>;

template <class T>
struct prefill {
  using kernel = ck_tile::FmhaBatchPrefillWithPagedKVCacheKernel<for_result<T, prefill_qr_async<forward_problem<T>>>,
                                                                 forward_epilogue<T>>;
  static constexpr int block_size = kernel::kBlockSize, block_per_cu = waves_per_simd<kernel>();

  static constexpr auto facts() { return attention::facts<kw_hip_attention_arguments>(block_size, tile_rows<T>); }

  // The same. The grid is (heads, requests, tiles of queries).
  CK_TILE_DEVICE static void run(const kw_hip_attention_arguments& x) {
    typename kernel::Kargs all{};
    set_operands<T>(x, all);
    set_result<T>(x, all);
    set_features<T>(x, all);
    set_dropout<T>(x, all);
    if constexpr (T::dropout) all.is_store_randval = x.random_bytes != nullptr;
    all.num_total_pages = x.page_count, all.kv_page_indices = x.pages;
    // CK Tile reads the begin of one request as the end of the one before; here there are gaps.
    all.kv_indptr = x.page_starts + blockIdx.y;
    kernel{}(all);
  }
};

}  // namespace kernelwright::hip::attention

#endif
