/* When kernels that multiply 64 channels at a time fold filter points along W into channels: images of few channels.
 *
 * C99. What a launcher does and an estimate counts.
 */
#ifndef KERNELWRIGHT_CONVOLUTION_FOLDING_H
#define KERNELWRIGHT_CONVOLUTION_FOLDING_H

#include "kernelwright/convolution.h"

/* Channels that a step of a sum multiplies, and elements that 16 bytes hold: points begin at multiples of them. */
#define KW_CONV_FOLD_STEP 64
#define KW_CONV_FOLD_LINE 8

/* Images of more channels are not folded: copying them takes longer. Gradients of folded images are fp32. */
#define KW_CONV_FOLD_MOST 16
#define KW_CONV_FOLD_MOST_GRADIENT 8

/* Channels of a point of the folded image, or 0 where folding does not halve the steps of a sum. The points that one
 * output meets along W lie side by side: its `filter[2]` points of so many channels are the channels of one point. */
static inline int64_t kw_conv_fold_pitch(const kw_conv_problem* p) {
  const int64_t taps = p->filter[2];
  const int data = p->base.op == KW_OP_CONV_BACKWARD_DATA;
  int64_t pitch = p->c;
  if (p->groups != 1 || taps < 2 || p->dilation[2] != 1) return 0;
  if (p->c > (data ? KW_CONV_FOLD_MOST_GRADIENT : KW_CONV_FOLD_MOST)) return 0;
  while (!data && pitch * p->stride[2] % KW_CONV_FOLD_LINE) ++pitch;
  return 2 * ((taps * pitch + KW_CONV_FOLD_STEP - 1) / KW_CONV_FOLD_STEP) <= taps ? pitch : 0;
}

#endif /* KERNELWRIGHT_CONVOLUTION_FOLDING_H */
