// What drivers of CPU kernels share: failures, launches, and the runs from one and from several threads.
#pragma once

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernelwright/abi.h"
#include "kernelwright/dispatcher/threads/thread_pool.hpp"

extern "C" {
kw_status kw_backend_check_device(int32_t device, char* reason, size_t bytes);
kw_status kw_backend_set_num_threads(uint32_t threads);
const char* kw_backend_last_error(void);
}

inline void require(bool condition, const char* kernel, const char* what) {
  if (condition) return;
  fprintf(stderr, "%s: %s: %s\n", kernel, what, kw_backend_last_error());
  _exit(1);
}

// Plans a problem that the kernel serves and launches it, in a workspace of exactly as many bytes as it asks for.
inline kw_status launched(const kw_kernel& kernel, const kw_problem* problem, const void* args) {
  char reason[256] = "";
  uint64_t bytes = 0;
  void *workspace = nullptr, *plan = nullptr;
  require(kernel.supports(&kernel, problem, reason, sizeof reason) == KW_OK, kernel.name, reason);
  require(kernel.workspace_size(&kernel, problem, &bytes) == KW_OK, kernel.name, "workspace_size");
  require(posix_memalign(&workspace, 256, bytes) == 0 && posix_memalign(&plan, 64, kernel.plan_bytes) == 0, kernel.name,
          "memory");
  require(kernel.plan(&kernel, problem, plan) == KW_OK, kernel.name, "plan");
  const kw_cpu_launch launch = {{sizeof launch, 0, nullptr, workspace, bytes}, &kernelwright::process_threads()};
  const kw_status status = kernel.launch(&kernel, plan, &launch.base, args);
  free(workspace);
  free(plan);
  return status;
}

// Calls `check_all` with one thread and with three, from one thread and from two at once.
inline int run(const char* operation, void* (*check_all)(void*)) {
  char reason[256] = "";
  if (kw_backend_check_device(0, reason, sizeof reason) != KW_OK) {
    printf("skipped: %s\n", reason);
    return 0;
  }
  for (uint32_t threads = 1; threads <= 3; threads += 2) {
    kw_backend_set_num_threads(threads);
    check_all(nullptr);
    pthread_t others[2];
    for (pthread_t& other : others) pthread_create(&other, nullptr, check_all, nullptr);
    for (pthread_t& other : others) pthread_join(other, nullptr);
  }
  printf("%s: ok\n", operation);
  return 0;
}
