// Device side of HIP, straight on the compiler's builtins so that no device library (ockl, ocml) is linked.
#ifndef KERNELWRIGHT_HIP_COMMON_SHIM_HIP_KERNELWRIGHT_DEVICE_H
#define KERNELWRIGHT_HIP_COMMON_SHIM_HIP_KERNELWRIGHT_DEVICE_H

#define KW_SHIM_DEVICE static __device__ __forceinline__

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

struct dim3 {
  std::uint32_t x, y, z;
  __host__ __device__ constexpr dim3(std::uint32_t vx = 1, std::uint32_t vy = 1, std::uint32_t vz = 1)
      : x(vx), y(vy), z(vz) {}
};

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
__host__ __device__ inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }

// threadIdx.x and its kin read a hardware id each time they are converted; the objects themselves hold nothing.
#define KW_SHIM_AXIS(type, member, value)                                         \
  struct type {                                                                   \
    __device__ __forceinline__ operator std::uint32_t() const { return (value); } \
  } member
#define KW_SHIM_INDEX(name, of_x, of_y, of_z) \
  struct name {                               \
    KW_SHIM_AXIS(axis_x, x, of_x);            \
    KW_SHIM_AXIS(axis_y, y, of_y);            \
    KW_SHIM_AXIS(axis_z, z, of_z);            \
  }
KW_SHIM_INDEX(kw_shim_thread_index, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
              __builtin_amdgcn_workitem_id_z());
KW_SHIM_INDEX(kw_shim_block_index, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
              __builtin_amdgcn_workgroup_id_z());
KW_SHIM_INDEX(kw_shim_block_size, __builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(),
              __builtin_amdgcn_workgroup_size_z());
KW_SHIM_INDEX(kw_shim_grid_size, __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(),
              __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y(),
              __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z());
extern const __device__ __attribute__((weak)) kw_shim_thread_index threadIdx;
extern const __device__ __attribute__((weak)) kw_shim_block_index blockIdx;
extern const __device__ __attribute__((weak)) kw_shim_block_size blockDim;
extern const __device__ __attribute__((weak)) kw_shim_grid_size gridDim;
#undef KW_SHIM_INDEX
#undef KW_SHIM_AXIS

KW_SHIM_DEVICE void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
KW_SHIM_DEVICE void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }

KW_SHIM_DEVICE void* memcpy(void* to, const void* from, std::size_t bytes) { return __builtin_memcpy(to, from, bytes); }
KW_SHIM_DEVICE void* memset(void* to, int value, std::size_t bytes) { return __builtin_memset(to, value, bytes); }
template <class... Values>
KW_SHIM_DEVICE int printf(const char*, Values...) {
  return 0;
}

KW_SHIM_DEVICE int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
KW_SHIM_DEVICE unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long>(a) * b) >> 32);
}

template <class T, class U>
KW_SHIM_DEVICE T atomicAdd(T* address, U value) {
  return __hip_atomic_fetch_add(address, static_cast<T>(value), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <class T>
KW_SHIM_DEVICE T atomicMax(T* address, T value) {
  return __hip_atomic_fetch_max(address, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <class T>
KW_SHIM_DEVICE T atomicCAS(T* address, T expected, T desired) {
  __hip_atomic_compare_exchange_strong(address, &expected, desired, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}

KW_SHIM_DEVICE int __lane_id() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)); }
template <class T>
KW_SHIM_DEVICE T kw_shim_read_lane(T value, int lane) {
  static_assert(sizeof(T) == 4, "a lane exchange moves 32 bits");
  return __builtin_bit_cast(T, __builtin_amdgcn_ds_bpermute(lane << 2, __builtin_bit_cast(int, value)));
}
template <class T>
KW_SHIM_DEVICE T __shfl(T value, int lane, int width = __builtin_amdgcn_wavefrontsize()) {
  return kw_shim_read_lane(value, (lane & (width - 1)) + (__lane_id() & ~(width - 1)));
}
template <class T>
KW_SHIM_DEVICE T __shfl_up(T value, unsigned delta, int width = __builtin_amdgcn_wavefrontsize()) {
  const int self = __lane_id(), from = self - static_cast<int>(delta);
  return kw_shim_read_lane(value, from < (self & ~(width - 1)) ? self : from);
}
template <class T>
KW_SHIM_DEVICE T __shfl_down(T value, unsigned delta, int width = __builtin_amdgcn_wavefrontsize()) {
  const int self = __lane_id(), from = self + static_cast<int>(delta);
  return kw_shim_read_lane(value, from > (self | (width - 1)) ? self : from);
}
template <class T>
KW_SHIM_DEVICE T __shfl_xor(T value, int mask, int width = __builtin_amdgcn_wavefrontsize()) {
  const int self = __lane_id(), from = self ^ mask;
  return kw_shim_read_lane(value, from >= ((self + width) & ~(width - 1)) ? self : from);
}

// CK Tile calls these five of the ocml library by name; the compiler lowers the builtins to native instructions.
extern "C" {
__device__ inline __attribute__((const)) float __ocml_exp_f32(float x) { return __builtin_expf(x); }
__device__ inline __attribute__((const)) float __ocml_exp2_f32(float x) { return __builtin_exp2f(x); }
__device__ inline __attribute__((const)) float __ocml_log_f32(float x) { return __builtin_logf(x); }
__device__ inline __attribute__((const)) float __ocml_log2_f32(float x) { return __builtin_log2f(x); }
__device__ inline __attribute__((const)) float __ocml_log1p_f32(float x) { return __builtin_logf(1.0f + x); }
}

#undef KW_SHIM_DEVICE
#endif
