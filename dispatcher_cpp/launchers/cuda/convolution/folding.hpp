// Images whose points become channels, so that a step of a sum, which multiplies 64 of them, has work.
#ifndef KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_FOLDING_HPP
#define KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_FOLDING_HPP

#include "kernelwright/cuda/convolution/launcher.h"

namespace kernelwright::cuda::launchers {

// Images of few channels: points along W of the plan's problem are folded into channels, where that pays.
//
// A step multiplies 64 channels, of which an image of three fills few. Where the filter has several points along W, x
// is copied with zeros around each line. There the points that one output meets lie side by side, so they are one point
// of many channels: the filter has one point along W, and images have one for every output. Lines of these points
// overlap in memory. Backward data leaves the gradient of each such point in fp32; a second kernel adds up, for a point
// of dx, what lies at its taps.
KW_HIDDEN void fold_problem(kw_cuda_conv_plan* plan);

// Images that TMA cannot walk through: strides above 8, filters that reach too far. False where it cannot be done.
//
// The points that one output of the original problem meets become the channels of one point, in the order of the
// filter: what is left is a product of matrices, whose weights lie in memory as they are. x is copied so; backward data
// leaves the gradients of these points in fp32, and a second kernel adds up, for a point of dx, what lies at its filter
// points.
KW_HIDDEN bool gather_problem(kw_cuda_conv_plan* plan);

}  // namespace kernelwright::cuda::launchers

#endif  // KERNELWRIGHT_CUDA_LAUNCHERS_CONVOLUTION_FOLDING_HPP
