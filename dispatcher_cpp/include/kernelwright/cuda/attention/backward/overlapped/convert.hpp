// dQ in the type of Q from sums in the order of the kernel's registers.
#pragma once

#include "kernelwright/cuda/attention/backward/overlapped/storage.hpp"
#include "kernelwright/cuda/attention/backward/overlapped/work.hpp"

namespace kernelwright::cuda::attention {

template <class Config>
struct overlapped_convert {
  using element = typename Config::element;
  using storage = overlapped_storage<Config>;
  using plain = std::conditional_t<cute::is_same_v<element, cutlass::bfloat16_t>, bfloat16, half>;
  static constexpr int M = storage::M, hdim = Config::hdim, threads = consumer_threads;
  static constexpr int columns = hdim + 8;  // so that rows begin in other banks

  // A workgroup takes tile blockIdx.x of head blockIdx.y of request blockIdx.z.
  CUTLASS_DEVICE static void run(overlapped_params const& p) {
    __shared__ alignas(16) plain rows[M * columns];
    const int request = blockIdx.z, head = blockIdx.y, index = blockIdx.x;
    const int start = p.all.cu_seqlens_q ? p.all.cu_seqlens_q[request] : 0;
    const int count = p.all.cu_seqlens_q ? p.all.cu_seqlens_q[request + 1] - start : p.all.seqlen_q;
    if (index * M >= count) return;
    const int64_t at = first_tile_of_sums<M>(p, request, head, start) + index;
    const int group = threadIdx.x / 128, thread = threadIdx.x % 128, lane = threadIdx.x % 32;
    const auto* const sums =
        reinterpret_cast<const float4*>(p.sums + (at * consumers + group) * storage::sum_floats) + thread;
    const int column = (hdim == 64 ? 0 : group * 64) + thread / 32 * 16 + lane / 4;
    const int row = (hdim == 64 ? group * M / 2 : 0) + lane % 4 * 2;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < storage::sum_floats / 512; ++i) {
      const float4 four = sums[i * 128];
      plain* const to = rows + (row + i * 8) * columns + column;
      to[0] = rounded<plain>(four.x * p.all.scale), to[columns] = rounded<plain>(four.y * p.all.scale);
      to[8] = rounded<plain>(four.z * p.all.scale), to[columns + 8] = rounded<plain>(four.w * p.all.scale);
    }
    __syncthreads();
    auto* const base = static_cast<element*>(p.all.dq) + request * p.all.of_dq.request + head * p.all.of_dq.head;
    for (int i = threadIdx.x; i < M * hdim / 8; i += threads) {
      const int r = i / (hdim / 8), c = i % (hdim / 8) * 8;
      if (index * M + r >= count) break;
      if (c >= p.all.hdim_q) continue;
      *reinterpret_cast<uint4*>(base + (start + index * M + r) * p.all.of_dq.row + c) =
          *reinterpret_cast<const uint4*>(rows + r * columns + c);
    }
  }
};

template <class Config>
__global__ void __launch_bounds__(overlapped_convert<Config>::threads)
    overlapped_convert_kernel(const __grid_constant__ overlapped_params p) {
  overlapped_convert<Config>::run(p);
}

}  // namespace kernelwright::cuda::attention
