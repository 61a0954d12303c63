// What is checked before a kernel touches memory: problems, launches, arguments.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_CHECKS_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_CHECKS_HPP

#include "kernelwright/attention/checks.h"
#include "kernelwright/cpu/attention/kernel.hpp"
#include "kernelwright/cpu/launchers/common/library.hpp"

namespace kernelwright::cpu {

inline const attention_kernel& kernel_of(const kw_kernel* kernel) {
  return *static_cast<const attention_kernel*>(kernel->traits);
}

inline kw_status refused(char* reason, size_t bytes, const char* field, int64_t value, const char* allowed) {
  return fail(KW_INVALID_ARGUMENT, reason, bytes, "%s is %lld; allowed: %s", field, static_cast<long long>(value),
              allowed);
}

// Places of keys are compared in fp32.
constexpr int64_t kMaxKeys = 1 << 24;

// What the drivers divide by and index with. The dispatcher says more about an invalid problem.
inline kw_status check_sizes(const kw_attention_problem& p, char* reason, size_t bytes) {
  if (p.batch < 0) return refused(reason, bytes, "batch", p.batch, "0 or more");
  if (p.heads_kv < 1 || p.heads_q < 1 || p.heads_q % p.heads_kv != 0)
    return refused(reason, bytes, "heads_q", p.heads_q, "multiples of heads_kv, which is 1 or more");
  if (p.hdim_q < 1 || p.hdim_v < 1) return refused(reason, bytes, "hdim_q or hdim_v", p.hdim_q, "1 or more");
  if (p.max_seqlen_q < 0 || p.max_seqlen_q > kMaxKeys)
    return refused(reason, bytes, "max_seqlen_q", p.max_seqlen_q, "0 to 2^24");
  if (p.max_seqlen_k < 0 || p.max_seqlen_k > kMaxKeys)
    return refused(reason, bytes, "max_seqlen_k", p.max_seqlen_k, "0 to 2^24");
  if (p.page_table != KW_PAGES_NONE && p.page_size < 1)
    return refused(reason, bytes, "page_size", p.page_size, "1 or more");
  if (p.dropout != 0 && !(p.dropout_p >= 0 && p.dropout_p < 1))
    return fail(KW_INVALID_ARGUMENT, reason, bytes, "dropout_p is %g; allowed: 0 or more, below 1", p.dropout_p);
  return KW_OK;
}

inline kw_status check_problem(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  if (kernel == nullptr || problem == nullptr) {
    return fail(KW_INVALID_ARGUMENT, reason, bytes, "kernel or problem is a null pointer");
  }
  if (problem->op != kernel->op || problem->struct_size < sizeof(kw_attention_problem)) {
    return fail(KW_UNSUPPORTED, reason, bytes, "op is %u with %u bytes, but this kernel serves %s (%u) with %zu",
                problem->op, problem->struct_size, kw_attention_op_name(kernel->op), kernel->op,
                sizeof(kw_attention_problem));
  }
  const auto& p = *reinterpret_cast<const kw_attention_problem*>(problem);
  const attention_kernel& k = kernel_of(kernel);
  char why[256] = "";
  kw_status status = check_sizes(p, reason, bytes);
  if (status != KW_OK) return status;
  status = kw_attention_traits_match(&k.traits, &p, why, sizeof(why));
  if (status != KW_OK) return fail(status, reason, bytes, "%s", why);
  if ((k.required_features & ~this_processor().features) != 0) {
    return fail(KW_UNSUPPORTED, reason, bytes, "the processor lacks %s, which this kernel needs", kernel->features);
  }
  return KW_OK;
}

inline kw_status check_launch(const kw_launch& launch, uint64_t workspace_bytes) {
  if (launch.struct_size < sizeof(kw_launch)) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "launch.struct_size is %u, below %zu", launch.struct_size,
                sizeof(kw_launch));
  }
  if (launch.device != 0) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "device is %d, but the processor is device 0", launch.device);
  }
  if (launch.workspace_bytes < workspace_bytes) {
    return fail(KW_WORKSPACE_TOO_SMALL, nullptr, 0, "workspace_bytes is %llu, but this plan needs %llu",
                static_cast<unsigned long long>(launch.workspace_bytes),
                static_cast<unsigned long long>(workspace_bytes));
  }
  const bool aligned = reinterpret_cast<uintptr_t>(launch.workspace) % 256 == 0;
  if (workspace_bytes != 0 && (launch.workspace == nullptr || !aligned)) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "workspace %p is not aligned to 256 bytes", launch.workspace);
  }
  return KW_OK;
}

// An operand that a problem has, by name.
struct operand {
  const char* name;
  const void* at;
  bool needed;
};

template <int Count>
kw_status check_operands(const operand (&operands)[Count]) {
  for (const operand& one : operands) {
    if (one.needed && one.at == nullptr) {
      return fail(KW_INVALID_ARGUMENT, nullptr, 0, "%s is a null pointer, and the problem has it", one.name);
    }
  }
  return KW_OK;
}

inline kw_status check_attention_args(const kw_attention_problem& p, const kw_attention_args& a) {
  if (a.struct_size < sizeof(kw_attention_args)) {
    return fail(KW_INVALID_ARGUMENT, nullptr, 0, "args.struct_size is %u, below %zu", a.struct_size, sizeof a);
  }
  const uint32_t op = p.base.op;
  const bool part = op == KW_OP_ATTENTION_PART, has_rows = kw_attention_rows(&p) != 0;
  const bool keys = p.max_seqlen_k != 0 && has_rows, paged = p.page_table != KW_PAGES_NONE;
  const bool splits = p.leaves_splits != 0;
  const operand operands[] = {
      {"q", a.q, part && has_rows},
      {"k", a.k, part && keys},
      {"v", a.v, part && keys},
      {"o", a.o, part && has_rows && !splits},
      {"o_splits", a.o_splits, part && has_rows && splits},
      {"lse_splits", a.lse_splits, part && has_rows && splits},
      {"lse", a.lse, part && has_rows && p.lse != 0 && !splits},
      {"bias", a.bias, part && has_rows && p.bias != KW_BIAS_NONE},
      {"sinks", a.sinks, part && has_rows && p.sink != 0},
      {"cu_seqlens_q", a.cu_seqlens_q, p.group != 0},
      {"cu_seqlens_k", a.cu_seqlens_k, part && p.group != 0 && !paged},
      {"seqlens_k", a.seqlens_k, part && p.kv_lengths != 0},
      {"page_table", a.page_table, part && keys && paged},
      {"page_indptr", a.page_indptr, part && p.page_table == KW_PAGES_LIST},
      {"last_page_lengths", a.last_page_lengths, part && p.page_table == KW_PAGES_LIST},
  };
  return check_operands(operands);
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_ATTENTION_CHECKS_HPP
