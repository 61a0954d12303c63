/* A C99 program against libdispatcher_gemm_lib.so: client KERNELS VARIANTS. Exit status 0 if all is right.
 *
 * Both are a mock library (bindings/kernelwright/dispatch/testdata); `run` builds it all under sanitizers.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "kernelwright/dispatcher/gemm_lib.h"

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, dispatcher_last_error()); \
      return 1;                                                                                    \
    }                                                                                              \
  } while (0)

enum { M = 7, N = 5, K = 9 };

static int multiply(float* time_ms) {
  float a[M * K], b[N * K], c[M * N];
  for (int i = 0; i < M * K; ++i) a[i] = (float)(i % 11 - 5);
  for (int i = 0; i < N * K; ++i) b[i] = (float)(i % 7 - 3);
  memset(c, 0xff, sizeof c);
  CHECK(dispatcher_run_gemm(a, b, c, M, N, K, time_ms) == DISPATCHER_OK);
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      float sum = 0; /* of small whole numbers: exact */
      for (int x = 0; x < K; ++x) sum += a[i * K + x] * b[j * K + x];
      CHECK(c[i * N + j] == sum);
    }
  }
  return 0;
}

/* Groups, and D tensors, of the library with variants: whole numbers again. */
static int variants(void) {
  float a[M * K], b[K * N], d[M * N], c[M * N], other[M * N];
  const int64_t ms[2] = {M, M - 2}, ns[2] = {N, N}, ks[2] = {K, K};
  const void *as[2] = {a, a}, *bs[2] = {b, b}, *ds[1] = {d};
  void* cs[2] = {c, other};
  for (int i = 0; i < M * K; ++i) a[i] = (float)(i % 11 - 5);
  for (int i = 0; i < K * N; ++i) b[i] = (float)(i % 7 - 3);
  for (int i = 0; i < M * N; ++i) d[i] = (float)(i % 5 - 2);
  CHECK(dispatcher_run_grouped_gemm(2, ms, ns, ks, as, bs, cs, NULL) == DISPATCHER_OK);
  CHECK(memcmp(c, other, sizeof(float) * (M - 2) * N) == 0);
  CHECK(dispatcher_get_num_d_tensors() == 1);
  CHECK(dispatcher_run_multi_d_gemm(a, b, ds, 1, other, M, N, K, NULL) == DISPATCHER_OK);
  for (int i = 0; i < M * N; ++i) CHECK(other[i] == (c[i] + d[i] > 0 ? c[i] + d[i] : 0));
  CHECK(dispatcher_run_multi_d_gemm(a, b, ds, 2, other, M, N, K, NULL) == DISPATCHER_ERROR);
  CHECK(dispatcher_run_grouped_gemm(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == DISPATCHER_OK);
  return 0;
}

static void* worker(void* failures) {
  for (int i = 0; i < 50; ++i) {
    char name[256];
    int wrong = multiply(NULL) != 0 || dispatcher_is_supported(M + i, N, K) != 1 ||
                dispatcher_select_kernel(M, N + i, K, name, sizeof name) != 0 || dispatcher_get_kernel_count() <= 0;
    if (wrong) __atomic_add_fetch((int*)failures, 1, __ATOMIC_SEQ_CST);
  }
  return NULL;
}

/* Inits and cleans up while others do: every call must either work or say that nothing is initialised. */
static void* restless(void* kernels) {
  for (int i = 0; i < 20; ++i) {
    if (dispatcher_init_from(kernels, "fp32_rcr") != 0) return "init";
    const int supported = dispatcher_is_supported(M, N, K);
    if (!supported && strstr(dispatcher_last_error(), "not initialised") == NULL) return "supported";
    dispatcher_cleanup();
  }
  return NULL;
}

int main(int argc, char** argv) {
  char name[256];
  float time_ms = 0;
  pthread_t threads[4];
  int failures = 0;
  if (argc != 3) return 2;
  CHECK(dispatcher_abi_version() == DISPATCHER_GEMM_LIB_ABI_VERSION);
  CHECK(dispatcher_get_kernel_count() == 0 && dispatcher_export_registry_json() == NULL);
  CHECK(dispatcher_is_supported(M, N, K) == 0 && dispatcher_select_kernel(M, N, K, name, sizeof name) == -1);
  CHECK(dispatcher_run_gemm(NULL, NULL, NULL, M, N, K, &time_ms) == -1 && time_ms == -1.0F);
  CHECK(strstr(dispatcher_last_error(), "dispatcher_init()") != NULL);
  dispatcher_cleanup();
  CHECK(dispatcher_init_from(argv[1], NULL) == -1 && strstr(dispatcher_last_error(), "fp32_rcr") != NULL);
  CHECK(dispatcher_init_from(argv[1], "fp32_rcr") == 0 && dispatcher_init() == 0);
  CHECK(dispatcher_get_kernel_count() > 1 && strstr(dispatcher_export_registry_json(), "gemm_fp32_rcr") != NULL);
  CHECK(dispatcher_get_kernel_name_at(0, name, sizeof name) == 0 && name[0] != 0);
  CHECK(dispatcher_get_kernel_name_at(0, name, 3) == -1 && dispatcher_get_kernel_name_at(-1, name, sizeof name) == -1);
  CHECK(dispatcher_select_kernel(-1, N, K, name, sizeof name) == -1 && dispatcher_is_supported(-1, N, K) == 0);
  CHECK(multiply(NULL) == 0 && multiply(&time_ms) == 0 && time_ms >= 0);
  CHECK(dispatcher_run_gemm(NULL, NULL, NULL, 0, N, K, NULL) == 0);
  CHECK(dispatcher_run_gemm(NULL, NULL, NULL, M, N, K, NULL) == -1);
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&threads[i], NULL, worker, &failures) == 0);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  CHECK(failures == 0);
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&threads[i], NULL, restless, argv[1]) == 0);
  for (int i = 0; i < 4; ++i) {
    void* problem = NULL;
    pthread_join(threads[i], &problem);
    CHECK(problem == NULL);
  }
  dispatcher_cleanup();
  CHECK(dispatcher_init_from(argv[2], "fp32_rrr:add_relu_d1") == 0 && variants() == 0);
  dispatcher_cleanup();
  puts("ok");
  return 0;
}
