// Barriers that loads and stores of LDS do not cross; to be included before any header of CK Tile.
//
// CK Tile calls the compiler's plain barrier, which says nothing about memory: clang may sink a load from LDS below it
// (block_fmha_bwd_dq_dk_dv_pipeline_kr_ktr_vr.hpp then reads V where Q lies already, so that gradients depend on the
// order of waves), and asynchronous pipelines overwrite LDS while reads of it may be under way.
#ifndef KERNELWRIGHT_HIP_ATTENTION_BARRIERS_HPP
#define KERNELWRIGHT_HIP_ATTENTION_BARRIERS_HPP

#include <hip/hip_runtime.h>

namespace kernelwright::hip::attention {

__device__ inline __attribute__((always_inline)) void fenced_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
  asm volatile("" ::: "memory");  // the back end sinks loads across fences
  __builtin_amdgcn_s_barrier();
  asm volatile("" ::: "memory");
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
}

}  // namespace kernelwright::hip::attention

#define __builtin_amdgcn_s_barrier kernelwright::hip::attention::fenced_barrier

#endif
