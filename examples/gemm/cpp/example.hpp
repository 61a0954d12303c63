// What the examples share: a dispatcher with one library, fp32 problems, memory for workspaces.
#ifndef KERNELWRIGHT_EXAMPLE_HPP
#define KERNELWRIGHT_EXAMPLE_HPP

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernelwright/dispatcher/gemm.h"

// Ends the program with the library's own words if a call failed.
inline void require(kw_status status, const char* what) {
  if (status == KW_OK) return;
  std::fprintf(stderr, "%s: %s: %s\n", what, kw_status_name(status), kw_last_error());
  std::exit(1);
}

class Dispatcher {
 public:
  explicit Dispatcher(const char* library) {
    require(kw_dispatcher_create(nullptr, &handle_), "create");
    require(kw_dispatcher_add_library(handle_, library, nullptr), library);
  }
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;
  ~Dispatcher() { kw_dispatcher_destroy(handle_); }
  operator kw_dispatcher*() const { return handle_; }

 private:
  kw_dispatcher* handle_ = nullptr;
};

// Row-major A (m, k), B (k, n) and D (m, n) in fp32, without gaps.
inline kw_gemm_problem fp32_problem(int64_t m, int64_t n, int64_t k) {
  kw_gemm_problem problem{};
  problem.base = {sizeof problem, KW_OP_GEMM};
  problem.dtype_a = problem.dtype_b = problem.dtype_c = problem.dtype_acc = KW_FP32;
  problem.layout_a = problem.layout_b = problem.layout_c = KW_ROW_MAJOR;
  problem.split_k = 0;  // the dispatcher chooses
  problem.batch = 1;
  problem.m = m, problem.n = n, problem.k = k;
  problem.lda = k > 0 ? k : 1, problem.ldb = problem.ldc = n > 0 ? n : 1;
  problem.alpha = 1.0;
  return problem;
}

inline std::string kernel_of(const kw_plan* plan) {
  kw_stage_info info{};  // a GEMM has one stage
  info.struct_size = sizeof info;
  require(kw_plan_get_stage(plan, 0, &info), "stage");
  return info.kernel->name;
}

// What a plan needs besides its operands, aligned as launches want it.
class Workspace {
 public:
  explicit Workspace(const kw_plan* plan) : bytes_(kw_plan_workspace_size(plan)), memory_(bytes_ + 256) {}
  void* pointer() { return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory_.data()) + 255) / 256 * 256); }
  // A launch on the CPU, or on the first GPU and its default stream.
  kw_launch launch() { return {sizeof(kw_launch), 0, nullptr, pointer(), bytes_}; }

 private:
  uint64_t bytes_;
  std::vector<unsigned char> memory_;
};

inline kw_gemm_args arguments(const float* a, const float* b, float* d) {
  kw_gemm_args args{};
  args.struct_size = sizeof args;
  args.a = a, args.b = b, args.d = d;
  return args;
}

// Small whole numbers: every sum of their products is exact in fp32.
inline std::vector<float> whole_numbers(int64_t count, int modulus) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<int>(i * 7 % static_cast<size_t>(modulus)) - modulus / 2);
  }
  return values;
}

// Row-major (rows, columns) as column-major.
inline std::vector<float> turned(const std::vector<float>& values, int64_t rows, int64_t columns) {
  std::vector<float> reordered(values.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      reordered[static_cast<size_t>(j * rows + i)] = values[static_cast<size_t>(i * columns + j)];
    }
  }
  return reordered;
}

// Elements of d that are not the product of a and b, all row-major without gaps.
inline int64_t count_wrong(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& d,
                           int64_t m, int64_t n, int64_t k) {
  int64_t wrong = 0;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += a[static_cast<size_t>(i * k + l)] * b[static_cast<size_t>(l * n + j)];
      wrong += d[static_cast<size_t>(i * n + j)] != sum;
    }
  }
  return wrong;
}

// The first argument of every example: the library's file.
inline const char* library_argument(int argc, char** argv) {
  if (argc > 1) return argv[1];
  std::fprintf(stderr, "usage: %s LIBRARY.so\n", argv[0]);
  std::exit(2);
}

#endif  // KERNELWRIGHT_EXAMPLE_HPP
