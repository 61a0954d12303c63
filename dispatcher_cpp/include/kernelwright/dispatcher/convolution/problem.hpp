// Convolution as operations of the dispatcher: what the files of src/operations/convolution call of each other.
#ifndef KERNELWRIGHT_DISPATCHER_CONVOLUTION_PROBLEM_HPP
#define KERNELWRIGHT_DISPATCHER_CONVOLUTION_PROBLEM_HPP

#include "kernelwright/convolution.h"
#include "kernelwright/dispatcher/operation.hpp"

namespace kernelwright {

inline const kw_conv_problem& as_conv(const kw_problem& problem) {
  return reinterpret_cast<const kw_conv_problem&>(problem);
}
inline const kw_conv_traits& conv_traits(const kw_kernel& kernel) {
  return *static_cast<const kw_conv_traits*>(kernel.traits);
}

// leaves_slices of a first stage for which no kernel is chosen yet. Kernels never see it.
constexpr uint32_t kSlicesOpen = 2;

kw_status validate_conv(const kw_problem& problem);
// Null pointers that the problem needs; problem is valid.
kw_status validate_conv_args(const kw_problem& problem, const void* args);

// See Operation::operands.
size_t conv_operands(const kw_problem& problem, Operand* operands);

void describe_conv(const kw_problem& problem, Text* text);
void conv_json(const kw_problem& problem, Text* text);

// The predicted time of a kernel, by the formulas of operations/convolution/formulas in the generator.
Estimate estimate_conv(const kw_kernel& kernel, const kw_problem& problem, const Place& place);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_CONVOLUTION_PROBLEM_HPP
