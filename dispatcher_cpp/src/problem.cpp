#include "tilewright/dispatcher/problem.hpp"

#include "tilewright/dispatcher.h"
#include "tilewright/dispatcher/error.hpp"

namespace tilewright {
namespace {

struct DtypeFacts {
  const char* name;
  uint32_t bytes;
};
constexpr DtypeFacts kDtypes[] = {{nullptr, 0}, {"fp32", 4}, {"fp16", 2}, {"bf16", 2},
                                  {"fp8", 1},   {"bf8", 1},  {"int8", 1}, {"int32", 4}};
constexpr uint32_t kDtypeCount = sizeof kDtypes / sizeof kDtypes[0];
constexpr int64_t kMaxElements = INT64_MAX / 8;  // so that byte offsets fit into int64 for every dtype

tw_status check_dtype(const char* field, uint32_t value) {
  if (dtype_name(value) != nullptr) return TW_OK;
  return fail(TW_INVALID_ARGUMENT, "gemm problem: %s = %u is no dtype; allowed: 1 (fp32) to %u (int32)", field, value,
              kDtypeCount - 1);
}

tw_status check_size(const char* field, int64_t value) {
  if (value >= 0) return TW_OK;
  return fail(TW_INVALID_ARGUMENT, "gemm problem: %s = %lld is negative; allowed: 0 or more", field,
              static_cast<long long>(value));
}

// A matrix of rows x columns; layout picks which of them the leading dimension strides over.
struct Matrix {
  const char* layout_field;
  const char* ld_field;
  const char* row_extent;
  const char* column_extent;
  uint32_t layout;
  int64_t ld, rows, columns;
};

tw_status check_matrix(const Matrix& matrix) {
  if (matrix.layout > TW_COL_MAJOR) {
    return fail(TW_INVALID_ARGUMENT, "gemm problem: %s = %u is no layout; allowed: 0 (row-major), 1 (column-major)",
                matrix.layout_field, matrix.layout);
  }
  const bool row_major = matrix.layout == TW_ROW_MAJOR;
  const int64_t extent = row_major ? matrix.columns : matrix.rows;
  const int64_t lines = row_major ? matrix.rows : matrix.columns;
  const int64_t least = extent > 1 ? extent : 1;
  if (matrix.ld < least) {
    return fail(TW_INVALID_ARGUMENT,
                "gemm problem: %s = %lld is too small for a %s-major matrix with %s = %lld; "
                "allowed: %lld or more",
                matrix.ld_field, static_cast<long long>(matrix.ld), row_major ? "row" : "column",
                row_major ? matrix.column_extent : matrix.row_extent, static_cast<long long>(extent),
                static_cast<long long>(least));
  }
  int64_t elements = 0;
  if (__builtin_mul_overflow(lines, matrix.ld, &elements) || elements > kMaxElements) {
    return fail(TW_INVALID_ARGUMENT, "gemm problem: %s * %s = %lld * %lld overflows; allowed: at most %lld elements",
                row_major ? matrix.row_extent : matrix.column_extent, matrix.ld_field, static_cast<long long>(lines),
                static_cast<long long>(matrix.ld), static_cast<long long>(kMaxElements));
  }
  return TW_OK;
}

tw_status check_variant(const tw_gemm_problem& p) {
  if (p.batch < 1) {
    return fail(TW_INVALID_ARGUMENT, "gemm problem: batch = %lld; allowed: 1 or more", static_cast<long long>(p.batch));
  }
  if (p.num_d > TW_MAX_D) {
    return fail(TW_INVALID_ARGUMENT, "gemm problem: num_d = %u; allowed: 0 to %u", p.num_d, uint32_t{TW_MAX_D});
  }
  if (p.d_op > TW_D_MULTIPLY) {
    return fail(TW_INVALID_ARGUMENT, "gemm problem: d_op = %u is unknown; allowed: 0 (add), 1 (multiply)", p.d_op);
  }
  if (p.activation > TW_ACTIVATION_TANH) {
    return fail(TW_INVALID_ARGUMENT, "gemm problem: activation = %u is unknown; allowed: 0 (none) to %u (tanh)",
                p.activation, static_cast<uint32_t>(TW_ACTIVATION_TANH));
  }
  return TW_OK;
}

tw_status validate_gemm(const tw_gemm_problem& p) {
  const struct {
    const char* field;
    uint32_t value;
  } dtypes[] = {{"dtype_a", p.dtype_a}, {"dtype_b", p.dtype_b}, {"dtype_c", p.dtype_c}, {"dtype_acc", p.dtype_acc}};
  for (const auto& dtype : dtypes) {
    if (tw_status status = check_dtype(dtype.field, dtype.value)) return status;
  }
  if (p.split_k == 0) return fail(TW_INVALID_ARGUMENT, "gemm problem: split_k = 0; allowed: 1 (none) or more");
  if (tw_status status = check_size("m", p.m)) return status;
  if (tw_status status = check_size("n", p.n)) return status;
  if (tw_status status = check_size("k", p.k)) return status;
  const Matrix matrices[] = {{"layout_a", "lda", "m", "k", p.layout_a, p.lda, p.m, p.k},
                             {"layout_b", "ldb", "k", "n", p.layout_b, p.ldb, p.k, p.n},
                             {"layout_c", "ldc", "m", "n", p.layout_c, p.ldc, p.m, p.n}};
  for (const Matrix& matrix : matrices) {
    if (tw_status status = check_matrix(matrix)) return status;
  }
  return check_variant(p);
}

char layout_letter(uint32_t layout) { return layout == TW_ROW_MAJOR ? 'r' : 'c'; }

}  // namespace

const char* dtype_name(uint32_t dtype) { return dtype < kDtypeCount ? kDtypes[dtype].name : nullptr; }
uint32_t dtype_bytes(uint32_t dtype) { return dtype < kDtypeCount ? kDtypes[dtype].bytes : 0; }

tw_status validate(const tw_problem* problem) {
  if (problem == nullptr) return fail(TW_INVALID_ARGUMENT, "problem is null; allowed: a pointer to tw_gemm_problem");
  if (problem->op != TW_OP_GEMM) {
    return fail(TW_INVALID_ARGUMENT, "problem: op = %u is unknown; allowed: 1 (gemm)", problem->op);
  }
  if (problem->struct_size != sizeof(tw_gemm_problem)) {
    return fail(TW_INVALID_ARGUMENT, "gemm problem: struct_size = %u; allowed: %zu (ABI version %u)",
                problem->struct_size, sizeof(tw_gemm_problem), TW_ABI_VERSION);
  }
  return validate_gemm(*reinterpret_cast<const tw_gemm_problem*>(problem));
}

tw_status validate_args(const tw_gemm_problem& problem, const tw_gemm_args* args, uint64_t workspace_bytes) {
  if (args == nullptr) return fail(TW_INVALID_ARGUMENT, "args is null; allowed: a pointer to tw_gemm_args");
  if (args->struct_size != sizeof(tw_gemm_args)) {
    return fail(TW_INVALID_ARGUMENT, "gemm args: struct_size = %u; allowed: %zu (ABI version %u)", args->struct_size,
                sizeof(tw_gemm_args), TW_ABI_VERSION);
  }
  if (problem.m == 0 || problem.n == 0) return TW_OK;
  const bool reads_operands = problem.k > 0;
  const char* missing = args->d == nullptr                                  ? "d"
                        : reads_operands && args->a == nullptr              ? "a"
                        : reads_operands && args->b == nullptr              ? "b"
                        : problem.beta != 0.0 && args->c == nullptr         ? "c"
                        : workspace_bytes > 0 && args->workspace == nullptr ? "workspace"
                                                                            : nullptr;
  if (missing != nullptr) {
    return fail(TW_INVALID_ARGUMENT, "gemm args: %s is null; this problem needs it%s", missing,
                missing[0] == 'c' ? " because beta is not 0" : "");
  }
  if (args->workspace_bytes < workspace_bytes) {
    return fail(TW_WORKSPACE_TOO_SMALL, "gemm args: workspace_bytes = %llu; allowed: %llu or more",
                static_cast<unsigned long long>(args->workspace_bytes),
                static_cast<unsigned long long>(workspace_bytes));
  }
  if (workspace_bytes > 0 && reinterpret_cast<uintptr_t>(args->workspace) % 256 != 0) {
    return fail(TW_INVALID_ARGUMENT, "gemm args: workspace is not aligned to 256 bytes");
  }
  return TW_OK;
}

void describe(const tw_gemm_problem& p, Text* text) {
  text->add("gemm ").add(dtype_name(p.dtype_a));
  if (p.dtype_b != p.dtype_a) text->add("*").add(dtype_name(p.dtype_b));
  if (p.dtype_c != p.dtype_a) text->add("->").add(dtype_name(p.dtype_c));
  text->add(' ').add(layout_letter(p.layout_a)).add(layout_letter(p.layout_b)).add(layout_letter(p.layout_c));
  text->add(' ').add(p.m).add('x').add(p.n).add('x').add(p.k);
  if (p.split_k != 1) text->add(" split_k ").add(p.split_k);
}

void problem_json(const tw_gemm_problem& p, Text* text) {
  text->add("{\"op\":\"gemm\",\"m\":").add(p.m).add(",\"n\":").add(p.n).add(",\"k\":").add(p.k);
  text->add(",\"dtype_a\":").quoted(dtype_name(p.dtype_a)).add(",\"dtype_b\":").quoted(dtype_name(p.dtype_b));
  text->add(",\"dtype_c\":").quoted(dtype_name(p.dtype_c)).add(",\"dtype_acc\":").quoted(dtype_name(p.dtype_acc));
  text->add(",\"layout\":\"").add(layout_letter(p.layout_a)).add(layout_letter(p.layout_b));
  text->add(layout_letter(p.layout_c)).add("\",\"lda\":").add(p.lda).add(",\"ldb\":").add(p.ldb);
  text->add(",\"ldc\":").add(p.ldc).add(",\"split_k\":").add(p.split_k);
  text->add(",\"alpha\":").exact(p.alpha).add(",\"beta\":").exact(p.beta).add('}');
}

}  // namespace tilewright

tw_status tw_problem_validate(const tw_problem* problem) { return tilewright::validate(problem); }
