// What kernels of attention that multiply by mma.sync do with numbers.
#pragma once

#include "kernelwright/cuda/common/mma.hpp"

namespace kernelwright::cuda::attention {

template <class Element>
__device__ inline uint32_t pair_of(float first, float second) {
  uint32_t both;
  if constexpr (std::is_same_v<Element, bfloat16>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(both) : "f"(second), "f"(first));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;\n" : "=r"(both) : "f"(second), "f"(first));
  }
  return both;
}

template <class Element>
__device__ inline Element rounded(float value) {
  if constexpr (std::is_same_v<Element, bfloat16>)
    return __float2bfloat16_rn(value);
  else
    return __float2half_rn(value);
}

// 2^x, 0 for results below 2^-126.
__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float logarithm_of_two(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

constexpr float infinity = __builtin_huge_valf();
constexpr float natural_log_of_2 = 0.69314718055994531f;

}  // namespace kernelwright::cuda::attention
