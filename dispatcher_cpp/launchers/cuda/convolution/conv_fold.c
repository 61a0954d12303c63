/* Images of few channels: points along W folded into channels.
 *
 * A step of a sum multiplies 64 channels, of which an image of three fills few. Where the filter has several points
 * along W, x is copied with zeros around each line. There the points that one output meets lie side by side, so they
 * are one point of many channels: the filter has one point along W, and images have one for every output. Lines of
 * these points overlap in memory. Backward data leaves the gradient of each such point in fp32; a second kernel adds
 * up, for a point of dx, what lies at its taps.
 */
#include "internal.h"
#include "kernelwright/convolution/checks.h"
#include "kernelwright/convolution/folding.h"
#include "kernelwright/widths.h"

static int64_t rounded(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

/* Kernels count the elements of a line, and what its problem says of W, in 31 bits: else nothing is folded. */
void kw_cuda_conv_fold_problem(kw_cuda_conv_plan* plan) {
  kw_conv_problem* p = &plan->problem;
  if (!kw_fits_int16(p->stride[2]) || !kw_fits_int16(p->filter[2]) || !kw_fits_int32(p->pad_left[2])) return;
  const int64_t pitch = kw_conv_fold_pitch(p), taps = p->filter[2], outputs = kw_conv_out(p, 2);
  if (!pitch || outputs > INT32_MAX / 2) return;
  int64_t point = taps * pitch, line = point * outputs; /* of the gradient; the copy's points overlap */
  if (p->base.op != KW_OP_CONV_BACKWARD_DATA) {
    line = rounded((outputs - 1) * p->stride[2] * pitch + point, KW_CONV_FOLD_LINE);
    point = p->stride[2] * pitch;
  }
  if (!kw_fits_int32(line) || !kw_fits_int64(kw_mul3(line, p->extent[1], p->extent[0]))) return;
  plan->taps = (int32_t)taps;
  plan->pitch = (int32_t)pitch;
  p->c = taps * pitch;
  p->extent[2] = outputs;
  p->filter[2] = p->stride[2] = 1;
  p->pad_left[2] = p->pad_right[2] = 0;
  p->stride_x[4] = point;
  p->stride_x[3] = line;
  p->stride_x[2] = line * p->extent[1];
  p->stride_x[0] = line * p->extent[1] * p->extent[0];
}
