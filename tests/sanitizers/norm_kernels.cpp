// CPU kernels of norms of one processor level, for norm_driver.cpp: every kind of element, result and direction.
#include "kernelwright/cpu/norm/norm.hpp"

namespace kernelwright::cpu {
namespace {

constexpr norm_kernel rms = norm<KW_OP_RMS_NORM, fp32, fp32, 4>();
constexpr norm_kernel layer = norm<KW_OP_LAYER_NORM, bf16, bf16, 2>();
constexpr norm_kernel to_int8 = norm<KW_OP_LAYER_NORM, fp16, quantised_int8, 1>();
constexpr norm_kernel to_fp8 = norm<KW_OP_RMS_NORM, fp32, quantised_fp8, 4>();
constexpr norm_kernel rms_backward = norm<KW_OP_RMS_NORM_BACKWARD, bf16, bf16, 4>();
constexpr norm_kernel layer_backward = norm<KW_OP_LAYER_NORM_BACKWARD, fp32, fp32, 2>();

}  // namespace
}  // namespace kernelwright::cpu

#define KERNEL(NAME) KW_CPU_NORM_DESCRIPTOR(kernel_##NAME, kernelwright::cpu::NAME, #NAME, "x86_64", "", "")
KERNEL(rms)
KERNEL(layer)
KERNEL(to_int8)
KERNEL(to_fp8)
KERNEL(rms_backward)
KERNEL(layer_backward)

extern "C" {
extern const kw_kernel* const kernels_under_test[];
const kw_kernel* const kernels_under_test[] = {
    &kernel_rms, &kernel_layer, &kernel_to_int8, &kernel_to_fp8, &kernel_rms_backward, &kernel_layer_backward, nullptr};
}
