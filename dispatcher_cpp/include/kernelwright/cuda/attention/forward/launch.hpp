// The host's side of forward kernels: from problems and arguments to parameters and launches.
#pragma once

#include "kernelwright/cuda/attention/forward/forward.hpp"
#include "kernelwright/cuda/attention/host.hpp"

namespace kernelwright::cuda::attention {

constexpr int64_t section_bytes = 24 << 20;  // of keys and values that tiles in flight share: half of an H200's L2

inline operand operand_of(const kw_attention_strides& strides, const kw_attention_problem& p, int64_t rows,
                          int64_t hdim, int64_t heads, bool packed) {
  return {strides.row,
          strides.head,
          p.group ? 0 : strides.request,
          static_cast<int32_t>(rows > 0 ? rows : 1),  // a descriptor needs some extent, even where nothing is read
          static_cast<int32_t>(hdim),
          static_cast<int32_t>(heads),
          static_cast<int32_t>(p.batch),
          packed};
}

template <class Config>
struct forward_launcher {
  using kernel = forward<Config>;
  using params = typename kernel::params;
  static constexpr kernel_resources resources = {sizeof(kernel_resources), sizeof(typename kernel::storage),
                                                 kernel::threads, 2};

  static int64_t most_tiles(const kw_attention_problem& p) { return p.total_q / Config::tile_m + p.batch; }
  static kw_status workspace_size(const kw_kernel*, const kw_problem* problem, uint64_t* bytes) {
    const auto& p = *reinterpret_cast<const kw_attention_problem*>(problem);
    *bytes = 0;
    if (empty(p)) return KW_OK;
    if (p.group) *bytes = sizeof(schedule_state) + most_tiles(p) * sizeof(listed_tile);
    if (!p.group && Config::bounded) *bytes = sizeof(schedule_state);
    return KW_OK;
  }

  static schedule schedule_of(const kw_attention_problem& p, const kw_attention_args& args, void* workspace) {
    schedule out{};
    out.state = p.group || Config::bounded ? static_cast<schedule_state*>(workspace) : nullptr;
    out.listed = p.group ? reinterpret_cast<const listed_tile*>(out.state + 1) : nullptr;
    out.keys = key_rows_of(p, args);
    out.heads = static_cast<int32_t>(p.heads_q);
    out.all_heads = static_cast<int32_t>(p.group ? p.heads_q : p.heads_q * p.batch);
    out.section_keys = static_cast<int32_t>(section_bytes / ((Config::hdim_q + Config::hdim_v) * 2));
    out.tiles = static_cast<int32_t>((p.max_seqlen_q + Config::tile_m - 1) / Config::tile_m);
    out.seqlen_q = static_cast<int32_t>(p.max_seqlen_q);
    const int group = static_cast<int>(p.heads_q / p.heads_kv);
    const int64_t keys = (p.max_seqlen_k + 1) * (Config::hdim_q + Config::hdim_v) * 2;
    const int64_t fitting = (keys < section_bytes ? section_bytes / keys : 1) * group;
    const int section = static_cast<int>(fitting < out.all_heads ? fitting : out.all_heads);
    const int rest = out.all_heads % section;
    out.group = cutlass::FastDivmod(group);
    out.request = cutlass::FastDivmod(out.heads);
    out.section = cutlass::FastDivmod(section);
    out.first_section = cutlass::FastDivmod(rest ? rest : section);
    out.section_tiles = cutlass::FastDivmod(section * out.tiles);
    return out;
  }

  static score_numbers numbers_of(const kw_attention_problem& p, const kw_attention_args& args) {
    const bool slopes = p.bias == KW_BIAS_ALIBI;
    return {static_cast<float>(p.scale * log2_e),
            static_cast<float>(p.soft_cap * log2_e),
            static_cast<float>(p.soft_cap != 0 ? p.scale / p.soft_cap : 0),
            static_cast<float>(1 / p.scale),
            p.sink ? args.sinks : nullptr,
            args.bias,
            slopes ? p.slopes_stride : p.bias_strides.request,
            p.bias_strides.head,
            p.bias_strides.row,
            p.mask == KW_MASK_TOP_LEFT};
  }

  static params params_of(const kw_attention_problem& p, const kw_attention_args& args, void* workspace) {
    const bool packed_k = !Config::paged && (p.group || p.kv_lengths);
    const operand q = operand_of(p.q, p, p.max_seqlen_q, p.hdim_q, p.heads_q, p.group);
    const operand k = operand_of(p.k, p, p.max_seqlen_k, p.hdim_q, p.heads_kv, packed_k);
    const operand v = operand_of(p.v, p, p.max_seqlen_k, p.hdim_v, p.heads_kv, packed_k);
    const int64_t rows = p.group ? p.total_q : p.max_seqlen_q;
    const score_numbers numbers = numbers_of(p, args);
    const output out{args.o,
                     p.o.row,
                     p.o.head,
                     p.group ? 0 : p.o.request,
                     static_cast<int32_t>(p.hdim_v),
                     args.lse,
                     rows,
                     p.group ? 0 : rows * p.heads_q};
    using all = operands<typename kernel::traits>;
    // Without keys K and V need not be there; a kernel with pages has descriptors of its own.
    const bool absent = Config::paged || !args.k || !args.v;
    return {absent ? all::of(args.q, q, args.q, q, args.q, q) : all::of(args.q, q, args.k, k, args.v, v),
            pages_of(p, args),
            schedule_of(p, args, workspace),
            window_of(p),
            numbers,
            out};
  }

  static pages pages_of(const kw_attention_problem& p, const kw_attention_args& args) {
    pages out{};
    if (!Config::paged || p.pages == 0) return out;
    const int heads = static_cast<int>(p.heads_kv);
    out.table = args.page_table;
    out.page_size = cutlass::FastDivmod(static_cast<int>(p.page_size));
    out.k_rows = static_cast<int32_t>(p.k.request / p.k.row), out.v_rows = static_cast<int32_t>(p.v.request / p.v.row);
    out.part = part_of_page(p.page_size, Config::tile_n);
    using element = typename Config::element;
    encode_pages<element>(&out.k, args.k, p.k.row, p.k.head, heads, static_cast<int>(p.hdim_q), out.part);
    encode_pages<element>(&out.v, args.v, p.v.row, p.v.head, heads, static_cast<int>(p.hdim_v), out.part);
    return out;
  }

  static kw_status launch(const kw_kernel* descriptor, const void* plan, const kw_launch* launch, const void* args) {
    const kw_attention_problem& p = static_cast<const kw_cuda_attention_plan*>(plan)->problem;
    const kw_attention_args& a = *static_cast<const kw_attention_args*>(args);
    if (empty(p)) return KW_OK;
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
    static uint64_t prepared = 0;  // of this kernel, a bit per device
    const auto* const function = reinterpret_cast<const void*>(&forward_kernel<Config>);
    int multiprocessors = 0;
    kw_status status = kw_cuda_multiprocessors(launch.device, &multiprocessors);
    if (status == KW_OK) status = kw_cuda_prepare(function, resources.dynamic_shared_bytes, launch.device, &prepared);
    if (status != KW_OK) return status;
    const uint64_t refused = kw_cuda_descriptors_refused();
    params all = params_of(p, args, launch.workspace);
    if (kw_cuda_descriptors_refused() != refused) return KW_LAUNCH_FAILED;
    const auto stream = static_cast<cudaStream_t>(launch.stream);
    if (cudaError_t error = schedule_here(p, args, all, stream)) return kw_cuda_launch_failed(descriptor, error);
    const int64_t tiles = p.group ? most_tiles(p) * p.heads_q : int64_t(all.tiles.all_heads) * all.tiles.tiles;
    const unsigned blocks = static_cast<unsigned>(tiles < multiprocessors ? tiles : multiprocessors);
    const bool behind_listing = p.group != 0;
    return start(descriptor, function, dim3(blocks), kernel::threads, resources.dynamic_shared_bytes, &all, stream,
                 behind_listing);
  }

  // Sets the workspace up.
  static cudaError_t schedule_here(const kw_attention_problem& p, const kw_attention_args& args, params const& all,
                                   cudaStream_t stream) {
    schedule_state* const state = all.tiles.state;
    if (!p.group) return state ? cudaMemsetAsync(state, 0, sizeof *state, stream) : cudaSuccess;
    listing in{state,
               reinterpret_cast<listed_tile*>(state + 1),
               args.cu_seqlens_q,
               all.tiles.keys,
               static_cast<int32_t>(p.batch),
               all.visible,
               Config::bounded};
    void* parameters[] = {&in};
    const auto* const function = reinterpret_cast<const void*>(&list_tiles<Config::tile_m, Config::tile_n>);
    return cudaLaunchKernel(function, {1}, {listing_threads}, parameters, 0, stream);
  }
};

}  // namespace kernelwright::cuda::attention
