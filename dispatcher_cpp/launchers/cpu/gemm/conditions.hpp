// Which GEMM problems a kernel serves.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_GEMM_CONDITIONS_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_GEMM_CONDITIONS_HPP

#include "kernelwright/gemm/checks.h"
#include "kernelwright/gemm/groups.h"
#include "launchers/cpu/common/library.hpp"
#include "launchers/cpu/gemm/products.hpp"

namespace kernelwright::cpu {

constexpr size_t kReasonBytes = 256;

// Its last element has an address.
inline kw_status check_span(const kw_gemm_Matrix& x, char* reason, size_t bytes) {
  if (kw_mul(larger(kw_gemm_lines(x), 1), larger(x.ld, 1)) <= INT64_MAX / 8) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, reason, bytes, "%s is %lld: the last element of %s has no 64-bit address", x.ld_name,
              static_cast<long long>(x.ld), x.name);
}

// Hands on the sentence of a shared check.
inline kw_status told(kw_status status, const char* why, char* reason, size_t bytes) {
  return status == KW_OK ? KW_OK : fail(status, reason, bytes, "%s", why);
}

inline kw_status check_sizes(const kw_gemm_problem& p, char* reason, size_t bytes) {
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

inline kw_status check_traits(const kw_gemm_traits& t, const kw_gemm_problem& p, char* reason, size_t bytes) {
  char why[kReasonBytes] = "";
  return told(kw_gemm_traits_match(&t, &p, why, sizeof(why)), why, reason, bytes);
}

inline bool is_grouped(const kw_kernel* kernel) { return held_by<gemm_kernel>(kernel).grouped != 0; }

inline kw_status check_groups(const kw_kernel* kernel, const kw_grouped_gemm_problem& g, char* reason, size_t bytes) {
  if (g.group_count < 0 || (g.group_count > 0 && g.groups == nullptr)) {
    return fail(KW_INVALID_ARGUMENT, reason, bytes, "group_count is %lld, or groups is a null pointer",
                static_cast<long long>(g.group_count));
  }
  const kw_gemm_problem types = kw_types_of_groups(&g);
  kw_status status = check_traits(held_by<gemm_kernel>(kernel).traits, types, reason, bytes);
  for (int64_t i = 0; status == KW_OK && i < g.group_count; ++i) {
    status = check_sizes(problem_of_group(types, g.groups[i]), reason, bytes);
  }
  return status;
}

inline products_plan plan_products(const kw_kernel* kernel, const kw_problem* problem) {
  if (is_grouped(kernel)) {
    const kw_grouped_gemm_problem& g = *reinterpret_cast<const kw_grouped_gemm_problem*>(problem);
    return make_groups_plan(held_by<gemm_kernel>(kernel), g, threads_allowed());
  }
  return make_products_plan(held_by<gemm_kernel>(kernel), *reinterpret_cast<const kw_gemm_problem*>(problem),
                            threads_allowed());
}

inline kw_status check_gemm_problem(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  if (kernel == nullptr || problem == nullptr) {
    return fail(KW_INVALID_ARGUMENT, reason, bytes, "kernel or problem is a null pointer");
  }
  const size_t size = is_grouped(kernel) ? sizeof(kw_grouped_gemm_problem) : sizeof(kw_gemm_problem);
  kw_status status = check_op(*kernel, *problem, is_grouped(kernel) ? "grouped GEMM" : "GEMM", size, reason, bytes);
  if (status != KW_OK) return status;
  if (is_grouped(kernel)) {
    status = check_groups(kernel, *reinterpret_cast<const kw_grouped_gemm_problem*>(problem), reason, bytes);
  } else {
    const kw_gemm_problem& p = *reinterpret_cast<const kw_gemm_problem*>(problem);
    status = check_traits(held_by<gemm_kernel>(kernel).traits, p, reason, bytes);
    if (status == KW_OK) status = check_sizes(p, reason, bytes);
  }
  if (status == KW_OK) status = check_features(*kernel, held_by<gemm_kernel>(kernel).required_features, reason, bytes);
  return status == KW_OK ? check_needed(plan_products(kernel, problem).workspace_bytes, reason, bytes) : status;
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_GEMM_CONDITIONS_HPP
