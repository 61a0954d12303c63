// Norms as operations of the dispatcher: what the files of src/operations/norm call of each other.
#ifndef KERNELWRIGHT_DISPATCHER_NORM_PROBLEM_HPP
#define KERNELWRIGHT_DISPATCHER_NORM_PROBLEM_HPP

#include "kernelwright/dispatcher/operation.hpp"
#include "kernelwright/norm.h"

namespace kernelwright {

inline const kw_norm_problem& as_norm(const kw_problem& problem) {
  return reinterpret_cast<const kw_norm_problem&>(problem);
}

// See Operation::operands.
size_t norm_operands(const kw_problem& problem, Operand* operands);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_NORM_PROBLEM_HPP
