// The HIP release whose language features the compiler offers; CK Tile picks builtin bf16 from 7.0 on.
#ifndef KERNELWRIGHT_HIP_COMMON_SHIM_HIP_HIP_VERSION_H
#define KERNELWRIGHT_HIP_COMMON_SHIM_HIP_HIP_VERSION_H

#define HIP_VERSION_MAJOR 7
#define HIP_VERSION_MINOR 1
#define HIP_VERSION_PATCH 0
#define HIP_VERSION 70100000

#endif
