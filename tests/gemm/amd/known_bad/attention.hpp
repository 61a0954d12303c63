// An attention forward kernel of CK Tile that takes plain numbers, as a kernel of ours would: fp16, batch 1, no mask.
#ifndef KERNELWRIGHT_TESTS_AMD_ATTENTION_HPP
#define KERNELWRIGHT_TESTS_AMD_ATTENTION_HPP

#include <hip/hip_runtime.h>

#include "ck_tile/core.hpp"
#include "ck_tile/ops/epilogue/default_2d_epilogue.hpp"
#include "ck_tile/ops/fmha.hpp"

// scale is what the softmax gets: MakeKargs of fmha_fwd_kernel.hpp passes 1/sqrt(d) multiplied by log2(e) with
// CK_TILE_FMHA_FWD_FAST_EXP2=1, as it is otherwise.
struct attention_arguments {
  const void *q, *k, *v;
  void* o;
  int32_t seqlen_q, seqlen_k, heads;
  float scale;
};

namespace known_bad {

using namespace ck_tile;

// Q, K, V and O are heads x length x Hdim, contiguous.
template <int Hdim, int N0, bool PadQ, bool PadK, bool PadHdim, bool TransposedLoad, template <class> class Pipeline>
struct attention {
  using shape = TileFmhaShape<sequence<128, N0, 32, Hdim, 32, Hdim>, sequence<4, 1, 1>, sequence<32, 32, 16>,
                              sequence<4, 1, 1>, sequence<32, 32, 16>, true>;
  using traits = TileFmhaTraits<PadQ, PadK, PadHdim, PadHdim, false, BlockAttentionBiasEnum::NO_BIAS, false, false,
                                false, false, -1, false>;
  using problem = BlockFmhaPipelineProblem<half_t, half_t, half_t, float, float, half_t, uint8_t, float, half_t, float,
                                           half_t, shape, false, ComposedAttention<0, CK_TILE_FMHA_FWD_FAST_EXP2>,
                                           SimplifiedGenericAttentionMask<false>, TransposedLoad, traits>;
  using kernel =
      FmhaFwdKernel<Pipeline<problem>, Default2DEpilogue<Default2DEpilogueProblem<float, half_t, PadQ, PadHdim>>>;

  CK_TILE_DEVICE static void run(const attention_arguments& x) {
    const index_t q = x.seqlen_q * Hdim, k = x.seqlen_k * Hdim;
    typename kernel::Kargs all{{x.q, x.k, x.v, x.o, x.seqlen_q, x.seqlen_k, Hdim, Hdim, x.heads, 1, x.scale, Hdim, Hdim,
                                Hdim, Hdim, q, k, k, q},
                               {},
                               {},
                               {},
                               {},
                               {},
                               {},
                               x.heads * q,
                               x.heads * k,
                               x.heads * k,
                               x.heads * q};
    kernel{}(all);
  }
};

}  // namespace known_bad

#endif
