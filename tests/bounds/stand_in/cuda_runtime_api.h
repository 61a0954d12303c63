/* The same of CUDA's runtime: calls succeed and do nothing. */
#ifndef KERNELWRIGHT_TESTS_BOUNDS_CUDA_RUNTIME_API_H
#define KERNELWRIGHT_TESTS_BOUNDS_CUDA_RUNTIME_API_H

#include <stddef.h>
#include <stdint.h>

typedef void* cudaStream_t;
typedef int cudaError_t;
enum { cudaSuccess, cudaMemcpyDeviceToDevice };

static inline cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                                            cudaStream_t stream) {
  (void)to, (void)pitch, (void)value, (void)width, (void)height, (void)stream;
  return cudaSuccess;
}
static inline cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t pitch, size_t width,
                                            size_t height, int kind, cudaStream_t stream) {
  (void)to, (void)to_pitch, (void)from, (void)pitch, (void)width, (void)height, (void)kind, (void)stream;
  return cudaSuccess;
}

#endif
