// Threads that wait for work: started by the first launch that wants them, gone in a forked child, joined at unload.
//
// One launch at a time has the pool. A launch that finds it taken runs on its own thread alone: with every core busy
// that is the fastest way, and results do not depend on the number of threads.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_COMMON_THREAD_POOL_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_COMMON_THREAD_POOL_HPP

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

namespace kernelwright::cpu {

constexpr uint32_t kMaxThreads = 256;

// Called once per participating thread with index 0 (the caller), 1, … in order of arrival. Late threads may find
// nothing left to do, and some may never come: a task must not wait for a thread, only for work that was taken.
using pool_function = void (*)(void* context, uint32_t index);

struct thread_pool {
  pthread_mutex_t launch;  // held by the launch that has the pool
  pthread_mutex_t lock;    // protects what follows
  pthread_cond_t work, idle;
  pool_function function;
  void* context;
  uint32_t wanted;      // workers that may still join the current job
  uint32_t joined;      // threads that joined it, the caller included
  uint32_t active;      // workers inside it
  uint32_t started;     // workers alive
  uint32_t generation;  // of jobs, read without the lock while spinning
  bool stop;
  pthread_t threads[kMaxThreads];
};

inline thread_pool pool = {PTHREAD_MUTEX_INITIALIZER,
                           PTHREAD_MUTEX_INITIALIZER,
                           PTHREAD_COND_INITIALIZER,
                           PTHREAD_COND_INITIALIZER,
                           nullptr,
                           nullptr,
                           0,
                           0,
                           0,
                           0,
                           0,
                           false,
                           {}};
inline uint32_t requested_threads = 0;  // by set_num_threads; 0 = all of the affinity mask

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

inline void* pool_worker(void*) {
  // Some 70 us: covers the gap between two launches of a busy caller. Waking a halted virtual core costs more than
  // that, and halved the speed of launches under a millisecond when this was 256.
  constexpr int kSpins = 4096;
  uint32_t seen = 0;
  pthread_mutex_lock(&pool.lock);
  for (;;) {
    while (!pool.stop && (pool.generation == seen || pool.wanted == 0)) {
      seen = pool.generation;
      pthread_mutex_unlock(&pool.lock);
      for (int i = 0; i < kSpins && __atomic_load_n(&pool.generation, __ATOMIC_RELAXED) == seen; ++i) pause_briefly();
      pthread_mutex_lock(&pool.lock);
      if (!pool.stop && pool.generation == seen) pthread_cond_wait(&pool.work, &pool.lock);
    }
    if (pool.stop) break;
    seen = pool.generation;
    --pool.wanted;
    ++pool.active;
    const uint32_t index = pool.joined++;
    const pool_function function = pool.function;
    void* const context = pool.context;
    pthread_mutex_unlock(&pool.lock);
    function(context, index);
    pthread_mutex_lock(&pool.lock);
    if (--pool.active == 0) pthread_cond_signal(&pool.idle);
  }
  pthread_mutex_unlock(&pool.lock);
  return nullptr;
}

// Runs function on up to `threads` threads and returns when all that joined have left.
inline void run_in_pool(uint32_t threads, pool_function function, void* context) {
  if (threads <= 1 || pthread_mutex_trylock(&pool.launch) != 0) return function(context, 0);
  pthread_mutex_lock(&pool.lock);
  for (const uint32_t workers = threads - 1; pool.started < workers; ++pool.started) {
    if (pthread_create(&pool.threads[pool.started], nullptr, pool_worker, nullptr) != 0) break;
  }
  pool.function = function;
  pool.context = context;
  pool.wanted = threads - 1 < pool.started ? threads - 1 : pool.started;
  pool.joined = 1;
  __atomic_store_n(&pool.generation, pool.generation + 1, __ATOMIC_RELAXED);
  pthread_cond_broadcast(&pool.work);
  pthread_mutex_unlock(&pool.lock);
  function(context, 0);
  pthread_mutex_lock(&pool.lock);
  pool.wanted = 0;
  while (pool.active != 0) pthread_cond_wait(&pool.idle, &pool.lock);
  pthread_mutex_unlock(&pool.lock);
  pthread_mutex_unlock(&pool.launch);
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

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_COMMON_THREAD_POOL_HPP
