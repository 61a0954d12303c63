// What launchers of kernels that need no workspace share.
#pragma once

#include "kernelwright/cuda/attention/host.hpp"

namespace kernelwright::cuda::attention {

struct without_workspace {
  static kw_status workspace_size(const kw_kernel*, const kw_problem*, uint64_t* bytes) {
    *bytes = 0;
    return KW_OK;
  }
};

}  // namespace kernelwright::cuda::attention
