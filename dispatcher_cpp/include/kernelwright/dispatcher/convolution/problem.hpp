// Convolution as operations of the dispatcher: what the files of src/operations/convolution call of each other.
#ifndef KERNELWRIGHT_DISPATCHER_CONVOLUTION_PROBLEM_HPP
#define KERNELWRIGHT_DISPATCHER_CONVOLUTION_PROBLEM_HPP

#include "kernelwright/convolution.h"
#include "kernelwright/dispatcher/operation.hpp"

namespace kernelwright {

extern const Operation kConvForward, kConvBackwardData, kConvBackwardWeight, kConvWeightSlices, kConvSumSlices;

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

void describe_conv(const kw_problem& problem, Text* text);
void conv_json(const kw_problem& problem, Text* text);

// Predicts the time of a kernel from the architecture's numbers, as gemm/analytic.hpp does for a GEMM.
//
// The implicit GEMM m x n x k of each group (convolution/checks.h) is cut into tiles; a partial tile costs a whole one,
// and w = ceil(tiles / units) waves of them run one after the other. Backward data with strides multiplies each filter
// point by the outputs that it meets: k shrinks by the product of the strides, while m is the points of dx. Groups that
// a kernel merges widen n and k. A depthwise kernel, and a CPU kernel where a vector holds whole groups, multiplies
// vectors instead: outputs * filter points * channels per group. memory is x, w and y once, and the slices of backward
// weight twice in 4 bytes each. The launch takes the longer of both; on a CPU, where packing does not overlap, their
// sum.
//
// Sources as in gemm/analytic.hpp. Nobody fitted it to measured convolutions.
Estimate estimate_conv(const kw_kernel& kernel, const kw_problem& problem, const Place& place);

// The arithmetic of CPU kernels, which estimate_conv calls.
//
// Work is cut as the launchers cut it: into register blocks, those at edges smaller, shared by as many threads as the
// problem keeps busy; the time is that of the busiest one. In forward and backward data, rows of a block are outputs of
// a line and columns channels; a block whose vectors are written to more lines than can be on their way waits for them,
// and every box of outputs reads all weights. In backward weight both are channels, and each step is an output.
Estimate estimate_conv_cpu(const kw_kernel& kernel, const kw_conv_problem& problem, const Place& place);

// The same for CUDA kernels, which estimate_conv calls.
//
// A tile takes its steps, each as long as its multiplications or its copies to shared memory, and its store, which
// pingpong hides behind the next tile. Waves of tiles run one after the other. Depthwise kernels multiply outputs *
// filter points in fp32. The time is the longer of computing and memory with a share of the shorter one, a launch, and
// the kernels before and behind that copy operands or add slices up.
Estimate estimate_conv_cuda(const kw_kernel& kernel, const kw_conv_problem& problem, const Place& place);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_CONVOLUTION_PROBLEM_HPP
