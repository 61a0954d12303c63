// How attention problems are planned and launched by CK Tile kernels: what all families share.
#include "kernelwright/attention/checks.h"
#include "launchers/hip/attention/conditions.h"
#include "launchers/hip/attention/families.hpp"

namespace kernelwright::hip {
namespace {

size_t arguments_bytes(uint32_t family) {
  switch (family) {
    case KW_ATTENTION_FWD_SPLITKV_COMBINE:
      return sizeof(kw_hip_combine_arguments);
    case KW_ATTENTION_FWD_APPENDKV:
      return sizeof(kw_hip_append_arguments);
    case KW_ATTENTION_BWD_DOT_DO_O:
    case KW_ATTENTION_BWD_DQ_DK_DV:
    case KW_ATTENTION_BWD_CONVERT_DQ:
      return sizeof(kw_hip_gradient_arguments);
    default:
      return sizeof(kw_hip_attention_arguments);
  }
}

kw_status check(const kw_kernel* kernel, const kw_problem* problem, kw_hip_attention_facts* facts, char* reason,
                size_t bytes) {
  const bool append = kernel != nullptr && kernel->op == KW_OP_ATTENTION_APPEND;
  const size_t needed = append ? sizeof(kw_append_problem) : sizeof(kw_attention_problem);
  if (!kernel || !problem || problem->op != kernel->op || problem->struct_size < needed) {
    snprintf(reason, bytes, "the problem is not one of this kernel's operation and ABI version");
    return KW_INVALID_ARGUMENT;
  }
  const auto& own = held_by<kw_hip_attention>(kernel);
  if (!kw_hip_read_facts(own.codes, facts, sizeof *facts) || facts->magic != KW_HIP_ATTENTION_FACTS_MAGIC ||
      facts->arguments_bytes != arguments_bytes(own.traits.family) || facts->rows == 0) {
    snprintf(reason, bytes, "the code object of this kernel is damaged");
    return KW_LOAD_FAILED;
  }
  return append
             ? kw_hip_attention_append_check(&own.traits, &as<kw_append_problem>(problem), own.aligned, reason, bytes)
             : kw_hip_attention_check(&own.traits, &as<kw_attention_problem>(problem), own.aligned, reason, bytes);
}

// Arguments that lose a bit refuse the problem, too, whoever should have seen it before.
kw_status plan_of(const kw_kernel* kernel, const kw_problem* problem, kw_hip_attention_plan* made, char* reason,
                  size_t bytes) {
  kw_hip_attention_facts facts;
  const kw_status status = check(kernel, problem, &facts, reason, bytes);
  if (status != KW_OK) return status;
  const auto& own = held_by<kw_hip_attention>(kernel);
  const auto& p = as<kw_attention_problem>(problem);
  made->block = facts.block_size;
  if (kernel->op == KW_OP_ATTENTION_APPEND)
    plan_append(own, as<kw_append_problem>(problem), made);
  else if (kernel->op == KW_OP_ATTENTION_PART)
    plan_part(own, p, made);
  else if (kernel->op == KW_OP_ATTENTION_COMBINE)
    plan_combine(own, p, facts.rows, made);
  else
    plan_gradients(own, p, facts.rows, made);
  if (made->lost || !kw_fits_uint32(kw_mul(made->grid[0], made->block))) {
    snprintf(reason, bytes, "a product of lengths and strides does not fit into the argument of the kernel");
    return KW_UNSUPPORTED;
  }
  if (made->grid[1] == 0 || made->grid[2] == 0) made->grid[0] = 0;
  return KW_OK;
}

kw_status check_aligned(uint32_t aligned, uintptr_t bits) {
  if (bits % aligned == 0) return KW_OK;
  return kw_hip_fail(KW_INVALID_ARGUMENT, "tensors must be aligned to %u bytes", aligned);
}

kw_status launch_new_rows(const kw_kernel* kernel, const void* plan, const kw_launch* where,
                          const kw_append_args* given) {
  kw_status status = check_launch(kernel, plan, where, given);
  if (status != KW_OK) return status;
  const auto& own = held_by<kw_hip_attention>(kernel);
  const auto& made = *static_cast<const kw_hip_attention_plan*>(plan);
  status = check_workspace(*where, made.workspace_bytes, "this problem takes");
  if (status == KW_OK)
    status =
        check_aligned(own.aligned, bits_of(given->q, given->q_out, given->k, given->v, given->k_cache, given->v_cache));
  return status == KW_OK ? launch_append(own, made, where, *given) : status;
}

}  // namespace
}  // namespace kernelwright::hip

using namespace kernelwright::hip;

kw_status kw_hip_attention_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                    size_t reason_bytes) {
  return supports(plan_of, kernel, problem, reason, reason_bytes);
}

kw_status kw_hip_attention_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  return workspace_size(plan_of, true, kernel, problem, bytes);
}

kw_status kw_hip_attention_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  return make_plan(plan_of, kernel, problem, plan);
}

kw_status kw_hip_attention_launch(const kw_kernel* kernel, const void* plan, const kw_launch* where, const void* args) {
  if (kernel && kernel->op == KW_OP_ATTENTION_APPEND)
    return launch_new_rows(kernel, plan, where, static_cast<const kw_append_args*>(args));
  const auto* x = static_cast<const kw_attention_args*>(args);
  kw_status status = check_launch(kernel, plan, where, x);
  if (status != KW_OK) return status;
  const auto& own = held_by<kw_hip_attention>(kernel);
  const auto& made = *static_cast<const kw_hip_attention_plan*>(plan);
  status = check_workspace(*where, made.workspace_bytes, "this problem takes");
  if (status == KW_OK)
    status =
        check_aligned(own.aligned, bits_of(x->q, x->k, x->v, x->o, x->d_o, x->dq, x->dk, x->dv, x->bias, x->dbias));
  if (status != KW_OK) return status;
  if (kernel->op == KW_OP_ATTENTION_PART) return launch_part(own, made, where, *x);
  if (kernel->op == KW_OP_ATTENTION_COMBINE) return launch_combine(own, made, where, *x);
  return launch_gradients(own, made, where, *x);
}
