// One convolution kernel: filling, packing, multiplying and the descriptor that a library lists.
#ifndef KERNELWRIGHT_CPU_CONVOLUTION_CONVOLUTION_HPP
#define KERNELWRIGHT_CPU_CONVOLUTION_CONVOLUTION_HPP

#include "kernelwright/cpu/common/descriptor.hpp"
#include "kernelwright/cpu/convolution/micro/few.hpp"
#include "kernelwright/cpu/convolution/micro/fill.hpp"
#include "kernelwright/cpu/convolution/micro/lanes.hpp"
#include "kernelwright/cpu/convolution/micro/plane.hpp"
#include "kernelwright/cpu/convolution/micro/taps.hpp"
#include "kernelwright/cpu/convolution/micro/weight.hpp"
#include "kernelwright/cpu/gemm/micro/finish.hpp"
#include "kernelwright/cpu/gemm/micro/pack.hpp"
#include "kernelwright/cpu/gemm/micro/skinny.hpp"

namespace kernelwright::cpu {
namespace {

// What a kernel's epilogue does: 0 or 1, and kw_activation.
struct conv_epilogue {
  uint32_t bias, residual, activation;
};

// What kernels of all kinds have.
template <int Op, class Operation, class Epilogue, int Layout>
constexpr conv_kernel common_kernel(uint32_t required_features, conv_epilogue fused) {
  using Element = typename Operation::element;
  using Output = typename Epilogue::element;
  conv_kernel k{};
  k.traits.struct_size = sizeof(kw_conv_traits);
  k.traits.dtype_x = k.traits.dtype_w = Operation::kDtype;
  k.traits.dtype_y = Output::kDtype;
  k.traits.dtype_acc = Operation::kSumDtype;
  k.traits.layout = Layout;
  k.traits.tile_m = k.traits.tile_n = k.traits.tile_k = 1;
  k.traits.wave_m = k.traits.wave_n = k.traits.wave_k = 1;
  k.traits.warp_tile_m = k.traits.warp_tile_n = k.traits.warp_tile_k = 1;
  k.traits.pad_m = k.traits.pad_n = k.traits.pad_k = 1;
  k.traits.vector_a = k.traits.vector_b = k.traits.vector_c = 1;
  k.traits.num_groups_to_merge = 1;
  k.traits.max_split_k = 1;
  k.traits.bias = fused.bias;
  k.traits.residual = fused.residual;
  k.traits.activation = fused.activation;
  k.op = Op;
  k.required_features = required_features;
  k.input_bytes = sizeof(typename Operation::storage);
  k.output_bytes = sizeof(typename Output::storage);
  k.lanes = kLanes;
  k.widen = &skinny<Element>::widen;
  k.finish = &finish<Operation, Epilogue>;
  if constexpr (Layout == KW_CONV_NGCHW) {
    static_assert(Op == KW_OP_CONV_FORWARD, "planes are summed forward only");
    k.plane = &plane_line<Epilogue>;
  } else if constexpr (Op == KW_OP_CONV_WEIGHT_SLICES) {
    k.fill_lanes = &fill<widened_fma<Element>>;
    k.lanes_weight = &lanes_weight<Element>::multiply;
  } else {
    k.fill_lanes = &fill<widened_fma<Element>>;
    k.lanes_direct = &lanes<Epilogue>::multiply;
  }
  return k;
}

// One channel in and out per group. Op is a kw_conv_op that kernels serve, Layout a kw_conv_layout.
template <int Op, class Operation, class Epilogue, int Layout>
struct depthwise_convolution {
  static constexpr conv_kernel kernel(uint32_t required_features, conv_epilogue fused) {
    conv_kernel k = common_kernel<Op, Operation, Epilogue, Layout>(required_features, fused);
    k.traits.depthwise = 1;
    return k;
  }
};

// The tile is the cache block, the warp tile the register block.
template <int Op, class Operation, class Epilogue, int Layout, int TileM, int TileN, int TileK, int MR, int NR, int KR>
struct convolution {
  static_assert(KR == Operation::kDepth, "warp_tile.k is the number of values of K that one instruction sums");
  static_assert(NR % kLanes == 0, "warp_tile.n is whole vectors");
  static_assert(Layout != KW_CONV_NGCHW, "channels are innermost");

  static constexpr conv_kernel kernel(uint32_t required_features, conv_epilogue fused) {
    conv_kernel k = common_kernel<Op, Operation, Epilogue, Layout>(required_features, fused);
    k.traits.tile_m = TileM;
    k.traits.tile_n = TileN;
    k.traits.tile_k = TileK;
    k.traits.warp_tile_m = MR;
    k.traits.warp_tile_n = NR;
    k.traits.warp_tile_k = KR;
    k.fill = &fill<typename Operation::a_loader>;
    if constexpr (Op == KW_OP_CONV_FORWARD) {
      k.pack_weights = &pack_along_k<typename Operation::b_loader, NR>::panels;
      k.taps = &taps_multiplier<Operation, Epilogue, MR, NR>::multiply;
      k.few = &few_multiplier<Operation, Epilogue, MR>::multiply;
    } else if constexpr (Op == KW_OP_CONV_BACKWARD_DATA) {
      k.pack_weights = &pack_along_panel<typename Operation::b_loader, NR>::panels;
      k.taps = &taps_multiplier<Operation, Epilogue, MR, NR>::multiply;
      k.few = &few_multiplier<Operation, Epilogue, MR>::multiply;
    } else {
      k.pack_dy = &pack_along_panel<typename Operation::a_loader, MR>::panels;
      k.weight = &weight_multiplier<Operation, MR, NR>::multiply;
    }
    return k;
  }
};

}  // namespace
}  // namespace kernelwright::cpu

// Defines the descriptor SYMBOL; KERNEL is a kernelwright::cpu::conv_kernel with static storage.
#define KW_CPU_CONV_DESCRIPTOR(SYMBOL, KERNEL, NAME, ARCH, IDENTITY, SPEC_JSON, FEATURES)                     \
  KW_CPU_DESCRIPTOR(conv, (KERNEL).op, KW_CPU_CONV_PLAN_BYTES, nullptr, SYMBOL, KERNEL, NAME, ARCH, IDENTITY, \
                    SPEC_JSON, FEATURES)

#endif  // KERNELWRIGHT_CPU_CONVOLUTION_CONVOLUTION_HPP
