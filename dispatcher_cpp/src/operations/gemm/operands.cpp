// The memory that operands of GEMM occupy.
#include <stddef.h>

#include "kernelwright/dispatcher/gemm/problem.hpp"
#include "kernelwright/gemm/checks.h"
#include "kernelwright/gemm/groups.h"
#include "kernelwright/widths.h"

namespace kernelwright {
namespace {

// Lines of a matrix, in each of a batch.
Operand lines_of(const char* name, size_t member, const kw_gemm_Matrix& x, int64_t batch, int64_t stride) {
  Operand made;
  made.name = name;
  made.member = static_cast<uint32_t>(member);
  made.item = kw_dtype_bytes(x.dtype);
  made.inner = kw_gemm_line(x);
  made.extents[0] = kw_gemm_lines(x), made.strides[0] = x.ld;
  made.extents[1] = batch, made.strides[1] = stride;
  measure(&made);
  return made;
}

// Kernels that order B in their own way take at least as many bytes as B has elements.
Operand shuffled_b(const kw_gemm_problem& p) {
  Operand made;
  made.name = "b";
  made.member = offsetof(kw_gemm_args, b);
  made.item = kw_dtype_bytes(p.dtype_b);
  made.inner = kw_mul(p.k, p.n);
  measure(&made);
  return made;
}

}  // namespace

size_t gemm_operands(const kw_problem& problem, Operand* operands) {
  const kw_gemm_problem& p = as_gemm(problem);
  if (operands == nullptr) return 4 + p.num_d;
  size_t count = 0;
  const kw_gemm_Matrix c = kw_gemm_matrix_c(&p);
  operands[count++] = lines_of("d", offsetof(kw_gemm_args, d), c, p.batch, p.stride_c);
  operands[0].written = true;
  operands[count++] = lines_of("a", offsetof(kw_gemm_args, a), kw_gemm_matrix_a(&p), p.batch, p.stride_a);
  operands[count++] = p.b_format != 0
                          ? shuffled_b(p)
                          : lines_of("b", offsetof(kw_gemm_args, b), kw_gemm_matrix_b(&p), p.batch, p.stride_b);
  operands[count] = lines_of("c", offsetof(kw_gemm_args, c), c, p.batch, p.stride_c);
  operands[count].in_place = 0;
  if (p.beta == 0) operands[count].bytes = 0;
  ++count;
  static const char* const names[KW_MAX_D] = {"multi_d[0]", "multi_d[1]", "multi_d[2]", "multi_d[3]"};
  for (uint32_t i = 0; i < p.num_d; ++i) {
    const size_t member = offsetof(kw_gemm_args, multi_d) + i * sizeof(void*);
    operands[count++] = lines_of(names[i], member, kw_gemm_matrix_d(&p, i), p.batch, p.stride_multi_d[i]);
  }
  return count;
}

size_t grouped_operands(const kw_problem& problem, Operand* operands) {
  const kw_grouped_gemm_problem& p = as_grouped(problem);
  size_t count = 0;
  if (operands == nullptr) return 4 * static_cast<size_t>(p.group_count);
  for (int64_t i = 0; i < p.group_count; ++i) {
    const kw_gemm_problem one = kw_problem_of_group(&p, &p.groups[i]);
    const kw_gemm_Matrix c = kw_gemm_matrix_c(&one);
    const size_t first = count;
    operands[count++] = lines_of("d", offsetof(kw_grouped_gemm_args, d), c, 1, 0);
    operands[first].written = true;
    operands[count++] = lines_of("a", offsetof(kw_grouped_gemm_args, a), kw_gemm_matrix_a(&one), 1, 0);
    operands[count++] = lines_of("b", offsetof(kw_grouped_gemm_args, b), kw_gemm_matrix_b(&one), 1, 0);
    operands[count] = lines_of("c", offsetof(kw_grouped_gemm_args, c), c, 1, 0);
    operands[count].in_place = static_cast<int64_t>(first);
    if (p.beta == 0) operands[count].bytes = 0;
    ++count;
    for (size_t at = first; at < count; ++at) operands[at].index = i;
  }
  return count;
}

}  // namespace kernelwright
