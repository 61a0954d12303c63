#include "kernelwright/dispatcher/support/lock.hpp"

#include <time.h>

// glibc's own entry: unlike pthread_atfork it forgets the handlers when this library is unloaded.
extern "C" int __register_atfork(void (*)(), void (*)(), void (*)(), void*);
extern "C" __attribute__((visibility("hidden"))) void* __dso_handle;

namespace kernelwright {
namespace {
constexpr time_t kLongestWaitSeconds = 1;

pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
Mutex* first = nullptr;
}  // namespace

struct ForkHandlers {
  static void before() {
    pthread_mutex_lock(&list_mutex);
    for (Mutex* each = first; each != nullptr; each = each->next_) {
      timespec until;
      clock_gettime(CLOCK_REALTIME, &until);
      until.tv_sec += kLongestWaitSeconds;
      each->held_for_fork_ = pthread_mutex_timedlock(&each->mutex_, &until) == 0;
    }
  }

  static void after_in_parent() {
    for (Mutex* each = first; each != nullptr; each = each->next_) {
      if (each->held_for_fork_) pthread_mutex_unlock(&each->mutex_);
    }
    pthread_mutex_unlock(&list_mutex);
  }

  static void after_in_child() {
    for (Mutex* each = first; each != nullptr; each = each->next_) {
      if (each->held_for_fork_) {
        pthread_mutex_unlock(&each->mutex_);
      } else {
        pthread_mutex_init(&each->mutex_, nullptr);
      }
    }
    pthread_mutex_unlock(&list_mutex);
  }
};

namespace {
__attribute__((constructor)) void handle_forks() {
  __register_atfork(ForkHandlers::before, ForkHandlers::after_in_parent, ForkHandlers::after_in_child, &__dso_handle);
}
}  // namespace

Mutex::Mutex() {
  pthread_mutex_lock(&list_mutex);
  next_ = first;
  if (first != nullptr) first->previous_ = this;
  first = this;
  pthread_mutex_unlock(&list_mutex);
}

Mutex::~Mutex() {
  pthread_mutex_lock(&list_mutex);
  (previous_ == nullptr ? first : previous_->next_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  pthread_mutex_unlock(&list_mutex);
  pthread_mutex_destroy(&mutex_);
}

}  // namespace kernelwright
