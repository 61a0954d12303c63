// The memory that operands of attention occupy, as far as the problem tells: a list of pages may be of any length.
#include <stddef.h>

#include "kernelwright/attention/checks.h"
#include "kernelwright/dispatcher/attention/problem.hpp"
#include "kernelwright/widths.h"

namespace kernelwright {
namespace {

constexpr size_t kMostOperands = 24;

// A list that is being written.
class Listed {
 public:
  explicit Listed(Operand* operands) : operands_(operands) {}

  void tensor(const char* name, size_t member, uint32_t dtype, const kw_attention_strides& s, int64_t requests,
              int64_t heads, int64_t rows, int64_t hdim, bool written = false) {
    Operand& made = add(name, member, kw_dtype_bytes(dtype), hdim, written);
    made.extents[0] = requests, made.strides[0] = s.request;
    made.extents[1] = heads, made.strides[1] = s.head;
    made.extents[2] = rows, made.strides[2] = s.row;
    measure(&made);
  }
  void dense(const char* name, size_t member, int64_t elements, uint32_t item, bool written = false) {
    measure(&add(name, member, item, elements, written));
  }
  // `count` rows of `inner` elements.
  void table(const char* name, size_t member, int64_t count, int64_t stride, int64_t inner) {
    Operand& made = add(name, member, 4, inner, false);
    made.extents[0] = count, made.strides[0] = stride;
    measure(&made);
  }
  // The one that was added last may be the one before it.
  void in_place() { operands_[count_ - 1].in_place = static_cast<int64_t>(count_) - 2; }
  size_t count() const { return count_; }

 private:
  Operand& add(const char* name, size_t member, uint32_t item, int64_t inner, bool written) {
    Operand& made = operands_[count_++];
    made = Operand();
    made.name = name;
    made.member = static_cast<uint32_t>(member);
    made.item = item;
    made.inner = inner;
    made.written = written;
    return made;
  }

  Operand* operands_;
  size_t count_ = 0;
};

#define MEMBER(name) #name, offsetof(kw_attention_args, name)
#define APPEND_MEMBER(name) #name, offsetof(kw_append_args, name)

int64_t pages_of(int64_t keys, int64_t page_size) { return (keys + page_size - 1) / page_size; }

void add_tables(const kw_attention_problem& p, Listed* to) {
  if (p.bias == KW_BIAS_ALIBI) to->table(MEMBER(bias), p.slopes_stride != 0 ? p.batch : 1, p.slopes_stride, p.heads_q);
  if (p.sink != 0) to->dense(MEMBER(sinks), p.heads_q, 4);
  if (p.group != 0) to->dense(MEMBER(cu_seqlens_q), p.batch + 1, 4);
  if (p.group != 0 && p.page_table == KW_PAGES_NONE) to->dense(MEMBER(cu_seqlens_k), p.batch + 1, 4);
  if (p.kv_lengths != 0) to->dense(MEMBER(seqlens_k), p.batch, 4);
  if (p.page_table == KW_PAGES_BLOCK) {
    to->table(MEMBER(page_table), p.batch, p.page_table_stride, pages_of(p.max_seqlen_k, p.page_size));
  }
  if (p.page_table == KW_PAGES_LIST) {
    to->dense(MEMBER(page_indptr), p.batch + 1, 4);
    to->dense(MEMBER(last_page_lengths), p.batch, 4);
  }
}

// Factors that are one number, or follow from the problem; those of blocks and pages are not taken.
void add_factors(const kw_attention_problem& p, Listed* to) {
  if (p.qscale == KW_QSCALE_PER_TENSOR) {
    to->dense(MEMBER(descale_q), 1, 4);
    to->dense(MEMBER(descale_k), 1, 4);
    to->dense(MEMBER(descale_v), 1, 4);
  }
  if (kw_dtype_bytes(p.dtype_o) == 1) to->dense(MEMBER(scale_o), 1, 4);
}

}  // namespace

size_t attention_operands(const kw_problem& problem, Operand* operands) {
  if (operands == nullptr) return kMostOperands;
  const kw_attention_problem& p = as_attention(problem);
  const bool backward = is_backward(p.base.op), paged = p.page_table != KW_PAGES_NONE, group = p.group != 0;
  const bool vectorized = p.page_layout == KW_PAGE_VECTORIZED;
  const int64_t requests = group ? 1 : p.batch, rows = group ? p.total_q : p.max_seqlen_q;
  const int64_t requests_k = paged ? p.pages : requests;
  const int64_t keys = paged ? p.page_size : group ? p.total_k : p.max_seqlen_k;
  const int64_t rows_k = vectorized ? 1 : keys, inner = vectorized ? p.page_size : 1;
  const int64_t per_row = kw_attention_rows(&p);
  Listed to(operands);
  to.tensor(MEMBER(o), p.dtype_o, p.o, requests, p.heads_q, rows, p.hdim_v, !backward);
  to.tensor(MEMBER(q), p.dtype_q, p.q, requests, p.heads_q, rows, p.hdim_q);
  to.tensor(MEMBER(k), p.dtype_kv, p.k, requests_k, p.heads_kv, rows_k, kw_mul(p.hdim_q, inner));
  to.tensor(MEMBER(v), p.dtype_kv, p.v, requests_k, p.heads_kv, rows_k, kw_mul(p.hdim_v, inner));
  if (p.bias == KW_BIAS_ELEMENTWISE) {
    to.tensor(MEMBER(bias), p.dtype_bias, p.bias_strides, requests, p.heads_q, rows, p.max_seqlen_k);
  }
  if (p.lse != 0 || backward) to.dense(MEMBER(lse), per_row, 4, !backward);
  if (p.random_bytes != 0) to.dense(MEMBER(random_bytes), kw_mul(per_row, p.max_seqlen_k), 1, true);
  add_tables(p, &to);
  add_factors(p, &to);
  if (!backward) return to.count();
  to.tensor(MEMBER(d_o), p.dtype_o, p.d_o, requests, p.heads_q, rows, p.hdim_v);
  to.tensor(MEMBER(dq), p.dtype_q, p.dq, requests, p.heads_q, rows, p.hdim_q, true);
  to.tensor(MEMBER(dk), p.dtype_kv, p.dk, requests_k, p.heads_kv, rows_k, p.hdim_q, true);
  to.tensor(MEMBER(dv), p.dtype_kv, p.dv, requests_k, p.heads_kv, rows_k, p.hdim_v, true);
  if (p.dbias == 0) return to.count();
  to.tensor(MEMBER(dbias), p.dtype_bias, p.dbias_strides, requests, p.heads_q, rows, p.max_seqlen_k, true);
  return to.count();
}

size_t append_operands(const kw_problem& problem, Operand* operands) {
  if (operands == nullptr) return kMostOperands;
  const kw_append_problem& p = as_append(problem);
  const bool paged = p.page_table != KW_PAGES_NONE, vectorized = p.page_layout == KW_PAGE_VECTORIZED;
  const int64_t requests = paged ? p.pages : p.batch, inner = vectorized ? p.page_size : 1;
  const int64_t rows = vectorized ? 1 : paged ? p.page_size : p.capacity;
  Listed to(operands);
  if (p.rotates_q != 0) {
    to.tensor(APPEND_MEMBER(q_out), p.dtype, p.q_out, p.batch, p.heads_q, p.seqlen_q, p.hdim_q, true);
    to.tensor(APPEND_MEMBER(q), p.dtype, p.q, p.batch, p.heads_q, p.seqlen_q, p.hdim_q);
    to.in_place();
  }
  to.tensor(APPEND_MEMBER(k), p.dtype, p.k, p.batch, p.heads_kv, p.seqlen_new, p.hdim_q);
  to.tensor(APPEND_MEMBER(v), p.dtype, p.v, p.batch, p.heads_kv, p.seqlen_new, p.hdim_v);
  to.tensor(APPEND_MEMBER(k_cache), p.dtype, p.k_cache, requests, p.heads_kv, rows, kw_mul(p.hdim_q, inner), true);
  to.tensor(APPEND_MEMBER(v_cache), p.dtype, p.v_cache, requests, p.heads_kv, rows, kw_mul(p.hdim_v, inner), true);
  to.dense(APPEND_MEMBER(seqlens_k), p.batch, 4);
  if (paged) to.table(APPEND_MEMBER(page_table), p.batch, p.page_table_stride, pages_of(p.capacity, p.page_size));
  if (p.rope != KW_ROPE_NONE) {
    const int64_t turns = kw_mul(p.rotary_places, p.rotary_dim / 2);
    to.dense(APPEND_MEMBER(cos), turns, kw_dtype_bytes(p.dtype_rotary));
    to.dense(APPEND_MEMBER(sin), turns, kw_dtype_bytes(p.dtype_rotary));
  }
  return to.count();
}

}  // namespace kernelwright
