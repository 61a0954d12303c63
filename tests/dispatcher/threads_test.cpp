// Whose threads run the parts of launches: own ones, a stand-in of OpenMP, a callback; one launch has them at a time.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handle.hpp"
#include "kernelwright/dispatcher/threads/thread_pool.hpp"

namespace {

struct Work {
  int64_t left, ended;
  uint32_t indices;  // bits
  bool nested;
};

void one(void* context, uint32_t) { __atomic_add_fetch(static_cast<int64_t*>(context), 1, __ATOMIC_RELAXED); }

// Takes from what is left until there is nothing, as launches do.
void take(void* context, uint32_t index) {
  Work& work = *static_cast<Work*>(context);
  __atomic_or_fetch(&work.indices, 1u << index, __ATOMIC_RELAXED);
  if (work.nested && index == 0) {  // the threads are taken: the calling one is all there is
    int64_t parts = 0;
    kernelwright::process_threads().run(nullptr, 4, one, &parts);
    CHECK(parts == 1);
  }
  while (__atomic_sub_fetch(&work.left, 1, __ATOMIC_RELAXED) >= 0) __atomic_add_fetch(&work.ended, 1, __ATOMIC_RELEASE);
}

void all_is_done(uint32_t threads, bool nested = false) {
  for (int i = 0; i < 50; ++i) {
    Work work = {100, 0, 0, nested};
    kernelwright::process_threads().run(nullptr, threads, take, &work);
    CHECK(work.ended == 100 && work.indices != 0 && work.indices < (1u << threads));
  }
}

void* launch(void*) {
  all_is_done(3);
  return nullptr;
}

void from_several_threads() {
  pthread_t callers[4];
  for (pthread_t& caller : callers) pthread_create(&caller, nullptr, launch, nullptr);
  for (pthread_t& caller : callers) pthread_join(caller, nullptr);
}

int64_t called = 0;
void run(void* pool, uint32_t threads, kw_part part, void* context) {
  CHECK(pool == &called && threads == 3);
  ++called;
  part(context, 0);
}

// That sanitizer cannot follow threads of a forked child.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KW_NO_FORKS
#endif
#endif

void a_child_has_threads_of_its_own() {
#if !defined(__SANITIZE_THREAD__) && !defined(KW_NO_FORKS)
  const pid_t child = fork();
  if (child == 0) {
    all_is_done(3);
    _exit(kw_threads_in_use(nullptr) == KW_THREADS_OWN && kw_set_threads(KW_THREADS_OPENMP, nullptr) == KW_UNSUPPORTED
              ? 0
              : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
#endif
}

}  // namespace

void threads() {
  CHECK(kw_set_threads(KW_THREADS_OWN, nullptr) == KW_OK && kw_threads_in_use(nullptr) == KW_THREADS_OWN);
  all_is_done(1);
  all_is_done(3);
  all_is_done(3, true);
  from_several_threads();
  CHECK_FAILS(kw_set_threads(4, nullptr), KW_INVALID_ARGUMENT, "4", "allowed");
  CHECK_FAILS(kw_set_threads(KW_THREADS_CALLBACK, nullptr), KW_INVALID_ARGUMENT, "kw_parallel");
  const kw_parallel mine = {sizeof mine, 0, &called, run};
  CHECK(kw_set_threads(KW_THREADS_CALLBACK, &mine) == KW_OK && kw_threads_in_use(nullptr) == KW_THREADS_CALLBACK);
  all_is_done(3);
  CHECK(called == 50);
  void* runtime = dlopen(mock("libgomp-stand-in").c_str(), RTLD_NOW);
  CHECK(runtime != nullptr);
  CHECK(kw_set_threads(KW_THREADS_AUTO, nullptr) == KW_OK);
  const char* path = nullptr;
  CHECK(kw_threads_in_use(&path) == KW_THREADS_OPENMP && strstr(path, "libgomp") != nullptr);
  all_is_done(2);
  from_several_threads();
  a_child_has_threads_of_its_own();
  CHECK(kw_set_threads(KW_THREADS_OWN, nullptr) == KW_OK);
  all_is_done(3);
}
