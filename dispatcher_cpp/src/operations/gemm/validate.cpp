#include <string.h>

#include "kernelwright/dispatcher.h"
#include "kernelwright/dispatcher/gemm/problem.hpp"
#include "kernelwright/dispatcher/gemm/problem_fields.hpp"
#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/gemm/checks.h"
#include "kernelwright/gemm/groups.h"
#include "kernelwright/widths.h"

namespace kernelwright {
namespace {

constexpr int64_t kMaxElements = INT64_MAX / 8;  // so that byte offsets fit into int64 for every dtype

long long wide(int64_t value) { return static_cast<long long>(value); }

using Matrix = kw_gemm_Matrix;

// Elements from the first to behind the last one; the matrix is valid.
int64_t span(const Matrix& x) {
  return x.rows == 0 || x.columns == 0 ? 0 : (kw_gemm_lines(x) - 1) * x.ld + kw_gemm_line(x);
}

kw_status check_matrix(const Matrix& matrix) {
  const int64_t extent = kw_gemm_line(matrix), lines = kw_gemm_lines(matrix);
  const int64_t least = extent > 1 ? extent : 1;
  if (matrix.ld < least) {
    return fail(KW_INVALID_ARGUMENT,
                "gemm problem: %s = %lld is too small for a %s-major matrix with %s = %lld; "
                "allowed: %lld or more",
                matrix.ld_name, wide(matrix.ld), matrix.layout == KW_ROW_MAJOR ? "row" : "column",
                kw_gemm_line_name(matrix), wide(extent), wide(least));
  }
  if (kw_mul(lines, matrix.ld) > kMaxElements) {
    return fail(KW_INVALID_ARGUMENT, "gemm problem: %s * %s = %lld * %lld overflows; allowed: at most %lld elements",
                matrix.layout == KW_ROW_MAJOR ? matrix.row_extent : matrix.column_extent, matrix.ld_name, wide(lines),
                wide(matrix.ld), wide(kMaxElements));
  }
  return KW_OK;
}

kw_status check_stride(const char* field, const Matrix& matrix, int64_t batch, int64_t stride) {
  if (stride < 0) {
    return fail(KW_INVALID_ARGUMENT, "gemm problem: %s = %lld is negative; allowed: 0 or more", field, wide(stride));
  }
  if (kw_add(kw_mul(batch - 1, stride), span(matrix)) > kMaxElements) {
    return fail(KW_INVALID_ARGUMENT, "gemm problem: batch * %s = %lld * %lld overflows; allowed: at most %lld elements",
                field, wide(batch), wide(stride), wide(kMaxElements));
  }
  return KW_OK;
}

// Results must not overlap: they lie behind one another, or side by side within the lines of one large matrix.
kw_status check_result_stride(const Matrix& c, int64_t batch, int64_t stride) {
  if (span(c) == 0 || stride >= span(c)) return KW_OK;
  const bool beside = stride >= kw_gemm_line(c) && (batch - 1) * stride + kw_gemm_line(c) <= c.ld;
  if (beside) return KW_OK;
  return fail(KW_INVALID_ARGUMENT,
              "gemm problem: stride_c = %lld lets results overlap; allowed: %lld or more, or %lld or more where all of "
              "the batch fits into ldc = %lld",
              wide(stride), wide(span(c)), wide(kw_gemm_line(c)), wide(c.ld));
}

struct Matrices {
  Matrix a, b, c;
};

Matrices matrices(const kw_gemm_problem& p) {
  return {kw_gemm_matrix_a(&p), kw_gemm_matrix_b(&p), kw_gemm_matrix_c(&p)};
}

kw_status check_shape(const kw_gemm_problem& p) {
  if (kw_status status = check_range("gemm problem", kGemmProblemFields, p.base)) return status;
  const Matrices all = matrices(p);
  if (kw_status status = check_matrix(all.a)) return status;
  if (kw_status status = check_matrix(all.b)) return status;
  return check_matrix(all.c);
}

kw_status check_batch(const kw_gemm_problem& p, const Matrices& all) {
  if (p.batch == 1) return KW_OK;  // strides are not taken
  if (kw_status status = check_stride("stride_a", all.a, p.batch, p.stride_a)) return status;
  if (kw_status status = check_stride("stride_b", all.b, p.batch, p.stride_b)) return status;
  if (kw_status status = check_stride("stride_c", all.c, p.batch, p.stride_c)) return status;
  return check_result_stride(all.c, p.batch, p.stride_c);
}

kw_status check_epilogue(const kw_gemm_problem& p) {
  if (kw_status status = check_reserved("gemm problem", p)) return status;
  static const char* const strides[] = {"stride_multi_d[0]", "stride_multi_d[1]", "stride_multi_d[2]",
                                        "stride_multi_d[3]"};
  for (uint32_t i = 0; i < p.num_d; ++i) {
    const Matrix d = kw_gemm_matrix_d(&p, i);
    if (kw_status status = check_matrix(d)) return status;
    if (p.batch == 1) continue;
    if (kw_status status = check_stride(strides[i], d, p.batch, p.stride_multi_d[i])) return status;
  }
  return KW_OK;
}

// Of one product: the operand that is null though it is read or written; null if none is.
const char* missing_operand(const kw_gemm_group& g, double beta, const void* a, const void* b, const void* c,
                            const void* d) {
  if (g.m == 0 || g.n == 0) return nullptr;
  if (d == nullptr) return "d";
  if (g.k > 0 && a == nullptr) return "a";
  if (g.k > 0 && b == nullptr) return "b";
  return beta != 0.0 && c == nullptr ? "c" : nullptr;
}

}  // namespace

kw_status validate_gemm(const kw_problem& problem) {
  const kw_gemm_problem& p = as_gemm(problem);
  if (kw_status status = check_shape(p)) return status;
  if (kw_status status = check_batch(p, matrices(p))) return status;
  return check_epilogue(p);
}

kw_status validate_grouped(const kw_problem& problem) {
  const kw_grouped_gemm_problem& p = as_grouped(problem);
  if (kw_status status = check_range("grouped gemm problem", kGroupedGemmProblemFields, problem)) return status;
  if (kw_status status = check_reserved("grouped gemm problem", p)) return status;
  if (p.group_count > 0 && p.groups == nullptr) {
    return fail(KW_INVALID_ARGUMENT,
                "grouped gemm problem: groups is null; allowed: group_count = %lld of kw_gemm_group",
                wide(p.group_count));
  }
  for (int64_t i = 0; i < p.group_count; ++i) {
    if (kw_status status = check_shape(kw_problem_of_group(&p, &p.groups[i]))) {
      char text[512];  // a copy: the next text is written over this one
      strncpy(text, kw_last_error(), sizeof text - 1);
      text[sizeof text - 1] = '\0';
      return fail(status, "group %lld: %s", wide(i), text);
    }
  }
  return KW_OK;
}

kw_status validate_args(const kw_gemm_problem& problem, const kw_gemm_args* args) {
  if (kw_status status = check_args("gemm args", "kw_gemm_args", args)) return status;
  if (problem.m == 0 || problem.n == 0) return KW_OK;
  const kw_gemm_group shape = {problem.m, problem.n, problem.k, 0, 0, 0};
  if (const char* missing = missing_operand(shape, problem.beta, args->a, args->b, args->c, args->d)) {
    return fail(KW_INVALID_ARGUMENT, "gemm args: %s is null; this problem needs it%s", missing,
                missing[0] == 'c' ? " because beta is not 0" : "");
  }
  for (uint32_t i = 0; i < problem.num_d; ++i) {
    if (args->multi_d[i] != nullptr) continue;
    return fail(KW_INVALID_ARGUMENT, "gemm args: multi_d[%u] is null; this problem has %u D tensors", i, problem.num_d);
  }
  return KW_OK;
}

kw_status validate_args(const kw_grouped_gemm_problem& problem, const kw_grouped_gemm_args* args) {
  const char* what = "grouped gemm args";
  if (kw_status status = check_args(what, "kw_grouped_gemm_args", args)) return status;
  if (args->group_count != problem.group_count) {
    return fail(KW_INVALID_ARGUMENT, "%s: group_count = %lld; allowed: the problem's %lld", what,
                wide(args->group_count), wide(problem.group_count));
  }
  if (problem.group_count == 0) return KW_OK;
  if (args->groups == nullptr || args->a == nullptr || args->b == nullptr || args->d == nullptr ||
      (problem.beta != 0.0 && args->c == nullptr)) {
    return fail(KW_INVALID_ARGUMENT,
                "%s: groups, a, b or d is null, or c though beta is not 0; allowed: arrays of %lld", what,
                wide(problem.group_count));
  }
  for (int64_t i = 0; i < problem.group_count; ++i) {
    if (memcmp(&args->groups[i], &problem.groups[i], sizeof(kw_gemm_group)) != 0) {
      return fail(KW_INVALID_ARGUMENT, "%s: group %lld is not the problem's; make a plan for these groups", what,
                  wide(i));
    }
    const void* c = args->c == nullptr ? nullptr : args->c[i];
    if (const char* missing = missing_operand(problem.groups[i], problem.beta, args->a[i], args->b[i], c, args->d[i])) {
      return fail(KW_INVALID_ARGUMENT, "%s: %s[%lld] is null; this problem needs it", what, missing, wide(i));
    }
  }
  return KW_OK;
}

}  // namespace kernelwright
