// Everything that can be wrong with a problem of attention, forward and backward.
#include <math.h>

#include "kernelwright/attention/checks.h"
#include "kernelwright/dispatcher/attention/problem.hpp"
#include "kernelwright/dispatcher/attention/problem_fields.hpp"
#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/widths.h"

namespace kernelwright {
namespace {

constexpr const char* kWhat = "attention problem";

long long wide(int64_t value) { return static_cast<long long>(value); }

kw_status refused(const char* why) { return fail(KW_INVALID_ARGUMENT, "%s: %s", kWhat, why); }

kw_status refused_number(const char* field, double value, const char* allowed) {
  return fail(KW_INVALID_ARGUMENT, "%s: %s = %g; allowed: %s", kWhat, field, value, allowed);
}

kw_status check_types(const kw_attention_problem& p) {
  if (p.version != KW_ATTENTION_VERSION) {
    return fail(KW_INVALID_ARGUMENT, "%s: version = %u; allowed: %u", kWhat, p.version, KW_ATTENTION_VERSION);
  }
  if (kw_status status = check_range(kWhat, kAttentionProblemFields, p.base)) return status;
  if (kw_status status = check_most(kWhat, "random_bytes", p.random_bytes, p.dropout)) return status;
  if (p.bias == KW_BIAS_ELEMENTWISE) return check_dtype(kWhat, "dtype_bias", p.dtype_bias);
  return p.dtype_bias == 0 ? KW_OK : refused("dtype_bias is not 0; allowed: with an elementwise bias only");
}

kw_status check_heads(const kw_attention_problem& p) {
  if (p.heads_q % p.heads_kv == 0) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "%s: heads_q = %lld; allowed: a multiple of heads_kv = %lld", kWhat, wide(p.heads_q),
              wide(p.heads_kv));
}

// Rows of all requests: at least the longest, at most all as long as it.
kw_status check_total(const kw_attention_problem& p, const char* field, int64_t total, int64_t longest) {
  if ((total >= longest || p.batch == 0) && total <= kw_mul(longest, p.batch)) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "%s: %s = %lld; allowed: from the longest request, %lld, to batch times that", kWhat,
              field, wide(total), wide(longest));
}

kw_status check_lengths(const kw_attention_problem& p) {
  const bool paged = p.page_table != KW_PAGES_NONE;
  if (p.group == 0) {
    if (p.total_q != 0 || p.total_k != 0) return refused("total_q or total_k is not 0; allowed: in group mode only");
    if (p.min_seqlen_q != 0) return refused("min_seqlen_q is not 0; allowed: in group mode only");
  } else {
    if (kw_status status = check_total(p, "total_q", p.total_q, p.max_seqlen_q)) return status;
    if (paged && p.total_k != 0) return refused("total_k is not 0; allowed with a page table: 0");
    // With lengths of their own, requests may have fewer keys than rows of K.
    if (!paged && p.kv_lengths == 0) {
      if (kw_status status = check_total(p, "total_k", p.total_k, p.max_seqlen_k)) return status;
    }
  }
  if (p.page_table == KW_PAGES_BLOCK && p.kv_lengths == 0)
    return refused("kv_lengths = 0; allowed with a block table: 1");
  if (p.page_table == KW_PAGES_LIST && p.kv_lengths != 0) return refused("kv_lengths = 1; allowed with a page list: 0");
  return check_pages(kWhat, p.pages, p.page_size, p.page_table_stride, p.page_table, p.page_layout, p.max_seqlen_k);
}

kw_status check_scores(const kw_attention_problem& p) {
  if (p.mask == KW_MASK_NONE && (p.window_left != -1 || p.window_right != -1)) {
    return refused("window_left or window_right is not -1; allowed: with a mask only");
  }
  if (!isfinite(p.scale)) return refused_number("scale", p.scale, "finite numbers");
  if (!isfinite(p.soft_cap) || p.soft_cap < 0) return refused_number("soft_cap", p.soft_cap, "0 or more, finite");
  if (!(p.dropout_p >= 0 && p.dropout_p < 1)) return refused_number("dropout_p", p.dropout_p, "from 0 to below 1");
  if (p.dropout == 0 && p.dropout_p != 0) return refused_number("dropout_p", p.dropout_p, "0 without dropout");
  if (p.slopes_stride != 0 && (p.bias != KW_BIAS_ALIBI || p.slopes_stride < p.heads_q)) {
    return refused("slopes_stride; allowed: 0, or heads_q or more with ALiBi");
  }
  const bool blocks = p.qscale == KW_QSCALE_BLOCK_SCALE;
  if (blocks != (p.scale_block_q > 0) || blocks != (p.scale_block_k > 0)) {
    return refused("scale_block_q or scale_block_k; allowed: above 0 with block scales, else 0");
  }
  if (p.qscale == KW_QSCALE_KV_BLOCK_SCALE && p.page_table == KW_PAGES_NONE) {
    return refused("qscale = 3; allowed: with a page table only");
  }
  return KW_OK;
}

// What only one direction has, and what only its stages have.
kw_status check_direction(const kw_attention_problem& p) {
  const uint32_t op = p.base.op;
  if (is_backward(op)) {
    if (p.lse != 0 || p.random_bytes != 0 || p.num_splits != 1 || p.min_seqlen_q != 0) {
      return refused("lse, random_bytes, num_splits or min_seqlen_q; allowed backward: 0, 0, 1, 0");
    }
    if (p.page_table != KW_PAGES_NONE || p.qscale != KW_QSCALE_NONE) {
      return refused("page_table or qscale is not 0; allowed backward: contiguous K and V without scales");
    }
    if (p.dbias != 0 && p.bias != KW_BIAS_ELEMENTWISE) return refused("dbias = 1; allowed: with an elementwise bias");
  } else if (p.dbias != 0 || p.deterministic != 0) {
    return refused("dbias or deterministic is not 0; allowed: backward only");
  }
  const uint32_t splits = op == KW_OP_ATTENTION_PART ? kSplitsOpen : 0;
  if (kw_status status = check_most(kWhat, "leaves_splits", p.leaves_splits, splits)) return status;
  const bool slices = op == KW_OP_ATTENTION_DQ_DK_DV || op == KW_OP_ATTENTION_CONVERT_DQ;
  return check_most(kWhat, "dq_slices", p.dq_slices, slices ? kDqOpen : 0);
}

kw_status check_unused(const char* name, const kw_attention_strides& s) {
  if (s.request == 0 && s.head == 0 && s.row == 0) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "%s: strides of %s are not 0; allowed: this problem has none", kWhat, name);
}

kw_status check_gradients(const kw_attention_problem& p, int64_t requests, int64_t rows, int64_t rows_k) {
  const AttentionTensor tensors[] = {{"dO", p.d_o, requests, p.heads_q, rows, p.hdim_v, false},
                                     {"dQ", p.dq, requests, p.heads_q, rows, p.hdim_q, true},
                                     {"dK", p.dk, requests, p.heads_kv, rows_k, p.hdim_q, true},
                                     {"dV", p.dv, requests, p.heads_kv, rows_k, p.hdim_v, true}};
  for (const AttentionTensor& tensor : tensors) {
    if (!is_backward(p.base.op)) {
      if (kw_status status = check_unused(tensor.name, tensor.strides)) return status;
    } else if (kw_status status = check_attention_tensor(kWhat, tensor)) {
      return status;
    }
  }
  if (p.dbias == 0) return check_unused("dbias", p.dbias_strides);
  return check_attention_tensor(kWhat, {"dbias", p.dbias_strides, requests, p.heads_q, rows, p.max_seqlen_k, true});
}

kw_status check_tensors(const kw_attention_problem& p) {
  const bool paged = p.page_table != KW_PAGES_NONE, group = p.group != 0;
  const int64_t requests = group ? 1 : p.batch, rows = group ? p.total_q : p.max_seqlen_q;
  const int64_t requests_k = paged ? p.pages : requests;
  const int64_t rows_k = paged ? p.page_size : group ? p.total_k : p.max_seqlen_k;
  const bool vectorized = p.page_layout == KW_PAGE_VECTORIZED;
  const int64_t inner = vectorized ? p.page_size : 1, outer = vectorized ? 1 : rows_k;
  const AttentionTensor tensors[] = {{"Q", p.q, requests, p.heads_q, rows, p.hdim_q, false},
                                     {"K", p.k, requests_k, p.heads_kv, outer, kw_mul(p.hdim_q, inner), false},
                                     {"V", p.v, requests_k, p.heads_kv, outer, kw_mul(p.hdim_v, inner), false},
                                     {"O", p.o, requests, p.heads_q, rows, p.hdim_v, !is_backward(p.base.op)}};
  for (const AttentionTensor& tensor : tensors) {
    if (kw_status status = check_attention_tensor(kWhat, tensor)) return status;
  }
  if (p.bias == KW_BIAS_ELEMENTWISE) {
    const AttentionTensor bias = {"bias", p.bias_strides, requests, p.heads_q, rows, p.max_seqlen_k, false};
    if (kw_status status = check_attention_tensor(kWhat, bias)) return status;
  } else if (kw_status status = check_unused("bias", p.bias_strides)) {
    return status;
  }
  return check_gradients(p, requests, rows, rows_k);
}

}  // namespace

kw_status validate_attention(const kw_problem& problem) {
  const kw_attention_problem& p = as_attention(problem);
  if (kw_status status = check_reserved(kWhat, p)) return status;
  if (kw_status status = check_types(p)) return status;
  if (kw_status status = check_heads(p)) return status;
  if (kw_status status = check_lengths(p)) return status;
  if (kw_status status = check_scores(p)) return status;
  if (kw_status status = check_direction(p)) return status;
  return check_tensors(p);
}

}  // namespace kernelwright
