// Which GEMM problems and arguments kernels take, those with TMA and those whose threads copy, and the launches that
// need no kernel; kernels launch themselves.
#include <cuda_runtime_api.h>
#include <string.h>

#include "kernelwright/cuda/gemm/launcher.h"
#include "kernelwright/gemm/checks.h"
#include "kernelwright/gemm/groups.h"
#include "launchers/cuda/common/checks.hpp"
#include "launchers/cuda/gemm/conditions.h"

static_assert(KW_CUDA_GEMM_ALIGNMENT == kernelwright::cuda::launchers::kAligned,
              "addresses are aligned as strides are");

namespace kernelwright::cuda::launchers {
namespace {

kw_status check_op(const kw_problem& problem, uint32_t op, const char* name, size_t bytes, reason why) {
  if (problem.op == op && problem.struct_size >= bytes) return KW_OK;
  return refuse(why, "op is %u of %u bytes; this kernel serves %s (%u, %u bytes)", problem.op, problem.struct_size,
                name, op, static_cast<unsigned>(bytes));
}

// A group as a problem of its own, so that the checks and the launch without K are the same.
kw_gemm_problem single(const kw_gemm_traits& t, const kw_gemm_group& g, double alpha, double beta) {
  kw_grouped_gemm_problem p = {};
  p.dtype_a = t.dtype_a, p.dtype_b = t.dtype_b, p.dtype_c = t.dtype_c, p.dtype_acc = t.dtype_acc;
  p.layout_a = t.layout_a, p.layout_b = t.layout_b, p.layout_c = t.layout_c;
  p.alpha = alpha, p.beta = beta;
  return kw_problem_of_group(&p, &g);
}

kw_status check_groups(const kw_gemm_traits& t, const kw_grouped_gemm_problem& p, reason why) {
  for (int64_t i = 0; i < p.group_count; ++i) {
    const kw_gemm_problem one = single(t, p.groups[i], p.alpha, p.beta);
    char text[224] = "";
    if (kw_cuda_gemm_sizes_fit(&one, text, sizeof text) != KW_OK)
      return refuse(why, "group %lld: %s", static_cast<long long>(i), text);
  }
  return KW_OK;
}

using check_function = kw_status (*)(const kw_gemm_traits*, const kw_gemm_problem*, char*, size_t);

kw_status supports(const kw_kernel* kernel, const kw_problem* problem, check_function check, char* text, size_t bytes) {
  const kw_status status = check_op(*problem, KW_OP_GEMM, "gemm", sizeof(kw_gemm_problem), {text, bytes});
  if (status != KW_OK) return status;
  return check(&held_by<kw_gemm_traits>(kernel), &as<kw_gemm_problem>(problem), text, bytes);
}

// Addresses of A, of B, and of C, D and further D are multiples of so many bytes.
struct alignments {
  uint32_t a, b, c;
};

kw_status check_pointers(const kw_gemm_problem& p, const kw_gemm_args* args, const alignments& of) {
  kw_status status = check_size(args);
  if (status == KW_OK)
    status = check_operands(
        {{"a", args->a, p.k > 0, of.a}, {"b", args->b, p.k > 0, of.b}, {"c", args->c, p.beta != 0, of.c}});
  for (uint32_t i = 0; i < p.num_d && status == KW_OK; ++i)
    status = check_operand({"a D tensor", args->multi_d[i], true, of.c});
  return status == KW_OK ? check_operand({"d", args->d, true, of.c}) : status;
}

// D = beta C of one product.
cudaError_t scale_c(const kw_gemm_problem& p, const void* c, void* d, cudaStream_t stream) {
  const size_t element = kw_dtype_bytes(p.dtype_c), rows = static_cast<size_t>(p.m);
  const size_t width = static_cast<size_t>(p.n) * element, pitch = static_cast<size_t>(p.ldc) * element;
  if (p.beta == 0) return cudaMemset2DAsync(d, pitch, 0, width, rows, stream);
  if (c == d) return cudaSuccess;
  return cudaMemcpy2DAsync(d, pitch, c, pitch, width, rows, cudaMemcpyDeviceToDevice, stream);
}

}  // namespace
}  // namespace kernelwright::cuda::launchers

using namespace kernelwright::cuda::launchers;

kw_status kw_cuda_gemm_supports(const kw_kernel* kernel, const kw_problem* problem, char* text, size_t bytes) {
  return supports(kernel, problem, kw_cuda_gemm_check, text, bytes);
}

kw_status kw_cuda_copied_gemm_supports(const kw_kernel* kernel, const kw_problem* problem, char* text, size_t bytes) {
  return supports(kernel, problem, kw_cuda_gemm_check_copied, text, bytes);
}

kw_status kw_cuda_gemm_plan_problem(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  char reason[256] = "";
  const kw_status status = kernel->supports(kernel, problem, reason, sizeof reason);
  if (status != KW_OK) return kw_cuda_fail(status, "%s: %s", kernel->name, reason);
  static_cast<kw_cuda_gemm_plan*>(plan)->problem = as<kw_gemm_problem>(problem);
  return KW_OK;
}

kw_status kw_cuda_gemm_check_args(const kw_gemm_problem* problem, const kw_gemm_args* args) {
  return check_pointers(*problem, args, {kAligned, kAligned, kAligned});
}

kw_status kw_cuda_copied_gemm_check_args(const kw_gemm_problem* problem, const kw_gemm_args* args) {
  const auto bytes = [](uint32_t dtype) { return static_cast<uint32_t>(kw_dtype_bytes(dtype)); };
  return check_pointers(*problem, args, {bytes(problem->dtype_a), bytes(problem->dtype_b), bytes(problem->dtype_c)});
}

kw_status kw_cuda_gemm_without_k(const kw_kernel* kernel, const kw_gemm_problem* problem, const kw_gemm_args* args,
                                 void* stream) {
  cudaError_t error = cudaSuccess;
  for (int64_t product = 0; product < problem->batch && error == cudaSuccess; ++product) {
    const size_t offset = static_cast<size_t>(product * problem->stride_c) * kw_dtype_bytes(problem->dtype_c);
    const char* c = args->c ? static_cast<const char*>(args->c) + offset : nullptr;
    error = scale_c(*problem, c, static_cast<char*>(args->d) + offset, static_cast<cudaStream_t>(stream));
  }
  return error == cudaSuccess ? KW_OK : kw_cuda_launch_failed(kernel, error);
}

kw_status kw_cuda_grouped_supports(const kw_kernel* kernel, const kw_problem* problem, char* text, size_t bytes) {
  const auto& traits = held_by<kw_gemm_traits>(kernel);
  const auto& p = as<kw_grouped_gemm_problem>(problem);
  kw_status status = check_op(*problem, KW_OP_GROUPED_GEMM, "grouped gemm", sizeof p, {text, bytes});
  if (status != KW_OK) return status;
  const kw_gemm_problem types = kw_types_of_groups(&p);
  status = kw_gemm_dtypes_match(&traits, &types, text, bytes);
  if (status == KW_OK) status = kw_gemm_layouts_match(&traits, &types, text, bytes);
  if (status == KW_OK) status = kw_cuda_gemm_extent_fits("group_count", p.group_count, text, bytes);
  return status == KW_OK ? check_groups(traits, p, {text, bytes}) : status;
}

kw_status kw_cuda_grouped_plan_problem(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  char reason[256] = "";
  const kw_status status = kw_cuda_grouped_supports(kernel, problem, reason, sizeof reason);
  if (status != KW_OK) return kw_cuda_fail(status, "%s: %s", kernel->name, reason);
  const auto& p = as<kw_grouped_gemm_problem>(problem);
  *static_cast<kw_cuda_grouped_plan*>(plan) = {p.group_count, p.alpha, p.beta, p.dtype_c, 0};
  return KW_OK;
}

kw_status kw_cuda_grouped_check_args(const kw_kernel*, const kw_cuda_grouped_plan* plan,
                                     const kw_grouped_gemm_args* args) {
  if (args->struct_size < sizeof *args || args->group_count != plan->group_count)
    return kw_cuda_fail(KW_INVALID_ARGUMENT, "args of %u bytes have %lld groups; ABI %u needs %u bytes, the plan %lld",
                        args->struct_size, static_cast<long long>(args->group_count), KW_ABI_VERSION,
                        static_cast<unsigned>(sizeof *args), static_cast<long long>(plan->group_count));
  if (plan->group_count > 0 && (!args->groups || !args->a || !args->b || !args->d || (plan->beta != 0 && !args->c)))
    return kw_cuda_fail(KW_INVALID_ARGUMENT, "groups, a, b, d, or c with beta %g, is null", plan->beta);
  for (int64_t i = 0; i < plan->group_count; ++i) {
    const kw_gemm_group& g = args->groups[i];
    if (g.m == 0 || g.n == 0) continue;
    const kw_status status = check_operands({{"a", args->a[i], g.k > 0},
                                             {"b", args->b[i], g.k > 0},
                                             {"c", args->c ? args->c[i] : nullptr, plan->beta != 0},
                                             {"d", args->d[i], true}});
    if (status != KW_OK) return status;
  }
  return KW_OK;
}

kw_status kw_cuda_group_without_k(const kw_kernel* kernel, const kw_cuda_grouped_plan* plan, const kw_gemm_group* group,
                                  const void* c, void* d, void* stream) {
  const kw_gemm_problem one = single(held_by<kw_gemm_traits>(kernel), *group, plan->alpha, plan->beta);
  const cudaError_t error = scale_c(one, c, d, static_cast<cudaStream_t>(stream));
  return error == cudaSuccess ? KW_OK : kw_cuda_launch_failed(kernel, error);
}
