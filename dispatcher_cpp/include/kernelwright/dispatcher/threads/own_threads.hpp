// Threads that wait for work: started by the first launch that wants them, gone in a forked child, joined at unload.
#ifndef KERNELWRIGHT_DISPATCHER_OWN_THREADS_HPP
#define KERNELWRIGHT_DISPATCHER_OWN_THREADS_HPP

#include <pthread.h>
#include <stdint.h>

#include "kernelwright/abi.h"

namespace kernelwright {

class OwnThreads {
 public:
  static constexpr uint32_t kMost = 256;

  constexpr OwnThreads() = default;
  OwnThreads(const OwnThreads&) = delete;
  OwnThreads& operator=(const OwnThreads&) = delete;

  // See kw_parallel. One launch at a time.
  void run(uint32_t threads, kw_part part, void* context);
  void stop();
  void before_fork() { pthread_mutex_lock(&lock_); }
  void after_fork_in_parent() { pthread_mutex_unlock(&lock_); }
  // The child has only the thread that forked.
  void after_fork_in_child();

 private:
  static void* work_in(void* pool);
  void work();

  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;  // protects what follows
  pthread_cond_t work_ = PTHREAD_COND_INITIALIZER, idle_ = PTHREAD_COND_INITIALIZER;
  kw_part part_ = nullptr;
  void* context_ = nullptr;
  uint32_t wanted_ = 0;      // workers that may still join the current job
  uint32_t joined_ = 0;      // threads that joined it, the caller included
  uint32_t active_ = 0;      // workers inside it
  uint32_t started_ = 0;     // workers alive
  uint32_t generation_ = 0;  // of jobs, read without the lock while spinning
  bool stop_ = false;
  pthread_t threads_[kMost] = {};
};

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_OWN_THREADS_HPP
