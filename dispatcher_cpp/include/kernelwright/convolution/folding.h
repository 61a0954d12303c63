/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/convolution/rules/folding.py by `kernelwright formulas`, and explained there. */
#ifndef KERNELWRIGHT_CONVOLUTION_FOLDING_H
#define KERNELWRIGHT_CONVOLUTION_FOLDING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernelwright/abi.h"
#include "kernelwright/convolution.h"
#include "kernelwright/dtypes.h"
#include "kernelwright/epilogue.h"
#include "kernelwright/rules.h"

#define KW_CONV_FOLD_STEP 64
#define KW_CONV_FOLD_LINE 8
#define KW_CONV_FOLD_MOST 16
#define KW_CONV_FOLD_MOST_GRADIENT 8

/* Channels of a point of the folded image, or 0 where folding does not halve the steps of a sum. */
static inline int64_t kw_conv_fold_pitch(const kw_conv_problem* p) {
  int64_t channels = 0;
  const int64_t taps = p->filter[2];
  const bool data = p->base.op == KW_OP_CONV_BACKWARD_DATA;
  channels = p->c;
  if (p->groups != 1 || taps < 2 || p->dilation[2] != 1) {
    return 0;
  }
  if (p->c > (data ? KW_CONV_FOLD_MOST_GRADIENT : KW_CONV_FOLD_MOST)) {
    return 0;
  }
  while (!data && kw_mul(channels, p->stride[2]) % KW_CONV_FOLD_LINE != 0) {
    channels = kw_add(channels, 1);
  }
  const int64_t steps = (kw_add(kw_mul(taps, channels), KW_CONV_FOLD_STEP) - 1) / KW_CONV_FOLD_STEP;
  return kw_mul(2, steps) <= taps ? channels : 0;
}

#endif /* KERNELWRIGHT_CONVOLUTION_FOLDING_H */
