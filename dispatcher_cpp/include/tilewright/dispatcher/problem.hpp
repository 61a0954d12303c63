// What makes a problem legal, independent of any kernel.
#ifndef TILEWRIGHT_DISPATCHER_PROBLEM_HPP
#define TILEWRIGHT_DISPATCHER_PROBLEM_HPP

#include "tilewright/abi.h"
#include "tilewright/dispatcher/text.hpp"

namespace tilewright {

const char* dtype_name(uint32_t dtype);  // null if unknown
uint32_t dtype_bytes(uint32_t dtype);

// What single and grouped problems have in common: a kernel is built for exactly these.
struct Signature {
  uint32_t dtype_a, dtype_b, dtype_c, dtype_acc;
  uint32_t layout_a, layout_b, layout_c;
};
Signature signature(const tw_problem& problem);

inline const tw_gemm_problem& as_gemm(const tw_problem& problem) {
  return reinterpret_cast<const tw_gemm_problem&>(problem);
}
inline const tw_grouped_gemm_problem& as_grouped(const tw_problem& problem) {
  return reinterpret_cast<const tw_grouped_gemm_problem&>(problem);
}

// TW_OK, or TW_INVALID_ARGUMENT with field, value and what is allowed in tw_last_error().
tw_status validate(const tw_problem* problem);
// Null pointers that the problem needs; problem is valid.
tw_status validate_args(const tw_gemm_problem& problem, const tw_gemm_args* args, uint64_t workspace_bytes);
tw_status validate_args(const tw_grouped_gemm_problem& problem, const tw_grouped_gemm_args* args,
                        uint64_t workspace_bytes);

// "gemm fp16 rcr 512x512x512"
void describe(const tw_problem& problem, Text* text);
void problem_json(const tw_problem& problem, Text* text);

}  // namespace tilewright

#endif  // TILEWRIGHT_DISPATCHER_PROBLEM_HPP
