// Cutting work into blocks and handing them to threads.
#ifndef KERNELWRIGHT_CPU_COMMON_BLOCKS_HPP
#define KERNELWRIGHT_CPU_COMMON_BLOCKS_HPP

#include <stdint.h>

namespace kernelwright::cpu {

constexpr int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
constexpr int64_t round_up(int64_t a, int64_t b) { return divide_up(a, b) * b; }
constexpr int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
constexpr uint64_t align_bytes(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

struct range {
  int64_t begin, end;
};

// Part `index` of `parts` nearly equal parts of `count` things.
constexpr range part(int64_t count, int64_t parts, int64_t index) {
  const int64_t size = count / parts, longer = count % parts;
  const int64_t begin = index * size + (index < longer ? index : longer);
  return {begin, begin + size + (index < longer ? 1 : 0)};
}

// A thread is worth waking for about 20 microseconds of work.
constexpr double kMultiplicationsPerThread = 1 << 20;
// Several tasks per thread, so that a thread that is held up does not hold up the others.
constexpr int64_t kTasksPerThread = 4;

inline uint32_t threads_for(double useful, uint32_t allowed) {
  return useful < 2 ? 1 : useful < allowed ? static_cast<uint32_t>(useful) : allowed;
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_COMMON_BLOCKS_HPP
