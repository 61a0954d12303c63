// GEMM and grouped GEMM as operations of the dispatcher: what the files of src/operations/gemm call of each other.
#ifndef KERNELWRIGHT_DISPATCHER_GEMM_PROBLEM_HPP
#define KERNELWRIGHT_DISPATCHER_GEMM_PROBLEM_HPP

#include "kernelwright/dispatcher/operation.hpp"
#include "kernelwright/gemm.h"

namespace kernelwright {

extern const Operation kGemm;

inline const kw_gemm_problem& as_gemm(const kw_problem& problem) {
  return reinterpret_cast<const kw_gemm_problem&>(problem);
}
inline const kw_grouped_gemm_problem& as_grouped(const kw_problem& problem) {
  return reinterpret_cast<const kw_grouped_gemm_problem&>(problem);
}
inline const kw_gemm_traits& gemm_traits(const kw_kernel& kernel) {
  return *static_cast<const kw_gemm_traits*>(kernel.traits);
}

kw_status validate_gemm(const kw_problem& problem);
kw_status validate_grouped(const kw_problem& problem);

// Null pointers that the problem needs; problem is valid.
kw_status validate_args(const kw_gemm_problem& problem, const kw_gemm_args* args);
kw_status validate_args(const kw_grouped_gemm_problem& problem, const kw_grouped_gemm_args* args);

// See Operation::operands.
size_t gemm_operands(const kw_problem& problem, Operand* operands);
size_t grouped_operands(const kw_problem& problem, Operand* operands);

void describe_gemm(const kw_problem& problem, Text* text);
void describe_grouped(const kw_problem& problem, Text* text);
void gemm_json(const kw_problem& problem, Text* text);
void grouped_json(const kw_problem& problem, Text* text);

// Numbers of slices of K that are worth estimating, fewest first: at most kMaxChoices. 0 where split_k is stated.
size_t split_k_choices(const kw_kernel& kernel, const kw_problem& problem, const Place& place, uint32_t* values);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_GEMM_PROBLEM_HPP
