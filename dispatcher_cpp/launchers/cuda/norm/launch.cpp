// How norms are planned and launched on NVIDIA GPUs.
#include <cuda_runtime_api.h>

#include "kernelwright/cuda/norm/launcher.h"
#include "kernelwright/norm/gpu/launcher.hpp"

namespace {

struct backend {
  static constexpr auto fail = &kw_cuda_fail;
  // The device of the launch is current.
  static kw_status start(const kw_kernel* kernel, bool sum, const kw_launch* where, uint32_t grid, uint32_t block,
                         kw_norm_gpu_arguments* arguments) {
    const auto& norm = *static_cast<const kw_cuda_norm*>(kernel->traits);
    void* parameters[] = {arguments};
    cudaLaunchConfig_t config = {};
    config.gridDim.x = grid, config.gridDim.y = config.gridDim.z = 1;
    config.blockDim.x = block, config.blockDim.y = config.blockDim.z = 1;
    config.stream = static_cast<cudaStream_t>(where->stream);
    const cudaError_t error = cudaLaunchKernelExC(&config, sum ? norm.sum : norm.function, parameters);
    return error == cudaSuccess ? KW_OK : kw_cuda_launch_failed(kernel, static_cast<int>(error));
  }
};
using launcher = kernelwright::norm::gpu_launcher<backend>;

}  // namespace

kw_status kw_cuda_norm_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  return launcher::supports(kernel, problem, reason, bytes);
}

kw_status kw_cuda_norm_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  return launcher::workspace_size(kernel, problem, bytes);
}

kw_status kw_cuda_norm_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  return launcher::plan(kernel, problem, plan);
}

kw_status kw_cuda_norm_launch(const kw_kernel* kernel, const void* plan, const kw_launch* where, const void* args) {
  int pushed = 0;
  const kw_status status = kw_cuda_enter(where, &pushed);
  return status == KW_OK ? kw_cuda_leave(pushed, launcher::launch(kernel, plan, where, args)) : status;
}
