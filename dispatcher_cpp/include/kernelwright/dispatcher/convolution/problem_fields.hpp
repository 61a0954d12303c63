// Fields of the problems of kernelwright/convolution.h.
// Made of kernelwright.problems.convolution.description by `kernelwright headers`: edit that.
#ifndef KERNELWRIGHT_DISPATCHER_CONVOLUTION_PROBLEM_FIELDS_HPP
#define KERNELWRIGHT_DISPATCHER_CONVOLUTION_PROBLEM_FIELDS_HPP

#include "kernelwright/convolution.h"
#include "kernelwright/dispatcher/support/fields.hpp"

namespace kernelwright {

static_assert(sizeof(kw_conv_problem) == 320, "kw_conv_problem is as its description");
static_assert(sizeof(kw_conv_args) == 48, "kw_conv_args is as its description");
static_assert(sizeof(kw_conv_traits) == 144, "kw_conv_traits is as its description");

constexpr Field kConvProblemFields[] = {
    {"dtype_x", offsetof(kw_conv_problem, dtype_x), kUint32, 0, 1, 7, kw_dtype_name},
    {"dtype_w", offsetof(kw_conv_problem, dtype_w), kUint32, 0, 1, 7, kw_dtype_name},
    {"dtype_y", offsetof(kw_conv_problem, dtype_y), kUint32, 0, 1, 7, kw_dtype_name},
    {"dtype_acc", offsetof(kw_conv_problem, dtype_acc), kUint32, 0, 1, 7, kw_dtype_name},
    {"layout", offsetof(kw_conv_problem, layout), kUint32, 0, 0, 3, kw_conv_layout_name},
    {"activation", offsetof(kw_conv_problem, activation), kUint32, 0, 0, 6, kw_activation_name},
    {"bias", offsetof(kw_conv_problem, bias), kUint32, 0, 0, 1},
    {"residual", offsetof(kw_conv_problem, residual), kUint32, 0, 0, 1},
    {"split_k", offsetof(kw_conv_problem, split_k), kUint32},
    {"groups", offsetof(kw_conv_problem, groups), kInt64, 0, 1},
    {"n", offsetof(kw_conv_problem, n), kInt64, 0, 0},
    {"c", offsetof(kw_conv_problem, c), kInt64, 0, 1},
    {"k", offsetof(kw_conv_problem, k), kInt64, 0, 1},
    {"extent", offsetof(kw_conv_problem, extent), kInt64, 3, 1, INT64_MAX, nullptr, "dhw"},
    {"filter", offsetof(kw_conv_problem, filter), kInt64, 3, 1, INT64_MAX, nullptr, "dhw"},
    {"stride", offsetof(kw_conv_problem, stride), kInt64, 3, 1, INT64_MAX, nullptr, "dhw"},
    {"dilation", offsetof(kw_conv_problem, dilation), kInt64, 3, 1, INT64_MAX, nullptr, "dhw"},
    {"pad_left", offsetof(kw_conv_problem, pad_left), kInt64, 3, 0, INT64_MAX, nullptr, "dhw"},
    {"pad_right", offsetof(kw_conv_problem, pad_right), kInt64, 3, 0, INT64_MAX, nullptr, "dhw"},
    {"stride_x", offsetof(kw_conv_problem, stride_x), kInt64, 5},
    {"stride_y", offsetof(kw_conv_problem, stride_y), kInt64, 5},
    {"alpha", offsetof(kw_conv_problem, alpha), kReal},
    {"beta", offsetof(kw_conv_problem, beta), kReal},
};

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_CONVOLUTION_PROBLEM_FIELDS_HPP
