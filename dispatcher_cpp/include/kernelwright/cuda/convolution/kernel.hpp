// The kernel of an implicit GEMM: persistent workgroups of warps that load and two warp groups that multiply.
//
// Cooperative: both groups compute halves of the same tile. Pingpong: each has tiles of its own, in turn, so that one
// stores its tile while the other multiplies.
#pragma once

#include <cutlass/arch/reg_reconfig.h>

#include "kernelwright/cuda/convolution/epilogue.hpp"
#include "kernelwright/cuda/convolution/multiply.hpp"

namespace kernelwright::cuda::conv {

constexpr int kThreads = 384;
constexpr int kSharedBytes = 232448;  // of a workgroup
constexpr int kSwizzled = 1024;       // what stages are aligned to
constexpr int kBarrierBytes = 256;

// What a generated header says, and what follows from it.
template <class Spec>
struct config : Spec {
  static constexpr int groups_per_tile = Spec::cooperative ? 2 : 1;
  static constexpr int a_bytes = Spec::tile_m * kStep * 2, b_bytes = Spec::tile_n * kStep * 2;
  static constexpr int staging_bytes = 8 * kStagedBytes;  // for each multiplying warp
  static constexpr int fitting = (kSharedBytes - kSwizzled - kBarrierBytes - staging_bytes) / (a_bytes + b_bytes);
  static constexpr int stages = fitting < 8 ? fitting : 8;
  static constexpr int shared_bytes = kSwizzled + stages * (a_bytes + b_bytes) + staging_bytes + kBarrierBytes;
  static_assert(stages >= 2 && stages * 16 <= kBarrierBytes, "stages must fit into shared memory");
};

template <class Config>
struct workgroup {
  using ring_of = ring<Config::stages>;
  char *a, *b, *staging;
  ring_of stages;

  CUTLASS_DEVICE explicit workgroup(char* memory) {
    const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
    a = memory + ((kSwizzled - address % kSwizzled) % kSwizzled);
    b = a + Config::stages * Config::a_bytes;
    staging = b + Config::stages * Config::b_bytes;
    stages.full = reinterpret_cast<uint64_t*>(staging + Config::staging_bytes);
    stages.empty = stages.full + Config::stages;
  }

  CUTLASS_DEVICE void prepare() {
    if (threadIdx.x == 0) {
      for (int i = 0; i < Config::stages; ++i) {
        cutlass::arch::ClusterBarrier::init(stages.full + i, announcing_loaders<Config>());
        cutlass::arch::ClusterBarrier::init(stages.empty + i, multiplication<Config>::releases);
      }
      cutlass::arch::fence_barrier_init();
    }
    __syncthreads();
  }

  CUTLASS_DEVICE void load(const kw_cuda_conv_params& p, int loader) {
    cute::prefetch_tma_descriptor(reinterpret_cast<const cute::TmaDescriptor*>(&p.a));
    cute::prefetch_tma_descriptor(reinterpret_cast<const cute::TmaDescriptor*>(&p.b));
    for (uint32_t number = blockIdx.x; number < p.shape.tiles; number += gridDim.x) {
      load_tile<Config>(p, tile_of(p.shape, number), stages, a, b, loader);
    }
  }

  // Pingpong: which group's turn it is to multiply. Each turn but the first waits for the one before.
  CUTLASS_DEVICE static void wait_turn(int group) {
    cutlass::arch::NamedBarrier::sync(256, static_cast<uint32_t>(group));
  }
  CUTLASS_DEVICE static void pass_turn(int group) {
    cutlass::arch::NamedBarrier::arrive(256, static_cast<uint32_t>(1 - group));
  }

  CUTLASS_DEVICE void multiply(const kw_cuda_conv_params& p) {
    const int thread = static_cast<int>(threadIdx.x) - 128, group = thread / 128;
    char* const own = staging + thread / 32 * kStagedBytes;
    auto sums = multiplication<Config>::sums();
    int turn = 0;
    for (uint32_t number = blockIdx.x; number < p.shape.tiles; number += gridDim.x, ++turn) {
      const tile_of tile(p.shape, number);
      const int steps = steps_of<Config::weight>(p.shape, tile);
      if constexpr (Config::cooperative) {
        multiplication<Config>::run(a, b, stages, steps, thread, sums, [] {});
        epilogue<Config>::store(p, tile, sums, group, own);
      } else if (turn % 2 != group) {
        stages.step += static_cast<uint32_t>(steps);  // the other group's
      } else {
        if (turn > 0) wait_turn(group);
        const bool last = number + gridDim.x >= p.shape.tiles;
        multiplication<Config>::run(a, b, stages, steps, thread % 128, sums, [&] {
          if (!last) pass_turn(group);
        });
        epilogue<Config>::store(p, tile, sums, 0, own);
      }
    }
  }
};

template <class Config>
__global__ void __launch_bounds__(kThreads, 1) kernelwright_conv(const __grid_constant__ kw_cuda_conv_params params) {
  extern __shared__ char memory[];
  workgroup<Config> here(memory);
  here.prepare();
  wait_for_kernels_before();
  if (threadIdx.x < 128) {
    cutlass::arch::warpgroup_reg_dealloc<56>();
    if (threadIdx.x % 32 == 0) here.load(params, static_cast<int>(threadIdx.x) / 32);
  } else {
    cutlass::arch::warpgroup_reg_alloc<224>();
    here.multiply(params);
  }
}

}  // namespace kernelwright::cuda::conv
