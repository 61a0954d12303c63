/* The C ABI of row norms: y[i] = sum over j of x[i][j] * x[i][j].
 *
 * A problem takes two stages. `square` writes the squares, `sum` adds each row up; the squares lie in the workspace.
 */
#ifndef KERNELWRIGHT_ROW_NORM_H
#define KERNELWRIGHT_ROW_NORM_H

#include "kernelwright/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Operations that are registered from outside have numbers of 65536 and above. */
typedef enum kw_row_norm_op { KW_OP_ROW_NORM = 65540, KW_OP_ROW_SQUARE = 65541, KW_OP_ROW_SUM = 65542 } kw_row_norm_op;

/* Of the whole and of each stage. x has rows x columns elements of dtype fp32, row-major and contiguous. */
typedef struct kw_row_norm_problem {
  kw_problem base;
  int64_t rows, columns; /* >= 0 */
} kw_row_norm_problem;

typedef struct kw_row_norm_args {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  const float* x;    /* of `sum`: the squares */
  float* y;          /* rows elements; of `square`: rows x columns squares */
} kw_row_norm_args;

typedef struct kw_row_norm_traits {
  uint32_t struct_size;
  uint32_t unroll; /* elements that an iteration handles */
} kw_row_norm_traits;

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_ROW_NORM_H */
