/* Which GEMM problems a TMA kernel serves, what it says otherwise, and the launches that need no kernel. */
#include "kernelwright/cuda/gemm/problem.h"

#include <cuda_runtime_api.h>
#include <string.h>

#include "kernelwright/gemm/checks.h"
#include "kernelwright/gemm/groups.h"
#include "launchers/cuda/common/refuse.h"
#include "launchers/cuda/gemm/conditions.h"

#define TRY(call)                     \
  do {                                \
    const kw_status tried = (call);   \
    if (tried != KW_OK) return tried; \
  } while (0)

kw_status kw_cuda_gemm_supports(const kw_kernel* kernel, const kw_problem* problem, char* text, size_t bytes) {
  const kw_gemm_traits* traits = (const kw_gemm_traits*)kernel->traits;
  const kw_gemm_problem* p = (const kw_gemm_problem*)problem;
  const kw_reason r = {text, bytes};
  if (p->base.op != KW_OP_GEMM || p->base.struct_size < sizeof(*p)) {
    return kw_cuda_refuse(r, "op is %u of %u bytes; this kernel serves gemm (%u, %u bytes)", p->base.op,
                          p->base.struct_size, (unsigned)KW_OP_GEMM, (unsigned)sizeof(*p));
  }
  return kw_cuda_gemm_check(traits, p, text, bytes);
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
  if ((uintptr_t)pointer % KW_CUDA_GEMM_ALIGNMENT == 0) return KW_OK;
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
  TRY(kw_cuda_gemm_extent_fits("group_count", p->group_count, text, bytes));
  for (int64_t i = 0; i < p->group_count; ++i) {
    const kw_gemm_problem one = single(traits, &p->groups[i], p->alpha, p->beta);
    char why[224] = "";
    if (kw_cuda_gemm_sizes_fit(&one, why, sizeof(why)) != KW_OK) {
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
