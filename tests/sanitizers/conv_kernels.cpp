// Small-tiled CPU kernels of convolution of one processor level, for conv_driver.cpp; every pass and edge is reachable.
#include "kernelwright/cpu/convolution/convolution.hpp"

namespace kernelwright::cpu {
namespace {

#if defined(__AVX512F__)
constexpr int kMr = 14, kNr = 32;
#else
constexpr int kMr = 6, kNr = 16;
#endif

template <int Op, class Operation, class Epilogue>
constexpr conv_kernel small_kernel(conv_epilogue fused = {0, 0, KW_ACTIVATION_NONE}) {
  return convolution<Op, Operation, Epilogue, KW_CONV_NDHWGC, 2 * kMr, kNr, 8, kMr, kNr, Operation::kDepth>::kernel(
      kNoFeature, fused);
}

constexpr conv_kernel forward = small_kernel<KW_OP_CONV_FORWARD, widened_fma<fp32>, epilogue<fp32>>();
constexpr conv_kernel fused =
    small_kernel<KW_OP_CONV_FORWARD, widened_fma<fp32>, epilogue<fp32, 2, KW_D_ADD, relu>>({1, 1, KW_ACTIVATION_RELU});
constexpr conv_kernel any =
    small_kernel<KW_OP_CONV_FORWARD, widened_fma<fp32>, any_epilogue<fp32>>({1, 1, KW_ACTIVATION_ANY});
constexpr conv_kernel data = small_kernel<KW_OP_CONV_BACKWARD_DATA, widened_fma<fp32>, epilogue<fp32>>();
constexpr conv_kernel weight = small_kernel<KW_OP_CONV_WEIGHT_SLICES, widened_fma<fp32>, epilogue<fp32>>();
constexpr conv_kernel plane =
    depthwise_convolution<KW_OP_CONV_FORWARD, widened_fma<fp32>, epilogue<fp32>, KW_CONV_NGCHW>::kernel(
        kNoFeature, {0, 0, KW_ACTIVATION_NONE});

}  // namespace
}  // namespace kernelwright::cpu

#define KERNEL(NAME) KW_CPU_CONV_DESCRIPTOR(kernel_##NAME, kernelwright::cpu::NAME, #NAME, "x86_64", "", "", "")
KERNEL(forward)
KERNEL(fused)
KERNEL(any)
KERNEL(data)
KERNEL(weight)
KERNEL(plane)

extern "C" {
extern const kw_kernel* const kernels_under_test[];
const kw_kernel* const kernels_under_test[] = {&kernel_forward, &kernel_fused, &kernel_any, &kernel_data,
                                               &kernel_weight,  &kernel_plane, nullptr};
}
