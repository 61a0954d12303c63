/* Which GEMM problems a kernel may serve, as far as its traits tell: the checks that dispatcher and backends share.
 *
 * C99. Functions that return a kw_status write one sentence into reason unless they return KW_OK; reason may be null
 * where bytes is 0.
 */
#ifndef KERNELWRIGHT_GEMM_CHECKS_H
#define KERNELWRIGHT_GEMM_CHECKS_H

#include <stdio.h>
#include <string.h>

#include "kernelwright/checks.h"
#include "kernelwright/gemm.h"

static inline const char* kw_d_op_name(uint32_t op) {
  static const char* const names[] = {"add", "multiply"};
  return op < sizeof names / sizeof *names ? names[op] : "unknown";
}

/* KW_UNSUPPORTED: the kernel is built for another dtype. */
static inline kw_status kw_gemm_dtypes_match(const kw_gemm_traits* t, const kw_gemm_problem* p, char* reason,
                                             size_t bytes) {
  static const char* const names[] = {"dtype_a", "dtype_b", "dtype_c", "dtype_acc"};
  const uint32_t asked[] = {p->dtype_a, p->dtype_b, p->dtype_c, p->dtype_acc};
  const uint32_t built[] = {t->dtype_a, t->dtype_b, t->dtype_c, t->dtype_acc};
  return kw_dtypes_match(4, names, asked, built, reason, bytes);
}

/* KW_UNSUPPORTED: the kernel is built for another layout. */
static inline kw_status kw_gemm_layouts_match(const kw_gemm_traits* t, const kw_gemm_problem* p, char* reason,
                                              size_t bytes) {
  static const char* const names[] = {"layout_a", "layout_b", "layout_c"};
  const uint32_t asked[] = {p->layout_a, p->layout_b, p->layout_c};
  const uint32_t built[] = {t->layout_a, t->layout_b, t->layout_c};
  for (int i = 0; i < 3; ++i) {
    if (asked[i] == built[i]) continue;
    snprintf(reason, bytes, "%s is %s, this kernel serves %s", names[i], kw_layout_name(asked[i]),
             kw_layout_name(built[i]));
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* KW_UNSUPPORTED: batch, D tensors, activation or the order of B are not what the kernel is built for. */
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

/* KW_UNSUPPORTED: the kernel does not sum K in so many slices. A split_k of 0 is the dispatcher's to choose. */
static inline kw_status kw_gemm_split_k_matches(const kw_gemm_traits* t, const kw_gemm_problem* p, char* reason,
                                                size_t bytes) {
  if (p->split_k >= 1 && p->split_k <= t->max_split_k) return KW_OK;
  snprintf(reason, bytes, "split_k is %u, this kernel serves 1", p->split_k);
  if (t->max_split_k > 1)
    snprintf(reason, bytes, "split_k is %u, this kernel serves 1 to %u", p->split_k, t->max_split_k);
  return KW_UNSUPPORTED;
}

/* All of the above: what a backend checks of a single problem before its own conditions. */
static inline kw_status kw_gemm_traits_match(const kw_gemm_traits* t, const kw_gemm_problem* p, char* reason,
                                             size_t bytes) {
  kw_status status = kw_gemm_dtypes_match(t, p, reason, bytes);
  if (status == KW_OK) status = kw_gemm_layouts_match(t, p, reason, bytes);
  if (status == KW_OK) status = kw_gemm_variant_matches(t, p, reason, bytes);
  if (status == KW_OK) status = kw_gemm_split_k_matches(t, p, reason, bytes);
  return status;
}

/* A matrix of a problem. Its lines are rows (row-major) or columns (column-major), ld elements apart. */
typedef struct kw_gemm_matrix {
  const char* name;    /* "A" */
  const char* ld_name; /* "lda" */
  const char* row_extent;
  const char* column_extent;
  uint32_t layout, dtype;
  int64_t ld, rows, columns;
} kw_gemm_matrix;

/* Elements of one line, the name of that extent, and how many lines there are. */
static inline int64_t kw_gemm_line(const kw_gemm_matrix* x) { return x->layout == KW_ROW_MAJOR ? x->columns : x->rows; }
static inline const char* kw_gemm_line_name(const kw_gemm_matrix* x) {
  return x->layout == KW_ROW_MAJOR ? x->column_extent : x->row_extent;
}
static inline int64_t kw_gemm_lines(const kw_gemm_matrix* x) {
  return x->layout == KW_ROW_MAJOR ? x->rows : x->columns;
}

static inline kw_gemm_matrix kw_gemm_matrix_a(const kw_gemm_problem* p) {
  const kw_gemm_matrix x = {"A", "lda", "m", "k", p->layout_a, p->dtype_a, p->lda, p->m, p->k};
  return x;
}
static inline kw_gemm_matrix kw_gemm_matrix_b(const kw_gemm_problem* p) {
  const kw_gemm_matrix x = {"B", "ldb", "k", "n", p->layout_b, p->dtype_b, p->ldb, p->k, p->n};
  return x;
}
static inline kw_gemm_matrix kw_gemm_matrix_c(const kw_gemm_problem* p) {
  const kw_gemm_matrix x = {"C", "ldc", "m", "n", p->layout_c, p->dtype_c, p->ldc, p->m, p->n};
  return x;
}
/* The D tensor `index`, below KW_MAX_D. One line for all (ld 0) is a matrix of one line. */
static inline kw_gemm_matrix kw_gemm_matrix_d(const kw_gemm_problem* p, uint32_t index) {
  static const char* const names[KW_MAX_D] = {"D0", "D1", "D2", "D3"};
  static const char* const lds[KW_MAX_D] = {"ld_multi_d[0]", "ld_multi_d[1]", "ld_multi_d[2]", "ld_multi_d[3]"};
  kw_gemm_matrix x = {names[index], lds[index], "m", "n", p->layout_c, p->dtype_c, p->ld_multi_d[index], p->m, p->n};
  if (x.ld != 0) return x;
  if (x.layout == KW_ROW_MAJOR)
    x.rows = 1;
  else
    x.columns = 1;
  x.ld = kw_gemm_line(&x) > 1 ? kw_gemm_line(&x) : 1;
  return x;
}

/* KW_INVALID_ARGUMENT: lines would overlap, or let the bounds check of the last one hide a part of the others. */
static inline kw_status kw_gemm_check_leading(const kw_gemm_matrix* x, char* reason, size_t bytes) {
  if (x->ld >= kw_gemm_line(x)) return KW_OK;
  snprintf(reason, bytes, "%s is %lld, below %s, the %lld elements of a %s of %s", x->ld_name, (long long)x->ld,
           kw_gemm_line_name(x), (long long)kw_gemm_line(x), x->layout == KW_ROW_MAJOR ? "row" : "column", x->name);
  return KW_INVALID_ARGUMENT;
}

/* The same of every matrix of a problem; B is left out where it is shuffled. */
static inline kw_status kw_gemm_check_all_leading(const kw_gemm_problem* p, char* reason, size_t bytes) {
  const kw_gemm_matrix a = kw_gemm_matrix_a(p), b = kw_gemm_matrix_b(p), c = kw_gemm_matrix_c(p);
  kw_status status = kw_gemm_check_leading(&a, reason, bytes);
  if (status == KW_OK && p->b_format == 0) status = kw_gemm_check_leading(&b, reason, bytes);
  if (status == KW_OK) status = kw_gemm_check_leading(&c, reason, bytes);
  for (uint32_t i = 0; status == KW_OK && i < p->num_d && i < KW_MAX_D; ++i) {
    const kw_gemm_matrix d = kw_gemm_matrix_d(p, i);
    status = kw_gemm_check_leading(&d, reason, bytes);
  }
  return status;
}

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

#endif /* KERNELWRIGHT_GEMM_CHECKS_H */
