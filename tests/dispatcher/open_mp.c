/* What a launch asks of an OpenMP runtime, with two threads. */
#include <pthread.h>

struct region {
  void (*part)(void*);
  void* data;
};

static void* work(void* context) {
  const struct region* region = context;
  region->part(region->data);
  return 0;
}

__attribute__((visibility("default"))) int omp_get_max_threads(void) { return 2; }
__attribute__((visibility("default"))) int omp_in_parallel(void) { return 0; }
__attribute__((visibility("default"))) void GOMP_parallel(void (*part)(void*), void* data, unsigned threads,
                                                          unsigned flags) {
  struct region region = {part, data};
  pthread_t other;
  (void)flags;
  if (threads > 1) pthread_create(&other, 0, work, &region);
  part(data);
  if (threads > 1) pthread_join(other, 0);
}
