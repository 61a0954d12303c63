// CK Tile names the host API only in templates that a device pass never instantiates.
#ifndef KERNELWRIGHT_HIP_COMMON_SHIM_HIP_HIP_RUNTIME_API_H
#define KERNELWRIGHT_HIP_COMMON_SHIM_HIP_HIP_RUNTIME_API_H

#include <hip/hip_runtime.h>

#endif
