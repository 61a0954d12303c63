// Async with upstream's rule for the main loop, and with a full tail, each beside ours.
#include "gemm.hpp"

namespace known_bad {

using kernelwright::hip::extent;

template <class>
using always_full = full_tail;
using early = pipeline<kernelwright::hip::comp_async, ck_tile::GemmPipelineAgBgCrCompAsync, upstream_hot_loop,
                       kernelwright::hip::ping_pong_rule>;
using full = pipeline<kernelwright::hip::comp_async, ck_tile::GemmPipelineAgBgCrCompAsync, always_full,
                      kernelwright::hip::ping_pong_rule>;
using early_gemm = half_gemm<extent<64, 64, 64>, extent<2, 2, 1>, extent<16, 16, 32>, early, 163840>;
using full_gemm = half_gemm<extent<64, 64, 64>, extent<2, 2, 1>, extent<16, 16, 32>, full, 163840>;

}  // namespace known_bad

KNOWN_BAD_GEMM(async_early, known_bad::early_gemm)
KNOWN_BAD_GEMM(async_full, known_bad::full_gemm)
