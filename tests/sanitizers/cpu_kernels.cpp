// Small-tiled CPU kernels of one processor level, for cpu_driver.cpp; every packing, layout and edge is reachable.
#include "tilewright/cpu/gemm.hpp"

namespace tilewright::cpu {
namespace {

#if defined(__AVX512F__)
constexpr int kMr = 14, kNr = 32;
#else
constexpr int kMr = 6, kNr = 16;
#endif

template <class Operation, class Output, int LayoutA, int LayoutB>
constexpr gemm_kernel small_kernel() {
  return gemm<Operation, epilogue<Output>, LayoutA, LayoutB, 2 * kMr, 3 * kNr, 32, kMr, kNr, Operation::kDepth>::kernel(
      kNoFeature);
}

constexpr gemm_kernel fp32_rcr = small_kernel<widened_fma<fp32>, fp32, 0, 1>();
constexpr gemm_kernel fp32_crr = small_kernel<widened_fma<fp32>, fp32, 1, 0>();
constexpr gemm_kernel fp16_rrr = small_kernel<widened_fma<fp16>, fp16, 0, 0>();
constexpr gemm_kernel bf16_ccr = small_kernel<widened_fma<bf16>, bf16, 1, 1>();
#if defined(__AVX512BF16__)
constexpr gemm_kernel dot_rcr = small_kernel<bf16_dot, bf16, 0, 1>();
constexpr gemm_kernel dot_crr = small_kernel<bf16_dot, bf16, 1, 0>();
#endif

}  // namespace
}  // namespace tilewright::cpu

TW_CPU_GEMM_DESCRIPTOR(kernel_fp32_rcr, tilewright::cpu::fp32_rcr, "fp32_rcr", "x86_64", "", "", "")
TW_CPU_GEMM_DESCRIPTOR(kernel_fp32_crr, tilewright::cpu::fp32_crr, "fp32_crr", "x86_64", "", "", "")
TW_CPU_GEMM_DESCRIPTOR(kernel_fp16_rrr, tilewright::cpu::fp16_rrr, "fp16_rrr", "x86_64", "", "", "")
TW_CPU_GEMM_DESCRIPTOR(kernel_bf16_ccr, tilewright::cpu::bf16_ccr, "bf16_ccr", "x86_64", "", "", "")
#if defined(__AVX512BF16__)
TW_CPU_GEMM_DESCRIPTOR(kernel_dot_rcr, tilewright::cpu::dot_rcr, "dot_rcr", "x86_64", "", "", "")
TW_CPU_GEMM_DESCRIPTOR(kernel_dot_crr, tilewright::cpu::dot_crr, "dot_crr", "x86_64", "", "", "")
#endif

extern "C" {
extern const tw_kernel* const kernels_under_test[];
const tw_kernel* const kernels_under_test[] = {&kernel_fp32_rcr, &kernel_fp32_crr, &kernel_fp16_rrr, &kernel_bf16_ccr,
#if defined(__AVX512BF16__)
                                               &kernel_dot_rcr,  &kernel_dot_crr,
#endif
                                               nullptr};
}
