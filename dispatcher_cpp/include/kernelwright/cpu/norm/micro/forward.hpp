// Norms of rows.
#ifndef KERNELWRIGHT_CPU_NORM_MICRO_FORWARD_HPP
#define KERNELWRIGHT_CPU_NORM_MICRO_FORWARD_HPP

#include "kernelwright/cpu/norm/kernel.hpp"
#include "kernelwright/cpu/norm/micro/result.hpp"

namespace kernelwright::cpu {
namespace {

// Weight and bias are of type W, and absent where null.
template <bool kCentred, class T, class Y, class W, int kUnroll>
void norm_forward_of(const norm_rows& job) {
  using element = typename T::storage;
  const kw_norm_problem& p = *job.problem;
  const kw_norm_args& args = *job.args;
  const auto* weight = p.weight != 0 ? static_cast<const typename W::storage*>(args.weight) : nullptr;
  const auto* bias = p.bias != 0 ? static_cast<const typename W::storage*>(args.bias) : nullptr;
  const auto epsilon = static_cast<float>(p.epsilon);
  for (int64_t row = job.begin; row < job.end; ++row) {
    const auto* x = static_cast<const element*>(args.x) + row * p.stride_x;
    if (p.residual != 0) {
      const auto* residual = static_cast<const element*>(args.residual) + row * p.stride_residual;
      auto* sum = static_cast<element*>(args.sum) + row * p.stride_sum;
      along_row<kUnroll>(p.columns, [&](auto part, int64_t at, int) {
        part.template store<T>(sum + at, add(part.template load<T>(x + at), part.template load<T>(residual + at)));
      });
      x = sum;  // as it was rounded
    }
    const row_statistics found = statistics_of<kCentred, T, kUnroll>(x, p.columns, epsilon);
    const vec middle = broadcast(found.mean), inverse = broadcast(found.inverse);
    auto* y = static_cast<typename Y::storage*>(args.y) + row * p.stride_y;
    float* scale = is_quantised<Y>::value ? args.scales + row : nullptr;
    write_row<Y, kUnroll>(y, scale, p.columns, [&](auto part, int64_t at) {
      const vec s = part.template load<T>(x + at);
      vec h = mul(kCentred ? sub(s, middle) : s, inverse);
      if (weight != nullptr) h = mul(h, part.template load<W>(weight + at));
      if (bias != nullptr) h = add(h, part.template load<W>(bias + at));
      return h;
    });
  }
}

template <bool kCentred, class T, class Y, int kUnroll>
void norm_forward(const norm_rows& job) {
  if (job.problem->dtype_w == KW_FP32) return norm_forward_of<kCentred, T, Y, fp32, kUnroll>(job);
  norm_forward_of<kCentred, T, Y, T, kUnroll>(job);
}

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_NORM_MICRO_FORWARD_HPP
