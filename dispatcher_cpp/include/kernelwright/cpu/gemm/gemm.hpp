// One GEMM kernel: packing, multiplying and the descriptor that a library lists.
#ifndef KERNELWRIGHT_CPU_GEMM_GEMM_HPP
#define KERNELWRIGHT_CPU_GEMM_GEMM_HPP

#include "kernelwright/cpu/common/descriptor.hpp"
#include "kernelwright/cpu/gemm/micro/direct.hpp"
#include "kernelwright/cpu/gemm/micro/finish.hpp"
#include "kernelwright/cpu/gemm/micro/multiply.hpp"
#include "kernelwright/cpu/gemm/micro/pack.hpp"
#include "kernelwright/cpu/gemm/micro/skinny.hpp"
#include "kernelwright/cpu/gemm/micro/skinny_dots.hpp"
#include "kernelwright/cpu/gemm/micro/tile_multiply.hpp"

namespace kernelwright::cpu {
namespace {

// Where AMX is compiled; declared for all, so that kernels of the others parse.
template <class Operation, class Epilogue, int MR, int NR>
class tile_multiplier;
template <class Loader, bool AlongK, int Width>
struct pack_rows;

// Dot products that the few vectors of a skinny problem are multiplied by.
template <class Operation>
struct skinny_operation {
  using type = Operation;
};
#if defined(__AMX_INT8__)
template <>
struct skinny_operation<int8_tiles> {
  using type = int8_dot;
};
#endif

// Layouts of A and B are kw_layout; the tile is the cache block, the warp tile the register block.
template <class Operation, class Epilogue, int LayoutA, int LayoutB, int TileM, int TileN, int TileK, int MR, int NR,
          int KR>
struct gemm {
  static constexpr int kSteps = Operation::kSteps;
  static_assert(KR == Operation::kDepth * kSteps, "warp_tile.k is the number of values of K that one instruction sums");
  static_assert(NR % kLanes == 0, "warp_tile.n is whole vectors");
  static_assert(TileM % MR == 0 && TileN % NR == 0 && TileK % KR == 0, "a tile is whole warp tiles");

  template <class Loader, bool AlongK, int Width>
  static constexpr pack_function pack() {
    if constexpr (AlongK) {
      return &pack_along_k<Loader, Width, kSteps>::panels;
    } else {
      return &pack_along_panel<Loader, Width, kSteps>::panels;
    }
  }

  static constexpr void set_multiply(gemm_kernel& k) {
    constexpr bool kAlongK = LayoutA == KW_ROW_MAJOR;
    using a_loader = typename Operation::a_loader;
    k.step_units = kSteps;
    k.pack_b = pack<typename Operation::b_loader, LayoutB == KW_COL_MAJOR, NR>();
    if constexpr (kSteps > 1) {
      k.pack_a = &pack_rows<a_loader, kAlongK, MR>::panels;
      k.multiply = &tile_multiplier<Operation, Epilogue, MR, NR>::multiply;
      k.enter = &Operation::enter;
      k.leave = &Operation::leave;
    } else {
      k.pack_a = pack<a_loader, kAlongK, MR>();
      k.multiply = &multiplier<Operation, Epilogue, MR, NR>::multiply;
    }
  }

  static constexpr gemm_kernel kernel(uint32_t required_features, variant v) {
    using Output = typename Epilogue::element;
    gemm_kernel k{};
    k.traits.struct_size = sizeof(kw_gemm_traits);
    k.traits.dtype_a = k.traits.dtype_b = Operation::kDtype;
    k.traits.dtype_c = Output::kDtype;
    k.traits.dtype_acc = Operation::kSumDtype;
    k.traits.layout_a = LayoutA;
    k.traits.layout_b = LayoutB;
    k.traits.layout_c = KW_ROW_MAJOR;
    k.traits.tile_m = TileM;
    k.traits.tile_n = TileN;
    k.traits.tile_k = TileK;
    k.traits.wave_m = k.traits.wave_n = k.traits.wave_k = 1;
    k.traits.warp_tile_m = MR;
    k.traits.warp_tile_n = NR;
    k.traits.warp_tile_k = KR;
    k.traits.pad_m = k.traits.pad_n = k.traits.pad_k = 1;
    k.traits.persistent = v.persistent;
    k.traits.max_split_k = v.max_split_k;
    k.traits.num_d = Epilogue::kNumD;
    k.traits.d_op = Epilogue::kDOp;
    k.traits.activation = Epilogue::kActivation;
    k.traits.batched = v.batched;
    k.traits.stream_k = v.stream_k;
    // The order depends on the type, the panels and the blocks along K; never 0.
    if (v.preshuffle != 0) {
      k.traits.b_format = uint64_t{1} << 62 | uint64_t{Operation::kDtype} << 48 | uint64_t{NR} << 32 |
                          uint64_t{KR} << 24 | uint64_t{TileK};
    }
    k.grouped = v.grouped;
    k.required_features = required_features;
    k.input_bytes = sizeof(typename Operation::storage);
    k.output_bytes = sizeof(typename Output::storage);
    k.partial_in_output = Output::kDtype == KW_FP32;
    set_multiply(k);
    k.finish = &finish<Operation, Epilogue>;
    if constexpr (Operation::kSumDtype == KW_FP32) {
      using matrix = skinny<typename Operation::element>;
      k.skinny_along_k = &matrix::along_k;
      k.skinny_along_lines = &matrix::along_lines;
      k.widen = &matrix::widen;
      k.skinny_depth = 1;
    } else {
      using matrix = skinny_dots<typename skinny_operation<Operation>::type>;
      k.skinny_along_k = &matrix::along_k;
      k.widen = &matrix::widen;
      k.skinny_depth = Operation::kDepth;
    }
    if constexpr (Operation::kDtype == KW_FP32 && Output::kDtype == KW_FP32) k.direct = &direct<Epilogue, NR>::multiply;
    return k;
  }
};

}  // namespace
}  // namespace kernelwright::cpu

// Defines the descriptor SYMBOL; KERNEL is a kernelwright::cpu::gemm_kernel with static storage.
#define KW_CPU_GEMM_DESCRIPTOR(SYMBOL, KERNEL, NAME, ARCH, IDENTITY, SPEC_JSON, FEATURES)                          \
  KW_CPU_DESCRIPTOR(gemm, (KERNEL).grouped != 0 ? KW_OP_GROUPED_GEMM : KW_OP_GEMM, KW_CPU_GEMM_PLAN_BYTES,         \
                    (KERNEL).traits.b_format != 0 ? &kw_cpu_gemm_preshuffle : nullptr, SYMBOL, KERNEL, NAME, ARCH, \
                    IDENTITY, SPEC_JSON, FEATURES)

#endif  // KERNELWRIGHT_CPU_GEMM_GEMM_HPP
