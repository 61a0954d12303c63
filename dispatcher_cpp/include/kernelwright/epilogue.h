/* What the kernels of several operations do in the same way: activations, and how stream-K adds up.
 *
 * C99.
 */
#ifndef KERNELWRIGHT_EPILOGUE_H
#define KERNELWRIGHT_EPILOGUE_H

#include <stdint.h>

typedef enum kw_activation {
  KW_ACTIVATION_NONE = 0,
  KW_ACTIVATION_RELU = 1,
  KW_ACTIVATION_GELU = 2,      /* x/2 (1 + erf(x/sqrt(2))) */
  KW_ACTIVATION_FAST_GELU = 3, /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
  KW_ACTIVATION_SILU = 4,      /* x / (1 + exp(-x)) */
  KW_ACTIVATION_SIGMOID = 5,   /* 1 / (1 + exp(-x)) */
  KW_ACTIVATION_TANH = 6
} kw_activation;

static inline const char* kw_activation_name(uint32_t activation) {
  static const char* const names[] = {"none", "relu", "gelu", "fast_gelu", "silu", "sigmoid", "tanh"};
  return activation < sizeof names / sizeof *names ? names[activation] : "unknown";
}

/* How stream-K adds up the parts of a tile. */
typedef enum kw_stream_k { KW_STREAM_K_NONE = 0, KW_STREAM_K_LINEAR = 1, KW_STREAM_K_TREE = 2 } kw_stream_k;

#endif /* KERNELWRIGHT_EPILOGUE_H */
