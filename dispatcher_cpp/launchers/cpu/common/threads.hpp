// How many threads a launch may use, and whose: those that it names, see kw_cpu_launch. No library has any.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_COMMON_THREADS_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_COMMON_THREADS_HPP

#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

#include "kernelwright/abi.h"

namespace kernelwright::cpu {

constexpr uint32_t kMaxThreads = 256;

inline uint32_t requested_threads = 0;                            // by set_num_threads; 0 = all of the affinity mask
inline thread_local const kw_parallel* launch_threads = nullptr;  // of the launch that this thread is in

// While a thread is in a launch. Launches nest: parts of one may be launches on one thread.
class launch_scope {
 public:
  explicit launch_scope(const kw_launch& launch) : outer_(launch_threads) {
    const bool named = launch.struct_size >= sizeof(kw_cpu_launch);
    launch_threads = named ? reinterpret_cast<const kw_cpu_launch&>(launch).parallel : nullptr;
  }
  ~launch_scope() { launch_threads = outer_; }
  launch_scope(const launch_scope&) = delete;
  launch_scope& operator=(const launch_scope&) = delete;

 private:
  const kw_parallel* outer_;
};

inline void pause_briefly() { __builtin_ia32_pause(); }

// Until `count` reaches `wanted`; what was written before it was counted is then visible.
inline void wait_until(const int64_t& count, int64_t wanted) {
  for (int spins = 0; __atomic_load_n(&count, __ATOMIC_ACQUIRE) < wanted; ++spins) {
    if (spins < 2048) {
      pause_briefly();
    } else {
      sched_yield();
    }
  }
}

// Runs part on up to `threads` threads, the calling one among them, and returns when all that began have ended. Each
// has an index of its own, from 0 on. A part must not wait for a thread, only for work that was taken.
inline void run_parts(uint32_t threads, kw_part part, void* context) {
  const kw_parallel* parallel = launch_threads;
  if (threads <= 1 || parallel == nullptr) return part(context, 0);
  parallel->run(parallel->pool, threads, part, context);
}

inline uint32_t cores_allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Fails where the machine has more processors than the set; one thread is then right, if slow.
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  const int count = CPU_COUNT(&set);
  return count < 1 ? 1 : static_cast<uint32_t>(count) > kMaxThreads ? kMaxThreads : static_cast<uint32_t>(count);
}

// Threads of a launch that was planned for `planned`: set_num_threads may have lowered them meanwhile.
inline uint32_t threads_now(uint32_t planned) {
  const uint32_t requested = __atomic_load_n(&requested_threads, __ATOMIC_RELAXED);
  return requested != 0 && requested < planned ? requested : planned;
}

// What KERNELWRIGHT_NUM_THREADS says, 0 where it says nothing. False unless it is a number from 1 to kMaxThreads.
inline bool threads_of_environment(uint32_t* threads) {
  *threads = 0;
  const char* text = getenv("KERNELWRIGHT_NUM_THREADS");
  if (text == nullptr || *text == 0) return true;
  char* end = nullptr;
  const long value = strtol(text, &end, 10);
  if (*end != 0 || value < 1 || value > static_cast<long>(kMaxThreads)) return false;
  *threads = static_cast<uint32_t>(value);
  return true;
}

// set_num_threads, else KERNELWRIGHT_NUM_THREADS (compared when the library was added), else the affinity mask.
inline uint32_t threads_allowed() {
  const uint32_t requested = __atomic_load_n(&requested_threads, __ATOMIC_RELAXED);
  if (requested != 0) return requested;
  uint32_t threads = 0;
  return threads_of_environment(&threads) && threads != 0 ? threads : cores_allowed();
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_COMMON_THREADS_HPP
