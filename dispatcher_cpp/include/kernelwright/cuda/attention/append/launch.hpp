// The host's side of append kernels.
#pragma once

#include "kernelwright/cuda/attention/append/append.hpp"
#include "kernelwright/cuda/attention/without_workspace.hpp"
#include "kernelwright/cuda/common/resources.hpp"

namespace kernelwright::cuda::attention {

template <class Config>
struct append_launcher : without_workspace {
  using kernel = append<Config>;
  static constexpr kernel_resources resources = {sizeof(kernel_resources), 0, kernel::threads, 1};

  static cutlass::FastDivmod divisor(int64_t x) { return cutlass::FastDivmod(x > 0 ? static_cast<int>(x) : 1); }

  static append_params params_of(const kw_append_problem& p, const kw_append_args& args) {
    append_params out{};
    out.q = args.q, out.k = args.k, out.v = args.v;
    out.q_out = args.q_out, out.k_cache = args.k_cache, out.v_cache = args.v_cache;
    out.of_q = strides_of(p.q, true), out.of_q_out = strides_of(p.q_out, true);
    out.of_k = strides_of(p.k, true), out.of_v = strides_of(p.v, true);
    out.of_k_cache = strides_of(p.k_cache, true), out.of_v_cache = strides_of(p.v_cache, true);
    out.seqlens_k = args.seqlens_k;
    out.page_table = p.page_table != KW_PAGES_NONE ? args.page_table : nullptr;
    out.cos = args.cos, out.sin = args.sin;
    out.page_table_stride = p.page_table_stride;
    out.rows_of_kv = 2 * p.batch * p.seqlen_new * p.heads_kv;
    out.rows = out.rows_of_kv + (p.rotates_q ? p.batch * p.seqlen_q * p.heads_q : 0);
    out.page_size = divisor(p.page_size);
    out.heads_q = divisor(p.heads_q), out.heads_kv = divisor(p.heads_kv);
    out.seqlen_q = divisor(p.seqlen_q), out.seqlen_new = divisor(p.seqlen_new);
    out.rotary_dim = static_cast<int32_t>(p.rotary_dim);
    out.places = static_cast<int32_t>(p.rotary_places);
    out.capacity = static_cast<int32_t>(p.capacity);
    out.hdim_q = static_cast<int32_t>(p.hdim_q), out.hdim_v = static_cast<int32_t>(p.hdim_v);
    return out;
  }

  static kw_status launch(const kw_kernel* descriptor, const void* plan, const kw_launch* launch, const void* args) {
    const kw_append_problem& p = static_cast<const kw_cuda_append_plan*>(plan)->problem;
    const kw_append_args& a = *static_cast<const kw_append_args*>(args);
    append_params all = params_of(p, a);
    if (all.rows == 0) return KW_OK;
    const kw_status status = kw_cuda_append_check_args(&p, &a);
    if (status != KW_OK) return status;
    return on_device_of(launch, [&] {
      constexpr int rows = kernel::rows_at_once * kernel::ahead;
      const auto* const function = reinterpret_cast<const void*>(&append_kernel<Config>);
      const dim3 grid(static_cast<unsigned>((all.rows + rows - 1) / rows));
      return start(descriptor, function, grid, kernel::threads, 0, &all, launch->stream);
    });
  }
};

}  // namespace kernelwright::cuda::attention
