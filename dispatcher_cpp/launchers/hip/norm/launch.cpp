// How norms are planned and launched on AMD GPUs.
#include "kernelwright/hip/norm/launcher.h"
#include "kernelwright/norm/gpu/launcher.hpp"

namespace {

struct backend {
  static constexpr auto fail = &kw_hip_fail;
  static kw_status start(const kw_kernel* kernel, bool sum, const kw_launch* where, uint32_t grid, uint32_t block,
                         kw_norm_gpu_arguments* arguments) {
    const auto& norm = *static_cast<const kw_hip_norm*>(kernel->traits);
    return kw_hip_launch(sum ? &norm.sum : &norm.code, where, grid, block, arguments, sizeof *arguments);
  }
};
using launcher = kernelwright::norm::gpu_launcher<backend>;

}  // namespace

kw_status kw_hip_norm_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  return launcher::supports(kernel, problem, reason, bytes);
}

kw_status kw_hip_norm_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  return launcher::workspace_size(kernel, problem, bytes);
}

kw_status kw_hip_norm_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  return launcher::plan(kernel, problem, plan);
}

kw_status kw_hip_norm_launch(const kw_kernel* kernel, const void* plan, const kw_launch* where, const void* args) {
  return launcher::launch(kernel, plan, where, args);
}
