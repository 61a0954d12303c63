// CK Tile names the host API only in templates that a device pass never instantiates.
#ifndef TILEWRIGHT_HIP_SHIM_RUNTIME_API_H
#define TILEWRIGHT_HIP_SHIM_RUNTIME_API_H

#include <hip/hip_runtime.h>

#endif
