// The CPU kernels of row norms: what a generated header instantiates.
#ifndef KERNELWRIGHT_CPU_ROW_NORM_KERNEL_HPP
#define KERNELWRIGHT_CPU_ROW_NORM_KERNEL_HPP

#include <string.h>

#include "kernelwright/row_norm.h"

namespace kernelwright::cpu::row_norm {

template <int kUnroll>
void square(const kw_row_norm_problem& p, const kw_row_norm_args& args) {
  const int64_t count = p.rows * p.columns;
  int64_t i = 0;
  for (; i + kUnroll <= count; i += kUnroll) {
    for (int lane = 0; lane < kUnroll; ++lane) args.y[i + lane] = args.x[i + lane] * args.x[i + lane];
  }
  for (; i < count; ++i) args.y[i] = args.x[i] * args.x[i];
}

template <int kUnroll>
void sum(const kw_row_norm_problem& p, const kw_row_norm_args& args) {
  for (int64_t row = 0; row < p.rows; ++row) {
    float sums[kUnroll] = {};
    for (int64_t column = 0; column < p.columns; ++column) {
      sums[column % kUnroll] += args.x[row * p.columns + column];
    }
    args.y[row] = 0;
    for (float one : sums) args.y[row] += one;
  }
}

using function = void (*)(const kw_row_norm_problem&, const kw_row_norm_args&);

// The functions of a kw_kernel around `kernel`; a plan is the problem itself.
template <uint32_t kOp, function kernel>
struct launcher {
  static kw_status supports(const kw_kernel*, const kw_problem* problem, char*, size_t) {
    return problem->op == kOp ? KW_OK : KW_UNSUPPORTED;
  }
  static kw_status workspace_size(const kw_kernel*, const kw_problem*, uint64_t* bytes) {
    *bytes = 0;
    return KW_OK;
  }
  static kw_status plan(const kw_kernel*, const kw_problem* problem, void* made) {
    memcpy(made, problem, sizeof(kw_row_norm_problem));
    return KW_OK;
  }
  static kw_status launch(const kw_kernel*, const void* plan, const kw_launch*, const void* args) {
    kernel(*static_cast<const kw_row_norm_problem*>(plan), *static_cast<const kw_row_norm_args*>(args));
    return KW_OK;
  }
};

}  // namespace kernelwright::cpu::row_norm

#endif  // KERNELWRIGHT_CPU_ROW_NORM_KERNEL_HPP
