// CK Tile uses the compiler's own 16-bit float types, so there is nothing to declare.
#ifndef TILEWRIGHT_HIP_SHIM_BFLOAT16_H
#define TILEWRIGHT_HIP_SHIM_BFLOAT16_H

#include <hip/hip_runtime.h>

#endif
