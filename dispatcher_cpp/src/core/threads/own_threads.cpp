#include "kernelwright/dispatcher/threads/own_threads.hpp"

namespace kernelwright {

void* OwnThreads::work_in(void* pool) {
  static_cast<OwnThreads*>(pool)->work();
  return nullptr;
}

void OwnThreads::work() {
  // Some 70 us: covers the gap between two launches of a busy caller. Waking a halted virtual core costs more than
  // that, and halved the speed of launches under a millisecond when this was 256.
  constexpr int kSpins = 4096;
  uint32_t seen = 0;
  pthread_mutex_lock(&lock_);
  for (;;) {
    while (!stop_ && (generation_ == seen || wanted_ == 0)) {
      seen = generation_;
      pthread_mutex_unlock(&lock_);
      for (int i = 0; i < kSpins && __atomic_load_n(&generation_, __ATOMIC_RELAXED) == seen; ++i) {
        __builtin_ia32_pause();
      }
      pthread_mutex_lock(&lock_);
      if (!stop_ && generation_ == seen) pthread_cond_wait(&work_, &lock_);
    }
    if (stop_) break;
    seen = generation_;
    --wanted_;
    ++active_;
    const uint32_t index = joined_++;
    const kw_part part = part_;
    void* const context = context_;
    pthread_mutex_unlock(&lock_);
    part(context, index);
    pthread_mutex_lock(&lock_);
    if (--active_ == 0) pthread_cond_signal(&idle_);
  }
  pthread_mutex_unlock(&lock_);
}

void OwnThreads::run(uint32_t threads, kw_part part, void* context) {
  pthread_mutex_lock(&lock_);
  const uint32_t workers = threads - 1 < kMost ? threads - 1 : kMost;
  for (; started_ < workers; ++started_) {
    if (pthread_create(&threads_[started_], nullptr, work_in, this) != 0) break;
  }
  part_ = part;
  context_ = context;
  wanted_ = workers < started_ ? workers : started_;
  joined_ = 1;
  __atomic_store_n(&generation_, generation_ + 1, __ATOMIC_RELAXED);
  pthread_cond_broadcast(&work_);
  pthread_mutex_unlock(&lock_);
  part(context, 0);
  pthread_mutex_lock(&lock_);
  wanted_ = 0;
  while (active_ != 0) pthread_cond_wait(&idle_, &lock_);
  pthread_mutex_unlock(&lock_);
}

void OwnThreads::stop() {
  pthread_mutex_lock(&lock_);
  stop_ = true;
  __atomic_store_n(&generation_, generation_ + 1, __ATOMIC_RELAXED);
  pthread_cond_broadcast(&work_);
  pthread_mutex_unlock(&lock_);
  for (uint32_t i = 0; i < started_; ++i) pthread_join(threads_[i], nullptr);
  started_ = 0;
}

void OwnThreads::after_fork_in_child() {
  pthread_mutex_init(&lock_, nullptr);
  pthread_cond_init(&work_, nullptr);
  pthread_cond_init(&idle_, nullptr);
  started_ = active_ = wanted_ = 0;
}

}  // namespace kernelwright
