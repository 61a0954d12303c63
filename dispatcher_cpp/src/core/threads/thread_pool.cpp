#include "kernelwright/dispatcher/threads/thread_pool.hpp"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "kernelwright/dispatcher.h"
#include "kernelwright/dispatcher/state.hpp"
#include "kernelwright/dispatcher/threads/own_threads.hpp"

namespace kernelwright {
namespace {

// What GCC's and LLVM's OpenMP runtimes share: the entries of code that GCC compiled, and the OpenMP API.
struct OpenMp {
  void (*parallel)(void (*part)(void*), void* data, unsigned threads, unsigned flags);
  int (*max_threads)();
  int (*in_parallel)();
};

OwnThreads own;
OpenMp open_mp = {};
char open_mp_path[PATH_MAX];
kw_parallel callback = {};
// Held by the launch that has the threads, and while another source is chosen.
pthread_mutex_t launch = PTHREAD_MUTEX_INITIALIZER;
uint32_t used = KW_THREADS_OWN;
bool forked = false;  // GCC's OpenMP waits in a forked child for threads that only the parent has

struct Job {
  kw_part part;
  void* context;
  uint32_t joined;
};

void take_part(void* data) {
  Job& job = *static_cast<Job*>(data);
  job.part(job.context, __atomic_fetch_add(&job.joined, 1, __ATOMIC_RELAXED));
}

// omp_set_num_threads, torch.set_num_threads and OMP_NUM_THREADS hold for launches too.
uint32_t allowed_by_open_mp(uint32_t threads) {
  if (open_mp.in_parallel() != 0) return 1;
  const int most = open_mp.max_threads();
  return most < 1 ? 1 : static_cast<uint32_t>(most) < threads ? static_cast<uint32_t>(most) : threads;
}

// A launch that finds the threads taken runs on its own thread alone: with every core busy that is the fastest way, and
// results do not depend on the number of threads.
void run(void*, uint32_t threads, kw_part part, void* context) {
  if (threads <= 1 || pthread_mutex_trylock(&launch) != 0) return part(context, 0);
  if (used == KW_THREADS_CALLBACK) {
    callback.run(callback.pool, threads, part, context);
  } else if (used == KW_THREADS_OPENMP) {
    Job job = {part, context, 0};
    open_mp.parallel(take_part, &job, allowed_by_open_mp(threads), 0);
  } else {
    own.run(threads, part, context);
  }
  pthread_mutex_unlock(&launch);
}

constexpr kw_parallel kThreads = {sizeof(kw_parallel), 0, nullptr, run};

bool is_open_mp(const char* path) {
  const char* name = strrchr(path, '/');
  if (name == nullptr) return false;
  return strncmp(name, "/libgomp", 8) == 0 || strncmp(name, "/libiomp5", 9) == 0 || strncmp(name, "/libomp", 7) == 0;
}

// The runtime whose workers torch uses, where a process has several; else the first.
bool find_open_mp_path() {
  open_mp_path[0] = '\0';
  FILE* maps = fopen("/proc/self/maps", "re");
  if (maps == nullptr) return false;
  char line[PATH_MAX + 128];
  while (fgets(line, sizeof line, maps) != nullptr) {
    char* path = strchr(line, '/');
    if (path == nullptr) continue;
    path[strcspn(path, "\n")] = '\0';
    if (!is_open_mp(path)) continue;
    const bool of_torch = strstr(path, "/torch") != nullptr;
    if (open_mp_path[0] == '\0' || of_torch) snprintf(open_mp_path, sizeof open_mp_path, "%s", path);
    if (of_torch) break;
  }
  fclose(maps);
  return open_mp_path[0] != '\0';
}

// The handle is kept: threads of the runtime may be inside it for good.
bool open_open_mp() {
  if (open_mp.parallel != nullptr) return true;
  if (!find_open_mp_path()) return false;
  void* handle = dlopen(open_mp_path, RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  OpenMp loaded = {};
  loaded.parallel = reinterpret_cast<decltype(loaded.parallel)>(dlsym(handle, "GOMP_parallel"));
  loaded.max_threads = reinterpret_cast<decltype(loaded.max_threads)>(dlsym(handle, "omp_get_max_threads"));
  loaded.in_parallel = reinterpret_cast<decltype(loaded.in_parallel)>(dlsym(handle, "omp_in_parallel"));
  if (loaded.parallel == nullptr || loaded.max_threads == nullptr || loaded.in_parallel == nullptr) {
    dlclose(handle);
    return false;
  }
  open_mp = loaded;
  return true;
}

void before_fork() {
  pthread_mutex_lock(&launch);
  own.before_fork();
}

void after_fork_in_parent() {
  own.after_fork_in_parent();
  pthread_mutex_unlock(&launch);
}

void after_fork_in_child() {
  own.after_fork_in_child();
  pthread_mutex_init(&launch, nullptr);
  forked = true;
  if (used == KW_THREADS_OPENMP) used = KW_THREADS_OWN;
}

// glibc's own entry: unlike pthread_atfork it forgets the handlers when this library is unloaded.
extern "C" int __register_atfork(void (*)(), void (*)(), void (*)(), void*);
extern "C" __attribute__((visibility("hidden"))) void* __dso_handle;

__attribute__((constructor)) void start() {
  __register_atfork(before_fork, after_fork_in_parent, after_fork_in_child, &__dso_handle);
}

__attribute__((destructor)) void stop() {
  pthread_mutex_lock(&launch);
  own.stop();
  pthread_mutex_unlock(&launch);
}

kw_status check_callback(const kw_parallel* given) {
  if (given == nullptr || given->struct_size < sizeof(kw_parallel) || given->run == nullptr) {
    return fail(KW_INVALID_ARGUMENT, "KW_THREADS_CALLBACK needs a kw_parallel with a run of its own");
  }
  return check_reserved("kw_parallel", *given);
}

}  // namespace

const kw_parallel& process_threads() { return kThreads; }

}  // namespace kernelwright

using namespace kernelwright;

extern "C" {

kw_status kw_set_threads(uint32_t source, const kw_parallel* parallel) {
  if (source > KW_THREADS_CALLBACK) {
    return fail(KW_INVALID_ARGUMENT, "source of threads = %u; allowed: 0 (auto), 1 (own), 2 (OpenMP), 3 (callback)",
                source);
  }
  if (source == KW_THREADS_CALLBACK) {
    if (kw_status status = check_callback(parallel)) return status;
  }
  pthread_mutex_lock(&launch);
  kw_status status = KW_OK;
  if (source == KW_THREADS_OPENMP && forked) {
    status =
        fail(KW_UNSUPPORTED, "a forked child has no threads of OpenMP: its runtime may wait for those of the parent");
  } else if (source == KW_THREADS_OPENMP && !open_open_mp()) {
    status =
        fail(KW_RUNTIME_MISSING, "no OpenMP runtime is loaded; load one first (import torch), or take auto or own");
  } else {
    if (source == KW_THREADS_CALLBACK) callback = *parallel;
    used = source;
    if (source == KW_THREADS_AUTO) used = KW_THREADS_OWN;
    if (source == KW_THREADS_AUTO && !forked && open_open_mp()) used = KW_THREADS_OPENMP;
  }
  pthread_mutex_unlock(&launch);
  return status;
}

uint32_t kw_threads_in_use(const char** runtime) {
  pthread_mutex_lock(&launch);
  const uint32_t source = used;
  if (runtime != nullptr) *runtime = source == KW_THREADS_OPENMP ? open_mp_path : "";
  pthread_mutex_unlock(&launch);
  return source;
}

}  // extern "C"
