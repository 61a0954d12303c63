// v4 with upstream's rule for the main loop, and v6 with a full tail, each beside ours.
#include "gemm.hpp"

namespace known_bad {

using kernelwright::hip::extent;

template <class>
using always_full = full_tail;
using v4 = pipeline<kernelwright::hip::compv4, ck_tile::GemmPipelineAgBgCrCompV4, upstream_hot_loop,
                    kernelwright::hip::ping_pong_rule>;
using v6 = pipeline<kernelwright::hip::compv6, ck_tile::GemmPipelineAgBgCrCompV6, always_full,
                    kernelwright::hip::prefetch3_rule>;
using v4_gemm = half_gemm<extent<64, 64, 32>, extent<2, 2, 1>, extent<32, 32, 8>, v4>;
using v6_gemm = half_gemm<extent<64, 64, 32>, extent<2, 2, 1>, extent<32, 32, 8>, v6>;
static_assert(kernelwright::hip::gemm<v6_gemm>::facts().min_k_loops == 2, "a single K tile is refused");

}  // namespace known_bad

KNOWN_BAD_GEMM(v4, known_bad::v4_gemm)
KNOWN_BAD_GEMM(v6, known_bad::v6_gemm)
