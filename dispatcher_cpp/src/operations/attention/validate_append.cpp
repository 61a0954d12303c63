// Everything that can be wrong with a problem of appending keys to a cache.
#include "kernelwright/attention.h"
#include "kernelwright/dispatcher/attention/problem.hpp"
#include "kernelwright/dispatcher/attention/problem_fields.hpp"
#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/widths.h"

namespace kernelwright {
namespace {

constexpr const char* kWhat = "attention append problem";

long long wide(int64_t value) { return static_cast<long long>(value); }

kw_status refused(const char* why) { return fail(KW_INVALID_ARGUMENT, "%s: %s", kWhat, why); }

kw_status check_types(const kw_append_problem& p) {
  if (p.version != KW_ATTENTION_VERSION) {
    return fail(KW_INVALID_ARGUMENT, "%s: version = %u; allowed: %u", kWhat, p.version, KW_ATTENTION_VERSION);
  }
  if (kw_status status = check_range(kWhat, kAppendProblemFields, p.base)) return status;
  return check_most(kWhat, "rotates_q", p.rotates_q, p.rope == KW_ROPE_NONE ? 0 : 1);
}

kw_status check_counts(const kw_append_problem& p) {
  if (kw_status status = check_least(kWhat, "heads_q", p.heads_q, p.rotates_q)) return status;
  if (kw_status status = check_least(kWhat, "capacity", p.capacity, p.seqlen_new)) return status;
  if (p.rotates_q == 0 && (p.heads_q != 0 || p.seqlen_q != 0)) {
    return refused("heads_q or seqlen_q is not 0; allowed: where Q is rotated");
  }
  return KW_OK;
}

kw_status check_rotary(const kw_append_problem& p) {
  if (p.rope == KW_ROPE_NONE) {
    if (p.rotary_dim == 0 && p.rotary_places == 0 && p.dtype_rotary == 0) return KW_OK;
    return refused("rotary_dim, rotary_places or dtype_rotary is not 0; allowed: with rotary embedding only");
  }
  if (kw_status status = check_dtype(kWhat, "dtype_rotary", p.dtype_rotary)) return status;
  if (p.rotary_dim >= 2 && p.rotary_dim % 2 == 0 && p.rotary_dim <= p.hdim_q) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "%s: rotary_dim = %lld; allowed: an even number from 2 to hdim_q = %lld", kWhat,
              wide(p.rotary_dim), wide(p.hdim_q));
}

kw_status check_tensors(const kw_append_problem& p) {
  const bool paged = p.page_table != KW_PAGES_NONE, vectorized = p.page_layout == KW_PAGE_VECTORIZED;
  const int64_t requests = paged ? p.pages : p.batch, rows = vectorized ? 1 : paged ? p.page_size : p.capacity;
  const int64_t inner = vectorized ? p.page_size : 1;
  const AttentionTensor tensors[] = {{"Q", p.q, p.batch, p.heads_q, p.seqlen_q, p.hdim_q, false},
                                     {"rotated Q", p.q_out, p.batch, p.heads_q, p.seqlen_q, p.hdim_q, true},
                                     {"K", p.k, p.batch, p.heads_kv, p.seqlen_new, p.hdim_q, false},
                                     {"V", p.v, p.batch, p.heads_kv, p.seqlen_new, p.hdim_v, false},
                                     {"K cache", p.k_cache, requests, p.heads_kv, rows, kw_mul(p.hdim_q, inner), true},
                                     {"V cache", p.v_cache, requests, p.heads_kv, rows, kw_mul(p.hdim_v, inner), true}};
  for (const AttentionTensor& tensor : tensors) {
    if (kw_status status = check_attention_tensor(kWhat, tensor)) return status;
  }
  return KW_OK;
}

}  // namespace

kw_status validate_append(const kw_problem& problem) {
  const kw_append_problem& p = as_append(problem);
  if (kw_status status = check_reserved(kWhat, p)) return status;
  if (kw_status status = check_types(p)) return status;
  if (kw_status status = check_counts(p)) return status;
  if (kw_status status = check_rotary(p)) return status;
  if (kw_status status =
          check_pages(kWhat, p.pages, p.page_size, p.page_table_stride, p.page_table, p.page_layout, p.capacity)) {
    return status;
  }
  return check_tensors(p);
}

kw_status validate_append_args(const kw_problem& problem, const void* args) {
  const kw_append_problem& p = as_append(problem);
  const auto* given = static_cast<const kw_append_args*>(args);
  if (kw_status status = check_args("attention append args", "kw_append_args", given)) return status;
  if (p.batch == 0) return KW_OK;
  const bool rotary = p.rope != KW_ROPE_NONE, keys = p.seqlen_new > 0, queries = p.seqlen_q > 0;
  const struct {
    const char* name;
    const void* pointer;
    bool needed;
  } all[] = {{"q", given->q, queries},
             {"q_out", given->q_out, queries},
             {"k", given->k, keys},
             {"v", given->v, keys},
             {"k_cache", given->k_cache, keys},
             {"v_cache", given->v_cache, keys},
             {"seqlens_k", given->seqlens_k, keys || queries},
             {"page_table", given->page_table, keys && p.page_table != KW_PAGES_NONE},
             {"cos", given->cos, rotary && (keys || queries)},
             {"sin", given->sin, rotary && (keys || queries)}};
  for (const auto& each : all) {
    if (each.needed && each.pointer == nullptr) {
      return fail(KW_INVALID_ARGUMENT, "attention append args: %s is null; this problem needs it", each.name);
    }
  }
  return KW_OK;
}

}  // namespace kernelwright
