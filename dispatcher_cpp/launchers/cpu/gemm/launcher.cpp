// The host side of GEMM kernels: which problems they serve, planning, launching, shuffling. Compiled for any x86-64.
#include "kernelwright/gemm/checks.h"
#include "kernelwright/gemm/groups.h"
#include "launchers/cpu/common/library.hpp"
#include "launchers/cpu/gemm/products.hpp"

namespace kernelwright::cpu {
namespace {

constexpr size_t kReasonBytes = 256;

const gemm_kernel& kernel_of(const kw_kernel* kernel) { return *static_cast<const gemm_kernel*>(kernel->traits); }

// Its last element has an address.
kw_status check_span(const kw_gemm_Matrix& x, char* reason, size_t bytes) {
  if (kw_mul(larger(kw_gemm_lines(x), 1), larger(x.ld, 1)) <= INT64_MAX / 8) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, reason, bytes, "%s is %lld: the last element of %s has no 64-bit address", x.ld_name,
              static_cast<long long>(x.ld), x.name);
}

// Hands on the sentence of a shared check.
kw_status told(kw_status status, const char* why, char* reason, size_t bytes) {
  return status == KW_OK ? KW_OK : fail(status, reason, bytes, "%s", why);
}

kw_status check_sizes(const kw_gemm_problem& p, char* reason, size_t bytes) {
  if (p.m < 0 || p.n < 0 || p.k < 0) {
    return fail(KW_INVALID_ARGUMENT, reason, bytes, "m, n, k are %lld, %lld, %lld, but a size cannot be negative",
                static_cast<long long>(p.m), static_cast<long long>(p.n), static_cast<long long>(p.k));
  }
  char why[kReasonBytes] = "";
  kw_status status = told(kw_gemm_check_all_leading(&p, why, sizeof(why)), why, reason, bytes);
  if (status == KW_OK) status = check_span(kw_gemm_matrix_a(&p), reason, bytes);
  if (status == KW_OK && p.b_format == 0) status = check_span(kw_gemm_matrix_b(&p), reason, bytes);
  return status == KW_OK ? check_span(kw_gemm_matrix_c(&p), reason, bytes) : status;
}

kw_status check_traits(const kw_gemm_traits& t, const kw_gemm_problem& p, char* reason, size_t bytes) {
  char why[kReasonBytes] = "";
  return told(kw_gemm_traits_match(&t, &p, why, sizeof(why)), why, reason, bytes);
}

bool is_grouped(const kw_kernel* kernel) { return kernel_of(kernel).grouped != 0; }

kw_status check_features(const kw_kernel* kernel, char* reason, size_t bytes) {
  if ((kernel_of(kernel).required_features & ~this_processor().features) == 0) return KW_OK;
  return fail(KW_UNSUPPORTED, reason, bytes, "the processor lacks %s, which this kernel needs", kernel->features);
}

kw_status check_groups(const kw_kernel* kernel, const kw_grouped_gemm_problem& g, char* reason, size_t bytes) {
  if (g.group_count < 0 || (g.group_count > 0 && g.groups == nullptr)) {
    return fail(KW_INVALID_ARGUMENT, reason, bytes, "group_count is %lld, or groups is a null pointer",
                static_cast<long long>(g.group_count));
  }
  const kw_gemm_problem types = kw_types_of_groups(&g);
  kw_status status = check_traits(kernel_of(kernel).traits, types, reason, bytes);
  for (int64_t i = 0; status == KW_OK && i < g.group_count; ++i) {
    status = check_sizes(problem_of_group(types, g.groups[i]), reason, bytes);
  }
  return status;
}

products_plan plan_of(const kw_kernel* kernel, const kw_problem* problem) {
  if (is_grouped(kernel)) {
    const kw_grouped_gemm_problem& g = *reinterpret_cast<const kw_grouped_gemm_problem*>(problem);
    return make_groups_plan(kernel_of(kernel), g, threads_allowed());
  }
  return make_products_plan(kernel_of(kernel), *reinterpret_cast<const kw_gemm_problem*>(problem), threads_allowed());
}

kw_status check_workspace_of(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  const uint64_t needed = plan_of(kernel, problem).workspace_bytes;
  if (needed <= kMostWorkspace) return KW_OK;
  return fail(KW_UNSUPPORTED, reason, bytes, "the workspace would have %llu bytes, more than a process has memory",
              static_cast<unsigned long long>(needed));
}

kw_status check_problem(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  if (kernel == nullptr || problem == nullptr) {
    return fail(KW_INVALID_ARGUMENT, reason, bytes, "kernel or problem is a null pointer");
  }
  const size_t size = is_grouped(kernel) ? sizeof(kw_grouped_gemm_problem) : sizeof(kw_gemm_problem);
  if (problem->op != kernel->op || problem->struct_size < size) {
    return fail(KW_UNSUPPORTED, reason, bytes, "op is %u with %u bytes, but this kernel serves %s (%u) with %zu",
                problem->op, problem->struct_size, is_grouped(kernel) ? "grouped GEMM" : "GEMM", kernel->op, size);
  }
  kw_status status = KW_OK;
  if (is_grouped(kernel)) {
    status = check_groups(kernel, *reinterpret_cast<const kw_grouped_gemm_problem*>(problem), reason, bytes);
  } else {
    const kw_gemm_problem& p = *reinterpret_cast<const kw_gemm_problem*>(problem);
    status = check_traits(kernel_of(kernel).traits, p, reason, bytes);
    if (status == KW_OK) status = check_sizes(p, reason, bytes);
  }
  if (status == KW_OK) status = check_features(kernel, reason, bytes);
  return status == KW_OK ? check_workspace_of(kernel, problem, reason, bytes) : status;
}

kw_status check_pointers(const kw_gemm_problem& p, const void* a, const void* b, const void* c, const void* d) {
  if (p.k != 0 && (a == nullptr || b == nullptr)) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "a or b is a null pointer");
  }
  if (d == nullptr || (p.beta != 0 && c == nullptr)) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "d is a null pointer, or c is one and beta is not 0");
  }
  return KW_OK;
}

kw_status check_arguments(const products_plan& plan, const kw_launch& launch, const kw_gemm_args& args) {
  const kw_gemm_problem& p = plan.one.problem;
  if (args.struct_size < sizeof(kw_gemm_args)) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "args.struct_size is %u, below %zu", args.struct_size, sizeof(args));
  }
  const kw_status status = check_pointers(p, args.a, args.b, args.c, args.d);
  if (status != KW_OK) return status;
  for (uint32_t n = 0; n < p.num_d; ++n) {
    if (args.multi_d[n] == nullptr) return fail(KW_INVALID_ARGUMENT, nullptr, 0, "multi_d[%u] is a null pointer", n);
  }
  return check_workspace(launch, plan.workspace_bytes);
}

// The groups are the caller's a second time: sizes that would need more workspace are caught, other changes are not.
kw_status check_group_arguments(const products_plan& plan, const gemm_kernel& kernel, const kw_launch& launch,
                                const kw_grouped_gemm_args& args) {
  if (args.struct_size < sizeof(kw_grouped_gemm_args)) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "args.struct_size is %u, below %zu", args.struct_size, sizeof(args));
  }
  if (args.group_count != plan.count) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "group_count is %lld, but the plan is for %lld",
                static_cast<long long>(args.group_count), static_cast<long long>(plan.count));
  }
  if (plan.count != 0 && (args.groups == nullptr || args.a == nullptr || args.b == nullptr || args.d == nullptr)) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "groups, a, b or d is a null pointer");
  }
  for (int64_t i = 0; i < plan.count; ++i) {
    const kw_gemm_problem p = problem_of_group(plan.one.problem, args.groups[i]);
    if (p.m == 0 || p.n == 0) continue;
    kw_status status = check_sizes(p, nullptr, 0);
    const void* c = args.c != nullptr ? args.c[i] : nullptr;
    if (status == KW_OK) status = check_pointers(p, args.a[i], args.b[i], c, args.d[i]);
    if (status != KW_OK) return status;
    if (make_plan(kernel, p, plan.threads).workspace_bytes > plan.bytes_each) {
      return fail(KW_INVALID_ARGUMENT, nullptr, 0, "group %lld is not the one that was planned",
                  static_cast<long long>(i));
    }
  }
  return check_workspace(launch, plan.workspace_bytes);
}

// Shuffling asks about B alone.
kw_status check_shuffle(const kw_kernel* kernel, const kw_problem* problem) {
  if (kernel == nullptr || problem == nullptr || problem->op != KW_OP_GEMM ||
      problem->struct_size < sizeof(kw_gemm_problem)) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "kernel or problem is a null pointer, or the problem is no GEMM");
  }
  const kw_gemm_traits& t = kernel_of(kernel).traits;
  const kw_gemm_problem& p = *reinterpret_cast<const kw_gemm_problem*>(problem);
  if (p.dtype_b != t.dtype_b || p.layout_b != t.layout_b) {
    return fail(KW_UNSUPPORTED, nullptr, 0, "B is of dtype %u and layout %u, but this kernel shuffles %u and %u",
                p.dtype_b, p.layout_b, t.dtype_b, t.layout_b);
  }
  if (p.n < 0 || p.k < 0) return fail(KW_INVALID_ARGUMENT, nullptr, 0, "n or k is negative");
  const kw_gemm_Matrix b = kw_gemm_matrix_b(&p);
  char why[kReasonBytes] = "";
  kw_status status = told(kw_gemm_check_leading(b, why, sizeof(why)), why, nullptr, 0);
  if (status == KW_OK) status = check_span(b, nullptr, 0);
  return status == KW_OK ? check_features(kernel, nullptr, 0) : status;
}

kw_status shuffle_b_bytes(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  const kw_status status = check_shuffle(kernel, problem);
  if (status == KW_OK) *bytes = shuffled_bytes(kernel_of(kernel), *reinterpret_cast<const kw_gemm_problem*>(problem));
  return status;
}

kw_status shuffle_b(const kw_kernel* kernel, const kw_problem* problem, const void* b, void* shuffled) {
  const kw_status status = check_shuffle(kernel, problem);
  const kw_gemm_problem& p = *reinterpret_cast<const kw_gemm_problem*>(problem);
  if (status != KW_OK || p.n == 0 || p.k == 0) return status;
  if (b == nullptr || shuffled == nullptr)
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "b or shuffled is a null pointer");
  shuffle(kernel_of(kernel), p, b, shuffled);
  return KW_OK;
}

}  // namespace
}  // namespace kernelwright::cpu

using namespace kernelwright::cpu;

extern "C" {

const kw_gemm_extension kw_cpu_gemm_preshuffle = {
    .struct_size = sizeof(kw_gemm_extension),
    .reserved = 0,
    .shuffle_b_bytes = shuffle_b_bytes,
    .shuffle_b = shuffle_b,
};

kw_status kw_cpu_gemm_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  return check_problem(kernel, problem, reason, bytes);
}

kw_status kw_cpu_gemm_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  const kw_status status = check_problem(kernel, problem, nullptr, 0);
  if (status == KW_OK) *bytes = plan_of(kernel, problem).workspace_bytes;
  return status;
}

// Later calls of set_num_threads may lower the threads of this plan, not raise them: its workspace is for so many.
kw_status kw_cpu_gemm_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  const kw_status status = check_problem(kernel, problem, nullptr, 0);
  if (status == KW_OK) *static_cast<products_plan*>(plan) = plan_of(kernel, problem);
  return status;
}

kw_status kw_cpu_gemm_launch(const kw_kernel* kernel, const void* plan, const kw_launch* launch, const void* args) {
  kw_status status = check_launch(kernel, plan, launch, args);
  if (status != KW_OK) return status;
  const gemm_kernel& k = kernel_of(kernel);
  const products_plan& p = *static_cast<const products_plan*>(plan);
  if (p.grouped != 0) {
    status = check_group_arguments(p, k, *launch, *static_cast<const kw_grouped_gemm_args*>(args));
  } else {
    if (p.one.problem.m == 0 || p.one.problem.n == 0) return KW_OK;
    status = check_arguments(p, *launch, *static_cast<const kw_gemm_args*>(args));
  }
  if (status == KW_OK) products_job(k, p, launch->workspace, args).run();
  return status;
}

}  // extern "C"
