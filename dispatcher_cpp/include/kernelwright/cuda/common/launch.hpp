// How a CUTLASS 3 kernel is launched, whatever it computes: one-time preparation, clusters.
#pragma once

#include <cuda_runtime.h>
#include <cutlass/cutlass.h>
#include <cutlass/device_kernel.h>

#include "kernelwright/cuda/common/device.hpp"

namespace kernelwright::cuda {

// where->device is current. The kernel may use the shared memory that it needs there afterwards.
template <class Kernel>
kw_status prepare_kernel(place* where) {
  const kw_status status = kw_cuda_multiprocessors(where->device, &where->multiprocessors);
  if (status != KW_OK) return status;
  static uint64_t prepared = 0;  // of this kernel, a bit per device
  const void* const function = reinterpret_cast<const void*>(&cutlass::device_kernel<Kernel>);
  return kw_cuda_prepare(function, Kernel::SharedStorageSize, where->device, &prepared);
}

// Makes the TMA descriptors and launches. With `overlaps`, workgroups may start while the kernel before them drains;
// they wait for it before they touch global memory. Generated headers switch these waits on, but not for stream-K,
// whose scheduler CUTLASS 4.2 does not compile with them, nor for groups, whose scheduler reads the table of groups
// before them.
template <class Kernel, class Cluster, bool overlaps>
kw_status start_kernel(const kw_kernel* descriptor, const typename Kernel::Arguments& arguments, void* workspace,
                       cudaStream_t stream) {
  const uint64_t refused = kw_cuda_descriptors_refused();
  auto params = Kernel::to_underlying_arguments(arguments, workspace);
  if (kw_cuda_descriptors_refused() != refused) return KW_LAUNCH_FAILED;
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {cute::size<0>(Cluster{}), cute::size<1>(Cluster{}), cute::size<2>(Cluster{})};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = Kernel::get_grid_shape(params);
  config.blockDim = Kernel::get_block_shape();
  config.dynamicSmemBytes = Kernel::SharedStorageSize;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = overlaps ? 2 : 1;
  void* parameters[] = {&params};
  const void* const function = reinterpret_cast<const void*>(&cutlass::device_kernel<Kernel>);
  const cudaError_t error = cudaLaunchKernelExC(&config, function, parameters);
  return error == cudaSuccess ? KW_OK : kw_cuda_launch_failed(descriptor, static_cast<int>(error));
}

}  // namespace kernelwright::cuda
