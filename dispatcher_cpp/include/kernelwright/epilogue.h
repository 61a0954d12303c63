/* What the kernels of several operations do in the same way: activations, and how stream-K adds up.
 *
 * Made of kernelwright.problems.shared by `kernelwright headers`: edit that. */
#ifndef KERNELWRIGHT_EPILOGUE_H
#define KERNELWRIGHT_EPILOGUE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The last step of an epilogue. */
typedef enum kw_activation {
  KW_ACTIVATION_NONE = 0,
  KW_ACTIVATION_RELU = 1,
  KW_ACTIVATION_GELU = 2,      /* x/2 (1 + erf(x/sqrt(2))) */
  KW_ACTIVATION_FAST_GELU = 3, /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
  KW_ACTIVATION_SILU = 4,      /* x / (1 + exp(-x)) */
  KW_ACTIVATION_SIGMOID = 5,   /* 1 / (1 + exp(-x)) */
  KW_ACTIVATION_TANH = 6,
  /* of traits only: the kernel reads its epilogue from the problem. It serves every activation, any d_op, and up to
   * num_d D tensors; of convolution, problems with or without each of bias and residual */
  KW_ACTIVATION_ANY = 255
} kw_activation;

static inline const char* kw_activation_name(uint32_t activation) {
  switch (activation) {
    case KW_ACTIVATION_NONE:
      return "none";
    case KW_ACTIVATION_RELU:
      return "relu";
    case KW_ACTIVATION_GELU:
      return "gelu";
    case KW_ACTIVATION_FAST_GELU:
      return "fast_gelu";
    case KW_ACTIVATION_SILU:
      return "silu";
    case KW_ACTIVATION_SIGMOID:
      return "sigmoid";
    case KW_ACTIVATION_TANH:
      return "tanh";
    case KW_ACTIVATION_ANY:
      return "any";
    default:
      return "unknown";
  }
}

/* How stream-K adds up the parts of a tile, always in the same order: atomic sums would depend on which workgroup
 * finishes first. */
typedef enum kw_stream_k { KW_STREAM_K_NONE = 0, KW_STREAM_K_LINEAR = 1, KW_STREAM_K_TREE = 2 } kw_stream_k;

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_EPILOGUE_H */
