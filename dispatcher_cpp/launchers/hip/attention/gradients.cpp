// The kernels of CK Tile for attention's gradients.
#include "kernelwright/attention/checks.h"
#include "launchers/hip/attention/families.hpp"

namespace kernelwright::hip {
namespace {

constexpr int64_t kPartAlignment = 256;

// Tensors that the kernels of a stage read; the others' strides are left at 0.
void set_strides(const kw_attention_problem& p, kw_hip_gradient_arguments* x, int* lost) {
  const uint32_t op = p.base.op;
  const kw_attention_strides lse = per_row(p, 1);
  x->lse_head_stride = kw_as_int32(lse.head, lost), x->lse_batch_stride = kw_as_int32(lse.request, lost);
  if (op == KW_OP_ATTENTION_DOT) x->o_strides = strides_of(p.o, lost);
  if (op != KW_OP_ATTENTION_CONVERT_DQ) x->do_strides = strides_of(p.d_o, lost);
  if (op != KW_OP_ATTENTION_DOT && p.dq_slices != 0) {
    x->sums_strides = strides_of(per_row(p, p.hdim_q), lost);
    x->split_stride_sums = kw_as_int32(kw_mul(kw_attention_rows(&p), p.hdim_q), lost);
  }
  if (op == KW_OP_ATTENTION_CONVERT_DQ || p.dq_slices == 0) x->dq_strides = strides_of(p.dq, lost);
  if (op != KW_OP_ATTENTION_DQ_DK_DV) return;
  x->q_strides = strides_of(p.q, lost);
  x->k_strides = strides_of(p.k, lost), x->v_strides = strides_of(p.v, lost);
  x->dk_strides = strides_of(p.dk, lost), x->dv_strides = strides_of(p.dv, lost);
  x->bias_strides = strides_of(p.bias_strides, lost);
  x->dbias_strides = strides_of(p.dbias_strides, lost);
  if (p.random_bytes) x->random_strides = strides_of(per_row(p, p.max_seqlen_k), lost);
}

void set_problem(const kw_attention_problem& p, kw_hip_gradient_arguments* x, int* lost) {
  x->seqlen_q = kw_as_int32(p.max_seqlen_q, lost), x->seqlen_k = kw_as_int32(p.max_seqlen_k, lost);
  x->hdim_q = kw_as_int32(p.hdim_q, lost), x->hdim_v = kw_as_int32(p.hdim_v, lost);
  x->heads = kw_as_int32(p.heads_q, lost), x->head_ratio = kw_as_int32(p.heads_q / p.heads_kv, lost);
  x->slopes_batch_stride = kw_as_int32(p.slopes_stride, lost);
  set_mask(p, x);
  x->scale = static_cast<float>(p.scale), x->keep = static_cast<float>(1.0 - p.dropout_p);
}

// Gradients of K or V for each head of Q, dense and head by head; adding them up is described in `sum`. The bytes that
// they take.
uint64_t shared_heads(const kw_attention_problem& p, int64_t hdim, const kw_attention_strides& to,
                      kw_hip_attention_strides* own, kw_hip_head_sum_arguments* sum, int* lost) {
  const int64_t rows = p.group ? p.total_k : p.max_seqlen_k, batch = p.group ? 1 : p.batch;
  *own = strides_of(heads_first(batch, p.heads_q, rows, hdim), lost);
  sum->batch = kw_as_int32(batch, lost), sum->rows = kw_as_int32(rows, lost);
  sum->heads = kw_as_int32(p.heads_kv, lost), sum->hdim = kw_as_int32(hdim, lost);
  sum->head_ratio = kw_as_int32(p.heads_q / p.heads_kv, lost);
  sum->from_strides = *own, sum->to_strides = strides_of(to, lost);
  const int64_t elements = kw_mul3(kw_mul(batch, rows), p.heads_q, hdim);
  const int64_t parts = kw_parts(kw_mul(elements, kw_dtype_bytes(p.dtype_kv)), kPartAlignment);
  const int64_t bytes = kw_mul(parts, kPartAlignment);
  if (!kw_fits_int64(bytes)) *lost = 1;
  return static_cast<uint64_t>(bytes);
}

kw_status add_heads(const kw_hip_attention& kernel, const kw_launch* where, kw_hip_head_sum_arguments sum,
                    const void* from, void* to) {
  sum.from = from, sum.to = to;
  return launch_elements(kernel.beside, where, int64_t{sum.batch} * sum.rows * sum.heads * sum.hdim, &sum);
}

kw_hip_gradient_arguments arguments_of(const kw_hip_attention_plan& plan, const kw_attention_args& given) {
  kw_hip_gradient_arguments x = plan.arguments.gradients;
  x.q = given.q, x.k = given.k, x.v = given.v, x.o = given.o, x.d_o = given.d_o;
  x.lse = given.lse, x.d = given.d, x.dq_sums = given.dq_sums;
  x.dq = given.dq, x.dk = given.dk, x.dv = given.dv;
  x.bias = given.bias, x.dbias = given.dbias, x.random_bytes = given.random_bytes;
  x.seqstart_q = given.cu_seqlens_q, x.seqstart_k = given.cu_seqlens_k;
  x.seed = given.seed, x.offset = given.offset;
  return x;
}

}  // namespace

void plan_gradients(const kw_hip_attention& kernel, const kw_attention_problem& p, uint32_t rows,
                    kw_hip_attention_plan* made) {
  const kw_attention_traits& t = kernel.traits;
  kw_hip_gradient_arguments* x = &made->arguments.gradients;
  int* lost = &made->lost;
  set_problem(p, x, lost);
  set_strides(p, x, lost);
  made->grid[0] = kw_as_uint32(kw_parts(p.max_seqlen_q, rows), lost);
  made->grid[1] = kw_as_uint32(p.heads_q, lost), made->grid[2] = kw_as_uint32(p.batch, lost);
  if (t.family != KW_ATTENTION_BWD_DQ_DK_DV) return;
  made->grid[0] = t.max_seqlen_q ? 1 : kw_as_uint32(kw_parts(p.max_seqlen_k, rows), lost);
  made->sums = static_cast<uint64_t>(kw_as_int32(kw_mul3(p.dq_slices, kw_attention_rows(&p), p.hdim_q), lost));
  if (p.heads_q == p.heads_kv) return;
  made->adds_heads = 1;
  made->second_bytes = shared_heads(p, p.hdim_q, p.dk, &x->dk_strides, &made->first, lost);
  made->workspace_bytes = made->second_bytes + shared_heads(p, p.hdim_v, p.dv, &x->dv_strides, &made->second, lost);
}

kw_status launch_gradients(const kw_hip_attention& kernel, const kw_hip_attention_plan& plan, const kw_launch* where,
                           const kw_attention_args& given) {
  kw_hip_gradient_arguments x = arguments_of(plan, given);
  if (kernel.traits.family != KW_ATTENTION_BWD_DQ_DK_DV) return launch_planned(kernel, plan, where, &x);
  kw_hip_clear_arguments clear = {given.dq_sums, plan.sums};
  kw_status status = launch_elements(kernel.clear, where, static_cast<int64_t>(plan.sums), &clear);
  if (plan.grid[0] == 0 || status != KW_OK) return status;
  if (plan.adds_heads) {
    x.dk = where->workspace;
    x.dv = static_cast<char*>(where->workspace) + plan.second_bytes;
  }
  status = launch_planned(kernel, plan, where, &x);
  if (status != KW_OK || !plan.adds_heads) return status;
  status = add_heads(kernel, where, plan.first, x.dk, given.dk);
  return status == KW_OK ? add_heads(kernel, where, plan.second, x.dv, given.dv) : status;
}

}  // namespace kernelwright::hip
