/* RMS norm and layer norm, forward and backward: problems, arguments, and what a kernel's traits say.
 *
 * C99. Sizes are int64 and count elements unless a name says bytes; structs as in kernelwright/abi.h.
 *
 * Made of kernelwright.problems.norm.description by `kernelwright headers`: edit that.
 */
#ifndef KERNELWRIGHT_NORM_H
#define KERNELWRIGHT_NORM_H

#include "kernelwright/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values of kw_problem.op: 48 to 63 are of this header. One struct describes the problems of all. */
typedef enum kw_norm_op {
  KW_OP_RMS_NORM = 48,           /* y from x */
  KW_OP_LAYER_NORM = 49,         /* y from x, less the mean of its row */
  KW_OP_RMS_NORM_BACKWARD = 50,  /* dx, dweight from dy and x */
  KW_OP_LAYER_NORM_BACKWARD = 51 /* dx, dweight, dbias from dy and x */
} kw_norm_op;

static inline const char* kw_norm_op_name(uint32_t op) {
  static const char* const names[] = {"rms norm", "layer norm", "rms norm backward", "layer norm backward"};
  return op - 48u < 4u ? names[op - 48u] : "unknown";
}

/* Each row of x is divided by the root of the mean of its squares; layer norm first takes the row's mean off.
 * Arithmetic is in fp32.
 *
 *   forward:   s = x + residual, rounded to dtype_x and written to sum; without a residual s = x
 *              h = (s - mean(s)) / sqrt(mean((s - mean(s))^2) + epsilon), of RMS norm with 0 for mean(s)
 *              y = h * weight + bias
 *
 *   quantised: scale = max |y| / 127 of int8, max |y| / 448 of fp8 (e4m3; 240 where its format is FNUZ), one for each
 *              row; y / scale is rounded to nearest even. A row of zeros has scale 0. A row with a number that is not
 *              finite has scale NaN.
 *
 *   backward:  g = dy * weight, r = 1 / sqrt(mean(...) + epsilon) as above, of s
 *              dx = r * (g - mean(g) - h * mean(g * h)) + dsum, of RMS norm without mean(g)
 *              dweight = sum over rows of dy * h, dbias = sum over rows of dy
 *
 * The struct has no padding bytes, so it can be hashed as memory; what a problem does not use is 0.
 */
typedef struct kw_norm_problem {
  kw_problem base;
  uint32_t dtype_x;      /* kw_dtype; of x, residual and sum; of dx, dy and dsum too */
  uint32_t dtype_y;      /* kw_dtype; of y: dtype_x, or int8 or fp8, which is quantised row by row. Backward: dtype_x */
  uint32_t dtype_w;      /* kw_dtype; of weight and bias and their gradients; that of x where there are none */
  uint32_t weight, bias; /* 0 or 1; has the norm these operands? a bias: layer norm only */
  /* 0 or 1; forward: is a residual added to x, and the sum written? backward: is dsum added to dx? */
  uint32_t residual;
  int64_t rows;            /* >= 0 */
  int64_t columns;         /* >= 1; of a row, side by side: what is normalised together */
  int64_t stride_x;        /* >= 0; elements from one row to the next, of x */
  int64_t stride_residual; /* >= 0; elements from one row to the next, of residual or dsum; 0 without */
  int64_t stride_y;        /* >= 0; elements from one row to the next, of y or dx */
  int64_t stride_sum;      /* >= 0; elements from one row to the next, of sum; 0 without, and backward */
  int64_t stride_dy;       /* >= 0; elements from one row to the next, of dy; forward 0 */
  double epsilon;          /* added to the mean of squares; finite, 0 or more */
} kw_norm_problem;

/* Operands of one launch, on its device. What is written overlaps nothing else; but with equal types and strides y may
 * be x, and dx may be x, dy or dsum. */
typedef struct kw_norm_args {
  uint32_t struct_size;
  uint32_t reserved;    /* 0 */
  const void* x;        /* backward: what was normalised, so the sum where a residual was added */
  const void* weight;   /* columns values; null if the problem has none */
  const void* bias;     /* forward only; columns values; null if the problem has none */
  const void* residual; /* backward: dsum, the gradient of the sum; null if the problem has none */
  const void* dy;       /* backward only */
  void* y;              /* backward: dx */
  void* sum;            /* forward with a residual, else null; with equal strides, may be x or the residual */
  float* scales;        /* of a quantised y: one for each row; else null */
  void* dweight;        /* backward with a weight, else null */
  void* dbias;          /* backward with a bias, else null */
} kw_norm_args;

/* What selection may know about a kernel without parsing text. */
typedef struct kw_norm_traits {
  uint32_t struct_size;
  uint32_t dtype_x; /* kw_dtype; the weights' type is this one or fp32 */
  uint32_t dtype_y; /* kw_dtype */
  uint32_t unroll;  /* vectors that an iteration handles; on GPUs those that a thread keeps in registers */
  uint32_t rows;    /* GPUs: rows of a workgroup; 1 on CPUs */
  uint32_t threads; /* GPUs: threads of a row; 1 on CPUs */
  uint32_t vector;  /* GPUs: elements that a thread reads at once; 0 on CPUs */
} kw_norm_traits;

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_NORM_H */
