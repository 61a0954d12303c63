/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/convolution/formulas/problem.py by `kernelwright formulas`, and explained there. */
#ifndef KW_CONVOLUTION_PROBLEM_H
#define KW_CONVOLUTION_PROBLEM_H

#include <stdbool.h>

#include "kernelwright/dispatcher/support/numbers.h"


typedef struct kw_convolution_problem_Problem {
  bool backward_data;
  bool backward_weight;
  double split;
  double size;
  double n;
  double c;
  double k;
  double groups;
  double in_d;
  double in_h;
  double in_w;
  double out_d;
  double out_h;
  double out_w;
  double filter_d;
  double filter_h;
  double filter_w;
  double stride_d;
  double stride_h;
  double stride_w;
  double dilation_w;
  bool residual;
  double fold_pitch;
} kw_convolution_problem_Problem;

typedef struct kw_convolution_problem_Gemm {
  double m;
  double n;
  double k;
} kw_convolution_problem_Gemm;

static inline double kw_convolution_problem_filter_points(KW_GIVEN(kw_convolution_problem_Problem) p) {
  return p.filter_d * p.filter_h * p.filter_w;
}

static inline double kw_convolution_problem_in_points(KW_GIVEN(kw_convolution_problem_Problem) p) {
  return p.in_d * p.in_h * p.in_w;
}

static inline double kw_convolution_problem_out_points(KW_GIVEN(kw_convolution_problem_Problem) p) {
  return p.out_d * p.out_h * p.out_w;
}

static inline double kw_convolution_problem_strides(KW_GIVEN(kw_convolution_problem_Problem) p) {
  return p.stride_d * p.stride_h * p.stride_w;
}

static inline kw_convolution_problem_Gemm kw_convolution_problem_gemm(KW_GIVEN(kw_convolution_problem_Problem) p) {
  const double c = p.c / p.groups;
  const double k = p.k / p.groups;
  const double outputs = p.n * kw_convolution_problem_out_points(p);
  if (p.backward_data) {
    return KW_RECORD(kw_convolution_problem_Gemm, outputs, c, k * kw_convolution_problem_filter_points(p));
  }
  if (p.backward_weight) {
    return KW_RECORD(kw_convolution_problem_Gemm, k, c * kw_convolution_problem_filter_points(p), outputs);
  }
  return KW_RECORD(kw_convolution_problem_Gemm, outputs, k, c * kw_convolution_problem_filter_points(p));
}

static inline double kw_convolution_problem_work(KW_GIVEN(kw_convolution_problem_Problem) p) {
  const kw_convolution_problem_Gemm g = kw_convolution_problem_gemm(p);
  return p.groups * g.m * g.n * g.k;
}

static inline double kw_convolution_problem_moved_bytes(KW_GIVEN(kw_convolution_problem_Problem) p) {
  const double x = p.n * p.c * kw_convolution_problem_in_points(p);
  const double w = p.k * (p.c / p.groups) * kw_convolution_problem_filter_points(p);
  const double y = p.n * p.k * kw_convolution_problem_out_points(p);
  const double slices = p.split > 1.0 ? 8.0 * p.split * w : 0.0;
  return (x + w + y * (p.residual ? 2.0 : 1.0)) * p.size + slices;
}

#endif /* KW_CONVOLUTION_PROBLEM_H */
