/* How attention problems are planned and launched by CK Tile kernels: what all families share. */
#include <stdio.h>
#include <string.h>

#include "kernelwright/attention/checks.h"
#include "kernelwright/hip/attention/launcher.h"
#include "launchers/hip/attention/conditions.h"

/* As the ABI promises. */
#define WORKSPACE_ALIGNMENT 256

static const kw_hip_attention* attention_of(const kw_kernel* kernel) { return (const kw_hip_attention*)kernel->traits; }

static const kw_attention_problem* posed(const kw_problem* problem) {
  return (const kw_attention_problem*)(const void*)problem;
}

static const kw_append_problem* appending(const kw_problem* problem) {
  return (const kw_append_problem*)(const void*)problem;
}

static size_t arguments_bytes(uint32_t family) {
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

static kw_status check(const kw_kernel* kernel, const kw_problem* problem, kw_hip_attention_facts* facts, char* reason,
                       size_t bytes) {
  const int append = kernel != NULL && kernel->op == KW_OP_ATTENTION_APPEND;
  const size_t needed = append ? sizeof(kw_append_problem) : sizeof(kw_attention_problem);
  if (!kernel || !problem || problem->op != kernel->op || problem->struct_size < needed) {
    snprintf(reason, bytes, "the problem is not one of this kernel's operation and ABI version");
    return KW_INVALID_ARGUMENT;
  }
  const kw_hip_attention* own = attention_of(kernel);
  if (!kw_hip_read_facts(own->codes, facts, sizeof *facts) || facts->magic != KW_HIP_ATTENTION_FACTS_MAGIC ||
      facts->arguments_bytes != arguments_bytes(own->traits.family) || facts->rows == 0) {
    snprintf(reason, bytes, "the code object of this kernel is damaged");
    return KW_LOAD_FAILED;
  }
  return append ? kw_hip_attention_append_check(&own->traits, appending(problem), own->aligned, reason, bytes)
                : kw_hip_attention_check(&own->traits, posed(problem), own->aligned, reason, bytes);
}

/* Checks the problem and plans it; arguments that lose a bit refuse it too, whoever should have seen it before. */
static kw_status plan_of(const kw_kernel* kernel, const kw_problem* problem, kw_hip_attention_plan* made, char* reason,
                         size_t bytes) {
  kw_hip_attention_facts facts;
  const kw_status status = check(kernel, problem, &facts, reason, bytes);
  if (status != KW_OK) return status;
  const kw_hip_attention* own = attention_of(kernel);
  memset(made, 0, sizeof *made);
  made->block = facts.block_size;
  if (kernel->op == KW_OP_ATTENTION_APPEND)
    kw_hip_plan_append(own, appending(problem), made);
  else if (kernel->op == KW_OP_ATTENTION_PART)
    kw_hip_plan_part(own, posed(problem), made);
  else if (kernel->op == KW_OP_ATTENTION_COMBINE)
    kw_hip_plan_combine(own, posed(problem), facts.rows, made);
  else
    kw_hip_plan_gradients(own, posed(problem), facts.rows, made);
  if (made->lost || !kw_fits_uint32(kw_mul(made->grid[0], made->block))) {
    snprintf(reason, bytes, "a product of lengths and strides does not fit into the argument of the kernel");
    return KW_UNSUPPORTED;
  }
  if (made->grid[1] == 0 || made->grid[2] == 0) made->grid[0] = 0;
  return KW_OK;
}

kw_status kw_hip_attention_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                    size_t reason_bytes) {
  kw_hip_attention_plan unused_plan;
  char unused[1];
  if (!reason || reason_bytes == 0) return plan_of(kernel, problem, &unused_plan, unused, sizeof unused);
  reason[0] = '\0';
  return plan_of(kernel, problem, &unused_plan, reason, reason_bytes);
}

kw_status kw_hip_attention_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan) {
  kw_hip_attention_plan made;
  char reason[256] = "";
  if (!plan) return kw_hip_fail(KW_INVALID_ARGUMENT, "plan must not be null");
  const kw_status status = plan_of(kernel, problem, &made, reason, sizeof reason);
  if (status != KW_OK) return kw_hip_fail(status, "%s", reason);
  memcpy(plan, &made, sizeof made);
  return KW_OK;
}

kw_status kw_hip_attention_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  kw_hip_attention_plan made;
  if (!problem || !bytes) return kw_hip_fail(KW_INVALID_ARGUMENT, "problem and bytes must not be null");
  const kw_status status = kw_hip_attention_make_plan(kernel, problem, &made);
  *bytes = status == KW_OK ? made.workspace_bytes : 0;
  return status;
}

kw_status kw_hip_launch_planned(const kw_hip_attention* kernel, const kw_hip_attention_plan* plan,
                                const kw_launch* where, void* arguments, size_t bytes) {
  if (plan->grid[0] == 0) return KW_OK;
  return kw_hip_launch_grid(&kernel->codes[plan->code], where, plan->grid, plan->block, arguments, bytes);
}

static kw_status check_workspace(const kw_hip_attention_plan* made, const kw_launch* where) {
  if (made->workspace_bytes == 0) return KW_OK;
  if (!where->workspace || where->workspace_bytes < made->workspace_bytes)
    return kw_hip_fail(KW_WORKSPACE_TOO_SMALL, "the workspace has %llu bytes, this problem takes %llu",
                       where->workspace ? (unsigned long long)where->workspace_bytes : 0ull,
                       (unsigned long long)made->workspace_bytes);
  if ((uintptr_t)where->workspace % WORKSPACE_ALIGNMENT != 0)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "the workspace must be aligned to %d bytes", WORKSPACE_ALIGNMENT);
  return KW_OK;
}

static kw_status check_aligned(uint32_t aligned, const void* const* pointers, int count) {
  for (int i = 0; i < count; ++i)
    if ((uintptr_t)pointers[i] % aligned != 0)
      return kw_hip_fail(KW_INVALID_ARGUMENT, "tensors must be aligned to %u bytes", aligned);
  return KW_OK;
}

kw_status kw_hip_attention_launch(const kw_kernel* kernel, const void* plan, const kw_launch* where, const void* args) {
  const kw_hip_attention_plan* made = (const kw_hip_attention_plan*)plan;
  const kw_attention_args* given = (const kw_attention_args*)args;
  const kw_append_args* new_rows = (const kw_append_args*)args;
  const int append = kernel != NULL && kernel->op == KW_OP_ATTENTION_APPEND;
  const size_t needed = append ? sizeof *new_rows : sizeof *given;
  if (!kernel || !made || !kw_hip_is_launch(where) || !given || given->struct_size < needed)
    return kw_hip_fail(KW_INVALID_ARGUMENT, "kernel, plan, launch and args must be those of this ABI version");
  const kw_hip_attention* own = attention_of(kernel);
  kw_status status = check_workspace(made, where);
  if (status != KW_OK) return status;
  if (append) {
    const void* const all[] = {new_rows->q, new_rows->q_out,   new_rows->k,
                               new_rows->v, new_rows->k_cache, new_rows->v_cache};
    status = check_aligned(own->aligned, all, 6);
    return status == KW_OK ? kw_hip_launch_append(own, made, where, new_rows) : status;
  }
  const void* const all[] = {given->q,  given->k,  given->v,  given->o,    given->d_o,
                             given->dq, given->dk, given->dv, given->bias, given->dbias};
  status = check_aligned(own->aligned, all, 10);
  if (status != KW_OK) return status;
  if (kernel->op == KW_OP_ATTENTION_PART) return kw_hip_launch_part(own, made, where, given);
  if (kernel->op == KW_OP_ATTENTION_COMBINE) return kw_hip_launch_combine(own, made, where, given);
  return kw_hip_launch_gradients(own, made, where, given);
}
