// The CPU kernels of norms: what a generated header instantiates.
#ifndef KERNELWRIGHT_CPU_NORM_NORM_HPP
#define KERNELWRIGHT_CPU_NORM_NORM_HPP

#include "kernelwright/cpu/common/descriptor.hpp"
#include "kernelwright/cpu/norm/micro/backward.hpp"
#include "kernelwright/cpu/norm/micro/forward.hpp"

namespace kernelwright::cpu {
namespace {

// Op is a kw_norm_op; T and Y are the types of what is read and of the result.
template <uint32_t Op, class T, class Y, int kUnroll>
constexpr norm_kernel norm() {
  constexpr bool kCentred = Op == KW_OP_LAYER_NORM || Op == KW_OP_LAYER_NORM_BACKWARD;
  norm_kernel made = {};
  made.traits = {sizeof(kw_norm_traits), T::kDtype, Y::kDtype, kUnroll, 1, 1, 0};
  made.op = Op;
  if constexpr (Op == KW_OP_RMS_NORM || Op == KW_OP_LAYER_NORM) {
    made.rows = &norm_forward<kCentred, T, Y, kUnroll>;
  } else {
    made.rows = &norm_backward<kCentred, T, kUnroll>;
    made.finish = &norm_finish<T>;
  }
  return made;
}

}  // namespace
}  // namespace kernelwright::cpu

// Defines the descriptor SYMBOL; KERNEL is a kernelwright::cpu::norm_kernel with static storage.
#define KW_CPU_NORM_DESCRIPTOR(SYMBOL, KERNEL, NAME, ARCH, IDENTITY, SPEC_JSON)                               \
  KW_CPU_DESCRIPTOR(norm, (KERNEL).op, KW_CPU_NORM_PLAN_BYTES, nullptr, SYMBOL, KERNEL, NAME, ARCH, IDENTITY, \
                    SPEC_JSON, "")

#endif  // KERNELWRIGHT_CPU_NORM_NORM_HPP
