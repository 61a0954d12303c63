// The part of a CPU library that all its kernels share: questions about the processor, planning and launching.
//
// TILEWRIGHT_CPU_LEVEL (3 or 4) is the x86-64 level that the library's kernels need; this file needs none.
#include <stdarg.h>
#include <stdio.h>

#include "tilewright/cpu/features.hpp"
#include "tilewright/cpu/launch.hpp"
#include "tilewright/variant.h"

namespace tilewright::cpu {
namespace {

thread_local char last_error[256];

__attribute__((format(printf, 4, 5))) tw_status fail(tw_status status, char* reason, size_t bytes, const char* format,
                                                     ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(last_error, sizeof(last_error), format, list);
  va_end(list);
  if (reason != nullptr && bytes != 0) snprintf(reason, bytes, "%s", last_error);
  return status;
}

const processor& this_processor() {
  static processor found;
  static uint32_t ready = 0;  // several threads may fill it, with the same values
  if (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) == 0) {
    const processor p = detect_processor();
    __atomic_store_n(&found.level, p.level, __ATOMIC_RELAXED);
    __atomic_store_n(&found.features, p.features, __ATOMIC_RELAXED);
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
  }
  return found;
}

const gemm_kernel& kernel_of(const tw_kernel* kernel) { return *static_cast<const gemm_kernel*>(kernel->traits); }

// One operand: its leading dimension covers a line, and its last byte has an address.
tw_status check_operand(char name, int64_t lines, int64_t line, int64_t ld, char* reason, size_t bytes) {
  const long long length = line, stride = ld;
  if (ld < line) {
    return fail(TW_INVALID_ARGUMENT, reason, bytes, "ld%c is %lld, but a line of %c has %lld elements", name, stride,
                name - ('a' - 'A'), length);
  }
  int64_t end = 0;
  if (__builtin_mul_overflow(larger(lines, 1), larger(ld, 1), &end) || end > INT64_MAX / 8) {
    return fail(TW_INVALID_ARGUMENT, reason, bytes, "ld%c is %lld: the last element of %c has no 64-bit address", name,
                stride, name - ('a' - 'A'));
  }
  return TW_OK;
}

tw_status check_sizes(const tw_gemm_problem& p, char* reason, size_t bytes) {
  if (p.m < 0 || p.n < 0 || p.k < 0) {
    return fail(TW_INVALID_ARGUMENT, reason, bytes, "m, n, k are %lld, %lld, %lld, but a size cannot be negative",
                static_cast<long long>(p.m), static_cast<long long>(p.n), static_cast<long long>(p.k));
  }
  const bool a_rows = p.layout_a == TW_ROW_MAJOR, b_rows = p.layout_b == TW_ROW_MAJOR;
  tw_status status = check_operand('a', a_rows ? p.m : p.k, a_rows ? p.k : p.m, p.lda, reason, bytes);
  if (status == TW_OK) status = check_operand('b', b_rows ? p.k : p.n, b_rows ? p.n : p.k, p.ldb, reason, bytes);
  if (status == TW_OK) status = check_operand('c', p.m, p.n, p.ldc, reason, bytes);
  return status;
}

tw_status check_types(const tw_gemm_traits& t, const tw_gemm_problem& p, char* reason, size_t bytes) {
  const struct {
    const char* name;
    uint32_t asked, served;
  } fields[] = {{"dtype_a", p.dtype_a, t.dtype_a},    {"dtype_b", p.dtype_b, t.dtype_b},
                {"dtype_c", p.dtype_c, t.dtype_c},    {"dtype_acc", p.dtype_acc, t.dtype_acc},
                {"layout_a", p.layout_a, t.layout_a}, {"layout_b", p.layout_b, t.layout_b},
                {"layout_c", p.layout_c, t.layout_c}};
  for (const auto& field : fields) {
    if (field.asked != field.served) {
      return fail(TW_UNSUPPORTED, reason, bytes, "%s is %u, but this kernel serves %u", field.name, field.asked,
                  field.served);
    }
  }
  if (p.split_k > t.max_split_k) {
    return fail(TW_UNSUPPORTED, reason, bytes, "split_k is %u, but this kernel sums K in one slice: set it to 1",
                p.split_k);
  }
  return tw_gemm_variant_matches(&t, &p, reason, bytes);
}

tw_status check_problem(const tw_kernel* kernel, const tw_problem* problem, char* reason, size_t bytes) {
  if (kernel == nullptr || problem == nullptr) {
    return fail(TW_INVALID_ARGUMENT, reason, bytes, "kernel or problem is a null pointer");
  }
  if (problem->op != TW_OP_GEMM || problem->struct_size < sizeof(tw_gemm_problem)) {
    return fail(TW_UNSUPPORTED, reason, bytes, "op is %u with %u bytes, but this kernel serves GEMM (%u) with %zu",
                problem->op, problem->struct_size, static_cast<unsigned>(TW_OP_GEMM), sizeof(tw_gemm_problem));
  }
  const gemm_kernel& k = kernel_of(kernel);
  const tw_gemm_problem& p = *reinterpret_cast<const tw_gemm_problem*>(problem);
  tw_status status = check_types(k.traits, p, reason, bytes);
  if (status == TW_OK) status = check_sizes(p, reason, bytes);
  if (status == TW_OK && (k.required_features & ~this_processor().features) != 0) {
    return fail(TW_UNSUPPORTED, reason, bytes, "the processor lacks %s, which this kernel needs", kernel->features);
  }
  return status;
}

gemm_plan plan_of(const tw_kernel* kernel, const tw_problem* problem) {
  return make_plan(kernel_of(kernel), *reinterpret_cast<const tw_gemm_problem*>(problem), threads_allowed());
}

tw_status check_arguments(const gemm_plan& plan, const tw_gemm_args& args) {
  const tw_gemm_problem& p = plan.problem;
  if (args.struct_size < sizeof(tw_gemm_args)) {
    return fail(TW_INVALID_ARGUMENT, nullptr, 0, "args.struct_size is %u, below %zu", args.struct_size, sizeof(args));
  }
  if (p.k != 0 && (args.a == nullptr || args.b == nullptr)) {
    return fail(TW_INVALID_ARGUMENT, nullptr, 0, "a or b is a null pointer");
  }
  if (args.d == nullptr || (p.beta != 0 && args.c == nullptr)) {
    return fail(TW_INVALID_ARGUMENT, nullptr, 0, "d is a null pointer, or c is one and beta is not 0");
  }
  if (args.workspace_bytes < plan.workspace_bytes) {
    return fail(TW_WORKSPACE_TOO_SMALL, nullptr, 0, "workspace_bytes is %llu, but this plan needs %llu",
                static_cast<unsigned long long>(args.workspace_bytes),
                static_cast<unsigned long long>(plan.workspace_bytes));
  }
  if (plan.workspace_bytes == 0) return TW_OK;
  if (args.workspace == nullptr || reinterpret_cast<uintptr_t>(args.workspace) % 256 != 0) {
    return fail(TW_INVALID_ARGUMENT, nullptr, 0, "workspace %p is not aligned to 256 bytes", args.workspace);
  }
  return TW_OK;
}

}  // namespace
}  // namespace tilewright::cpu

using namespace tilewright::cpu;

extern "C" {

TW_HIDDEN tw_status tw_backend_check_device(int32_t device, char* reason, size_t bytes);
TW_HIDDEN const char* tw_backend_last_error(void);
TW_HIDDEN tw_status tw_backend_set_num_threads(uint32_t threads);
TW_HIDDEN tw_status tw_backend_set_runtime(const char* path);

tw_status tw_backend_check_device(int32_t device, char* reason, size_t bytes) {
  if (device != 0)
    return fail(TW_INVALID_ARGUMENT, reason, bytes, "device is %d, but the processor is device 0", device);
  const uint32_t level = this_processor().level;
  if (level < TILEWRIGHT_CPU_LEVEL) {
    return fail(TW_ARCH_MISMATCH, reason, bytes, "the processor is x86_64_v%u, but this library is for x86_64_v%d",
                level, TILEWRIGHT_CPU_LEVEL);
  }
  return TW_OK;
}

const char* tw_backend_last_error(void) { return last_error; }

tw_status tw_backend_set_num_threads(uint32_t threads) {
  if (threads > kMaxThreads) {
    return fail(TW_INVALID_ARGUMENT, nullptr, 0, "threads is %u, but at most %u are served", threads, kMaxThreads);
  }
  __atomic_store_n(&requested_threads, threads, __ATOMIC_RELAXED);
  return TW_OK;
}

tw_status tw_backend_set_runtime(const char* path) {
  return fail(TW_UNSUPPORTED, nullptr, 0, "set_runtime(%s): kernels for processors need no runtime library",
              path != nullptr ? path : "null");
}

tw_status tw_cpu_gemm_supports(const tw_kernel* kernel, const tw_problem* problem, char* reason, size_t bytes) {
  return check_problem(kernel, problem, reason, bytes);
}

tw_status tw_cpu_gemm_workspace_size(const tw_kernel* kernel, const tw_problem* problem, uint64_t* bytes) {
  const tw_status status = check_problem(kernel, problem, nullptr, 0);
  if (status == TW_OK) *bytes = plan_of(kernel, problem).workspace_bytes;
  return status;
}

// Later calls of set_num_threads may lower the threads of this plan, not raise them: its workspace is for so many.
tw_status tw_cpu_gemm_plan(const tw_kernel* kernel, const tw_problem* problem, void* plan) {
  const tw_status status = check_problem(kernel, problem, nullptr, 0);
  if (status == TW_OK) *static_cast<gemm_plan*>(plan) = plan_of(kernel, problem);
  return status;
}

tw_status tw_cpu_gemm_launch(const tw_kernel* kernel, const void* plan, const void* args) {
  if (kernel == nullptr || plan == nullptr || args == nullptr) {
    return fail(TW_INVALID_ARGUMENT, nullptr, 0, "kernel, plan or args is a null pointer");
  }
  const gemm_plan& p = *static_cast<const gemm_plan*>(plan);
  const tw_gemm_args& a = *static_cast<const tw_gemm_args*>(args);
  if (p.problem.m == 0 || p.problem.n == 0) return TW_OK;
  const tw_status status = check_arguments(p, a);
  if (status == TW_OK) launch(kernel_of(kernel), p, a);
  return status;
}

}  // extern "C"
