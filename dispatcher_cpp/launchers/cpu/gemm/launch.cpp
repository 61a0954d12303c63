// The host side of GEMM kernels: planning, launching, shuffling. Compiled for any x86-64.
#include "launchers/cpu/common/calls.hpp"
#include "launchers/cpu/gemm/conditions.hpp"

namespace kernelwright::cpu {
namespace {

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
  kw_status status = check_args_size(args.struct_size, sizeof args);
  if (status != KW_OK) return status;
  status = check_pointers(p, args.a, args.b, args.c, args.d);
  if (status != KW_OK) return status;
  for (uint32_t n = 0; n < p.num_d; ++n) {
    if (args.multi_d[n] == nullptr) return fail(KW_INVALID_ARGUMENT, nullptr, 0, "multi_d[%u] is a null pointer", n);
  }
  return check_workspace(launch, plan.workspace_bytes);
}

// The groups are the caller's a second time: sizes that would need more workspace are caught, other changes are not.
kw_status check_group_arguments(const products_plan& plan, const gemm_kernel& kernel, const kw_launch& launch,
                                const kw_grouped_gemm_args& args) {
  kw_status status = check_args_size(args.struct_size, sizeof args);
  if (status != KW_OK) return status;
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
    status = check_sizes(p, nullptr, 0);
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
  const kw_gemm_traits& t = held_by<gemm_kernel>(kernel).traits;
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
  return status == KW_OK ? check_features(*kernel, held_by<gemm_kernel>(kernel).required_features, nullptr, 0) : status;
}

kw_status shuffle_b_bytes(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  const kw_status status = check_shuffle(kernel, problem);
  if (status == KW_OK)
    *bytes = shuffled_bytes(held_by<gemm_kernel>(kernel), *reinterpret_cast<const kw_gemm_problem*>(problem));
  return status;
}

kw_status shuffle_b(const kw_kernel* kernel, const kw_problem* problem, const void* b, void* shuffled) {
  const kw_status status = check_shuffle(kernel, problem);
  const kw_gemm_problem& p = *reinterpret_cast<const kw_gemm_problem*>(problem);
  if (status != KW_OK || p.n == 0 || p.k == 0) return status;
  if (b == nullptr || shuffled == nullptr)
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "b or shuffled is a null pointer");
  shuffle(held_by<gemm_kernel>(kernel), p, b, shuffled);
  return KW_OK;
}

struct gemm_operation {
  using plan = products_plan;
  static constexpr auto check = &check_gemm_problem;

  static void make(const kw_kernel* kernel, const kw_problem* problem, plan* made) {
    *made = plan_products(kernel, problem);
  }

  static kw_status run(const kw_kernel* kernel, const plan& p, const kw_launch& launch, const void* args) {
    const gemm_kernel& k = held_by<gemm_kernel>(kernel);
    kw_status status = KW_OK;
    if (p.grouped != 0) {
      status = check_group_arguments(p, k, launch, *static_cast<const kw_grouped_gemm_args*>(args));
    } else {
      if (p.one.problem.m == 0 || p.one.problem.n == 0) return KW_OK;
      status = check_arguments(p, launch, *static_cast<const kw_gemm_args*>(args));
    }
    if (status == KW_OK) products_job(k, p, launch.workspace, args).run();
    return status;
  }
};

}  // namespace
}  // namespace kernelwright::cpu

extern "C" const kw_gemm_extension kw_cpu_gemm_preshuffle = {
    .struct_size = sizeof(kw_gemm_extension),
    .reserved = 0,
    .shuffle_b_bytes = kernelwright::cpu::shuffle_b_bytes,
    .shuffle_b = kernelwright::cpu::shuffle_b,
};

KW_CPU_CALLS(gemm, kernelwright::cpu::gemm_operation)
