// What only the host side of a kernel's object knows of it; cutlass_report.py reads it out of this section.
#pragma once

#include <cstdint>

#define KERNELWRIGHT_CUDA_RESOURCES __attribute__((used, section(".kernelwright.resources")))

namespace kernelwright::cuda {

struct kernel_resources {
  uint32_t struct_size;
  uint32_t dynamic_shared_bytes;
  uint32_t threads;
  uint32_t stages;
};

}  // namespace kernelwright::cuda
