// The device of a launch.
#pragma once

#include "kernelwright/cuda/common/runtime.h"

namespace kernelwright::cuda {

struct place {
  int device, multiprocessors;
};

// Calls start() with the device of the launch current, and restores what was.
template <class Start>
kw_status on_device_of(const kw_launch* launch, Start start) {
  int pushed = 0;
  const kw_status status = kw_cuda_enter(launch, &pushed);
  return status == KW_OK ? kw_cuda_leave(pushed, start()) : status;
}

// Calls use(place) for every device: a workspace must do for whichever the launch names. Without a device, problems are
// planned for the architecture's reference device; a launch, which needs a device, checks the workspace again.
template <class Use>
kw_status on_every_device(Use use) {
  int count = 0;
  kw_status status = kw_cuda_devices(&count);
  const place reference{0, kw_cuda_reference_multiprocessors()};
  if (status != KW_OK && reference.multiprocessors > 0) {
    use(reference);
    return KW_OK;
  }
  for (int device = 0; status == KW_OK && device < count; ++device) {
    place where{device, 0};
    status = kw_cuda_multiprocessors(device, &where.multiprocessors);
    if (status == KW_OK) use(where);
  }
  return status;
}

}  // namespace kernelwright::cuda
