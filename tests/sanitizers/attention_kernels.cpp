// Small-tiled CPU kernels of attention of one processor level, for attention_driver.cpp; every pass and edge is
// reachable.
#include "kernelwright/cpu/attention/attention.hpp"

namespace kernelwright::cpu {
namespace {

#if defined(__AVX512F__)
constexpr int kMr = 8, kNr = 48;
#else
constexpr int kMr = 4, kNr = 24;
#endif
constexpr int kTileN = 4 * kMr;
using operation = widened_fma<fp32>;
using elementwise = score_features<true, KW_BIAS_ELEMENTWISE, true>;
using alibi = score_features<false, KW_BIAS_ALIBI, true>;

constexpr attention_variant variant(uint32_t family, uint32_t bias) {
  attention_variant v{};
  v.family = family;
  v.hdim_q = v.hdim_v = 128;
  v.pad_d = v.pad_dv = 1;
  v.groups = v.lses = v.sinks = v.dropouts = v.soft_caps = v.dbiases = KW_SERVES_BOTH;
  v.masks = KW_SERVES(KW_MASK_GENERIC);
  v.biases = KW_SERVES(KW_BIAS_NONE) | KW_SERVES(bias);
  v.page_tables = KW_SERVES(KW_PAGES_NONE) | KW_SERVES(KW_PAGES_BLOCK) | KW_SERVES(KW_PAGES_LIST);
  v.max_splits = family == KW_ATTENTION_FWD ? 1 : 64;
  v.leaves_splits = family == KW_ATTENTION_FWD_SPLITKV ? KW_SERVES(1) : KW_SERVES(0);
  v.ropes = KW_SERVES(KW_ROPE_NONE) | KW_SERVES(KW_ROPE_INTERLEAVED) | KW_SERVES(KW_ROPE_HALF);
  return v;
}

template <class Features>
constexpr attention_kernel part(uint32_t family, uint32_t bias) {
  return attention_part<operation, Features, 2 * kNr, kTileN, kMr, kNr>::kernel(kNoFeature, variant(family, bias));
}

constexpr attention_kernel lines(uint32_t family) {
  return attention_lines<fp32>::kernel(kNoFeature, variant(family, KW_BIAS_NONE));
}

constexpr attention_kernel eight_bits = attention_part_of_8_bits<elementwise, 2 * kNr, kTileN, kMr, kNr, fp32>::kernel(
    kNoFeature, variant(KW_ATTENTION_FWD, KW_BIAS_ELEMENTWISE));
constexpr attention_kernel narrow = attention_part_of_8_bits<elementwise, 2 * kNr, kTileN, kMr, kNr, fp8>::kernel(
    kNoFeature, variant(KW_ATTENTION_FWD, KW_BIAS_ELEMENTWISE));
constexpr attention_kernel forward = part<elementwise>(KW_ATTENTION_FWD, KW_BIAS_ELEMENTWISE);
constexpr attention_kernel slopes = part<alibi>(KW_ATTENTION_FWD, KW_BIAS_ALIBI);
constexpr attention_kernel splits = part<elementwise>(KW_ATTENTION_FWD_SPLITKV, KW_BIAS_ELEMENTWISE);
constexpr attention_kernel combine = lines(KW_ATTENTION_FWD_SPLITKV_COMBINE);
constexpr attention_kernel dot = lines(KW_ATTENTION_BWD_DOT_DO_O);
constexpr attention_kernel convert = lines(KW_ATTENTION_BWD_CONVERT_DQ);
constexpr attention_kernel gradient = attention_gradients<operation, elementwise, kTileN, kMr, kNr>::kernel(
    kNoFeature, variant(KW_ATTENTION_BWD_DQ_DK_DV, KW_BIAS_ELEMENTWISE));
constexpr attention_kernel append =
    attention_append<fp32>::kernel(kNoFeature, variant(KW_ATTENTION_FWD_APPENDKV, KW_BIAS_NONE));

}  // namespace
}  // namespace kernelwright::cpu

#define KERNEL(NAME)                                                                               \
  KW_CPU_ATTENTION_DESCRIPTOR(kernel_##NAME, kernelwright::cpu::NAME, #NAME, "x86_64", "", "", "") \
  extern "C" {                                                                                     \
  extern const kw_kernel* const NAME##_under_test;                                                 \
  const kw_kernel* const NAME##_under_test = &kernel_##NAME;                                       \
  }
KERNEL(forward)
KERNEL(eight_bits)
KERNEL(narrow)
KERNEL(slopes)
KERNEL(splits)
KERNEL(combine)
KERNEL(dot)
KERNEL(convert)
KERNEL(gradient)
KERNEL(append)
