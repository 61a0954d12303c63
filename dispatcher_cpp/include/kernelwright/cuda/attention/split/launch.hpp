// The host's side of split-KV and combine kernels.
#pragma once

#include "kernelwright/cuda/attention/split/combine.hpp"
#include "kernelwright/cuda/attention/split/decode.hpp"
#include "kernelwright/cuda/attention/without_workspace.hpp"
#include "kernelwright/cuda/common/resources.hpp"

namespace kernelwright::cuda::attention {

template <class Config>
struct decode_launcher : without_workspace {
  using kernel = decode<Config>;
  static constexpr kernel_resources resources = {sizeof(kernel_resources), kernel::shared_bytes, kernel::threads,
                                                 Config::stages};

  static cache cache_of(const kw_attention_problem& p, const kw_attention_args& args) {
    const bool apart = p.page_table != KW_PAGES_NONE || !p.group;
    return {key_rows_of(p, args), args.k, args.v, strides_of(p.k, apart), strides_of(p.v, apart)};
  }

  static decode_params params_of(const kw_attention_problem& p, const kw_attention_args& args) {
    decode_params out{};
    out.keys = cache_of(p, args);
    out.q = args.q, out.o = args.o, out.lse = p.lse ? args.lse : nullptr;
    out.o_splits = args.o_splits, out.lse_splits = args.lse_splits;
    out.sinks = p.sink ? args.sinks : nullptr;
    out.cu_seqlens_q = p.group ? args.cu_seqlens_q : nullptr;
    out.of_q = strides_of(p.q, !p.group), out.of_o = strides_of(p.o, !p.group);
    out.rows_per_head = p.group ? p.total_q : p.max_seqlen_q;
    out.rows = kw_attention_rows(&p);
    out.visible = window_of(p);
    out.seqlen_q = static_cast<int32_t>(p.max_seqlen_q);
    out.heads = static_cast<int32_t>(p.heads_q), out.kv_heads = static_cast<int32_t>(p.heads_kv);
    out.splits = static_cast<int32_t>(p.num_splits);
    out.hdim_q = static_cast<int32_t>(p.hdim_q), out.hdim_v = static_cast<int32_t>(p.hdim_v);
    out.kind = addend_of(p), out.bias = addend_numbers_of(p, args);
    out.group = cutlass::FastDivmod(static_cast<int>(p.heads_q / p.heads_kv));
    out.tiles = cutlass::FastDivmod(static_cast<int>(tiles_of_request(p)));
    out.scale = static_cast<float>(p.scale * log2_e);
    out.cap = static_cast<float>(p.soft_cap * log2_e);
    out.cap_scale = static_cast<float>(p.soft_cap != 0 ? p.scale / p.soft_cap : 0);
    return out;
  }

  static int64_t tiles_of_request(const kw_attention_problem& p) {
    return (p.max_seqlen_q * (p.heads_q / p.heads_kv) + kernel::rows - 1) / kernel::rows;
  }

  static kw_status launch(const kw_kernel* descriptor, const void* plan, const kw_launch* launch, const void* args) {
    const kw_attention_problem& p = static_cast<const kw_cuda_attention_plan*>(plan)->problem;
    const kw_attention_args& a = *static_cast<const kw_attention_args*>(args);
    if (empty(p)) return KW_OK;
    const kw_status status = kw_cuda_attention_check_args(&p, &a);
    if (status != KW_OK) return status;
    return on_device_of(launch, [&] {
      static uint64_t prepared = 0;
      const auto* const function = reinterpret_cast<const void*>(&decode_kernel<Config>);
      const kw_status ready = kw_cuda_prepare(function, kernel::shared_bytes, launch->device, &prepared);
      if (ready != KW_OK) return ready;
      decode_params all = params_of(p, a);
      const dim3 grid(static_cast<unsigned>(p.batch * tiles_of_request(p)), static_cast<unsigned>(p.heads_kv),
                      p.num_splits);
      return start(descriptor, function, grid, kernel::threads, kernel::shared_bytes, &all, launch->stream);
    });
  }
};

template <class Config>
struct combine_launcher : without_workspace {
  using kernel = combine<Config>;
  static constexpr kernel_resources resources = {sizeof(kernel_resources), 0, kernel::threads, 1};

  static kw_status launch(const kw_kernel* descriptor, const void* plan, const kw_launch* launch, const void* args) {
    const kw_attention_problem& p = static_cast<const kw_cuda_attention_plan*>(plan)->problem;
    const kw_attention_args& a = *static_cast<const kw_attention_args*>(args);
    if (empty(p)) return KW_OK;
    const kw_status status = kw_cuda_attention_check_args(&p, &a);
    if (status != KW_OK) return status;
    combine_params all{a.o_splits,
                       a.lse_splits,
                       a.o,
                       p.lse ? a.lse : nullptr,
                       {kw_attention_rows(&p), p.group ? p.total_q : p.max_seqlen_q, static_cast<int32_t>(p.heads_q)},
                       strides_of(p.o, !p.group),
                       static_cast<int32_t>(p.num_splits),
                       static_cast<int32_t>(p.hdim_v)};
    return on_device_of(launch, [&] {
      const auto* const function = reinterpret_cast<const void*>(&combine_kernel<Config>);
      constexpr bool early = true;
      return start(descriptor, function, dim3(static_cast<unsigned>(all.rows.count)), kernel::threads, 0, &all,
                   launch->stream, early);
    });
  }
};

}  // namespace kernelwright::cuda::attention
