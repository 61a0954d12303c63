// Products of different shapes in one launch: CUTLASS's ptr-array kernels over a table that is built on the device.
//
// The table (shapes, strides, pointers) lies in the workspace. A small kernel writes it from its own parameters, so the
// launch reads the caller's arrays before it returns, copies nothing from pageable memory and may be captured.
#pragma once

#include "kernelwright/cuda/gemm/gemm.hpp"

namespace kernelwright::cuda {

constexpr int groups_per_launch = 32;  // their facts must fit into the 4 KB of kernel parameters

struct group_facts {
  int32_t m, n, k, unused;
  int64_t lda, ldb, ldc;
  const void *a, *b, *c;
  void* d;
};

struct group_chunk {
  int32_t first, count;
  group_facts groups[groups_per_launch];
};

template <class Kernel>
struct group_table {
  using shape = cute::Shape<int, int, int>;
  using stride_a = cute::remove_pointer_t<typename Kernel::StrideA>;
  using stride_b = cute::remove_pointer_t<typename Kernel::StrideB>;
  using stride_c = cute::remove_pointer_t<typename Kernel::StrideC>;
  shape* shapes;
  stride_a* strides_a;
  stride_b* strides_b;
  stride_c* strides_c;
  const void **a, **b, **c;
  void** d;

  static constexpr size_t bytes_per_group =
      sizeof(shape) + sizeof(stride_a) + sizeof(stride_b) + sizeof(stride_c) + 4 * sizeof(void*);
  static uint64_t bytes(int64_t count) { return (count * bytes_per_group + 8 * 16 + 255) / 256 * 256; }

  group_table(char* memory, int64_t count) {
    const auto take = [&](size_t size) {
      char* const taken = memory;
      memory += (count * size + 15) / 16 * 16;
      return static_cast<void*>(taken);
    };
    a = static_cast<const void**>(take(sizeof(void*)));
    b = static_cast<const void**>(take(sizeof(void*)));
    c = static_cast<const void**>(take(sizeof(void*)));
    d = static_cast<void**>(take(sizeof(void*)));
    strides_a = static_cast<stride_a*>(take(sizeof(stride_a)));
    strides_b = static_cast<stride_b*>(take(sizeof(stride_b)));
    strides_c = static_cast<stride_c*>(take(sizeof(stride_c)));
    shapes = static_cast<shape*>(take(sizeof(shape)));
  }
};

template <class Stride>
__device__ Stride leading_stride(int64_t leading) {
  Stride stride{};
  if constexpr (cute::is_static<cute::remove_cvref_t<decltype(cute::get<0>(stride))>>::value) {
    cute::get<1>(stride) = leading;
  } else {
    cute::get<0>(stride) = leading;
  }
  return stride;
}

template <class Kernel>
__global__ void kernelwright_prepare_groups(group_table<Kernel> table, const __grid_constant__ group_chunk chunk) {
  using tables = group_table<Kernel>;
  const int i = threadIdx.x;
  if (i >= chunk.count) return;
  const group_facts& group = chunk.groups[i];
  const int at = chunk.first + i;
  table.shapes[at] = cute::make_shape(group.m, group.n, group.k);
  table.strides_a[at] = leading_stride<typename tables::stride_a>(group.lda);
  table.strides_b[at] = leading_stride<typename tables::stride_b>(group.ldb);
  table.strides_c[at] = leading_stride<typename tables::stride_c>(group.ldc);
  table.a[at] = group.a, table.b[at] = group.b, table.c[at] = group.c, table.d[at] = group.d;
}

template <class Config>
struct grouped_gemm {
  using tile = typename Config::tile;
  using cluster = typename Config::cluster;
  using element_a = typename Config::element_a;
  using element_b = typename Config::element_b;
  using element_c = typename Config::element_c;
  using element_acc = typename Config::element_acc;
  using layout_c = cutlass::layout::RowMajor;

  using epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, tile, cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, element_acc, element_acc, element_c, layout_c*,
      tma_alignment<element_c>, element_c, layout_c*, tma_alignment<element_c>, typename Config::epilogue_schedule,
      typename plain_epilogue<Config>::fusion>::CollectiveOp;
  using mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, element_a, typename Config::layout_a*,
      tma_alignment<element_a>, element_b, typename Config::layout_b*, tma_alignment<element_b>, element_acc, tile,
      cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename epilogue::SharedStorage))>,
      typename Config::mainloop_schedule>::CollectiveOp;
  using shapes = cutlass::gemm::GroupProblemShape<cute::Shape<int, int, int>>;
  struct kernel : cutlass::gemm::kernel::GemmUniversal<shapes, mainloop, epilogue> {};
  using table = group_table<kernel>;

  static constexpr kernel_resources resources = {sizeof(kernel_resources), kernel::SharedStorageSize,
                                                 kernel::MaxThreadsPerBlock, mainloop::DispatchPolicy::Stages};

  static typename kernel::Arguments arguments(const kw_cuda_grouped_plan& plan, const table& t, const place& where) {
    typename kernel::Arguments out{};
    out.mode = cutlass::gemm::GemmUniversalMode::kGrouped;
    out.problem_shape = {static_cast<int>(plan.group_count), t.shapes, nullptr};
    out.mainloop.ptr_A = reinterpret_cast<const element_a**>(t.a);
    out.mainloop.dA = t.strides_a;
    out.mainloop.ptr_B = reinterpret_cast<const element_b**>(t.b);
    out.mainloop.dB = t.strides_b;
    out.epilogue.thread.alpha = static_cast<element_acc>(plan.alpha);
    out.epilogue.thread.beta = static_cast<element_acc>(plan.beta);
    out.epilogue.ptr_C = reinterpret_cast<const element_c**>(t.c);
    out.epilogue.dC = t.strides_c;
    out.epilogue.ptr_D = reinterpret_cast<element_c**>(t.d);
    out.epilogue.dD = t.strides_c;
    out.hw_info.device_id = where.device;
    out.hw_info.sm_count = where.multiprocessors;
    return out;
  }

  static kw_status workspace_size(const kw_kernel*, const kw_problem* problem, uint64_t* bytes) {
    const auto& p = *reinterpret_cast<const kw_grouped_gemm_problem*>(problem);
    *bytes = 0;
    if (p.group_count == 0) return KW_OK;
    kw_cuda_grouped_plan plan{};
    plan.group_count = p.group_count;
    return on_every_device([&](const place& where) {
      const auto in = arguments(plan, table(nullptr, p.group_count), where);
      const uint64_t needed = table::bytes(p.group_count) + kernel::get_workspace_size(in);
      if (needed > *bytes) *bytes = needed;
    });
  }

  static kw_status launch(const kw_kernel* descriptor, const void* plan_pointer, const kw_launch* launch,
                          const void* args_pointer) {
    const auto& plan = *static_cast<const kw_cuda_grouped_plan*>(plan_pointer);
    const auto& args = *static_cast<const kw_grouped_gemm_args*>(args_pointer);
    const kw_status status = kw_cuda_grouped_check_args(descriptor, &plan, &args);
    if (status != KW_OK || plan.group_count == 0) return status;
    return on_device_of(launch, [&] { return launch_here(descriptor, plan, *launch, args); });
  }

  // The device of the launch is current.
  static kw_status launch_here(const kw_kernel* descriptor, const kw_cuda_grouped_plan& plan, const kw_launch& launch,
                               const kw_grouped_gemm_args& args) {
    place where{launch.device, 0};
    kw_status status = prepare_kernel<kernel>(&where);
    if (status != KW_OK) return status;
    char* const memory = static_cast<char*>(launch.workspace);
    const table t(memory, plan.group_count);
    auto in = arguments(plan, t, where);
    const uint64_t needed = table::bytes(plan.group_count) + kernel::get_workspace_size(in);
    if (needed > launch.workspace_bytes) return kw_cuda_workspace_too_small(descriptor, needed, launch.workspace_bytes);
    const auto stream = static_cast<cudaStream_t>(launch.stream);
    int64_t filled = 0;
    status = fill(descriptor, plan, args, t, stream, &filled);
    if (status != KW_OK || filled == 0) return status;
    in.problem_shape.num_groups = static_cast<int>(filled);
    return start_kernel<kernel, cluster, false>(descriptor, in, memory + table::bytes(plan.group_count), stream);
  }

  // Writes the table. Products without elements are left out; those without K are D = beta C and need no kernel.
  static kw_status fill(const kw_kernel* descriptor, const kw_cuda_grouped_plan& plan, const kw_grouped_gemm_args& args,
                        const table& t, cudaStream_t stream, int64_t* filled) {
    group_chunk chunk{};
    for (int64_t i = 0; i < plan.group_count; ++i) {
      const kw_gemm_group& g = args.groups[i];
      const void* c = args.c ? args.c[i] : nullptr;
      if (g.m > 0 && g.n > 0 && g.k == 0) {
        const kw_status status = kw_cuda_group_without_k(descriptor, &plan, &g, c, args.d[i], stream);
        if (status != KW_OK) return status;
      } else if (g.m > 0 && g.n > 0) {
        chunk.groups[chunk.count++] = {static_cast<int32_t>(g.m),
                                       static_cast<int32_t>(g.n),
                                       static_cast<int32_t>(g.k),
                                       0,
                                       g.lda,
                                       g.ldb,
                                       g.ldc,
                                       args.a[i],
                                       args.b[i],
                                       c ? c : args.d[i],
                                       args.d[i]};
      }
      if (chunk.count == groups_per_launch || (i + 1 == plan.group_count && chunk.count > 0)) {
        kernelwright_prepare_groups<kernel><<<1, groups_per_launch, 0, stream>>>(t, chunk);
        const cudaError_t error = cudaGetLastError();
        if (error != cudaSuccess) return kw_cuda_launch_failed(descriptor, static_cast<int>(error));
        chunk.first += chunk.count;
        chunk.count = 0;
      }
    }
    *filled = chunk.first;
    return KW_OK;
  }
};

}  // namespace kernelwright::cuda
