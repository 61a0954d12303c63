// From structs of the C ABI to what the formulas of attention read: see estimate_attention in problem.hpp.
#include <stddef.h>

#include "kernelwright/attention/checks.h"
#include "kernelwright/dispatcher/attention/formulas/times.h"
#include "kernelwright/dispatcher/attention/problem.hpp"
#include "kernelwright/dispatcher/features.hpp"

namespace kernelwright {
namespace {

constexpr double kSlowDot = 3.7;  // as GEMM's formula has it

double real(int64_t value) { return static_cast<double>(value); }

// Kernels for CPUs multiply in fp32, but for those that need dot products of bf16.
kw_machine_Device device_for(const kw_kernel& kernel, const kw_attention_problem& p, const Place& place) {
  if (place.arch->backend != KW_BACKEND_CPU) return device_of(place, p.dtype_q);
  int length = 0;
  const bool dots = missing_feature("avx512_bf16", kernel.features, &length) == nullptr;
  kw_machine_Device device = device_of(place, dots ? KW_BF16 : KW_FP32);
  if (dots && place.slow_dots) device.rate /= kSlowDot;
  return device;
}

kw_attention_times_Problem problem_of(const kw_attention_problem& p) {
  kw_attention_times_Problem made = {};
  made.requests = real(p.batch > 0 ? p.batch : 1);
  made.heads_q = real(p.heads_q), made.heads_kv = real(p.heads_kv);
  made.queries = p.group != 0 ? real(p.total_q) / made.requests : real(p.max_seqlen_q);
  made.keys = p.total_k > 0 ? real(p.total_k) / made.requests : real(p.max_seqlen_k);
  made.hdim_q = real(p.hdim_q), made.hdim_v = real(p.hdim_v);
  made.size_q = kw_dtype_bytes(p.dtype_q), made.size_kv = kw_dtype_bytes(p.dtype_kv);
  made.size_o = kw_dtype_bytes(p.dtype_o);
  made.masked = p.mask != KW_MASK_NONE, made.bottom_right = p.mask == KW_MASK_BOTTOM_RIGHT;
  made.window_left = real(p.window_left), made.window_right = real(p.window_right);
  made.ragged = p.group != 0;
  made.splits = p.num_splits > 1 ? p.num_splits : 1;
  made.leaves_splits = p.leaves_splits == 1;
  made.dq_slices = p.dq_slices;
  return made;
}

double work(const kw_attention_traits& t) {
  const bool stated = t.struct_size > offsetof(kw_attention_traits, work_percent) && t.work_percent > 0;
  return stated ? t.work_percent / 100.0 : 1;
}

kw_attention_times_Kernel kernel_of(const kw_attention_traits& t, const Place& place, bool spare_mask) {
  return {times_of(*place.arch) == KW_TIMES_PROCESSORS,
          times_of(*place.arch) == KW_TIMES_HOPPER,
          1.0 * t.tile_m0,
          1.0 * t.tile_n0,
          1.0 * t.hdim_q,
          1.0 * t.hdim_v,
          t.blocks_per_cu > 1 ? 1.0 * t.blocks_per_cu : 1.0,
          t.packs_heads != 0,
          spare_mask,
          work(t),
          1.0 * t.selection_rank};
}

}  // namespace

uint32_t splits_that_fill(const kw_attention_traits& traits, const kw_attention_problem& problem, const Place& place) {
  const kw_machine_Device device = device_of(place, problem.dtype_q);
  return whole_count(kw_attention_times_splits_that_fill(problem_of(problem), kernel_of(traits, place, false), device));
}

Estimate estimate_attention(const kw_kernel& kernel, const kw_problem& problem, const Place& place) {
  const kw_attention_problem& p = as_attention(problem);
  const kw_attention_traits& t = attention_traits(kernel);
  const kw_attention_times_Problem asked = problem_of(p);
  const kw_attention_times_Kernel k = kernel_of(t, place, !kw_in_set(t.masks, kw_attention_mask_kind(&p)));
  const kw_machine_Device device = device_for(kernel, p, place);
  switch (problem.op) {
    case KW_OP_ATTENTION_PART:
      return estimate_of(kw_attention_times_part(asked, k, device));
    case KW_OP_ATTENTION_DQ_DK_DV:
      return estimate_of(kw_attention_times_gradients(asked, k, device));
    case KW_OP_ATTENTION_DOT:
      return estimate_of(kw_attention_times_dot(asked, k, device));
    case KW_OP_ATTENTION_COMBINE:
      return estimate_of(kw_attention_times_combine(asked, k, device));
    default:
      return estimate_of(kw_attention_times_convert(asked, k, device));
  }
}

Estimate estimate_append(const kw_kernel& kernel, const kw_problem& problem, const Place& place) {
  const kw_append_problem& p = as_append(problem);
  const double keys = real(p.heads_kv) * real(p.seqlen_new) * real(p.hdim_q + p.hdim_v);
  const double queries = real(p.heads_q) * real(p.seqlen_q) * real(p.hdim_q);
  const kw_attention_times_Kernel k = kernel_of(attention_traits(kernel), place, false);
  const double elements = real(p.batch) * (keys + queries), size = kw_dtype_bytes(p.dtype);
  return estimate_of(kw_attention_times_append(elements, size, k, device_of(place, p.dtype)));
}

}  // namespace kernelwright
