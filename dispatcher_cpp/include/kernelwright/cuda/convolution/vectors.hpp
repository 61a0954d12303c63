// Accesses of 8 and 16 bytes as one instruction each: clang splits copies of such structs, which halves what a store
// moves.
#pragma once

#include <cuda_runtime.h>
#include <cutlass/cutlass.h>

namespace kernelwright::cuda::conv {

struct vector_16 {
  uint32_t words[4];
};

CUTLASS_DEVICE vector_16 load_shared(const void* from) {
  vector_16 v;
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(from));
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.words[0]), "=r"(v.words[1]), "=r"(v.words[2]), "=r"(v.words[3])
               : "r"(address)
               : "memory");
  return v;
}

CUTLASS_DEVICE void store_global(void* to, const vector_16& v) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(v.words[0]),
               "r"(v.words[1]), "r"(v.words[2]), "r"(v.words[3])
               : "memory");
}

CUTLASS_DEVICE void store_global(float* to, float2 v) {
  asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "f"(v.x), "f"(v.y) : "memory");
}

}  // namespace kernelwright::cuda::conv
