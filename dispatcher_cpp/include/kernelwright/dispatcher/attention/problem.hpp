// Attention as operations of the dispatcher: what the files of src/operations/attention call of each other.
#ifndef KERNELWRIGHT_DISPATCHER_ATTENTION_PROBLEM_HPP
#define KERNELWRIGHT_DISPATCHER_ATTENTION_PROBLEM_HPP

#include "kernelwright/attention.h"
#include "kernelwright/dispatcher/operation.hpp"

namespace kernelwright {

inline const kw_attention_problem& as_attention(const kw_problem& problem) {
  return reinterpret_cast<const kw_attention_problem&>(problem);
}
inline const kw_append_problem& as_append(const kw_problem& problem) {
  return reinterpret_cast<const kw_append_problem&>(problem);
}
inline const kw_attention_traits& attention_traits(const kw_kernel& kernel) {
  return *static_cast<const kw_attention_traits*>(kernel.traits);
}

// leaves_splits and dq_slices of a stage for which no kernel is chosen yet. Kernels never see them.
constexpr uint32_t kSplitsOpen = 2;
constexpr uint32_t kDqOpen = UINT32_MAX;

inline bool is_backward(uint32_t op) { return op == KW_OP_ATTENTION_BACKWARD || op >= KW_OP_ATTENTION_DOT; }

kw_status validate_attention(const kw_problem& problem);
kw_status validate_append(const kw_problem& problem);
// Null pointers that the problem needs; problem is valid.
kw_status validate_attention_args(const kw_problem& problem, const void* args);
kw_status validate_append_args(const kw_problem& problem, const void* args);

// What validate_attention and validate_append share; `what` begins the sentence.
kw_status check_most(const char* what, const char* field, uint32_t value, uint32_t most);
kw_status check_least(const char* what, const char* field, int64_t value, int64_t least);
kw_status check_dtype(const char* what, const char* field, uint32_t dtype);
struct AttentionTensor {
  const char* name;
  kw_attention_strides strides;
  int64_t requests, heads, rows, hdim;
  bool written;
};
kw_status check_attention_tensor(const char* what, const AttentionTensor& tensor);
kw_status check_pages(const char* what, int64_t pages, int64_t page_size, int64_t page_table_stride, uint32_t table,
                      uint32_t layout, int64_t longest);

// See Operation::operands.
size_t attention_operands(const kw_problem& problem, Operand* operands);
size_t append_operands(const kw_problem& problem, Operand* operands);

void describe_attention(const kw_problem& problem, Text* text);
void attention_json(const kw_problem& problem, Text* text);
void describe_append(const kw_problem& problem, Text* text);
void append_json(const kw_problem& problem, Text* text);

// The most splits whose blocks all run at once: 0 where there are more blocks without any.
uint32_t splits_that_fill(const kw_attention_traits& traits, const kw_attention_problem& problem, const Place& place);

// Predicts the time of a kernel from the architecture's numbers, by the formulas of
// codegen/kernelwright/codegen/operations/attention/formulas/times.py. Lengths of requests are on the device: an
// estimate takes the mean of queries, total_q / batch, and of keys, total_k / batch, or max_seqlen_k without a total.
Estimate estimate_attention(const kw_kernel& kernel, const kw_problem& problem, const Place& place);
Estimate estimate_append(const kw_kernel& kernel, const kw_problem& problem, const Place& place);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_ATTENTION_PROBLEM_HPP
