// Gradients of norms. Statistics are computed again: a row is read from memory once in any case.
#ifndef KERNELWRIGHT_CPU_NORM_MICRO_BACKWARD_HPP
#define KERNELWRIGHT_CPU_NORM_MICRO_BACKWARD_HPP

#include "kernelwright/cpu/norm/kernel.hpp"
#include "kernelwright/cpu/norm/micro/row.hpp"

namespace kernelwright::cpu {
namespace {

// The weight is of type W, and absent where null.
template <bool kCentred, class T, class W, int kUnroll>
void norm_backward_of(const norm_rows& job) {
  using element = typename T::storage;
  const kw_norm_problem& p = *job.problem;
  const kw_norm_args& args = *job.args;
  const auto* weight = p.weight != 0 ? static_cast<const typename W::storage*>(args.weight) : nullptr;
  float* const dweight = p.weight != 0 ? job.sums : nullptr;
  float* const dbias = p.bias != 0 ? job.sums + (p.weight != 0 ? p.columns : 0) : nullptr;
  const float count = static_cast<float>(p.columns);
  const auto epsilon = static_cast<float>(p.epsilon);
  const int64_t sums = (dweight != nullptr ? p.columns : 0) + (dbias != nullptr ? p.columns : 0);
  if (sums != 0) __builtin_memset(job.sums, 0, static_cast<size_t>(sums) * sizeof(float));
  for (int64_t row = job.begin; row < job.end; ++row) {
    const auto* x = static_cast<const element*>(args.x) + row * p.stride_x;
    const auto* dy = static_cast<const element*>(args.dy) + row * p.stride_dy;
    const row_statistics found = statistics_of<kCentred, T, kUnroll>(x, p.columns, epsilon);
    const vec middle = broadcast(found.mean), inverse = broadcast(found.inverse);
    const auto normalised = [&](auto part, int64_t at) {
      const vec s = part.template load<T>(x + at);
      return mul(kCentred ? sub(s, middle) : s, inverse);
    };
    const auto weighted = [&](auto part, int64_t at, vec d) {
      return weight != nullptr ? mul(d, part.template load<W>(weight + at)) : d;
    };
    sums_of_row<kUnroll> plain, products;
    along_row<kUnroll>(p.columns, [&](auto part, int64_t at, int i) {
      const vec h = normalised(part, at), d = part.template load<T>(dy + at), g = weighted(part, at, d);
      if (dweight != nullptr) {
        part.template store<fp32>(dweight + at, fma(d, h, part.template load<fp32>(dweight + at)));
      }
      if (dbias != nullptr) part.template store<fp32>(dbias + at, add(d, part.template load<fp32>(dbias + at)));
      if (kCentred) plain.lanes[i] = add(plain.lanes[i], g);
      products.lanes[i] = fma(g, h, products.lanes[i]);  // of lanes behind the end, d and so g are 0
    });
    const vec mean = broadcast(plain.total() / count), along = broadcast(products.total() / count);
    const auto* dsum = p.residual != 0 ? static_cast<const element*>(args.residual) + row * p.stride_residual : nullptr;
    auto* dx = static_cast<element*>(args.y) + row * p.stride_y;
    along_row<kUnroll>(p.columns, [&](auto part, int64_t at, int) {
      const vec h = normalised(part, at), g = weighted(part, at, part.template load<T>(dy + at));
      vec d = mul(inverse, sub(kCentred ? sub(g, mean) : g, mul(h, along)));
      if (dsum != nullptr) d = add(d, part.template load<T>(dsum + at));
      part.template store<T>(dx + at, d);
    });
  }
}

template <bool kCentred, class T, int kUnroll>
void norm_backward(const norm_rows& job) {
  if (job.problem->dtype_w == KW_FP32) return norm_backward_of<kCentred, T, fp32, kUnroll>(job);
  norm_backward_of<kCentred, T, T, kUnroll>(job);
}

// Adds blocks up in their order, whatever the number of threads.
template <class W>
void add_blocks(const norm_sums& job) {
  auto* to = static_cast<typename W::storage*>(job.to) + job.begin;
  along_row<1>(job.count, [&](auto part, int64_t at, int) {
    const float* from = job.sums + job.begin + at;
    vec all = zero();
    for (int64_t block = 0; block < job.blocks; ++block) {
      all = add(all, part.template load<fp32>(from + block * job.pitch));
    }
    part.template store<W>(to + at, all);
  });
}

template <class T>
void norm_finish(const norm_sums& job) {
  if (job.wide) return add_blocks<fp32>(job);
  add_blocks<T>(job);
}

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_NORM_MICRO_BACKWARD_HPP
