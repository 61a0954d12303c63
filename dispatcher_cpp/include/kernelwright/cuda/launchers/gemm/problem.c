/* Which GEMM problems a TMA kernel serves, what it says otherwise, and the launches that need no kernel. */
#include "kernelwright/cuda/gemm/problem.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

#include "kernelwright/cuda/launchers/common/refuse.h"
#include "kernelwright/gemm/checks.h"

/* TMA addresses rows by multiples of 16 bytes, below 2^40 bytes (CUDA driver API, cuTensorMapEncodeTiled). */
#define TMA_ALIGNMENT 16
#define TMA_STRIDE_LIMIT (INT64_C(1) << 40)

static kw_status check_extent(kw_reason reason, const char* field, int64_t extent) {
  if (extent >= 0 && extent <= INT32_MAX) return KW_OK;
  return kw_cuda_refuse(reason, "%s is %lld; this kernel takes 0 to %d", field, (long long)extent, INT32_MAX);
}

/* Lines must lie at multiples of 16 bytes. */
static kw_status check_leading(kw_reason reason, const kw_gemm_matrix* x) {
  const int bytes = (int)kw_dtype_bytes(x->dtype);
  const kw_status status = kw_gemm_check_leading(x, reason.text, reason.bytes);
  if (status != KW_OK) return status;
  if (x->ld * bytes % TMA_ALIGNMENT) {
    return kw_cuda_refuse(reason, "%s is %lld; TMA needs multiples of 16 bytes, that is of %d %s elements", x->ld_name,
                          (long long)x->ld, TMA_ALIGNMENT / bytes, kw_dtype_name(x->dtype));
  }
  if (x->ld >= TMA_STRIDE_LIMIT / bytes) {
    return kw_cuda_refuse(reason, "%s is %lld; TMA needs strides below 2^40 bytes", x->ld_name, (long long)x->ld);
  }
  return KW_OK;
}

static kw_status check_batch_stride(kw_reason reason, const char* field, int64_t stride, uint32_t dtype) {
  if (stride >= 0 && stride * (int)kw_dtype_bytes(dtype) % TMA_ALIGNMENT == 0 &&
      stride < TMA_STRIDE_LIMIT / (int)kw_dtype_bytes(dtype))
    return KW_OK;
  return kw_cuda_refuse(reason,
                        "%s is %lld; TMA needs multiples of 16 bytes, that is of %d %s elements, from 0 to 2^40 bytes",
                        field, (long long)stride, TMA_ALIGNMENT / (int)kw_dtype_bytes(dtype), kw_dtype_name(dtype));
}

/* TMA stores whole 16 bytes: at a ragged n it writes zeros behind the row (seen on H200). Reads are cut exactly. */
static kw_status check_stored_row(kw_reason reason, int64_t n, uint32_t dtype) {
  const int step = TMA_ALIGNMENT / (int)kw_dtype_bytes(dtype);
  if (n % step == 0) return KW_OK;
  return kw_cuda_refuse(reason, "n is %lld; TMA stores rows of C in 16 bytes, that is in %d %s elements", (long long)n,
                        step, kw_dtype_name(dtype));
}

static kw_status check_scalar(kw_reason reason, const char* field, double value, uint32_t dtype) {
  if (dtype != KW_INT32 || (value == nearbyint(value) && value >= INT32_MIN && value <= INT32_MAX)) return KW_OK;
  return kw_cuda_refuse(reason, "%s is %g; an int32 result takes whole 32-bit factors only", field, value);
}

static kw_status check_k(kw_reason reason, const kw_gemm_problem* problem) {
  if (problem->k > 0) return KW_OK;
  if (problem->num_d > 0 || problem->activation != KW_ACTIVATION_NONE) {
    return kw_cuda_refuse(reason, "k is 0; a kernel with D tensors or an activation needs a K extent");
  }
  if (problem->beta == 0 || problem->beta == 1) return KW_OK;
  return kw_cuda_refuse(reason, "k is 0 and beta is %g; without a K extent this kernel serves beta 0 and 1",
                        problem->beta);
}

#define TRY(call)                     \
  do {                                \
    const kw_status tried = (call);   \
    if (tried != KW_OK) return tried; \
  } while (0)

/* A stride of 0 shares A or B among all products; C is written, so its products lie apart. */
static kw_status check_batches(kw_reason r, const kw_gemm_problem* p) {
  if (p->batch == 1) return KW_OK;
  TRY(check_extent(r, "batch", p->batch));
  TRY(check_batch_stride(r, "stride_a", p->stride_a, p->dtype_a));
  TRY(check_batch_stride(r, "stride_b", p->stride_b, p->dtype_b));
  TRY(check_batch_stride(r, "stride_c", p->stride_c, p->dtype_c));
  if (p->stride_c < (p->m - 1) * p->ldc + p->n && p->ldc < (p->batch - 1) * p->stride_c + p->n) {
    return kw_cuda_refuse(r, "stride_c is %lld: products of %lld x %lld with ldc %lld would overlap",
                          (long long)p->stride_c, (long long)p->m, (long long)p->n, (long long)p->ldc);
  }
  return KW_OK;
}

static kw_status check_tensors(kw_reason r, const kw_gemm_problem* p) {
  for (uint32_t i = 0; i < p->num_d; ++i) {
    const kw_gemm_matrix d = kw_gemm_matrix_d(p, i);
    if (p->ld_multi_d[i] != 0) TRY(check_leading(r, &d));
    TRY(check_batch_stride(r, "stride_multi_d", p->stride_multi_d[i], p->dtype_c));
  }
  return KW_OK;
}

static kw_status check_sizes(kw_reason r, const kw_gemm_problem* p) {
  TRY(check_extent(r, "m", p->m));
  TRY(check_extent(r, "n", p->n));
  TRY(check_extent(r, "k", p->k));
  TRY(check_scalar(r, "alpha", p->alpha, p->dtype_acc));
  TRY(check_scalar(r, "beta", p->beta, p->dtype_acc));
  if (p->m == 0 || p->n == 0) return KW_OK;
  TRY(check_k(r, p));
  TRY(check_stored_row(r, p->n, p->dtype_c));
  const kw_gemm_matrix a = kw_gemm_matrix_a(p), b = kw_gemm_matrix_b(p), c = kw_gemm_matrix_c(p);
  if (p->k > 0) { /* otherwise neither is read */
    TRY(check_leading(r, &a));
    TRY(check_leading(r, &b));
  }
  TRY(check_leading(r, &c));
  TRY(check_batches(r, p));
  return check_tensors(r, p);
}

kw_status kw_cuda_gemm_supports(const kw_kernel* kernel, const kw_problem* problem, char* text, size_t bytes) {
  const kw_gemm_traits* traits = (const kw_gemm_traits*)kernel->traits;
  const kw_gemm_problem* p = (const kw_gemm_problem*)problem;
  const kw_reason r = {text, bytes};
  if (p->base.op != KW_OP_GEMM || p->base.struct_size < sizeof(*p)) {
    return kw_cuda_refuse(r, "op is %u of %u bytes; this kernel serves gemm (%u, %u bytes)", p->base.op,
                          p->base.struct_size, (unsigned)KW_OP_GEMM, (unsigned)sizeof(*p));
  }
  TRY(kw_gemm_traits_match(traits, p, text, bytes));
  return check_sizes(r, p);
}

kw_status kw_cuda_gemm_plan_problem(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  char reason[256] = "";
  const kw_status status = kw_cuda_gemm_supports(kernel, problem, reason, sizeof(reason));
  if (status != KW_OK) return kw_cuda_fail(status, "%s: %s", kernel->name, reason);
  memcpy(&((kw_cuda_gemm_plan*)plan)->problem, problem, sizeof(kw_gemm_problem));
  return KW_OK;
}

static kw_status check_pointer(const char* field, const void* pointer) {
  if (!pointer) return kw_cuda_fail(KW_INVALID_ARGUMENT, "%s is null", field);
  if ((uintptr_t)pointer % TMA_ALIGNMENT == 0) return KW_OK;
  return kw_cuda_fail(KW_INVALID_ARGUMENT, "%s is %p; TMA needs addresses that are multiples of 16 bytes", field,
                      pointer);
}

kw_status kw_cuda_gemm_check_args(const kw_gemm_problem* problem, const kw_gemm_args* args) {
  if (args->struct_size < sizeof(*args)) {
    return kw_cuda_fail(KW_INVALID_ARGUMENT, "args has %u bytes; ABI %u needs %u", args->struct_size, KW_ABI_VERSION,
                        (unsigned)sizeof(*args));
  }
  if (problem->k > 0) {
    TRY(check_pointer("a", args->a));
    TRY(check_pointer("b", args->b));
  }
  if (problem->beta != 0) TRY(check_pointer("c", args->c));
  for (uint32_t i = 0; i < problem->num_d; ++i) TRY(check_pointer("a D tensor", args->multi_d[i]));
  return check_pointer("d", args->d);
}

kw_status kw_cuda_gemm_without_k(const kw_kernel* kernel, const kw_gemm_problem* problem, const kw_gemm_args* args,
                                 void* on_stream) {
  const size_t element = kw_dtype_bytes(problem->dtype_c);
  const size_t width = (size_t)problem->n * element, pitch = (size_t)problem->ldc * element;
  const size_t rows = (size_t)problem->m;
  cudaStream_t stream = (cudaStream_t)on_stream;
  cudaError_t error = cudaSuccess;
  for (int64_t product = 0; product < problem->batch && error == cudaSuccess; ++product) {
    const size_t offset = (size_t)(product * problem->stride_c) * element;
    char* d = (char*)args->d + offset;
    if (problem->beta == 0) {
      error = cudaMemset2DAsync(d, pitch, 0, width, rows, stream);
    } else if (args->c != args->d) {
      error = cudaMemcpy2DAsync(d, pitch, (const char*)args->c + offset, pitch, width, rows, cudaMemcpyDeviceToDevice,
                                stream);
    }
  }
  return error == cudaSuccess ? KW_OK : kw_cuda_launch_failed(kernel, (int)error);
}

/* A group as a problem of its own, so that the checks and the launch without K are the same. */
static kw_gemm_problem single(const kw_gemm_traits* t, const kw_gemm_group* g, double alpha, double beta) {
  const kw_grouped_gemm_problem p = {.dtype_a = t->dtype_a,
                                     .dtype_b = t->dtype_b,
                                     .dtype_c = t->dtype_c,
                                     .dtype_acc = t->dtype_acc,
                                     .layout_a = t->layout_a,
                                     .layout_b = t->layout_b,
                                     .layout_c = t->layout_c,
                                     .alpha = alpha,
                                     .beta = beta};
  return kw_problem_of_group(&p, g);
}

kw_status kw_cuda_grouped_supports(const kw_kernel* kernel, const kw_problem* problem, char* text, size_t bytes) {
  const kw_gemm_traits* traits = (const kw_gemm_traits*)kernel->traits;
  const kw_grouped_gemm_problem* p = (const kw_grouped_gemm_problem*)problem;
  const kw_reason r = {text, bytes};
  if (p->base.op != KW_OP_GROUPED_GEMM || p->base.struct_size < sizeof(*p)) {
    return kw_cuda_refuse(r, "op is %u of %u bytes; this kernel serves grouped gemm (%u, %u bytes)", p->base.op,
                          p->base.struct_size, (unsigned)KW_OP_GROUPED_GEMM, (unsigned)sizeof(*p));
  }
  const kw_gemm_problem types = kw_types_of_groups(p);
  TRY(kw_gemm_dtypes_match(traits, &types, text, bytes));
  TRY(kw_gemm_layouts_match(traits, &types, text, bytes));
  TRY(check_extent(r, "group_count", p->group_count));
  for (int64_t i = 0; i < p->group_count; ++i) {
    const kw_gemm_problem one = single(traits, &p->groups[i], p->alpha, p->beta);
    char why[224] = "";
    if (check_sizes((kw_reason){why, sizeof(why)}, &one) != KW_OK) {
      return kw_cuda_refuse(r, "group %lld: %s", (long long)i, why);
    }
  }
  return KW_OK;
}

kw_status kw_cuda_grouped_plan_problem(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  char reason[256] = "";
  const kw_grouped_gemm_problem* p = (const kw_grouped_gemm_problem*)problem;
  const kw_status status = kw_cuda_grouped_supports(kernel, problem, reason, sizeof(reason));
  if (status != KW_OK) return kw_cuda_fail(status, "%s: %s", kernel->name, reason);
  const kw_cuda_grouped_plan made = {p->group_count, p->alpha, p->beta, p->dtype_c, 0};
  memcpy(plan, &made, sizeof(made));
  return KW_OK;
}

kw_status kw_cuda_grouped_check_args(const kw_kernel* kernel, const kw_cuda_grouped_plan* plan,
                                     const kw_grouped_gemm_args* args) {
  if (args->struct_size < sizeof(*args) || args->group_count != plan->group_count) {
    return kw_cuda_fail(KW_INVALID_ARGUMENT, "args of %u bytes have %lld groups; ABI %u needs %u bytes, the plan %lld",
                        args->struct_size, (long long)args->group_count, KW_ABI_VERSION, (unsigned)sizeof(*args),
                        (long long)plan->group_count);
  }
  if (plan->group_count > 0 && (!args->groups || !args->a || !args->b || !args->d || (plan->beta != 0 && !args->c))) {
    return kw_cuda_fail(KW_INVALID_ARGUMENT, "groups, a, b, d, or c with beta %g, is null", plan->beta);
  }
  for (int64_t i = 0; i < plan->group_count; ++i) {
    const kw_gemm_group* g = &args->groups[i];
    if (g->m == 0 || g->n == 0) continue;
    const kw_gemm_problem one = single((const kw_gemm_traits*)kernel->traits, g, plan->alpha, plan->beta);
    const kw_gemm_args single_args = {.struct_size = sizeof(kw_gemm_args),
                                      .a = args->a[i],
                                      .b = args->b[i],
                                      .c = args->c ? args->c[i] : NULL,
                                      .d = args->d[i]};
    TRY(kw_cuda_gemm_check_args(&one, &single_args));
  }
  return KW_OK;
}

kw_status kw_cuda_group_without_k(const kw_kernel* kernel, const kw_cuda_grouped_plan* plan, const kw_gemm_group* group,
                                  const void* c, void* d, void* stream) {
  const kw_gemm_problem one = single((const kw_gemm_traits*)kernel->traits, group, plan->alpha, plan->beta);
  const kw_gemm_args args = {.struct_size = sizeof(kw_gemm_args), .c = c, .d = d};
  return kw_cuda_gemm_without_k(kernel, &one, &args, stream);
}
