// 8-bit floats on an architecture whose matrix instructions have none: it compiles and links.
#include "gemm.hpp"

namespace known_bad {

using kernelwright::hip::extent;
struct fp8_gemm : half_gemm<extent<64, 64, 32>, extent<2, 2, 1>, extent<16, 16, 16>, kernelwright::hip::compv3> {
  using a = ck_tile::fp8_t;
  using b = ck_tile::fp8_t;
};

}  // namespace known_bad

KNOWN_BAD_GEMM(fp8, known_bad::fp8_gemm)
