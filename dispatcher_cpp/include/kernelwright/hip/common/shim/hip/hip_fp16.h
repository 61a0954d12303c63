// CK Tile uses the compiler's own 16-bit float types, so there is nothing to declare.
#ifndef KERNELWRIGHT_HIP_COMMON_SHIM_HIP_HIP_FP16_H
#define KERNELWRIGHT_HIP_COMMON_SHIM_HIP_HIP_FP16_H

#include <hip/hip_runtime.h>

#endif
