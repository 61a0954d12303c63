// Split-K on Hopper: CUTLASS's scheduler cuts tiles along K; what the slices of a tile leave is added up here.
//
// CUTLASS 4.2 has each slice wait for the one before and add to the sums that it left, so that a tile's slices take
// turns at the end. Here a slice leaves its sums in a slot of its own, and counts its steps of K in the tile's flag.
// The last slice waits until all others are counted, and adds their slots to its own sums in the order of K: results
// have the same bits in every run. Flags are cleared by a kernel in front, which overlaps with the one before it and
// with the product.
#pragma once

#include <cuda_runtime.h>
#include <cutlass/arch/grid_dependency_control.h>
#include <cutlass/barrier.h>

#include <cutlass/gemm/kernel/sm90_tile_scheduler_stream_k.hpp>
#include <cutlass/gemm/kernel/tile_scheduler.hpp>

namespace kernelwright::cuda {

// The tag of this scheduler, where CUTLASS's builders have theirs.
struct split_k_scheduler {};

template <class Tag>
__global__ void kernelwright_prepare_flags(int* flags, uint32_t count) {
  cutlass::arch::launch_dependent_grids();
  cutlass::arch::wait_on_dependent_grids();  // the kernel before may use the same workspace
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) flags[i] = 0;
}

template <class Tile, class Cluster>
class split_k_tiles : public cutlass::gemm::kernel::detail::PersistentTileSchedulerSm90StreamK<Tile, Cluster> {
  using base = cutlass::gemm::kernel::detail::PersistentTileSchedulerSm90StreamK<Tile, Cluster>;
  static constexpr uint32_t kThreads = cutlass::NumThreadsPerWarpGroup, kGroups = 2;
  static constexpr uint32_t kFirstBarrier =
      static_cast<uint32_t>(cutlass::arch::ReservedNamedBarriers::StreamkBarrier0);
  using barriers = cutlass::NamedBarrierManager<kThreads, kFirstBarrier, kGroups>;
  static constexpr uint64_t kTileElements = cute::size<0>(Tile{}) * cute::size<1>(Tile{}), kAlignment = 256;

 public:
  using base::base;
  using typename base::Arguments;
  using typename base::Params;
  using typename base::WorkTileInfo;

  // Groups of tiles side by side are made narrower where slices of the tiles beyond the edge would cost a wave: `args`
  // has the width that is right for one slice.
  template <class Problem>
  static Params to_underlying_arguments(const Problem& problem, Tile, Cluster,
                                        const cutlass::KernelHardwareInfo& hardware, Arguments args, void* workspace,
                                        uint32_t = 1, uint32_t = 1) {
    const dim3 tiles = base::get_tiled_cta_shape_mnl(cute::append<4>(problem, cute::Int<1>{}), Tile{}, Cluster{});
    const auto waves = [&](int most) {
      const int width = 1 << cutlass::gemm::kernel::detail::PersistentTileSchedulerSm90Params::get_log_swizzle_size(
                            static_cast<int>(tiles.x), static_cast<int>(tiles.y), most);
      const uint64_t rows = cute::round_up(tiles.x, width * cute::size<0>(Cluster{}));
      const uint64_t columns = cute::round_up(tiles.y, width * cute::size<1>(Cluster{}));
      return (rows * columns * tiles.z * args.splits + hardware.sm_count - 1) / hardware.sm_count;
    };
    while (args.max_swizzle_size > 1 && waves(args.max_swizzle_size) > waves(1)) args.max_swizzle_size /= 2;
    return base::to_underlying_arguments(problem, Tile{}, Cluster{}, hardware, args, workspace);
  }

  // As CUTLASS's, which does not compile: slices are never continued.
  CUTLASS_DEVICE bool is_last_tile(const WorkTileInfo&, uint32_t ahead = 1) const {
    split_k_tiles next = *this;
    next.advance_to_next_work(ahead);
    return !next.get_current_work().is_valid();
  }

  // Each of the `groups` warp groups of a workgroup has its rows of the tile, a flag and a part of each slot.
  template <class Fragment>
  CUTLASS_DEVICE static void fixup(const Params& params, const WorkTileInfo& work, Fragment& sums, uint32_t groups,
                                   uint32_t group) {
    using element = typename Fragment::value_type;
    constexpr int kSums = decltype(cute::size(sums))::value, kOfChunk = 16 / sizeof(element);
    static_assert(sizeof(element) == 4 && kSums % kOfChunk == 0, "sums of four bytes, sixteen at a time");
    if (!base::requires_fixup(params, work)) return;
    auto* flags = static_cast<int*>(params.reduction_workspace_);
    auto* slots =
        reinterpret_cast<uint4*>(static_cast<char*>(params.reduction_workspace_) + flag_bytes(params, groups));
    const uint64_t tile = base::output_tile_index(params, work), flag = tile * groups + group;
    const uint32_t others = static_cast<uint32_t>(params.divmod_splits_.divisor) - 1, thread = threadIdx.x % kThreads;
    constexpr uint32_t kChunks = kSums / kOfChunk, kSlot = kChunks * kThreads;
    const auto slot = [&](uint32_t slice) {
      return slots + ((tile * others + slice) * groups + group) * kSlot + thread;
    };
    if (!base::compute_epilogue(work, params)) {
      uint4* to = slot(slice_of(params, static_cast<uint32_t>(work.K_idx)));
      CUTLASS_PRAGMA_UNROLL
      for (uint32_t i = 0; i < kChunks; ++i) {
        element chunk[kOfChunk];
        CUTLASS_PRAGMA_UNROLL
        for (int j = 0; j < kOfChunk; ++j) chunk[j] = sums(static_cast<int>(i) * kOfChunk + j);
        to[i * kThreads] = *reinterpret_cast<uint4*>(chunk);
      }
      barriers::arrive_inc(group, flags, thread, flag, work.k_tile_count);
      return;
    }
    barriers::wait_eq(group, flags, thread, flag, work.K_idx);
    CUTLASS_PRAGMA_NO_UNROLL
    for (uint32_t slice = 0; slice < others; ++slice) {
      const uint4* from = slot(slice);
      CUTLASS_PRAGMA_UNROLL
      for (uint32_t i = 0; i < kChunks; ++i) {
        const uint4 raw = __ldcg(from + i * kThreads);
        const auto* chunk = reinterpret_cast<const element*>(&raw);
        CUTLASS_PRAGMA_UNROLL
        for (int j = 0; j < kOfChunk; ++j) sums(static_cast<int>(i) * kOfChunk + j) += chunk[j];
      }
    }
  }

  template <class Problem, class Element>
  static size_t get_workspace_size(const Arguments& args, const Problem& problem,
                                   const cutlass::KernelHardwareInfo& hardware, uint32_t groups, uint32_t = 1,
                                   uint32_t = 1) {
    const Params params = params_of(args, problem, hardware);
    const auto slices = static_cast<uint64_t>(params.divmod_splits_.divisor);
    if (slices <= 1) return 0;
    return flag_bytes(params, groups) + params.units_per_problem_ * (slices - 1) * kTileElements * sizeof(Element);
  }

  template <class Problem, class Element>
  static cutlass::Status initialize_workspace(const Arguments& args, void* workspace, cudaStream_t stream,
                                              const Problem& problem, const cutlass::KernelHardwareInfo& hardware,
                                              uint32_t groups, uint32_t = 1, uint32_t = 1,
                                              cutlass::CudaHostAdapter* = nullptr) {
    const Params params = params_of(args, problem, hardware);
    if (params.divmod_splits_.divisor <= 1) return cutlass::Status::kSuccess;
    auto* flags = static_cast<int*>(workspace);
    auto count = static_cast<uint32_t>(params.units_per_problem_ * groups);
    cudaLaunchAttribute overlaps{};
    overlaps.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlaps.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(count < 4096 ? 1 : 8);
    config.blockDim = dim3(256);
    config.stream = stream;
    config.attrs = &overlaps;
    config.numAttrs = 1;
    void* parameters[] = {&flags, &count};
    const void* const function = reinterpret_cast<const void*>(&kernelwright_prepare_flags<split_k_tiles>);
    return cudaLaunchKernelExC(&config, function, parameters) == cudaSuccess ? cutlass::Status::kSuccess
                                                                             : cutlass::Status::kErrorInternal;
  }

 private:
  CUTLASS_HOST_DEVICE static uint64_t flag_bytes(const Params& params, uint32_t groups) {
    return (params.units_per_problem_ * groups * sizeof(int) + kAlignment - 1) / kAlignment * kAlignment;
  }

  // The first slices have a step of K more where they do not come out even.
  CUTLASS_DEVICE static uint32_t slice_of(const Params& params, uint32_t first_step) {
    const auto steps = static_cast<uint32_t>(params.divmod_k_tiles_per_sk_unit_.divisor);
    const uint32_t longer = params.big_units_;
    return first_step < longer * (steps + 1) ? first_step / (steps + 1) : (first_step - longer) / steps;
  }

  template <class Problem>
  static Params params_of(const Arguments& args, const Problem& problem, const cutlass::KernelHardwareInfo& hardware) {
    return to_underlying_arguments(problem, Tile{}, Cluster{}, hardware, args, nullptr);
  }
};

}  // namespace kernelwright::cuda

namespace cutlass::gemm::kernel::detail {

template <class Tile, class Cluster, uint32_t stages>
struct TileSchedulerSelector<kernelwright::cuda::split_k_scheduler, arch::Sm90, Tile, Cluster, stages> {
  using Scheduler = kernelwright::cuda::split_k_tiles<Tile, Cluster>;
};

}  // namespace cutlass::gemm::kernel::detail
