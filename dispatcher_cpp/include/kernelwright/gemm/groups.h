/* Products of a grouped problem as problems of their own.
 *
 * C99.
 */
#ifndef KERNELWRIGHT_GEMM_GROUPS_H
#define KERNELWRIGHT_GEMM_GROUPS_H

#include <string.h>

#include "kernelwright/gemm.h"

/* One product of a grouped problem, as a problem of its own. */
static inline kw_gemm_problem kw_problem_of_group(const kw_grouped_gemm_problem* p, const kw_gemm_group* group) {
  kw_gemm_problem one;
  memset(&one, 0, sizeof one);
  one.base.struct_size = sizeof one;
  one.base.op = KW_OP_GEMM;
  one.dtype_a = p->dtype_a;
  one.dtype_b = p->dtype_b;
  one.dtype_c = p->dtype_c;
  one.dtype_acc = p->dtype_acc;
  one.layout_a = p->layout_a;
  one.layout_b = p->layout_b;
  one.layout_c = p->layout_c;
  one.split_k = 1;
  one.batch = 1;
  one.m = group->m;
  one.n = group->n;
  one.k = group->k;
  one.lda = group->lda;
  one.ldb = group->ldb;
  one.ldc = group->ldc;
  one.alpha = p->alpha;
  one.beta = p->beta;
  return one;
}

/* What all groups have in common, as a problem of no size. */
static inline kw_gemm_problem kw_types_of_groups(const kw_grouped_gemm_problem* p) {
  const kw_gemm_group none = {0, 0, 0, 0, 0, 0};
  return kw_problem_of_group(p, &none);
}

#endif /* KERNELWRIGHT_GEMM_GROUPS_H */
