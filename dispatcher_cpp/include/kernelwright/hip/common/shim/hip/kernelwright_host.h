// Host side of HIP: types and prototypes only.
#ifndef KERNELWRIGHT_HIP_COMMON_SHIM_HIP_KERNELWRIGHT_HOST_H
#define KERNELWRIGHT_HIP_COMMON_SHIM_HIP_KERNELWRIGHT_HOST_H

typedef struct ihipStream_t* hipStream_t;
typedef struct ihipEvent_t* hipEvent_t;
typedef int hipDevice_t;

enum hipError_t { hipSuccess = 0, hipErrorInvalidValue = 1, hipErrorUnknown = 999 };

enum hipMemcpyKind {
  hipMemcpyHostToHost,
  hipMemcpyHostToDevice,
  hipMemcpyDeviceToHost,
  hipMemcpyDeviceToDevice,
  hipMemcpyDefault
};

struct hipDeviceProp_t {
  int major, minor, multiProcessorCount, warpSize;
  char gcnArchName[256];
};

extern "C" {
const char* hipGetErrorString(hipError_t error);
hipError_t hipGetLastError();
hipError_t hipPeekAtLastError();
hipError_t hipGetDevice(int* device);
hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device);
hipError_t hipMalloc(void** pointer, std::size_t bytes);
hipError_t hipFree(void* pointer);
hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind);
hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind, hipStream_t stream);
hipError_t hipMemset(void* to, int value, std::size_t bytes);
hipError_t hipMemsetAsync(void* to, int value, std::size_t bytes, hipStream_t stream);
hipError_t hipEventCreate(hipEvent_t* event);
hipError_t hipEventDestroy(hipEvent_t event);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
hipError_t hipEventSynchronize(hipEvent_t event);
hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipDeviceSynchronize();
hipError_t hipExtStreamGetCUMask(hipStream_t stream, std::uint32_t words, std::uint32_t* mask);

// What the compiler emits for kernel<<<...>>>(...).
unsigned __hipPushCallConfiguration(dim3 grid, dim3 block, std::size_t lds_bytes = 0, hipStream_t stream = nullptr);
hipError_t __hipPopCallConfiguration(dim3* grid, dim3* block, std::size_t* lds_bytes, hipStream_t* stream);
hipError_t hipLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, std::size_t lds_bytes,
                           hipStream_t stream);
}

template <class Kernel>
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel kernel, int block_size,
                                                        std::size_t lds_bytes);

#endif
