// GEMM on Hopper: TMA loads, wgmma, warp-specialised and persistent, assembled by CUTLASS 4.2's collective builders.
//
// A generated header defines a config (element types, layouts, tile, cluster, schedules) and a descriptor; everything
// else is here. One launch makes the TMA descriptors (they hold pointers), fills the kernel's parameters on the stack
// and launches: no allocation, no synchronisation, no state but the one-time shared-memory attribute per device.
#pragma once

#include <cuda_runtime.h>
#include <cutlass/cutlass.h>
#include <cutlass/device_kernel.h>

#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

#include "kernelwright/cuda/common/launch.hpp"
#include "kernelwright/cuda/gemm/epilogue.hpp"
#include "kernelwright/cuda/gemm/launcher.h"
#include "kernelwright/cuda/gemm/operands.hpp"

namespace kernelwright::cuda {

template <class Config>
struct gemm {
  using operands = operands_of<Config>;
  using tile = typename operands::tile;
  using cluster = typename operands::cluster;
  using element_a = typename operands::element_a;
  using element_b = typename operands::element_b;
  using element_c = typename Config::element_c;
  using element_acc = typename Config::element_acc;
  using layout_c = typename operands::layout_c;
  static constexpr bool cut = !cute::is_same_v<typename Config::tile_scheduler, cutlass::gemm::PersistentScheduler>;

  using fused = epilogue_of<Config, tile, layout_c>;
  using epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, tile, cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, element_acc, element_acc, element_c, layout_c,
      tma_alignment<element_c>, element_c, layout_c, tma_alignment<element_c>, typename Config::epilogue_schedule,
      typename fused::fusion>::CollectiveOp;
  using mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, element_a, typename operands::layout_a,
      tma_alignment<element_a>, element_b, typename operands::layout_b, tma_alignment<element_b>, element_acc, tile,
      cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename epilogue::SharedStorage))>,
      typename Config::mainloop_schedule>::CollectiveOp;

  // A type of its own per config: the kernel's symbol is then short and belongs to one object only.
  struct kernel : cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, mainloop, epilogue,
                                                       typename Config::tile_scheduler> {};

  static constexpr kernel_resources resources = {sizeof(kernel_resources), kernel::SharedStorageSize,
                                                 kernel::MaxThreadsPerBlock, mainloop::DispatchPolicy::Stages};

  static typename kernel::Arguments arguments(const kw_gemm_problem& problem, const kw_gemm_args& args,
                                              const place& where) {
    typename kernel::Arguments out{};
    const auto [m, n, a, b] = operands::sides(problem, args);
    out.mode = cutlass::gemm::GemmUniversalMode::kGemm;
    out.problem_shape = {m, n, static_cast<int>(problem.k), static_cast<int>(problem.batch)};
    out.mainloop.ptr_A = static_cast<const element_a*>(a.pointer);
    out.mainloop.dA = stride(a.leading, a.batch, typename kernel::StrideA{});
    out.mainloop.ptr_B = static_cast<const element_b*>(b.pointer);
    out.mainloop.dB = stride(b.leading, b.batch, typename kernel::StrideB{});
    fused::fill(out.epilogue, problem, args);
    const operand c = fused::source(problem, args);
    out.epilogue.ptr_C = static_cast<const element_c*>(c.pointer);
    out.epilogue.dC = stride(c.leading, c.batch, typename kernel::StrideC{});
    out.epilogue.ptr_D = static_cast<element_c*>(args.d);
    out.epilogue.dD = stride(problem.ldc, batch_stride(problem, problem.stride_c), typename kernel::StrideC{});
    out.hw_info.device_id = where.device;
    out.hw_info.sm_count = where.multiprocessors;
    out.scheduler.max_swizzle_size = swizzle(m, n, where.multiprocessors);
    using order = decltype(out.scheduler.raster_order);
    out.scheduler.raster_order = Config::swap ? order::AlongN : order::AlongM;
    if constexpr (cut) cut_along_k(out.scheduler, problem);
    return out;
  }

  // How many clusters wide the groups of tiles are that run side by side and share operands in L2. CUTLASS rounds both
  // extents up to whole groups and computes the tiles beyond the edge as well, so: the widest that costs no wave.
  static int swizzle(int m, int n, int multiprocessors) {
    const auto waves = [&](int width) {
      const int64_t rows = width * cute::size<0>(tile{}) * cute::size<0>(cluster{});
      const int64_t columns = width * cute::size<1>(tile{}) * cute::size<1>(cluster{});
      const int64_t groups = ((m + rows - 1) / rows) * ((n + columns - 1) / columns);
      return (groups * width * width * cute::size(cluster{}) + multiprocessors - 1) / multiprocessors;
    };
    int width = 8;
    while (width > 1 && waves(width) > waves(1)) width /= 2;
    return width;
  }

  // Partial sums are added in the order of K: each workgroup of a tile waits for the one before it.
  template <class Scheduler>
  static void cut_along_k(Scheduler& scheduler, const kw_gemm_problem& problem) {
    using modes = decltype(scheduler.decomposition_mode);
    scheduler.reduction_mode = decltype(scheduler.reduction_mode)::Deterministic;
    scheduler.splits = static_cast<int>(problem.split_k);
    scheduler.decomposition_mode = Config::stream_k      ? modes::StreamK
                                   : problem.split_k > 1 ? modes::SplitK
                                                         : modes::DataParallel;
  }

  static kw_status workspace_size(const kw_kernel*, const kw_problem* problem, uint64_t* bytes) {
    *bytes = 0;
    const kw_gemm_problem& p = *reinterpret_cast<const kw_gemm_problem*>(problem);
    if (!cut || p.m == 0 || p.n == 0 || p.k == 0) return KW_OK;
    return on_every_device([&](const place& where) {
      const uint64_t needed = kernel::get_workspace_size(arguments(p, kw_gemm_args{}, where));
      if (needed > *bytes) *bytes = needed;
    });
  }

  static kw_status launch(const kw_kernel* descriptor, const void* plan, const kw_launch* launch,
                          const void* args_pointer) {
    const kw_gemm_problem& problem = static_cast<const kw_cuda_gemm_plan*>(plan)->problem;
    const kw_gemm_args& args = *static_cast<const kw_gemm_args*>(args_pointer);
    if (problem.m == 0 || problem.n == 0) return KW_OK;
    const kw_status status = kw_cuda_gemm_check_args(&problem, &args);
    if (status != KW_OK) return status;
    return on_device_of(launch, [&] { return launch_here(descriptor, problem, *launch, args); });
  }

  // The device of the launch is current.
  static kw_status launch_here(const kw_kernel* descriptor, const kw_gemm_problem& problem, const kw_launch& launch,
                               const kw_gemm_args& args) {
    if (problem.k == 0) return kw_cuda_gemm_without_k(descriptor, &problem, &args, launch.stream);
    place where{launch.device, 0};
    const kw_status status = prepare_kernel<kernel>(&where);
    if (status != KW_OK) return status;
    const auto in = arguments(problem, args, where);
    const auto stream = static_cast<cudaStream_t>(launch.stream);
    if constexpr (cut) {
      const uint64_t needed = kernel::get_workspace_size(in);
      if (needed > launch.workspace_bytes) {
        return kw_cuda_workspace_too_small(descriptor, needed, launch.workspace_bytes);
      }
      if (kernel::initialize_workspace(in, launch.workspace, stream) != cutlass::Status::kSuccess) {
        return kw_cuda_launch_failed(descriptor, static_cast<int>(cudaGetLastError()));
      }
    }
#ifdef CUTLASS_ENABLE_GDC_FOR_SM90
    constexpr bool overlaps = true;
#else
    constexpr bool overlaps = false;
#endif
    return start_kernel<kernel, cluster, overlaps>(descriptor, in, launch.workspace, stream);
  }
};

}  // namespace kernelwright::cuda
