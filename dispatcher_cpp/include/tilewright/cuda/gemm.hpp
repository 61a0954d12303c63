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

#include "tilewright/cuda/runtime.h"

namespace tilewright::cuda {

// Resources that only the host side of the object knows; cutlass_report.py reads them out of this section.
#define TILEWRIGHT_CUDA_RESOURCES __attribute__((used, section(".tilewright.resources")))

struct gemm_resources {
  uint32_t struct_size;
  uint32_t dynamic_shared_bytes;
  uint32_t threads;
  uint32_t stages;
};

template <class Element>
constexpr int tma_alignment = 128 / cutlass::sizeof_bits<Element>::value;

template <class Config>
struct gemm {
  using element_a = typename Config::element_a;
  using element_b = typename Config::element_b;
  using element_c = typename Config::element_c;
  using element_acc = typename Config::element_acc;
  using layout_c = cutlass::layout::RowMajor;

  // int32 accumulators stay integers up to the store: a float would lose bits above 2^24.
  using fusion = cutlass::epilogue::fusion::LinearCombination<element_c, element_acc, element_c, element_acc>;
  using epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, typename Config::tile, typename Config::cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, element_acc, element_acc, element_c, layout_c,
      tma_alignment<element_c>, element_c, layout_c, tma_alignment<element_c>, typename Config::epilogue_schedule,
      fusion>::CollectiveOp;
  using mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, element_a, typename Config::layout_a,
      tma_alignment<element_a>, element_b, typename Config::layout_b, tma_alignment<element_b>, element_acc,
      typename Config::tile, typename Config::cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename epilogue::SharedStorage))>,
      typename Config::mainloop_schedule>::CollectiveOp;

  // A type of its own per config: the kernel's symbol is then short and belongs to one object only.
  struct kernel : cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, mainloop, epilogue,
                                                       cutlass::gemm::PersistentScheduler> {};

  static constexpr gemm_resources resources = {sizeof(gemm_resources), kernel::SharedStorageSize,
                                               kernel::MaxThreadsPerBlock, mainloop::DispatchPolicy::Stages};

  // A leading dimension as CuTe's stride of (rows, columns, batch); the batch is one, its stride 0.
  static auto stride(int64_t leading, cute::Stride<int64_t, cute::Int<1>, int64_t>) {
    return cute::Stride<int64_t, cute::Int<1>, int64_t>{leading, cute::Int<1>{}, 0};
  }
  static auto stride(int64_t leading, cute::Stride<cute::Int<1>, int64_t, int64_t>) {
    return cute::Stride<cute::Int<1>, int64_t, int64_t>{cute::Int<1>{}, leading, 0};
  }

  static typename kernel::Arguments arguments(const tw_gemm_problem& problem, const tw_gemm_args& args, int device,
                                              int multiprocessors) {
    const auto stride_c = stride(problem.ldc, typename kernel::StrideC{});
    typename kernel::Arguments out{};
    out.mode = cutlass::gemm::GemmUniversalMode::kGemm;
    out.problem_shape = {static_cast<int>(problem.m), static_cast<int>(problem.n), static_cast<int>(problem.k), 1};
    out.mainloop.ptr_A = static_cast<const element_a*>(args.a);
    out.mainloop.dA = stride(problem.lda, typename kernel::StrideA{});
    out.mainloop.ptr_B = static_cast<const element_b*>(args.b);
    out.mainloop.dB = stride(problem.ldb, typename kernel::StrideB{});
    out.epilogue.thread.alpha = static_cast<element_acc>(problem.alpha);
    out.epilogue.thread.beta = static_cast<element_acc>(problem.beta);
    // The descriptor of C is made even where beta is 0 and nothing reads it: it needs some valid address.
    out.epilogue.ptr_C = static_cast<const element_c*>(args.c ? args.c : args.d);
    out.epilogue.dC = stride_c;
    out.epilogue.ptr_D = static_cast<element_c*>(args.d);
    out.epilogue.dD = stride_c;
    out.hw_info.device_id = device;
    out.hw_info.sm_count = multiprocessors;
    // Groups of tiles along M share operands in L2: 4 clusters wide, 8 where a cluster has two tiles (measured on
    // H200 at 4096 to 8192 cubed, interleaved with torch.matmul).
    out.scheduler.max_swizzle_size = cute::size(typename Config::cluster{}) > 1 ? 8 : 4;
    out.scheduler.raster_order = decltype(out.scheduler.raster_order)::AlongM;
    return out;
  }

  static tw_status launch(const tw_kernel* descriptor, const void* plan, const void* args_pointer) {
    const tw_gemm_problem& problem = static_cast<const tw_cuda_gemm_plan*>(plan)->problem;
    const tw_gemm_args& args = *static_cast<const tw_gemm_args*>(args_pointer);
    if (problem.m == 0 || problem.n == 0) return TW_OK;
    tw_status status = tw_cuda_gemm_check_args(&problem, &args);
    if (status != TW_OK) return status;
    if (problem.k == 0) return tw_cuda_gemm_without_k(descriptor, &problem, &args);

    int device = 0, multiprocessors = 0;
    status = tw_cuda_device(&device, &multiprocessors);
    if (status != TW_OK) return status;
    const void* function = reinterpret_cast<const void*>(&cutlass::device_kernel<kernel>);
    static uint64_t prepared = 0;
    status = tw_cuda_prepare(function, kernel::SharedStorageSize, device, &prepared);
    if (status != TW_OK) return status;

    const uint64_t refused = tw_cuda_descriptors_refused();
    auto params = kernel::to_underlying_arguments(arguments(problem, args, device, multiprocessors), nullptr);
    if (tw_cuda_descriptors_refused() != refused) return TW_LAUNCH_FAILED;
    return start(descriptor, function, params, static_cast<cudaStream_t>(args.stream));
  }

  static tw_status start(const tw_kernel* descriptor, const void* function, typename kernel::Params& params,
                         cudaStream_t stream) {
    using cluster = typename Config::cluster;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {cute::size<0>(cluster{}), cute::size<1>(cluster{}), cute::size<2>(cluster{})};
    cudaLaunchConfig_t config{};
    config.gridDim = kernel::get_grid_shape(params);
    config.blockDim = kernel::get_block_shape();
    config.dynamicSmemBytes = kernel::SharedStorageSize;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    void* parameters[] = {&params};
    const cudaError_t error = cudaLaunchKernelExC(&config, function, parameters);
    return error == cudaSuccess ? TW_OK : tw_cuda_launch_failed(descriptor, static_cast<int>(error));
  }
};

}  // namespace tilewright::cuda
