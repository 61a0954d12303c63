// Predicted times of GEMM kernels: what the formulas of operations/gemm/formulas (in the generator) read.
#ifndef KERNELWRIGHT_DISPATCHER_GEMM_ESTIMATE_HPP
#define KERNELWRIGHT_DISPATCHER_GEMM_ESTIMATE_HPP

#include "kernelwright/dispatcher/estimate.hpp"
#include "kernelwright/gemm.h"

namespace kernelwright {

// place.compute_units and the problem's split_k are above 0. A dtype for which the architecture states no rate counts
// as one operation per clock: it ranks last.
Estimate estimate(const kw_gemm_problem& problem, const kw_gemm_traits& traits, const Place& place);
Estimate estimate(const kw_grouped_gemm_problem& problem, const kw_gemm_traits& traits, const Place& place);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_GEMM_ESTIMATE_HPP
