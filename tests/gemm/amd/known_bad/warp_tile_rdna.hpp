// A warp tile that RDNA has no matrix instruction for: it compiles and links.
#include "gemm.hpp"

namespace known_bad {

using kernelwright::hip::extent;
using wide = half_gemm<extent<64, 64, 32>, extent<2, 2, 1>, extent<32, 32, 16>, kernelwright::hip::compv3>;
using right = half_gemm<extent<64, 64, 32>, extent<2, 2, 1>, extent<16, 16, 16>, kernelwright::hip::compv3>;

}  // namespace known_bad

KNOWN_BAD_GEMM(wide, known_bad::wide)
KNOWN_BAD_GEMM(right, known_bad::right)
