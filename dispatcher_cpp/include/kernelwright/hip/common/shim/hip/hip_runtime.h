// The HIP that a device pass of CK Tile needs: attributes, vector types, a few intrinsics, and declarations of the host
// functions that its unused host templates name. Nothing here is ever linked: the launcher talks to the runtime itself.
#ifndef KERNELWRIGHT_HIP_COMMON_SHIM_HIP_HIP_RUNTIME_H
#define KERNELWRIGHT_HIP_COMMON_SHIM_HIP_HIP_RUNTIME_H

#include <hip/hip_version.h>

#define __HIPCC__ 1
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))

// The second bound counts waves per SIMD, as in AMD's own headers; 1 leaves all registers to one wave.
#define __launch_bounds__(...) KW_SHIM_PICK(__VA_ARGS__, KW_SHIM_BOUNDS2, KW_SHIM_BOUNDS1, )(__VA_ARGS__)
#define KW_SHIM_PICK(a, b, chosen, ...) chosen
#define KW_SHIM_BOUNDS1(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define KW_SHIM_BOUNDS2(threads, waves) KW_SHIM_BOUNDS1(threads) __attribute__((amdgpu_waves_per_eu(waves)))

// clang-format off: libc++ must come before clang's HIP headers, whose order is fixed as well.
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#ifdef KW_SHIM_STREAMS  // CK Tile's headers as they are use streams without including them
#include <sstream>
#endif
#include <__clang_hip_libdevice_declares.h>
#include <__clang_hip_math.h>
#include <__clang_hip_stdlib.h>
#include <__clang_cuda_math_forward_declares.h>
#include <__clang_hip_cmath.h>
// clang-format on

#include <hip/kernelwright_device.h>
#include <hip/kernelwright_host.h>

#endif
