// pthread mutex with an owner; std::mutex would need the C++ runtime.
#ifndef KERNELWRIGHT_DISPATCHER_SUPPORT_LOCK_HPP
#define KERNELWRIGHT_DISPATCHER_SUPPORT_LOCK_HPP

#include <pthread.h>

namespace kernelwright {

class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  ~Mutex() { pthread_mutex_destroy(&mutex_); }

 private:
  friend class Lock;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

class Lock {
 public:
  explicit Lock(Mutex& mutex) : mutex_(mutex.mutex_) { pthread_mutex_lock(&mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_SUPPORT_LOCK_HPP
