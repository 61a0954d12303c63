// Parts of a workspace, in bytes that cannot overflow unseen.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_COMMON_ROOM_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_COMMON_ROOM_HPP

#include "kernelwright/widths.h"

namespace kernelwright::cpu {

// What a process of x86-64 can address: a kernel does not serve a problem for which it needs more.
constexpr uint64_t kMostWorkspace = uint64_t{1} << 47;

// Of `count` things of `size` bytes each, to whole cache lines of every part behind it. What is too large stays so.
inline uint64_t room(int64_t count, int64_t size) {
  return static_cast<uint64_t>(kw_mul(kw_parts(kw_mul(count, size), 256), 256));
}

// Where what stands behind `bytes` more begins.
inline uint64_t behind(uint64_t at, uint64_t bytes) {
  return static_cast<uint64_t>(kw_add(static_cast<int64_t>(at), static_cast<int64_t>(bytes)));
}

// The same of so many such parts.
inline uint64_t behind_all(uint64_t at, int64_t count, uint64_t bytes) {
  return behind(at, static_cast<uint64_t>(kw_mul(count, static_cast<int64_t>(bytes))));
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_COMMON_ROOM_HPP
