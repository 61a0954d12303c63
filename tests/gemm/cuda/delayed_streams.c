/* Streams of the stand-in CUDA runtime that do their work later, each in a thread of its own.
 *
 * A job waits until those before it on its stream are done, and then as long as the stream is told to. So work that is
 * on another stream than it should be, or whose memory is, comes too early or too late and leaves wrong numbers. The
 * row-major kernel of the mock library is launched here: it copies A to its workspace, rests, and multiplies from
 * there.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernelwright/cuda/common/runtime.h"
#include "kernelwright/gemm.h"

#define EXPORT __attribute__((visibility("default")))
enum { DEVICES = 2, STREAMS = 8 };

typedef struct job {
  struct job* next;
  void (*run)(void* data);
  unsigned char data[];
} job;

typedef struct stream {
  job *first, *last;
  unsigned queued, done, microseconds;
  int started;
} stream;

static stream streams[DEVICES][STREAMS]; /* 0x1000 * (1 + device) + number */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static stream* find(uint64_t handle) {
  if (handle < 0x1000 || (handle >> 12) > DEVICES || (handle & 0xfff) >= STREAMS) abort();
  return &streams[(handle >> 12) - 1][handle & 0xfff];
}

static void* work(void* argument) {
  stream* own = argument;
  pthread_mutex_lock(&mutex);
  for (;;) {
    while (!own->first) pthread_cond_wait(&changed, &mutex);
    job* next = own->first;
    const unsigned rest = own->microseconds;
    pthread_mutex_unlock(&mutex);
    usleep(rest);
    next->run(next->data);
    pthread_mutex_lock(&mutex);
    own->first = next->next;
    ++own->done;
    free(next);
    pthread_cond_broadcast(&changed);
  }
  return NULL;
}

static void push(uint64_t handle, void (*run)(void* data), const void* data, size_t bytes) {
  stream* own = find(handle);
  job* made = malloc(sizeof *made + bytes);
  if (!made) abort();
  made->next = NULL, made->run = run;
  memcpy(made->data, data, bytes);
  pthread_mutex_lock(&mutex);
  if (!own->started) {
    pthread_t thread;
    own->started = 1;
    if (pthread_create(&thread, NULL, work, own) || pthread_detach(thread)) abort();
  }
  if (own->first) own->last->next = made;
  if (!own->first) own->first = made;
  own->last = made;
  ++own->queued;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

EXPORT void delayed_rest(uint64_t handle, unsigned microseconds) {
  pthread_mutex_lock(&mutex);
  find(handle)->microseconds = microseconds;
  pthread_mutex_unlock(&mutex);
}

/* Until all that was queued before is done. */
EXPORT void delayed_wait(uint64_t handle) {
  pthread_mutex_lock(&mutex);
  stream* own = find(handle);
  for (const unsigned until = own->queued; (int)(own->done - until) < 0;) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

typedef struct copying {
  void* to;
  const void* from;
  size_t bytes;
} copying;

static void run_copy(void* data) {
  const copying* what = data;
  memcpy(what->to, what->from, what->bytes);
}

static void run_poison(void* data) {
  const copying* what = data;
  memset(what->to, 0xff, what->bytes); /* NaN */
}

EXPORT void delayed_copy(uint64_t handle, void* to, const void* from, size_t bytes) {
  const copying what = {to, from, bytes};
  push(handle, run_copy, &what, sizeof what);
}

EXPORT void delayed_poison(uint64_t handle, void* to, size_t bytes) {
  const copying what = {to, NULL, bytes};
  push(handle, run_poison, &what, sizeof what);
}

typedef struct multiplying {
  const kw_kernel* kernel;
  kw_gemm_problem problem;
  kw_gemm_args args;
  kw_launch launch;
  kw_status (*now)(const kw_kernel* kernel, const void* plan, const kw_launch* launch, const void* args);
  unsigned microseconds;
} multiplying;

static void run_multiply(void* data) {
  multiplying* what = data;
  const size_t bytes = (size_t)(what->problem.m * what->problem.lda) * sizeof(float);
  if (bytes > what->launch.workspace_bytes) abort();
  memcpy(what->launch.workspace, what->args.a, bytes);
  usleep(what->microseconds);
  what->args.a = what->launch.workspace;
  what->launch.workspace_bytes = 0; /* or the mock overwrites it */
  if (what->now(what->kernel, &what->problem, &what->launch, &what->args) != KW_OK) abort();
}

/* What the mock's kernel calls: a launch as cuda/common/launch.hpp does it. */
kw_status mock_enqueue(const kw_kernel* kernel, const void* plan, const kw_launch* launch, const void* args,
                       kw_status (*now)(const kw_kernel*, const void*, const kw_launch*, const void*)) {
  multiplying what = {.kernel = kernel, .launch = *launch, .now = now};
  memcpy(&what.problem, plan, sizeof what.problem);
  memcpy(&what.args, args, sizeof what.args);
  int pushed = 0;
  const kw_status status = kw_cuda_enter(launch, &pushed);
  if (status != KW_OK) return status;
  what.microseconds = find((uint64_t)(uintptr_t)launch->stream)->microseconds;
  push((uint64_t)(uintptr_t)launch->stream, run_multiply, &what, sizeof what);
  return kw_cuda_leave(pushed, KW_OK);
}

const char* mock_runtime_error(void) { return kw_backend_last_error(); }
