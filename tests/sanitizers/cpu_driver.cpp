// Launches CPU kernels on operands that end exactly at the end of their allocation, from one and from several threads.
//
// Ones times ones is exact in every dtype here, so each result is known: m x n times K (below 256).
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tilewright/abi.h"

extern "C" {
extern const tw_kernel* const kernels_under_test[];
tw_status tw_backend_check_device(int32_t device, char* reason, size_t bytes);
tw_status tw_backend_set_num_threads(uint32_t threads);
}

namespace {

void require(bool condition, const char* kernel, const char* what) {
  if (condition) return;
  fprintf(stderr, "%s: %s\n", kernel, what);
  _exit(1);
}

struct format {
  size_t bytes;
  uint32_t one;
};

format format_of(uint32_t dtype) {
  if (dtype == TW_FP32) return {4, 0x3f800000};
  return {2, dtype == TW_FP16 ? 0x3c00u : 0x3f80u};
}

double value_of(uint32_t dtype, const char* p) {
  uint32_t word = 0;
  if (dtype == TW_FP32) {
    memcpy(&word, p, 4);
  } else {
    uint16_t half = 0;
    memcpy(&half, p, 2);
    word = static_cast<uint32_t>(half) << 16;
    if (dtype == TW_FP16) {  // normal numbers only
      if (half == 0) return 0;
      word =
          (static_cast<uint32_t>(half & 0x8000) << 16) | ((static_cast<uint32_t>(half & 0x7fff) << 13) + (112u << 23));
    }
  }
  float result = 0;
  memcpy(&result, &word, 4);
  return static_cast<double>(result);
}

// A matrix of ones whose last element is the last thing in its allocation.
char* ones(uint32_t dtype, int64_t lines, int64_t line, int64_t ld) {
  const format f = format_of(dtype);
  const size_t count = lines == 0 || line == 0 ? 0 : static_cast<size_t>((lines - 1) * ld + line);
  char* memory = static_cast<char*>(malloc(count * f.bytes + (count == 0)));
  for (size_t i = 0; i < count; ++i) memcpy(memory + i * f.bytes, &f.one, f.bytes);
  return memory;
}

void run(const tw_kernel* kernel, int64_t m, int64_t n, int64_t k, int64_t pad, double beta) {
  const tw_gemm_traits& t = *static_cast<const tw_gemm_traits*>(kernel->traits);
  tw_gemm_problem p = {};
  p.base = {sizeof(p), TW_OP_GEMM};
  p.dtype_a = t.dtype_a;
  p.dtype_b = t.dtype_b;
  p.dtype_c = t.dtype_c;
  p.dtype_acc = t.dtype_acc;
  p.layout_a = t.layout_a;
  p.layout_b = t.layout_b;
  p.layout_c = t.layout_c;
  p.split_k = 1;
  p.batch = 1;
  p.m = m;
  p.n = n;
  p.k = k;
  const bool a_rows = t.layout_a == TW_ROW_MAJOR, b_rows = t.layout_b == TW_ROW_MAJOR;
  p.lda = (a_rows ? k : m) + pad;
  p.ldb = (b_rows ? n : k) + pad;
  p.ldc = n + pad;
  p.alpha = 1;
  p.beta = beta;
  char reason[256] = "";
  require(kernel->supports(kernel, &p.base, reason, sizeof(reason)) == TW_OK, kernel->name, reason);
  uint64_t bytes = 0;
  require(kernel->workspace_size(kernel, &p.base, &bytes) == TW_OK, kernel->name, "workspace_size failed");
  alignas(64) char plan[1024];
  require(kernel->plan_bytes <= sizeof(plan), kernel->name, "plan is too large");
  require(kernel->plan(kernel, &p.base, plan) == TW_OK, kernel->name, "plan failed");
  tw_gemm_args args = {};
  args.struct_size = sizeof(args);
  char* a = ones(t.dtype_a, a_rows ? m : k, a_rows ? k : m, p.lda);
  char* b = ones(t.dtype_b, b_rows ? k : n, b_rows ? n : k, p.ldb);
  char* d = ones(t.dtype_c, m, n, p.ldc);
  args.a = a;
  args.b = b;
  args.c = beta != 0 ? d : nullptr;
  args.d = d;
  args.workspace = aligned_alloc(256, bytes);  // sizes are multiples of 256
  args.workspace_bytes = bytes;
  require(kernel->launch(kernel, plan, &args) == TW_OK, kernel->name, "launch failed");
  const size_t size = format_of(t.dtype_c).bytes;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const double found = value_of(t.dtype_c, d + static_cast<size_t>(i * p.ldc + j) * size);
      require(found == static_cast<double>(k) + beta, kernel->name, "wrong result");
    }
  }
  free(a);
  free(b);
  free(d);
  free(args.workspace);
}

void run_all(const tw_kernel* kernel) {
  const int64_t sizes[][3] = {{1, 1, 1},   {0, 3, 2},   {3, 0, 2},    {4, 4, 0},    {13, 31, 7},   {14, 32, 32},
                              {1, 200, 9}, {90, 1, 33}, {29, 97, 65}, {61, 99, 17}, {150, 201, 97}};
  for (const auto& size : sizes) {
    run(kernel, size[0], size[1], size[2], 0, 0);
    run(kernel, size[0], size[1], size[2], 3, 2);
  }
}

void* run_in_thread(void* kernel) {
  for (int i = 0; i < 3; ++i) run(static_cast<const tw_kernel*>(kernel), 150, 201, 97, 1, 1);
  return nullptr;
}

}  // namespace

int main() {
  char reason[256] = "";
  if (tw_backend_check_device(0, reason, sizeof(reason)) != TW_OK) {
    printf("skipped: %s\n", reason);
    return 0;
  }
  for (const tw_kernel* const* kernel = kernels_under_test; *kernel != nullptr; ++kernel) {
    for (uint32_t threads = 1; threads <= 3; ++threads) {
      tw_backend_set_num_threads(threads);
      run_all(*kernel);
    }
    pthread_t threads[4];
    for (pthread_t& thread : threads) pthread_create(&thread, nullptr, run_in_thread, const_cast<tw_kernel*>(*kernel));
    for (pthread_t& thread : threads) pthread_join(thread, nullptr);
#if !defined(__SANITIZE_THREAD__)  // that sanitizer cannot follow threads of a forked child
    const pid_t child = fork();
    if (child == 0) {
      run_all(*kernel);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    require(status == 0, (*kernel)->name, "the forked child failed");
#endif
    printf("%s: ok\n", (*kernel)->name);
  }
  return 0;
}
