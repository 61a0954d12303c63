// Which convolutions a kernel serves.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_CONDITIONS_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_CONDITIONS_HPP

#include "kernelwright/convolution/checks.h"
#include "launchers/cpu/common/library.hpp"
#include "launchers/cpu/convolution/plan.hpp"

namespace kernelwright::cpu {

// Elements that a tensor, its padding included, or the weights may have: byte offsets then fit into int64.
constexpr int64_t kMaxElements = INT64_MAX / 64;

inline const kw_conv_problem& as_conv(const kw_problem* problem) {
  return *reinterpret_cast<const kw_conv_problem*>(problem);
}

inline kw_status invalid(char* reason, size_t bytes, const char* field, int64_t value, const char* allowed) {
  return fail(KW_INVALID_ARGUMENT, reason, bytes, "%s is %lld; allowed: %s", field, static_cast<long long>(value),
              allowed);
}

// What the drivers divide by and index with. The dispatcher says more about an invalid problem.
inline kw_status check_sizes(const kw_conv_problem& p, char* reason, size_t bytes) {
  if (p.groups < 1 || p.c < 1 || p.k < 1 || p.c % p.groups != 0 || p.k % p.groups != 0)
    return invalid(reason, bytes, "groups", p.groups, "a divisor of c and k");
  if (p.n < 0) return invalid(reason, bytes, "n", p.n, "0 or more");
  int64_t elements = kw_mul(larger(p.n, 1), larger(p.c, p.k)), weights = kw_mul(p.k, p.c / p.groups);
  for (int dim = 0; dim < 3; ++dim) {
    if (p.extent[dim] < 1) return invalid(reason, bytes, "extent", p.extent[dim], "1 or more");
    if (p.filter[dim] < 1) return invalid(reason, bytes, "filter", p.filter[dim], "1 or more");
    if (p.stride[dim] < 1) return invalid(reason, bytes, "stride", p.stride[dim], "1 or more");
    if (p.dilation[dim] < 1) return invalid(reason, bytes, "dilation", p.dilation[dim], "1 or more");
    if (p.pad_left[dim] < 0) return invalid(reason, bytes, "pad_left", p.pad_left[dim], "0 or more");
    if (p.pad_right[dim] < 0) return invalid(reason, bytes, "pad_right", p.pad_right[dim], "0 or more");
    const int64_t padded = kw_add(kw_add(p.pad_left[dim], p.pad_right[dim]), p.extent[dim]);
    const int64_t reach = kw_mul(p.dilation[dim], p.filter[dim] - 1);
    if (reach >= padded) return invalid(reason, bytes, "filter", p.filter[dim], "no more points than the padded image");
    elements = kw_mul(elements, padded), weights = kw_mul(weights, p.filter[dim]);
  }
  if (elements > kMaxElements || weights > kMaxElements)
    return invalid(reason, bytes, "elements", larger(elements, weights), "at most 2^57, with padding");
  const bool innermost = p.layout != KW_CONV_NGCHW;
  if (innermost && (p.stride_x[1] != 1 || p.stride_y[1] != 1))
    return invalid(reason, bytes, "the memory stride of channels", p.stride_x[1] != 1 ? p.stride_x[1] : p.stride_y[1],
                   "1");
  return KW_OK;
}

inline kw_status check_conv_problem(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  if (kernel == nullptr || problem == nullptr) {
    return fail(KW_INVALID_ARGUMENT, reason, bytes, "kernel or problem is a null pointer");
  }
  kw_status status = check_op(*kernel, *problem, kw_conv_op_name(kernel->op), sizeof(kw_conv_problem), reason, bytes);
  if (status != KW_OK) return status;
  const kw_conv_problem& p = as_conv(problem);
  char why[256] = "";
  status = check_sizes(p, reason, bytes);
  if (status != KW_OK) return status;
  status = kw_conv_traits_match(&held_by<conv_kernel>(kernel).traits, &p, why, sizeof why);
  if (status != KW_OK) return fail(status, reason, bytes, "%s", why);
  status = check_features(*kernel, held_by<conv_kernel>(kernel).required_features, reason, bytes);
  if (status != KW_OK) return status;
  conv_plan plan;
  plan_conv(held_by<conv_kernel>(kernel), p, threads_allowed(), &plan);
  return check_needed(plan.workspace_bytes, reason, bytes);
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_CONVOLUTION_CONDITIONS_HPP
