#include "launchers/cuda/convolution/start.hpp"

#include <cuda_runtime_api.h>

kw_status kw_cuda_conv_start(const kw_kernel* kernel, const void* function, uint32_t blocks, uint32_t threads,
                             uint32_t shared_bytes, void* params, void* stream) {
  cudaLaunchAttribute overlaps = {};  // kernels wait for the one before themselves: see tile.hpp
  overlaps.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlaps.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.attrs = &overlaps;
  config.numAttrs = 1;
  config.gridDim.x = blocks;
  config.gridDim.y = config.gridDim.z = 1;
  config.blockDim.x = threads;
  config.blockDim.y = config.blockDim.z = 1;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream);
  void* parameters[] = {params};
  const cudaError_t error = cudaLaunchKernelExC(&config, function, parameters);
  return error == cudaSuccess ? KW_OK : kw_cuda_launch_failed(kernel, error);
}
