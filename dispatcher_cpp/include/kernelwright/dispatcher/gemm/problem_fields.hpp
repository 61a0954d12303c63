// Fields of the problems of kernelwright/gemm.h.
// Made of kernelwright.problems.gemm.description by `kernelwright headers`: edit that.
#ifndef KERNELWRIGHT_DISPATCHER_GEMM_PROBLEM_FIELDS_HPP
#define KERNELWRIGHT_DISPATCHER_GEMM_PROBLEM_FIELDS_HPP

#include "kernelwright/dispatcher/support/fields.hpp"
#include "kernelwright/gemm.h"

namespace kernelwright {

static_assert(sizeof(kw_gemm_problem) == 224, "kw_gemm_problem is as its description");
static_assert(sizeof(kw_gemm_args) == 72, "kw_gemm_args is as its description");
static_assert(sizeof(kw_gemm_group) == 48, "kw_gemm_group is as its description");
static_assert(sizeof(kw_grouped_gemm_problem) == 72, "kw_grouped_gemm_problem is as its description");
static_assert(sizeof(kw_grouped_gemm_args) == 56, "kw_grouped_gemm_args is as its description");
static_assert(sizeof(kw_gemm_traits) == 120, "kw_gemm_traits is as its description");

constexpr Field kGemmProblemFields[] = {
    {"dtype_a", offsetof(kw_gemm_problem, dtype_a), kUint32, 0, 1, 7, kw_dtype_name},
    {"dtype_b", offsetof(kw_gemm_problem, dtype_b), kUint32, 0, 1, 7, kw_dtype_name},
    {"dtype_c", offsetof(kw_gemm_problem, dtype_c), kUint32, 0, 1, 7, kw_dtype_name},
    {"dtype_acc", offsetof(kw_gemm_problem, dtype_acc), kUint32, 0, 1, 7, kw_dtype_name},
    {"layout_a", offsetof(kw_gemm_problem, layout_a), kUint32, 0, 0, 1, kw_layout_name, nullptr, 0, true},
    {"layout_b", offsetof(kw_gemm_problem, layout_b), kUint32, 0, 0, 1, kw_layout_name, nullptr, 0, true},
    {"layout_c", offsetof(kw_gemm_problem, layout_c), kUint32, 0, 0, 1, kw_layout_name, nullptr, 0, true},
    {"split_k", offsetof(kw_gemm_problem, split_k), kUint32},
    {"m", offsetof(kw_gemm_problem, m), kInt64, 0, 0},
    {"n", offsetof(kw_gemm_problem, n), kInt64, 0, 0},
    {"k", offsetof(kw_gemm_problem, k), kInt64, 0, 0},
    {"lda", offsetof(kw_gemm_problem, lda), kInt64},
    {"ldb", offsetof(kw_gemm_problem, ldb), kInt64},
    {"ldc", offsetof(kw_gemm_problem, ldc), kInt64},
    {"alpha", offsetof(kw_gemm_problem, alpha), kReal},
    {"beta", offsetof(kw_gemm_problem, beta), kReal},
    {"batch", offsetof(kw_gemm_problem, batch), kInt64, 0, 1},
    {"stride_a", offsetof(kw_gemm_problem, stride_a), kInt64},
    {"stride_b", offsetof(kw_gemm_problem, stride_b), kInt64},
    {"stride_c", offsetof(kw_gemm_problem, stride_c), kInt64},
    {"num_d", offsetof(kw_gemm_problem, num_d), kUint32, 0, 0, 4},
    {"d_op", offsetof(kw_gemm_problem, d_op), kUint32, 0, 0, 1, kw_d_op_name},
    {"activation", offsetof(kw_gemm_problem, activation), kUint32, 0, 0, 6, kw_activation_name},
    {"ld_multi_d", offsetof(kw_gemm_problem, ld_multi_d), kInt64, 4, INT64_MIN, INT64_MAX, nullptr, nullptr,
     offsetof(kw_gemm_problem, num_d)},
    {"stride_multi_d", offsetof(kw_gemm_problem, stride_multi_d), kInt64, 4, INT64_MIN, INT64_MAX, nullptr, nullptr,
     offsetof(kw_gemm_problem, num_d)},
    {"b_format", offsetof(kw_gemm_problem, b_format), kUint64},
};

constexpr Field kGroupedGemmProblemFields[] = {
    {"dtype_a", offsetof(kw_grouped_gemm_problem, dtype_a), kUint32, 0, 1, 7, kw_dtype_name},
    {"dtype_b", offsetof(kw_grouped_gemm_problem, dtype_b), kUint32, 0, 1, 7, kw_dtype_name},
    {"dtype_c", offsetof(kw_grouped_gemm_problem, dtype_c), kUint32, 0, 1, 7, kw_dtype_name},
    {"dtype_acc", offsetof(kw_grouped_gemm_problem, dtype_acc), kUint32, 0, 1, 7, kw_dtype_name},
    {"layout_a", offsetof(kw_grouped_gemm_problem, layout_a), kUint32, 0, 0, 1, kw_layout_name, nullptr, 0, true},
    {"layout_b", offsetof(kw_grouped_gemm_problem, layout_b), kUint32, 0, 0, 1, kw_layout_name, nullptr, 0, true},
    {"layout_c", offsetof(kw_grouped_gemm_problem, layout_c), kUint32, 0, 0, 1, kw_layout_name, nullptr, 0, true},
    {"group_count", offsetof(kw_grouped_gemm_problem, group_count), kInt64, 0, 0, INT64_MAX, nullptr, nullptr, 0, true},
    {"alpha", offsetof(kw_grouped_gemm_problem, alpha), kReal},
    {"beta", offsetof(kw_grouped_gemm_problem, beta), kReal},
};

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_GEMM_PROBLEM_FIELDS_HPP
