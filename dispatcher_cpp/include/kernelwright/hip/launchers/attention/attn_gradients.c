/* The kernels of CK Tile for attention's gradients. */
#include "kernelwright/attention/checks.h"
#include "kernelwright/hip/attention/launcher.h"

#define TOP_LEFT 1
#define BOTTOM_RIGHT 2
#define PART_ALIGNMENT 256

static void set_problem(const kw_attention_problem* p, kw_hip_gradient_arguments* x) {
  const kw_hip_attention_strides lse = kw_hip_per_row(p, 1);
  x->seqlen_q = (int32_t)p->max_seqlen_q, x->seqlen_k = (int32_t)p->max_seqlen_k;
  x->hdim_q = (int32_t)p->hdim_q, x->hdim_v = (int32_t)p->hdim_v;
  x->heads = (int32_t)p->heads_q, x->head_ratio = (int32_t)(p->heads_q / p->heads_kv);
  x->q_strides = kw_hip_strides(p->q), x->k_strides = kw_hip_strides(p->k), x->v_strides = kw_hip_strides(p->v);
  x->o_strides = kw_hip_strides(p->o), x->do_strides = kw_hip_strides(p->d_o);
  x->sums_strides = kw_hip_per_row(p, p->hdim_q), x->dq_strides = kw_hip_strides(p->dq);
  x->dk_strides = kw_hip_strides(p->dk), x->dv_strides = kw_hip_strides(p->dv);
  x->bias_strides = kw_hip_strides(p->bias_strides), x->dbias_strides = kw_hip_strides(p->dbias_strides);
  x->random_strides = kw_hip_per_row(p, p->max_seqlen_k);
  x->lse_head_stride = lse.head, x->lse_batch_stride = lse.batch;
  x->split_stride_sums = (int32_t)(kw_attention_rows(p) * p->hdim_q);
  x->slopes_batch_stride = (int32_t)p->slopes_stride;
  x->mask = p->mask == KW_MASK_TOP_LEFT ? TOP_LEFT : BOTTOM_RIGHT;
  x->window_left = kw_hip_width(p, p->window_left), x->window_right = kw_hip_width(p, p->window_right);
  /* See set_mask in attn_forward.c. */
  if (p->bias == KW_BIAS_ALIBI && p->window_left < 0 && p->window_right == 0)
    x->window_left = kw_hip_width(p, INT32_MAX);
  x->scale = (float)p->scale, x->keep = (float)(1.0 - p->dropout_p);
}

/* Gradients of K or V for each head of Q, dense; adding them up is described in `sum`. The bytes that they take. */
static uint64_t shared_heads(const kw_attention_problem* p, int64_t hdim, kw_attention_strides to,
                             kw_hip_attention_strides* own, kw_hip_head_sum_arguments* sum) {
  const int64_t rows = p->group ? p->total_k : p->max_seqlen_k, batch = p->group ? 1 : p->batch;
  own->head = (int32_t)hdim, own->row = (int32_t)(p->heads_q * hdim), own->batch = (int32_t)(rows * p->heads_q * hdim);
  sum->batch = (int32_t)batch, sum->rows = (int32_t)rows, sum->heads = (int32_t)p->heads_kv;
  sum->hdim = (int32_t)hdim, sum->head_ratio = (int32_t)(p->heads_q / p->heads_kv);
  sum->from_strides = *own, sum->to_strides = kw_hip_strides(to);
  const uint64_t bytes = (uint64_t)(batch * rows * p->heads_q * hdim) * kw_dtype_bytes(p->dtype_kv);
  return (bytes + PART_ALIGNMENT - 1) / PART_ALIGNMENT * PART_ALIGNMENT;
}

void kw_hip_plan_gradients(const kw_hip_attention* kernel, const kw_attention_problem* p, uint32_t rows,
                           kw_hip_attention_plan* made) {
  const kw_attention_traits* t = &kernel->traits;
  kw_hip_gradient_arguments* x = &made->arguments.gradients;
  set_problem(p, x);
  made->grid[0] = (uint32_t)kw_hip_tiles(p->max_seqlen_q, rows);
  made->grid[1] = (uint32_t)p->heads_q, made->grid[2] = (uint32_t)p->batch;
  if (t->family != KW_ATTENTION_BWD_DQ_DK_DV) return;
  made->grid[0] = t->max_seqlen_q ? 1 : (uint32_t)kw_hip_tiles(p->max_seqlen_k, rows);
  made->sums = (uint64_t)p->dq_slices * (uint64_t)(kw_attention_rows(p) * p->hdim_q);
  if (p->heads_q == p->heads_kv) return;
  made->adds_heads = 1;
  made->second_bytes = shared_heads(p, p->hdim_q, p->dk, &x->dk_strides, &made->first);
  made->workspace_bytes = made->second_bytes + shared_heads(p, p->hdim_v, p->dv, &x->dv_strides, &made->second);
}

static kw_status clear(const kw_hip_attention* kernel, const kw_hip_attention_plan* plan, const kw_launch* where,
                       float* to) {
  kw_hip_clear_arguments x = {to, plan->sums};
  const uint32_t grid = (uint32_t)((plan->sums + KW_HIP_ATTENTION_BLOCK - 1) / KW_HIP_ATTENTION_BLOCK);
  return grid == 0 ? KW_OK : kw_hip_launch(&kernel->clear, where, grid, KW_HIP_ATTENTION_BLOCK, &x, sizeof x);
}

static kw_status add_heads(const kw_hip_attention* kernel, const kw_launch* where, kw_hip_head_sum_arguments sum,
                           const void* from, void* to) {
  const int64_t count = (int64_t)sum.batch * sum.rows * sum.heads * sum.hdim;
  sum.from = from, sum.to = to;
  return kw_hip_launch(&kernel->beside, where, (uint32_t)kw_hip_tiles(count, KW_HIP_ATTENTION_BLOCK),
                       KW_HIP_ATTENTION_BLOCK, &sum, sizeof sum);
}

kw_status kw_hip_launch_gradients(const kw_hip_attention* kernel, const kw_hip_attention_plan* plan,
                                  const kw_launch* where, const kw_attention_args* given) {
  kw_hip_gradient_arguments x = plan->arguments.gradients;
  x.q = given->q, x.k = given->k, x.v = given->v, x.o = given->o, x.d_o = given->d_o;
  x.lse = given->lse, x.d = given->d, x.dq_sums = given->dq_sums;
  x.dq = given->dq, x.dk = given->dk, x.dv = given->dv;
  x.bias = given->bias, x.dbias = given->dbias, x.random_bytes = given->random_bytes;
  x.seqstart_q = given->cu_seqlens_q, x.seqstart_k = given->cu_seqlens_k;
  x.seed = given->seed, x.offset = given->offset;
  if (kernel->traits.family != KW_ATTENTION_BWD_DQ_DK_DV)
    return kw_hip_launch_planned(kernel, plan, where, &x, sizeof x);
  kw_status status = plan->sums ? clear(kernel, plan, where, given->dq_sums) : KW_OK;
  if (plan->grid[0] == 0 || status != KW_OK) return status;
  if (plan->adds_heads) {
    x.dk = where->workspace;
    x.dv = (char*)where->workspace + plan->second_bytes;
  }
  status = kw_hip_launch_planned(kernel, plan, where, &x, sizeof x);
  if (status != KW_OK || !plan->adds_heads) return status;
  status = add_heads(kernel, where, plan->first, x.dk, given->dk);
  return status == KW_OK ? add_heads(kernel, where, plan->second, x.dv, given->dv) : status;
}
