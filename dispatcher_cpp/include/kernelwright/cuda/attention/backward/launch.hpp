// The host's side of backward kernels.
#pragma once

#include "kernelwright/cuda/attention/backward/dot.hpp"
#include "kernelwright/cuda/attention/backward/gradients.hpp"
#include "kernelwright/cuda/attention/without_workspace.hpp"
#include "kernelwright/cuda/common/resources.hpp"

namespace kernelwright::cuda::attention {

inline gradient_params gradient_params_of(const kw_attention_problem& p, const kw_attention_args& args) {
  gradient_params out{};
  const bool batch = !p.group;
  out.q = args.q, out.k = args.k, out.v = args.v, out.d_o = args.d_o;
  out.dq = args.dq, out.dk = args.dk, out.dv = args.dv;
  out.lse = args.lse, out.d = args.d;
  out.of_q = strides_of(p.q, batch), out.of_k = strides_of(p.k, batch), out.of_v = strides_of(p.v, batch);
  out.of_d_o = strides_of(p.d_o, batch);
  out.of_dq = strides_of(p.dq, batch), out.of_dk = strides_of(p.dk, batch), out.of_dv = strides_of(p.dv, batch);
  out.cu_seqlens_q = p.group ? args.cu_seqlens_q : nullptr;
  out.keys = key_rows_of(p, args);
  out.rows_per_head = p.group ? p.total_q : p.max_seqlen_q;
  out.visible = window_of(p);
  out.seqlen_q = static_cast<int32_t>(p.max_seqlen_q);
  out.heads = static_cast<int32_t>(p.heads_q), out.group = static_cast<int32_t>(p.heads_q / p.heads_kv);
  out.hdim_q = static_cast<int32_t>(p.hdim_q), out.hdim_v = static_cast<int32_t>(p.hdim_v);
  out.scale = static_cast<float>(p.scale);
  out.kind = addend_of(p), out.bias = addend_numbers_of(p, args);
  out.cap = static_cast<float>(p.soft_cap * log2_e);
  out.cap_scale = static_cast<float>(p.soft_cap != 0 ? p.scale / p.soft_cap : 0);
  return out;
}

template <class Config>
struct gradient_launcher : without_workspace {
  using keys = gradients<Config, true>;
  using queries = gradients<Config, false>;
  static_assert(keys::shared_bytes == queries::shared_bytes && keys::threads == queries::threads);
  static constexpr kernel_resources resources = {sizeof(kernel_resources), keys::shared_bytes, keys::threads, 2};

  template <bool KeysStay>
  static kw_status launch_side(const kw_kernel* descriptor, gradient_params all, int64_t length, int64_t heads,
                               const kw_attention_problem& p, const kw_launch& launch) {
    if (length == 0) return KW_OK;
    static uint64_t prepared = 0;
    const auto* const function = reinterpret_cast<const void*>(&gradient_kernel<Config, KeysStay>);
    const kw_status ready = kw_cuda_prepare(function, keys::shared_bytes, launch.device, &prepared);
    if (ready != KW_OK) return ready;
    const int64_t blocks = (length + keys::block - 1) / keys::block * keys::parts;
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(heads), static_cast<unsigned>(p.batch));
    return start(descriptor, function, grid, keys::threads, keys::shared_bytes, &all, launch.stream);
  }

  static kw_status launch(const kw_kernel* descriptor, const void* plan, const kw_launch* launch, const void* args) {
    const kw_attention_problem& p = static_cast<const kw_cuda_attention_plan*>(plan)->problem;
    const kw_attention_args& a = *static_cast<const kw_attention_args*>(args);
    if (p.batch == 0 || p.heads_q == 0) return KW_OK;
    const kw_status status = kw_cuda_attention_check_args(&p, &a);
    if (status != KW_OK) return status;
    return on_device_of(launch, [&] {
      const gradient_params all = gradient_params_of(p, a);
      const kw_status done = launch_side<true>(descriptor, all, p.max_seqlen_k, p.heads_kv, p, *launch);
      return done == KW_OK ? launch_side<false>(descriptor, all, p.max_seqlen_q, p.heads_q, p, *launch) : done;
    });
  }
};

template <class Config>
struct dot_launcher : without_workspace {
  using kernel = dot<Config>;
  static constexpr kernel_resources resources = {sizeof(kernel_resources), 0, kernel::threads, 1};

  static kw_status launch(const kw_kernel* descriptor, const void* plan, const kw_launch* launch, const void* args) {
    const kw_attention_problem& p = static_cast<const kw_cuda_attention_plan*>(plan)->problem;
    const kw_attention_args& a = *static_cast<const kw_attention_args*>(args);
    if (empty(p)) return KW_OK;
    const kw_status status = kw_cuda_attention_check_args(&p, &a);
    if (status != KW_OK) return status;
    dot_params all{a.o,
                   a.d_o,
                   a.d,
                   {kw_attention_rows(&p), p.group ? p.total_q : p.max_seqlen_q, static_cast<int32_t>(p.heads_q)},
                   strides_of(p.o, !p.group),
                   strides_of(p.d_o, !p.group),
                   static_cast<int32_t>(p.hdim_v),
                   static_cast<float>(1 - p.dropout_p)};
    return on_device_of(launch, [&] {
      const auto* const function = reinterpret_cast<const void*>(&dot_kernel<Config>);
      const int64_t blocks = (all.rows.count + kernel::rows_of_block - 1) / kernel::rows_of_block;
      return start(descriptor, function, dim3(static_cast<unsigned>(blocks)), kernel::threads, 0, &all, launch->stream);
    });
  }
};

}  // namespace kernelwright::cuda::attention
