/* Images that TMA cannot walk through: strides above 8, filters that reach too far.
 *
 * The points that one output meets become the channels of one point, in the order of the filter: what is left is a
 * product of matrices, whose weights lie in memory as they are. x is copied so; backward data leaves the gradients of
 * these points in fp32, and a second kernel adds up, for a point of dx, what lies at its filter points.
 */
#include "internal.h"
#include "kernelwright/convolution/checks.h"
#include "kernelwright/widths.h"

/* Kernels count places along an axis, and elements of a line, in 31 bits. */
static int countable(const kw_conv_problem* p, int64_t channels) {
  int countable = channels <= INT32_MAX / 2;
  for (int dim = 0; dim < 3; ++dim)
    countable = countable && kw_fits_int32(kw_add(p->extent[dim], kw_add(p->pad_left[dim], p->pad_right[dim]))) &&
                kw_fits_int32(p->stride[dim]) && kw_fits_int32(kw_mul(p->filter[dim], p->dilation[dim]));
  return countable;
}

int kw_cuda_conv_gather_problem(kw_cuda_conv_plan* plan) {
  const kw_conv_problem* posed = &plan->posed;
  kw_conv_problem* p = &plan->problem;
  const int64_t channels = kw_mul(posed->c, kw_conv_filter_points(posed));
  if (!countable(posed, channels)) return 0;
  *p = *posed;
  p->c = channels;
  int64_t line = channels;
  for (int dim = 2; dim >= 0; --dim) {
    p->extent[dim] = kw_conv_out(posed, dim);
    p->filter[dim] = p->stride[dim] = p->dilation[dim] = 1;
    p->pad_left[dim] = p->pad_right[dim] = 0;
    p->stride_x[2 + dim] = line;
    line = kw_mul(line, p->extent[dim]);
  }
  p->stride_x[0] = line;
  plan->asked = *p;
  plan->taps = plan->pitch = 0;
  plan->gathers = 1;
  return 1;
}
