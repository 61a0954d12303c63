// Warp tiles of fp32 that CK Tile has instructions for but no name: several instructions along K for each warp tile.
#ifndef KERNELWRIGHT_HIP_CONVOLUTION_WARP_TILES_HPP
#define KERNELWRIGHT_HIP_CONVOLUTION_WARP_TILES_HPP

#include "ck_tile/core.hpp"
#include "ck_tile/ops/gemm/warp/warp_gemm_attribute_mfma.hpp"
#include "ck_tile/ops/gemm/warp/warp_gemm_attribute_mfma_impl.hpp"
#include "ck_tile/ops/gemm/warp/warp_gemm_dispatcher.hpp"
#include "ck_tile/ops/gemm/warp/warp_gemm_impl.hpp"

namespace ck_tile::impl {

template <template <WGAttrCtlEnum> class Instruction, index_t Count>
struct repeated {
  using Type = WarpGemmImpl<WarpGemmAttributeMfmaIterateK<Instruction<WGAttrCtlEnum::Default_>, Count>>;
};

template <>
struct WarpGemmDispatcher<float, float, float, 16, 16, 8, false>
    : repeated<WarpGemmAttributeMfmaImplF32F32F32M16N16K4, 2> {};
template <>
struct WarpGemmDispatcher<float, float, float, 32, 32, 4, false>
    : repeated<WarpGemmAttributeMfmaImplF32F32F32M32N32K2, 2> {};
template <>
struct WarpGemmDispatcher<float, float, float, 32, 32, 8, false>
    : repeated<WarpGemmAttributeMfmaImplF32F32F32M32N32K2, 4> {};

}  // namespace ck_tile::impl

#endif
