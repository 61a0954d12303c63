#include "launchers/cuda/convolution/folding.hpp"

#include "kernelwright/convolution/folding.h"
#include "launchers/cuda/convolution/shape.hpp"

namespace kernelwright::cuda::launchers {
namespace {

// Kernels count places along an axis, and elements of a line, in 31 bits.
bool countable(const kw_conv_problem& p, int64_t channels) {
  bool fits = channels <= INT32_MAX / 2;
  for (int dim = 0; dim < 3; ++dim)
    fits = fits && kw_fits_int32(kw_add(p.extent[dim], kw_add(p.pad_left[dim], p.pad_right[dim]))) &&
           kw_fits_int32(p.stride[dim]) && kw_fits_int32(kw_mul(p.filter[dim], p.dilation[dim]));
  return fits;
}

}  // namespace

// Kernels count the elements of a line, and what its problem says of W, in 31 bits: else nothing is folded.
void fold_problem(kw_cuda_conv_plan* plan) {
  kw_conv_problem& p = plan->problem;
  if (!kw_fits_int16(p.stride[2]) || !kw_fits_int16(p.filter[2]) || !kw_fits_int32(p.pad_left[2])) return;
  const int64_t pitch = kw_conv_fold_pitch(&p), taps = p.filter[2], outputs = kw_conv_out(&p, 2);
  if (!pitch || outputs > INT32_MAX / 2) return;
  int64_t point = taps * pitch, line = point * outputs;  // of the gradient; the copy's points overlap
  if (p.base.op != KW_OP_CONV_BACKWARD_DATA) {
    line = round_up((outputs - 1) * p.stride[2] * pitch + point, KW_CONV_FOLD_LINE);
    point = p.stride[2] * pitch;
  }
  if (!kw_fits_int32(line) || !kw_fits_int64(kw_mul3(line, p.extent[1], p.extent[0]))) return;
  plan->taps = static_cast<int32_t>(taps);
  plan->pitch = static_cast<int32_t>(pitch);
  p.c = taps * pitch;
  p.extent[2] = outputs;
  p.filter[2] = p.stride[2] = 1;
  p.pad_left[2] = p.pad_right[2] = 0;
  p.stride_x[4] = point;
  p.stride_x[3] = line;
  p.stride_x[2] = line * p.extent[1];
  p.stride_x[0] = line * p.extent[1] * p.extent[0];
}

bool gather_problem(kw_cuda_conv_plan* plan) {
  const kw_conv_problem& original = plan->original;
  kw_conv_problem& p = plan->problem;
  const int64_t channels = kw_mul(original.c, kw_conv_filter_points(&original));
  if (!countable(original, channels)) return false;
  p = original;
  p.c = channels;
  int64_t line = channels;
  for (int dim = 2; dim >= 0; --dim) {
    p.extent[dim] = kw_conv_out(&original, dim);
    p.filter[dim] = p.stride[dim] = p.dilation[dim] = 1;
    p.pad_left[dim] = p.pad_right[dim] = 0;
    p.stride_x[2 + dim] = line;
    line = kw_mul(line, p.extent[dim]);
  }
  p.stride_x[0] = line;
  plan->asked = p;
  plan->taps = plan->pitch = 0;
  plan->gathers = 1;
  return true;
}

}  // namespace kernelwright::cuda::launchers
