/* Does a kernel's variant serve a problem, and what is a group as a problem? The same for every backend; the rest is
 * the backend's own answer. */
#ifndef KERNELWRIGHT_GEMM_CHECKS_H
#define KERNELWRIGHT_GEMM_CHECKS_H

#include <stdio.h>
#include <string.h>

#include "kernelwright/gemm.h"

static inline const char* kw_activation_name(uint32_t activation) {
  static const char* const names[] = {"none", "relu", "gelu", "fast_gelu", "silu", "sigmoid", "tanh"};
  return activation < sizeof names / sizeof *names ? names[activation] : "unknown";
}

static inline const char* kw_d_op_name(uint32_t op) {
  static const char* const names[] = {"add", "multiply"};
  return op < sizeof names / sizeof *names ? names[op] : "unknown";
}

/* KW_OK, or KW_UNSUPPORTED with one sentence in reason: batch, D tensors, activation and the order of B. */
static inline kw_status kw_gemm_variant_matches(const kw_gemm_traits* t, const kw_gemm_problem* p, char* reason,
                                                size_t bytes) {
  if (p->batch < 1 || (p->batch > 1 && !t->batched))
    snprintf(reason, bytes, "batch is %lld, this kernel serves 1%s", (long long)p->batch, t->batched ? " or more" : "");
  else if (p->num_d != t->num_d)
    snprintf(reason, bytes, "the problem has %u D tensors, this kernel takes %u", p->num_d, t->num_d);
  else if (p->num_d != 0 && p->d_op != t->d_op)
    snprintf(reason, bytes, "d_op is %s, this kernel does %s", kw_d_op_name(p->d_op), kw_d_op_name(t->d_op));
  else if (p->activation != t->activation)
    snprintf(reason, bytes, "activation is %s, this kernel does %s", kw_activation_name(p->activation),
             kw_activation_name(t->activation));
  else if (p->b_format != t->b_format)
    snprintf(reason, bytes, "%s",
             p->b_format == 0   ? "B is not shuffled, and this kernel reads it in its own order: shuffle_b"
             : t->b_format == 0 ? "B is shuffled, and this kernel reads it as it is"
                                : "B is shuffled for another kernel: shuffle it for this one");
  else
    return KW_OK;
  return KW_UNSUPPORTED;
}

/* One product of a grouped problem as the problem of its own that it is. */
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

#endif /* KERNELWRIGHT_GEMM_CHECKS_H */
