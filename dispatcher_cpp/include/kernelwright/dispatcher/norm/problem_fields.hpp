// Fields of the problems of kernelwright/norm.h.
// Made of kernelwright.problems.norm.description by `kernelwright headers`: edit that.
#ifndef KERNELWRIGHT_DISPATCHER_NORM_PROBLEM_FIELDS_HPP
#define KERNELWRIGHT_DISPATCHER_NORM_PROBLEM_FIELDS_HPP

#include "kernelwright/dispatcher/support/fields.hpp"
#include "kernelwright/norm.h"

namespace kernelwright {

static_assert(sizeof(kw_norm_problem) == 96, "kw_norm_problem is as its description");
static_assert(sizeof(kw_norm_args) == 88, "kw_norm_args is as its description");
static_assert(sizeof(kw_norm_traits) == 28, "kw_norm_traits is as its description");

constexpr Field kNormProblemFields[] = {
    {"dtype_x", offsetof(kw_norm_problem, dtype_x), kUint32, 0, 1, 7, kw_dtype_name},
    {"dtype_y", offsetof(kw_norm_problem, dtype_y), kUint32, 0, 1, 7, kw_dtype_name},
    {"dtype_w", offsetof(kw_norm_problem, dtype_w), kUint32, 0, 1, 7, kw_dtype_name},
    {"weight", offsetof(kw_norm_problem, weight), kUint32, 0, 0, 1},
    {"bias", offsetof(kw_norm_problem, bias), kUint32, 0, 0, 1},
    {"residual", offsetof(kw_norm_problem, residual), kUint32, 0, 0, 1},
    {"rows", offsetof(kw_norm_problem, rows), kInt64, 0, 0},
    {"columns", offsetof(kw_norm_problem, columns), kInt64, 0, 1},
    {"stride_x", offsetof(kw_norm_problem, stride_x), kInt64, 0, 0},
    {"stride_residual", offsetof(kw_norm_problem, stride_residual), kInt64, 0, 0},
    {"stride_y", offsetof(kw_norm_problem, stride_y), kInt64, 0, 0},
    {"stride_sum", offsetof(kw_norm_problem, stride_sum), kInt64, 0, 0},
    {"stride_dy", offsetof(kw_norm_problem, stride_dy), kInt64, 0, 0},
    {"epsilon", offsetof(kw_norm_problem, epsilon), kReal},
};

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_NORM_PROBLEM_FIELDS_HPP
