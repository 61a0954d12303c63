// Launches CPU kernels on operands that end exactly at the end of their allocation, from one and from several threads.
//
// Ones times ones is exact in every dtype here, so each result is known: m x n times K (below 256).
#include <sys/wait.h>

#include "driver.hpp"
#include "kernelwright/gemm.h"

extern "C" {
extern const kw_kernel* const kernels_under_test[];
}

namespace {

struct format {
  size_t bytes;
  uint32_t one;
};

format format_of(uint32_t dtype) {
  if (dtype == KW_FP32) return {4, 0x3f800000};
  if (dtype == KW_INT8 || dtype == KW_INT32) return {dtype == KW_INT8 ? size_t{1} : size_t{4}, 1};
  return {2, dtype == KW_FP16 ? 0x3c00u : 0x3f80u};
}

double value_of(uint32_t dtype, const char* p) {
  uint32_t word = 0;
  if (dtype == KW_INT32) {
    int32_t whole = 0;
    memcpy(&whole, p, 4);
    return whole;
  }
  if (dtype == KW_FP32) {
    memcpy(&word, p, 4);
  } else {
    uint16_t half = 0;
    memcpy(&half, p, 2);
    word = static_cast<uint32_t>(half) << 16;
    if (dtype == KW_FP16) {  // normal numbers only
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

kw_gemm_problem problem_for(const kw_gemm_traits& t, int64_t m, int64_t n, int64_t k, int64_t pad, double beta) {
  kw_gemm_problem p = {};
  p.base = {sizeof(p), KW_OP_GEMM};
  p.dtype_a = t.dtype_a;
  p.dtype_b = t.dtype_b;
  p.dtype_c = t.dtype_c;
  p.dtype_acc = t.dtype_acc;
  p.layout_a = t.layout_a;
  p.layout_b = t.layout_b;
  p.layout_c = t.layout_c;
  p.split_k = t.max_split_k > 1 ? 3 : 1;
  p.batch = t.batched != 0 ? 3 : 1;
  p.m = m;
  p.n = n;
  p.k = k;
  p.lda = (t.layout_a == KW_ROW_MAJOR ? k : m) + pad;
  p.ldb = (t.layout_b == KW_ROW_MAJOR ? n : k) + pad;
  p.ldc = n + pad;
  p.alpha = 1;
  p.beta = beta;
  p.stride_c = p.batch > 1 ? m * p.ldc : 0;  // A and B are shared
  p.num_d = t.num_d;
  p.d_op = t.d_op;
  p.activation = t.activation;
  if (t.activation == KW_ACTIVATION_ANY) {
    p.num_d = static_cast<uint32_t>((m + n) % (t.num_d + 1));
    p.activation = k % 2 == 0 ? KW_ACTIVATION_NONE : KW_ACTIVATION_RELU;  // sums are positive
  }
  p.b_format = t.b_format;
  return p;  // every D tensor is one row for all
}

struct operands {
  char *a, *b, *d, *row;
  void* shuffled;
};

operands make_operands(const kw_kernel* kernel, const kw_gemm_problem& p) {
  const bool a_rows = p.layout_a == KW_ROW_MAJOR, b_rows = p.layout_b == KW_ROW_MAJOR;
  operands o = {};
  o.a = ones(p.dtype_a, a_rows ? p.m : p.k, a_rows ? p.k : p.m, p.lda);
  o.b = ones(p.dtype_b, b_rows ? p.k : p.n, b_rows ? p.n : p.k, p.ldb);
  o.d = ones(p.dtype_c, p.m * p.batch, p.n, p.ldc);
  o.row = ones(p.dtype_c, 1, p.n, p.n);
  if (p.b_format != 0) {
    uint64_t bytes = 0;
    const auto& extension = *static_cast<const kw_gemm_extension*>(kernel->extension);
    require(extension.shuffle_b_bytes(kernel, &p.base, &bytes) == KW_OK, kernel->name, "shuffle_b_bytes failed");
    o.shuffled = malloc(bytes + (bytes == 0));
    require(extension.shuffle_b(kernel, &p.base, o.b, o.shuffled) == KW_OK, kernel->name, "shuffle_b failed");
  }
  return o;
}

void free_operands(const operands& o) {
  free(o.a);
  free(o.b);
  free(o.d);
  free(o.row);
  free(o.shuffled);
}

void check(const kw_kernel* kernel, const kw_gemm_problem& p, const char* d) {
  const size_t size = format_of(p.dtype_c).bytes;
  const double expected = static_cast<double>(p.k) + p.beta + p.num_d;
  for (int64_t i = 0; i < p.m * p.batch; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      const double actual = value_of(p.dtype_c, d + static_cast<size_t>(i * p.ldc + j) * size);
      require(actual == expected, kernel->name, "wrong result");
    }
  }
}

// Plans the problem and gives it a workspace of exactly its size.
void* planned(const kw_kernel* kernel, const kw_problem* problem, char* plan, uint64_t* bytes) {
  char reason[256] = "";
  require(kernel->supports(kernel, problem, reason, sizeof(reason)) == KW_OK, kernel->name, reason);
  require(kernel->workspace_size(kernel, problem, bytes) == KW_OK, kernel->name, "workspace_size failed");
  require(kernel->plan_bytes <= 1024, kernel->name, "plan is too large");
  require(kernel->plan(kernel, problem, plan) == KW_OK, kernel->name, "plan failed");
  return *bytes == 0 ? nullptr : aligned_alloc(256, *bytes);  // sizes are multiples of 256
}

void run_one(const kw_kernel* kernel, int64_t m, int64_t n, int64_t k, int64_t pad, double beta) {
  const kw_gemm_problem p = problem_for(*static_cast<const kw_gemm_traits*>(kernel->traits), m, n, k, pad, beta);
  alignas(64) char plan[1024];
  const operands o = make_operands(kernel, p);
  kw_gemm_args args = {};
  args.struct_size = sizeof(args);
  args.a = o.a;
  args.b = p.b_format != 0 ? o.shuffled : o.b;
  args.c = beta != 0 ? o.d : nullptr;
  args.d = o.d;
  for (const void*& each : args.multi_d) each = o.row;
  kw_cpu_launch where = {{sizeof(where), 0, nullptr, nullptr, 0}, &kernelwright::process_threads()};
  where.base.workspace = planned(kernel, &p.base, plan, &where.base.workspace_bytes);
  require(kernel->launch(kernel, plan, &where.base, &args) == KW_OK, kernel->name, "launch failed");
  check(kernel, p, o.d);
  where.base.device = 1;
  const bool empty = p.m == 0 || p.n == 0;
  require(empty || kernel->launch(kernel, plan, &where.base, &args) != KW_OK, kernel->name, "device 1 was not refused");
  free_operands(o);
  free(where.base.workspace);
}

// The problem and three smaller ones.
void run_groups(const kw_kernel* kernel, int64_t m, int64_t n, int64_t k, int64_t pad, double beta) {
  constexpr int64_t kGroups = 4;
  const kw_gemm_traits& t = *static_cast<const kw_gemm_traits*>(kernel->traits);
  kw_gemm_problem each[kGroups];
  operands o[kGroups];
  kw_gemm_group groups[kGroups];
  const void *a[kGroups], *b[kGroups], *c[kGroups];
  void* d[kGroups];
  for (int64_t i = 0; i < kGroups; ++i) {
    each[i] = problem_for(t, m / (i + 1), n / (i + 1), k, pad, beta);
    o[i] = make_operands(kernel, each[i]);
    groups[i] = {each[i].m, each[i].n, each[i].k, each[i].lda, each[i].ldb, each[i].ldc};
    a[i] = o[i].a;
    b[i] = o[i].b;
    c[i] = d[i] = o[i].d;
  }
  const kw_gemm_problem& p = each[0];
  const kw_grouped_gemm_problem problem = {{sizeof(problem), KW_OP_GROUPED_GEMM},
                                           p.dtype_a,
                                           p.dtype_b,
                                           p.dtype_c,
                                           p.dtype_acc,
                                           p.layout_a,
                                           p.layout_b,
                                           p.layout_c,
                                           0,
                                           kGroups,
                                           groups,
                                           1,
                                           beta};
  alignas(64) char plan[1024];
  const kw_grouped_gemm_args args = {sizeof(args), 0, kGroups, groups, a, b, c, d};
  kw_cpu_launch where = {{sizeof(where), 0, nullptr, nullptr, 0}, &kernelwright::process_threads()};
  where.base.workspace = planned(kernel, &problem.base, plan, &where.base.workspace_bytes);
  require(kernel->launch(kernel, plan, &where.base, &args) == KW_OK, kernel->name, "launch failed");
  for (int64_t i = 0; i < kGroups; ++i) {
    check(kernel, each[i], o[i].d);
    free_operands(o[i]);
  }
  free(where.base.workspace);
}

void run_all(const kw_kernel* kernel) {
  const int64_t sizes[][3] = {{1, 1, 1},      {0, 3, 2},   {3, 0, 2},   {4, 4, 0},    {13, 31, 7},
                              {14, 32, 32},   {1, 200, 9}, {90, 1, 33}, {29, 97, 65}, {61, 99, 17},
                              {150, 201, 97}, {2, 70, 40}, {70, 3, 40}, {4, 41, 130}, {37, 4, 66}};
  for (const auto& size : sizes) {
    (kernel->op == KW_OP_GROUPED_GEMM ? run_groups : run_one)(kernel, size[0], size[1], size[2], 0, 0);
    (kernel->op == KW_OP_GROUPED_GEMM ? run_groups : run_one)(kernel, size[0], size[1], size[2], 3, 2);
  }
}

void* run_in_thread(void* kernel) {
  const kw_kernel* const k = static_cast<const kw_kernel*>(kernel);
  for (int i = 0; i < 3; ++i) (k->op == KW_OP_GROUPED_GEMM ? run_groups : run_one)(k, 150, 201, 97, 1, 1);
  return nullptr;
}

}  // namespace

int main() {
  char reason[256] = "";
  if (kw_backend_check_device(0, reason, sizeof(reason)) != KW_OK) {
    printf("skipped: %s\n", reason);
    return 0;
  }
  for (const kw_kernel* const* kernel = kernels_under_test; *kernel != nullptr; ++kernel) {
    for (uint32_t threads = 1; threads <= 3; ++threads) {
      kw_backend_set_num_threads(threads);
      run_all(*kernel);
    }
    pthread_t threads[4];
    for (pthread_t& thread : threads) pthread_create(&thread, nullptr, run_in_thread, const_cast<kw_kernel*>(*kernel));
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
