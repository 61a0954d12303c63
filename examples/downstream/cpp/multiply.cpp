// Multiplies two matrices with the best kernel of a library: multiply <path of lib….so>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "kernelwright/dispatcher/gemm.h"

namespace {

int fail(const char* what, kw_status status) {
  std::fprintf(stderr, "%s: %s: %s\n", what, kw_status_name(status), kw_last_error());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: multiply LIBRARY\n");
    return 2;
  }
  kw_dispatcher* dispatcher = nullptr;
  kw_status status = kw_dispatcher_create(nullptr, &dispatcher);
  if (status != KW_OK) return fail("create", status);
  status = kw_dispatcher_add_library(dispatcher, argv[1], nullptr);
  if (status != KW_OK) return fail("add", status);

  constexpr int64_t m = 100, n = 70, k = 50;
  std::vector<float> a(m * k), b(k * n), d(m * n, -1.0f);
  for (int64_t i = 0; i < m * k; ++i) a[i] = static_cast<float>(i % 7 - 3);
  for (int64_t i = 0; i < k * n; ++i) b[i] = static_cast<float>(i % 5 - 2);

  kw_gemm_problem problem{};
  problem.base = {sizeof problem, KW_OP_GEMM};
  problem.dtype_a = problem.dtype_b = problem.dtype_c = problem.dtype_acc = KW_FP32;
  problem.layout_a = problem.layout_b = problem.layout_c = KW_ROW_MAJOR;
  problem.split_k = 1;
  problem.batch = 1;
  problem.m = m, problem.n = n, problem.k = k;
  problem.lda = k, problem.ldb = n, problem.ldc = n;
  problem.alpha = 1.0;

  const kw_plan* plan = nullptr;
  status = kw_dispatcher_select(dispatcher, &problem.base, &plan);
  if (status != KW_OK) return fail("select", status);
  const uint64_t bytes = kw_plan_workspace_size(plan);
  std::vector<unsigned char> workspace(bytes + 256);
  const uintptr_t start = (reinterpret_cast<uintptr_t>(workspace.data()) + 255) / 256 * 256;

  kw_gemm_args arguments{};
  arguments.struct_size = sizeof arguments;
  arguments.a = a.data(), arguments.b = b.data(), arguments.d = d.data();
  const kw_launch launch = {sizeof launch, 0, nullptr, reinterpret_cast<void*>(start), bytes};
  status = kw_plan_launch(plan, &launch, &arguments);
  if (status != KW_OK) return fail("launch", status);

  int wrong = 0;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0.0f;  // exact: small whole numbers
      for (int64_t l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
      wrong += d[i * n + j] != sum;
    }
  }
  kw_stage_info info{};
  info.struct_size = sizeof info;
  kw_plan_get_stage(plan, 0, &info);
  std::printf("%s: %d wrong of %d\n", info.kernel->name, wrong, static_cast<int>(m * n));
  kw_dispatcher_destroy(dispatcher);
  return wrong != 0;
}
