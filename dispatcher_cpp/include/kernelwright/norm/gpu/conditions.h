/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/norm/rules/gpu.py by `kernelwright formulas`, and explained there. */
#ifndef KERNELWRIGHT_NORM_GPU_CONDITIONS_H
#define KERNELWRIGHT_NORM_GPU_CONDITIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernelwright/abi.h"
#include "kernelwright/dtypes.h"
#include "kernelwright/norm.h"
#include "kernelwright/norm/checks.h"
#include "kernelwright/rules.h"

#define KW_NORM_GPU_MOST_SLICES 512
#define KW_NORM_GPU_FEW_SLICES 128
#define KW_NORM_GPU_SHORT_SLICE 4
#define KW_NORM_GPU_MOST_COLUMNS 1073741824
#define KW_NORM_GPU_SUM_COLUMNS 32

/* How many gradients of weight and bias are asked for. */
static inline int64_t kw_norm_gpu_gradients(const kw_norm_problem* p) {
  if (!kw_norm_is_backward(p)) {
    return 0;
  }
  return kw_add(p->weight != 0 ? 1 : 0, p->bias != 0 ? 1 : 0);
}

/* Rows that a row of threads takes one after the other. */
static inline int64_t kw_norm_gpu_rows_per_slice(const kw_norm_problem* p) {
  if (kw_norm_gpu_gradients(p) == 0) {
    return 1;
  }
  return kw_larger(kw_parts(p->rows, KW_NORM_GPU_MOST_SLICES), kw_larger(kw_smaller(KW_NORM_GPU_SHORT_SLICE, kw_parts(p->rows, KW_NORM_GPU_FEW_SLICES)), 1));
}

/* Runs of rows. */
static inline int64_t kw_norm_gpu_slices(const kw_norm_problem* p) {
  return kw_parts(p->rows, kw_norm_gpu_rows_per_slice(p));
}

/* Of a launch. */
static inline int64_t kw_norm_gpu_workgroups(const kw_norm_traits* t, const kw_norm_problem* p) {
  return kw_parts(kw_norm_gpu_slices(p), t->rows);
}

/* Bytes of the sums of slices, which are fp32. */
static inline int64_t kw_norm_gpu_workspace(const kw_norm_problem* p) {
  return kw_mul(kw_mul(kw_norm_gpu_slices(p), kw_norm_gpu_gradients(p)), kw_mul(p->columns, 4));
}

/* Of the launch that adds slices up. */
static inline int64_t kw_norm_gpu_sum_workgroups(const kw_norm_problem* p) {
  return kw_mul(kw_norm_gpu_gradients(p), kw_parts(p->columns, KW_NORM_GPU_SUM_COLUMNS));
}

/* Columns, workgroups and threads are counted in 32 bits. */
static inline kw_status kw_norm_gpu_counts_fit(const kw_norm_traits* t, const kw_norm_problem* p, char* reason, size_t bytes) {
  if (p->columns > KW_NORM_GPU_MOST_COLUMNS) {
    snprintf(reason, bytes, "a row has %lld columns; allowed: up to %lld", (long long)(p->columns), (long long)(KW_NORM_GPU_MOST_COLUMNS));
    return KW_UNSUPPORTED;
  }
  const int64_t count = kw_norm_gpu_workgroups(t, p);
  if (!kw_fits_int32(count) || !kw_fits_uint32(kw_mul(count, kw_mul(t->rows, t->threads)))) {
    snprintf(reason, bytes, "%lld rows take %lld workgroups, more than a launch can have; share them among launches", (long long)(p->rows), (long long)(count));
    return KW_UNSUPPORTED;
  }
  if (!kw_fits_int64(kw_norm_gpu_workspace(p))) {
    snprintf(reason, bytes, "sums of %lld rows do not fit into memory", (long long)(p->rows));
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

/* What is checked of a problem but the struct itself. */
static inline kw_status kw_norm_gpu_check(const kw_norm_traits* t, const kw_norm_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  if (p->rows < 0 || p->columns < 1) {
    snprintf(reason, bytes, "the problem is %lld x %lld; allowed: 0 x 1 and more", (long long)(p->rows), (long long)(p->columns));
    return KW_INVALID_ARGUMENT;
  }
  if ((status = kw_norm_is_legal(p, reason, bytes)) != KW_OK) return status;
  if ((status = kw_norm_traits_match(t, p, reason, bytes)) != KW_OK) return status;
  return kw_norm_gpu_counts_fit(t, p, reason, bytes);
}

#endif /* KERNELWRIGHT_NORM_GPU_CONDITIONS_H */
