// The host's side of the overlapped kernel: sums are cleared, added to, and converted.
#pragma once

#include <algorithm>

#include "kernelwright/cuda/attention/backward/launch.hpp"
#include "kernelwright/cuda/attention/backward/overlapped/convert.hpp"
#include "kernelwright/cuda/attention/backward/overlapped/gradients.hpp"

namespace kernelwright::cuda::attention {

template <class Config>
struct overlapped_launcher {
  using kernel = overlapped<Config>;
  using convert = overlapped_convert<Config>;
  static constexpr kernel_resources resources = {sizeof(kernel_resources), kernel::shared_bytes, kernel::threads,
                                                 kernel::storage::stages};
  static constexpr int64_t section_bytes = 24 << 20;  // of Q, dO and sums: half of an H200's L2
  static constexpr int64_t last_section_blocks = 3 * 132;

  static int64_t query_tiles(const kw_attention_problem& p) {
    return p.group ? p.total_q / kernel::M + p.batch : (p.max_seqlen_q + kernel::M - 1) / kernel::M;
  }
  // Of all heads and requests.
  static int64_t all_tiles(const kw_attention_problem& p) {
    return query_tiles(p) * p.heads_q * (p.group ? 1 : p.batch);
  }
  static uint64_t sum_bytes(const kw_attention_problem& p) {
    return uint64_t(all_tiles(p)) * kernel::M * Config::hdim * sizeof(float);
  }

  static kw_status workspace_size(const kw_kernel*, const kw_problem* problem, uint64_t* bytes) {
    const auto& p = *reinterpret_cast<const kw_attention_problem*>(problem);
    *bytes = empty(p) ? 0 : sum_bytes(p) + (Config::deterministic ? uint64_t(all_tiles(p)) * 2 * sizeof(int32_t) : 0);
    return KW_OK;
  }

  struct sections {
    int64_t heads, last;  // of each, and of the last one
  };
  // A section has as many heads as fit into L2 (those of Q that share K and V come one after the other); with a mask,
  // which makes blocks unequal, the last one has some blocks for each multiprocessor.
  static sections sections_of(const kw_attention_problem& p) {
    const int64_t all = p.heads_kv * p.batch, tiles = (p.max_seqlen_k + kernel::N - 1) / kernel::N;
    const int64_t head_bytes = (p.max_seqlen_q + 1) * Config::hdim * (2 + 2 + 4);
    const int64_t heads = std::clamp<int64_t>(section_bytes / head_bytes, 1, all);
    const int64_t wanted = p.mask == KW_MASK_NONE ? heads : last_section_blocks / std::max<int64_t>(tiles, 1) + 1;
    const int64_t least = std::min(all, wanted);
    return {heads, all - (all - least) / heads * heads};
  }

  static overlapped_params params_of(const kw_attention_problem& p, const kw_attention_args& args, void* workspace) {
    overlapped_params out{};
    out.all = gradient_params_of(p, args);
    out.bias = addend_numbers_of(p, args);
    out.sums = static_cast<float*>(workspace);
    out.turns = reinterpret_cast<int32_t*>(static_cast<char*>(workspace) + sum_bytes(p));
    out.key_tiles = static_cast<int32_t>((p.max_seqlen_k + kernel::N - 1) / kernel::N);
    out.query_tiles = static_cast<int32_t>(query_tiles(p));
    out.kv_heads = static_cast<int32_t>(p.heads_kv), out.all_kv_heads = static_cast<int32_t>(p.heads_kv * p.batch);
    const auto [section, last] = sections_of(p);
    out.section = static_cast<int32_t>(section), out.last_section = static_cast<int32_t>(last);
    return out;
  }

  static void encode(const kw_attention_problem& p, const kw_attention_args& args, overlapped_params* out) {
    using element = typename Config::element;
    const gradient_params& all = out->all;
    const int64_t requests = p.group ? 1 : p.batch;
    const int64_t queries = p.max_seqlen_q, keys = p.group ? p.total_k : p.max_seqlen_k;
    encode_rows<element>(&out->q, args.q, all.of_q, queries, p.heads_q, requests, all.hdim_q, kernel::M, p.group);
    encode_rows<element>(&out->d_o, args.d_o, all.of_d_o, queries, p.heads_q, requests, all.hdim_v, kernel::M, p.group);
    encode_rows<element>(&out->k, args.k, all.of_k, keys, p.heads_kv, requests, all.hdim_q, kernel::N, false);
    encode_rows<element>(&out->v, args.v, all.of_v, keys, p.heads_kv, requests, all.hdim_v, kernel::N, false);
  }

  static kw_status launch(const kw_kernel* descriptor, const void* plan, const kw_launch* launch, const void* args) {
    const kw_attention_problem& p = static_cast<const kw_cuda_attention_plan*>(plan)->problem;
    const kw_attention_args& a = *static_cast<const kw_attention_args*>(args);
    if (p.batch == 0 || p.heads_q == 0) return KW_OK;
    const kw_status status = kw_cuda_attention_check_args(&p, &a);
    if (status != KW_OK) return status;
    return on_device_of(launch, [&] { return launch_here(descriptor, p, *launch, a); });
  }

  // The device of the launch is current.
  static kw_status launch_here(const kw_kernel* descriptor, const kw_attention_problem& p, const kw_launch& launch,
                               const kw_attention_args& args) {
    uint64_t needed = 0;
    workspace_size(descriptor, &p.base, &needed);
    if (needed > launch.workspace_bytes) return kw_cuda_workspace_too_small(descriptor, needed, launch.workspace_bytes);
    static uint64_t prepared = 0;
    const auto* const function = reinterpret_cast<const void*>(&overlapped_kernel<Config>);
    const kw_status ready = kw_cuda_prepare(function, kernel::shared_bytes, launch.device, &prepared);
    if (ready != KW_OK) return ready;
    overlapped_params all = params_of(p, args, launch.workspace);
    const bool queries = !empty(p), keys = out_of_keys(p);
    if (queries) {
      const auto stream = static_cast<cudaStream_t>(launch.stream);
      const cudaError_t error = cudaMemsetAsync(launch.workspace, 0, needed, stream);
      if (error != cudaSuccess) return kw_cuda_launch_failed(descriptor, error);
    }
    if (keys) {
      const uint64_t refused = kw_cuda_descriptors_refused();
      if (queries) encode(p, args, &all);
      if (kw_cuda_descriptors_refused() != refused) return KW_LAUNCH_FAILED;
      const dim3 grid(static_cast<unsigned>(int64_t(all.key_tiles) * all.all_kv_heads));
      const kw_status done =
          start(descriptor, function, grid, kernel::threads, kernel::shared_bytes, &all, launch.stream);
      if (done != KW_OK) return done;
    }
    return queries ? convert_sums(descriptor, p, launch, all) : KW_OK;
  }

  static bool out_of_keys(const kw_attention_problem& p) { return (p.group ? p.total_k : p.max_seqlen_k) > 0; }

  static kw_status convert_sums(const kw_kernel* descriptor, const kw_attention_problem& p, const kw_launch& launch,
                                overlapped_params& all) {
    const auto* const function = reinterpret_cast<const void*>(&overlapped_convert_kernel<Config>);
    const dim3 grid(static_cast<unsigned>((p.max_seqlen_q + kernel::M - 1) / kernel::M),
                    static_cast<unsigned>(p.heads_q), static_cast<unsigned>(p.batch));
    return start(descriptor, function, grid, convert::threads, 0, &all, launch.stream);
  }
};

}  // namespace kernelwright::cuda::attention
