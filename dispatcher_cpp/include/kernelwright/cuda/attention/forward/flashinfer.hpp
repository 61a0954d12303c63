// The parts of FlashInfer that Hopper's forward kernels are made of: kernel traits, warp scheduling, and the loop over
// tiles of keys that multiplies and updates the softmax.
#pragma once

// FlashInfer uses them, and relies on CUTLASS, whose rewritten headers do not include them.
#include <algorithm>
#include <string>

// Its exceptions print to streams; functions that throw them are for hosts, and none is called.
#define FLASHINFER_EXCEPTION_H_
#define FLASHINFER_CHECK(...)
#define FLASHINFER_ERROR(...)

// FlashInfer includes CUTLASS's utilities for tests, and curand, by this header; the kernels use none of it.
#define FLASHINFER_CUTLASS_UTILS_CUH_
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <cutlass/arch/reg_reconfig.h>
#include <cutlass/cutlass.h>
#include <cutlass/numeric_types.h>

#include <cute/tensor.hpp>
#include <cutlass/pipeline/pipeline.hpp>

#if defined(__clang__)
// nvcc's own headers have it for 16 bits.
__device__ inline unsigned short __ldca(const unsigned short* from) {
  unsigned short value;
  asm volatile("ld.global.ca.u16 %0, [%1];" : "=h"(value) : "l"(from));
  return value;
}
#endif

// clang-format off: mainloop_mma.cuh takes names from those before it.
#include <flashinfer/attention/hopper/utils.cuh>
#include <flashinfer/attention/hopper/named_barrier.cuh>
#include <flashinfer/attention/hopper/kernel_traits.cuh>
#include <flashinfer/attention/hopper/mainloop_mma.cuh>
// clang-format on
