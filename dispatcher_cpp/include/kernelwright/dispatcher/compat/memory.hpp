// Where kernels of a backend read and write, for callers whose data is in host memory or anywhere on the device.
#ifndef KERNELWRIGHT_DISPATCHER_COMPAT_MEMORY_HPP
#define KERNELWRIGHT_DISPATCHER_COMPAT_MEMORY_HPP

#include <stddef.h>
#include <stdint.h>

#include "kernelwright/abi.h"
#include "kernelwright/dispatcher/support/atomic.hpp"

namespace kernelwright {

// The functions of a GPU runtime that copying takes, opened at run time: nothing links against one.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  // For a kw_backend.
  kw_status open(uint32_t backend);
  // The device that is current in the calling thread; 0 on CPUs, and where CUDA has no current context yet.
  kw_status current_device(int32_t* device) const;
  // Whether kernels read host memory, so that nothing has to be copied.
  bool is_host() const { return library_ == nullptr; }
  // Everything below is for the device of an Entered.
  // Aligned to 256 bytes. Null for no bytes.
  kw_status allocate(size_t bytes, void** pointer) const;
  void release(void* pointer) const;
  // To memory that was allocated here, and from it; `given` is in host memory or in that of the device.
  kw_status copy_in(void* device, const void* given, size_t bytes) const;
  kw_status copy_out(void* given, const void* device, size_t bytes) const;
  // Waits until all that was launched is done.
  kw_status finish() const;

 private:
  kw_status open_hip();
  kw_status open_cuda();
  template <typename Function>
  bool resolve(const char* name, Function* function);
  kw_status check(const char* what, int error) const;
  kw_status primary_context(int32_t device, void** context) const;
  friend class Entered;

  static constexpr int32_t kMaxDevices = 64;
  void* library_ = nullptr;
  const char* runtime_ = "";
  // CUDA
  int (*get_handle_)(int*, int) = nullptr;
  int (*retain_)(void**, int) = nullptr;
  mutable Atomic<void*> primary_[kMaxDevices];  // by device; null until the first use
  int (*get_context_device_)(int*) = nullptr;
  int (*get_context_)(void**) = nullptr;
  int (*set_context_)(void*) = nullptr;
  // HIP
  int (*get_device_)(int*) = nullptr;
  int (*set_device_)(int) = nullptr;
  int (*allocate_hip_)(void**, size_t) = nullptr;
  int (*release_hip_)(void*) = nullptr;
  int (*copy_hip_)(void*, const void*, size_t, int) = nullptr;
  int (*allocate_cuda_)(uint64_t*, size_t) = nullptr;
  int (*release_cuda_)(uint64_t) = nullptr;
  int (*copy_cuda_)(uint64_t, uint64_t, size_t) = nullptr;
  int (*finish_)() = nullptr;
};

// A device is the calling thread's current one while this lives; then what was current is so again.
class Entered {
 public:
  Entered(const Memory& memory, int32_t device);
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  ~Entered();

  kw_status status() const { return status_; }

 private:
  const Memory& memory_;
  void* context_ = nullptr;  // before, CUDA
  int device_ = 0;           // before, HIP
  kw_status status_ = KW_OK;
};

// Memory that goes with its block.
class Buffer {
 public:
  explicit Buffer(const Memory& memory) : memory_(memory) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { memory_.release(pointer_); }

  kw_status allocate(size_t bytes) { return memory_.allocate(bytes, &pointer_); }
  void* get() const { return pointer_; }

 private:
  const Memory& memory_;
  void* pointer_ = nullptr;
};

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_COMPAT_MEMORY_HPP
