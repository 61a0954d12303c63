// What makes a problem legal, independent of any kernel.
#ifndef KERNELWRIGHT_DISPATCHER_GEMM_PROBLEM_HPP
#define KERNELWRIGHT_DISPATCHER_GEMM_PROBLEM_HPP

#include "kernelwright/dispatcher/support/text.hpp"
#include "kernelwright/gemm.h"

namespace kernelwright {

const char* dtype_name(uint32_t dtype);  // null if unknown
uint32_t dtype_bytes(uint32_t dtype);

// What single and grouped problems have in common: a kernel is built for exactly these.
struct Signature {
  uint32_t dtype_a, dtype_b, dtype_c, dtype_acc;
  uint32_t layout_a, layout_b, layout_c;
};
Signature signature(const kw_problem& problem);

inline const kw_gemm_problem& as_gemm(const kw_problem& problem) {
  return reinterpret_cast<const kw_gemm_problem&>(problem);
}
inline const kw_grouped_gemm_problem& as_grouped(const kw_problem& problem) {
  return reinterpret_cast<const kw_grouped_gemm_problem&>(problem);
}

// KW_OK, or KW_INVALID_ARGUMENT with field, value and what is allowed in kw_last_error().
kw_status validate(const kw_problem* problem);
// Null pointers that the problem needs; problem is valid.
kw_status validate_args(const kw_gemm_problem& problem, const kw_gemm_args* args, uint64_t workspace_bytes);
kw_status validate_args(const kw_grouped_gemm_problem& problem, const kw_grouped_gemm_args* args,
                        uint64_t workspace_bytes);

// "gemm fp16 rcr 512x512x512"
void describe(const kw_problem& problem, Text* text);
void problem_json(const kw_problem& problem, Text* text);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_GEMM_PROBLEM_HPP
