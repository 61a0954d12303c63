// One attention kernel: packing, scores, softmax, products and the descriptor that a library lists.
#ifndef KERNELWRIGHT_CPU_ATTENTION_ATTENTION_HPP
#define KERNELWRIGHT_CPU_ATTENTION_ATTENTION_HPP

#include "kernelwright/cpu/attention/micro/attend.hpp"
#include "kernelwright/cpu/attention/micro/few.hpp"
#include "kernelwright/cpu/attention/micro/finish_rows.hpp"
#include "kernelwright/cpu/attention/micro/gradients.hpp"
#include "kernelwright/cpu/attention/micro/lines.hpp"
#include "kernelwright/cpu/attention/micro/rotate.hpp"
#include "kernelwright/cpu/common/descriptor.hpp"
#include "kernelwright/cpu/gemm/micro/pack.hpp"

namespace kernelwright::cpu {
namespace {

// What a kernel serves beyond its types and tile: sets as in kw_attention_traits.
struct attention_variant {
  uint32_t family, hdim_q, hdim_v;
  uint32_t pad_d, pad_dv;
  uint32_t groups, masks, biases, lses, sinks, dropouts, soft_caps;
  uint32_t page_tables, page_size, max_splits, leaves_splits;
  uint32_t dbiases, ropes, selection_rank;
};

// What kernels of all families have.
template <class Element>
constexpr attention_kernel common_attention(uint32_t required_features, attention_variant v) {
  attention_kernel k{};
  k.traits.struct_size = sizeof(kw_attention_traits);
  k.traits.family = v.family;
  k.traits.dtype_q = k.traits.dtype_kv = k.traits.dtype_o = Element::kDtype;
  k.traits.hdim_q = v.hdim_q;
  k.traits.hdim_v = v.hdim_v;
  k.traits.pad_s = k.traits.pad_sk = 1;
  k.traits.pad_d = v.pad_d;
  k.traits.pad_dv = v.pad_dv;
  k.traits.groups = v.groups;
  k.traits.masks = v.masks;
  k.traits.biases = v.biases;
  k.traits.lses = v.lses;
  k.traits.sinks = v.sinks;
  k.traits.dropouts = v.dropouts;
  k.traits.soft_caps = v.soft_caps;
  k.traits.page_tables = v.page_tables;
  k.traits.page_size = v.page_size;
  k.traits.max_splits = v.max_splits;
  k.traits.leaves_splits = v.leaves_splits;
  k.traits.selection_rank = v.selection_rank;
  k.required_features = required_features;
  k.input_bytes = k.output_bytes = k.bias_bytes = k.staged_bytes = sizeof(typename Element::storage);
  k.lanes = kLanes;
  k.widen = &skinny<Element>::widen;
  return k;
}

// Forward kernels of all families. TileM queries and TileN keys at a time; MR x NR is the register block, with queries
// along NR. Output is the type of O.
template <class Operation, class Features, int TileM, int TileN, int MR, int NR,
          class Output = typename Operation::element>
struct attention_part {
  static_assert(NR % kLanes == 0, "warp_tile.m is whole vectors");
  static_assert(TileM % NR == 0 && TileN % MR == 0 && MR % Operation::kDepth == 0, "a tile is whole warp tiles");
  using Element = typename Operation::element;

  static constexpr attention_kernel kernel(uint32_t required_features, attention_variant v) {
    attention_kernel k = common_attention<Element>(required_features, v);
    k.traits.dtype_bias = (v.biases & KW_SERVES(KW_BIAS_ELEMENTWISE)) != 0 ? uint32_t{Element::kDtype} : 0u;
    k.traits.tile_m0 = TileM;
    k.traits.tile_n0 = TileN;
    k.traits.kv_lengths = KW_SERVES_BOTH;
    k.traits.min_seqlens_q = KW_SERVES_BOTH;
    k.traits.random_bytes = KW_SERVES(0);
    k.traits.qscales = KW_SERVES(KW_QSCALE_NONE);
    k.traits.page_layouts = KW_SERVES(KW_PAGE_LINEAR);
    k.traits.packs_heads = 1;
    k.mr = MR;
    k.nr = NR;
    k.depth = Operation::kDepth;
    k.pack_q = &pack_along_k<typename Operation::b_loader, NR>::panels;
    k.pack_k = &pack_along_k<typename Operation::a_loader, MR>::panels;
    k.pack_v = &pack_along_panel<typename Operation::a_loader, MR>::panels;
    k.attend = &attender<Operation, Features, MR, NR>::attend;
    k.few = &few_attender<Element, Features>::attend;
    k.finish = &panel_finisher<Output, MR, NR>::finish;
    k.finish_few = &finish_few_rows<Output>;
    return k;
  }
};

template <class Element>
void widen_rows(const widen_rows_call& call) {
  const auto* const from = static_cast<const typename Element::storage*>(call.from);
  const vec factor = broadcast(call.factor);
  for (int64_t row = 0; row < call.rows; ++row) {
    for (int64_t i = 0; i < call.hdim; i += kLanes) {
      const int64_t count = smaller(call.hdim - i, kLanes);
      const vec v = mul(Element::load_first(from + row * call.ld + i, count), factor);
      store_first(call.to + row * call.hdim + i, v, count);
    }
  }
}

// The same for 8-bit operands, which are widened before fp32 kernels see them, so that factors may be any: one for a
// tensor, for blocks of rows, or for pages. A bias is fp32.
template <class Features, int TileM, int TileN, int MR, int NR, class Output>
struct attention_part_of_8_bits {
  static constexpr attention_kernel kernel(uint32_t required_features, attention_variant v) {
    using part = attention_part<widened_fma<fp32>, Features, TileM, TileN, MR, NR, Output>;
    attention_kernel k = part::kernel(required_features, v);
    k.traits.dtype_q = k.traits.dtype_kv = KW_FP8;
    k.traits.dtype_o = Output::kDtype;
    k.traits.qscales = KW_SERVES(KW_QSCALE_NONE) | KW_SERVES(KW_QSCALE_PER_TENSOR) | KW_SERVES(KW_QSCALE_BLOCK_SCALE) |
                       KW_SERVES(KW_QSCALE_KV_BLOCK_SCALE);
    k.input_bytes = sizeof(fp8::storage);
    k.output_bytes = sizeof(typename Output::storage);
    k.widen_rows = &widen_rows<fp8>;
    return k;
  }
};

// dK, dV and sums of dQ: a panel of NR queries and TileN keys at a time. Sums are made in one order, whatever is asked.
template <class Operation, class Features, int TileN, int MR, int NR>
struct attention_gradients {
  static_assert(NR % kLanes == 0, "warp_tile.m is whole vectors");
  static_assert(TileN % MR == 0 && MR % Operation::kDepth == 0, "a tile is whole warp tiles");
  using Element = typename Operation::element;

  static constexpr attention_kernel kernel(uint32_t required_features, attention_variant v) {
    attention_kernel k = common_attention<Element>(required_features, v);
    k.traits.dtype_bias = (v.biases & KW_SERVES(KW_BIAS_ELEMENTWISE)) != 0 ? uint32_t{Element::kDtype} : 0u;
    k.traits.tile_m0 = NR;
    k.traits.tile_n0 = TileN;
    k.traits.kv_lengths = KW_SERVES_BOTH;
    k.traits.random_bytes = KW_SERVES(0);
    k.traits.dbiases = v.dbiases;
    k.traits.deterministics = KW_SERVES_BOTH;
    k.traits.leaves_dq = 1;
    k.mr = MR;
    k.nr = NR;
    k.depth = Operation::kDepth;
    k.pack_q = &pack_along_k<typename Operation::b_loader, NR>::panels;
    k.pack_k = &pack_along_k<typename Operation::a_loader, MR>::panels;
    k.pack_v = &pack_along_panel<typename Operation::a_loader, MR>::panels;
    k.pack_columns = &pack_along_panel<typename Operation::b_loader, NR>::panels;
    k.gradients = &gradients<Operation, Features, MR, NR>::add;
    k.lines = &convert_lines<Element>;
    return k;
  }
};

// Families without products.
template <class Element>
struct attention_lines {
  static constexpr attention_kernel kernel(uint32_t required_features, attention_variant v) {
    attention_kernel k = common_attention<Element>(required_features, v);
    k.lines = v.family == KW_ATTENTION_BWD_DOT_DO_O          ? &dot_lines<Element>
              : v.family == KW_ATTENTION_FWD_SPLITKV_COMBINE ? &combine_lines<Element>
                                                             : &convert_lines<Element>;
    return k;
  }
};

template <class Element>
struct attention_append {
  static constexpr attention_kernel kernel(uint32_t required_features, attention_variant v) {
    attention_kernel k = common_attention<Element>(required_features, v);
    k.traits.dtype_bias = v.ropes != KW_SERVES(KW_ROPE_NONE) ? uint32_t{Element::kDtype} : 0u;
    k.traits.page_layouts = KW_SERVES(KW_PAGE_LINEAR);
    k.traits.ropes = v.ropes;
    k.rotate = &rotate_row<Element>;
    return k;
  }
};

}  // namespace
}  // namespace kernelwright::cpu

// Defines the descriptor SYMBOL; KERNEL is a kernelwright::cpu::attention_kernel with static storage.
#define KW_CPU_ATTENTION_DESCRIPTOR(SYMBOL, KERNEL, NAME, ARCH, IDENTITY, SPEC_JSON, FEATURES)                   \
  KW_CPU_DESCRIPTOR(attention, KW_ATTENTION_OP_OF((KERNEL).traits.family), KW_CPU_ATTENTION_PLAN_BYTES, nullptr, \
                    SYMBOL, KERNEL, NAME, ARCH, IDENTITY, SPEC_JSON, FEATURES)

#endif  // KERNELWRIGHT_CPU_ATTENTION_ATTENTION_HPP
