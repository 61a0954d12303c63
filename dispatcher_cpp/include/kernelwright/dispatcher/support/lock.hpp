// A mutex with an owner that survives fork(); std::mutex would need the C++ runtime.
//
// A child has only the thread that forked. If another thread held a mutex at that moment, nobody would ever release it
// in the child. So fork() waits until it holds every mutex, and releases all of them in both processes. It waits at
// most a second for each: the holder may itself wait for the thread that forks (a selection callback waits for Python's
// interpreter lock, which os.fork() holds). A mutex that was not had by then is free in the child.
#ifndef KERNELWRIGHT_DISPATCHER_SUPPORT_LOCK_HPP
#define KERNELWRIGHT_DISPATCHER_SUPPORT_LOCK_HPP

#include <pthread.h>

namespace kernelwright {

class Mutex {
 public:
  Mutex();
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  ~Mutex();

 private:
  friend class Lock;
  friend struct ForkHandlers;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  bool held_for_fork_ = false;
  Mutex* previous_ = nullptr;  // in the list of all mutexes
  Mutex* next_ = nullptr;
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
