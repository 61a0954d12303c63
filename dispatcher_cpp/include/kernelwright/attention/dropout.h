/* Which probabilities dropout keeps.
 *
 * C99.
 */
#ifndef KERNELWRIGHT_ATTENTION_DROPOUT_H
#define KERNELWRIGHT_ATTENTION_DROPOUT_H

#include "kernelwright/attention.h"

/* Dropout keeps a probability whose random byte is at most this; what is kept is divided by 1 - dropout_p. The byte of
 * query i and key j of head h of request b is drawn by Philox4x32-7 with key `seed` and counter
 * (offset + 64 (b * heads_q + h) + lane, i / 32, j / 32), 64 + 32 + 32 bits, where lane = j % 32 + 32 (i / 8 % 2); out
 * of the 16 bytes it is number 8 (i / 16 % 2) + i % 8. i and j are local to the request. */
static inline uint32_t kw_attention_keeps(const kw_attention_problem* p) {
  return (uint32_t)((float)(1.0 - p->dropout_p) * 255.0f); /* in fp32, as kernels know it */
}

#endif /* KERNELWRIGHT_ATTENTION_DROPOUT_H */
