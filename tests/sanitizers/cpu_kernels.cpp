// Small-tiled CPU kernels of one processor level, for cpu_driver.cpp; every packing, layout and edge is reachable.
#include "kernelwright/cpu/gemm/gemm.hpp"

namespace kernelwright::cpu {
namespace {

#if defined(__AVX512F__)
constexpr int kMr = 14, kNr = 32;
#else
constexpr int kMr = 6, kNr = 16;
#endif

constexpr variant kStandard = {0, 1, KW_STREAM_K_NONE, 0, 0, 0};

template <class Operation, class Epilogue, int LayoutA, int LayoutB>
constexpr gemm_kernel small_kernel(variant v = kStandard) {
  constexpr int kRows = Operation::kShifted ? kMr - 2 : kMr;
  return gemm<Operation, Epilogue, LayoutA, LayoutB, 2 * kRows, 3 * kNr, 32, kRows, kNr, Operation::kDepth>::kernel(
      kNoFeature, v);
}

using plain32 = epilogue<fp32>;
using plain16 = epilogue<bf16>;
using fused = epilogue<fp32, 2, KW_D_ADD, relu>;

constexpr gemm_kernel fp32_rcr = small_kernel<widened_fma<fp32>, plain32, 0, 1>();
constexpr gemm_kernel fp32_crr = small_kernel<widened_fma<fp32>, plain32, 1, 0>();
constexpr gemm_kernel fp16_rrr = small_kernel<widened_fma<fp16>, epilogue<fp16>, 0, 0>();
constexpr gemm_kernel bf16_ccr = small_kernel<widened_fma<bf16>, plain16, 1, 1>();
constexpr gemm_kernel int8_rrr = small_kernel<int16_dot, epilogue<int32>, 0, 0>();
constexpr gemm_kernel fused_rrr = small_kernel<widened_fma<fp32>, fused, 0, 0>();
constexpr gemm_kernel any32 =
    small_kernel<widened_fma<fp32>, any_epilogue<fp32>, 0, 1>({0, 1, KW_STREAM_K_NONE, 1, 0, 0});
constexpr gemm_kernel any16 =
    small_kernel<widened_fma<bf16>, any_epilogue<bf16>, 0, 0>({0, 1, KW_STREAM_K_NONE, 1, 0, 0});
constexpr gemm_kernel any16_to_32 = small_kernel<widened_fma<fp16>, any_epilogue<fp32>, 1, 0>();
constexpr gemm_kernel shuffled = small_kernel<widened_fma<bf16>, plain16, 0, 1>({0, 1, KW_STREAM_K_NONE, 0, 0, 1});
constexpr gemm_kernel persistent = small_kernel<widened_fma<bf16>, plain16, 0, 1>({1, 1, KW_STREAM_K_NONE, 0, 0, 0});
constexpr gemm_kernel split_k = small_kernel<widened_fma<fp32>, plain32, 0, 0>({0, 8, KW_STREAM_K_NONE, 0, 0, 0});
constexpr gemm_kernel linear = small_kernel<widened_fma<bf16>, plain16, 1, 0>({0, 1, KW_STREAM_K_LINEAR, 0, 0, 0});
constexpr gemm_kernel tree = small_kernel<widened_fma<fp32>, plain32, 0, 1>({0, 1, KW_STREAM_K_TREE, 0, 0, 0});
constexpr gemm_kernel batched = small_kernel<widened_fma<fp32>, fused, 0, 1>({0, 1, KW_STREAM_K_NONE, 1, 0, 0});
constexpr gemm_kernel grouped = small_kernel<widened_fma<fp32>, plain32, 0, 1>({0, 1, KW_STREAM_K_NONE, 0, 1, 0});
#if defined(__AVX512BF16__)
constexpr gemm_kernel dot_rcr = small_kernel<bf16_dot, plain16, 0, 1>();
constexpr gemm_kernel dot_crr = small_kernel<bf16_dot, plain16, 1, 0>();
#endif
#if defined(__AVX512VNNI__)
constexpr gemm_kernel vnni_rcr = small_kernel<int8_dot, epilogue<int32>, 0, 1>();
constexpr gemm_kernel vnni_crr = small_kernel<int8_dot, epilogue<int32>, 1, 0>();
#endif
#if defined(__AMX_TILE__)
template <class Operation, class Epilogue, int LayoutA, int LayoutB>
constexpr gemm_kernel tiled_kernel(variant v = kStandard) {
  constexpr int kDepth = Operation::kDepth * Operation::kSteps;
  return gemm<Operation, Epilogue, LayoutA, LayoutB, 64, 96, 2 * kDepth, 32, 32, kDepth>::kernel(kNoFeature, v);
}
constexpr gemm_kernel amx_rcr = tiled_kernel<bf16_tiles, any_epilogue<bf16>, 0, 1>({0, 1, KW_STREAM_K_NONE, 1, 0, 0});
constexpr gemm_kernel amx_crr = tiled_kernel<bf16_tiles, epilogue<fp32>, 1, 0>();
constexpr gemm_kernel amx_shuffled = tiled_kernel<bf16_tiles, plain16, 0, 0>({0, 1, KW_STREAM_K_NONE, 0, 0, 1});
constexpr gemm_kernel amx_persistent = tiled_kernel<bf16_tiles, plain16, 0, 1>({1, 1, KW_STREAM_K_NONE, 0, 0, 0});
constexpr gemm_kernel amx_split_k = tiled_kernel<bf16_tiles, plain16, 0, 0>({0, 8, KW_STREAM_K_NONE, 0, 0, 0});
constexpr gemm_kernel amx_int8_rcr = tiled_kernel<int8_tiles, epilogue<int32>, 0, 1>();
constexpr gemm_kernel amx_int8_crr = tiled_kernel<int8_tiles, epilogue<int32>, 1, 0>();
#endif

}  // namespace
}  // namespace kernelwright::cpu

#define KERNEL(NAME) KW_CPU_GEMM_DESCRIPTOR(kernel_##NAME, kernelwright::cpu::NAME, #NAME, "x86_64", "", "", "")
KERNEL(fp32_rcr)
KERNEL(fp32_crr)
KERNEL(fp16_rrr)
KERNEL(bf16_ccr)
KERNEL(int8_rrr)
KERNEL(fused_rrr)
KERNEL(any32)
KERNEL(any16)
KERNEL(any16_to_32)
KERNEL(shuffled)
KERNEL(persistent)
KERNEL(split_k)
KERNEL(linear)
KERNEL(tree)
KERNEL(batched)
KERNEL(grouped)
#if defined(__AVX512BF16__)
KERNEL(dot_rcr)
KERNEL(dot_crr)
#endif
#if defined(__AVX512VNNI__)
KERNEL(vnni_rcr)
KERNEL(vnni_crr)
#endif
#if defined(__AMX_TILE__)
KERNEL(amx_rcr)
KERNEL(amx_crr)
KERNEL(amx_shuffled)
KERNEL(amx_persistent)
KERNEL(amx_split_k)
KERNEL(amx_int8_rcr)
KERNEL(amx_int8_crr)
#endif

extern "C" {
extern const kw_kernel* const kernels_under_test[];
const kw_kernel* const kernels_under_test[] = {&kernel_fp32_rcr,
                                               &kernel_fp32_crr,
                                               &kernel_fp16_rrr,
                                               &kernel_bf16_ccr,
                                               &kernel_int8_rrr,
                                               &kernel_fused_rrr,
                                               &kernel_shuffled,
                                               &kernel_persistent,
                                               &kernel_split_k,
                                               &kernel_linear,
                                               &kernel_tree,
                                               &kernel_batched,
                                               &kernel_grouped,
                                               &kernel_any32,
                                               &kernel_any16,
                                               &kernel_any16_to_32,
#if defined(__AVX512BF16__)
                                               &kernel_dot_rcr,
                                               &kernel_dot_crr,
#endif
#if defined(__AVX512VNNI__)
                                               &kernel_vnni_rcr,
                                               &kernel_vnni_crr,
#endif
#if defined(__AMX_TILE__)
                                               &kernel_amx_rcr,
                                               &kernel_amx_crr,
                                               &kernel_amx_shuffled,
                                               &kernel_amx_persistent,
                                               &kernel_amx_split_k,
                                               &kernel_amx_int8_rcr,
                                               &kernel_amx_int8_crr,
#endif
                                               nullptr};
}
