/* The kernel of CK Tile that writes new keys into a cache. */
#include "kernelwright/hip/attention/launcher.h"

void kw_hip_plan_append(const kw_hip_attention* kernel, const kw_append_problem* p, kw_hip_attention_plan* made) {
  kw_hip_append_arguments* x = &made->arguments.append;
  const int64_t heads = p->rotates_q ? p->heads_q : p->heads_kv;
  x->seqlen_q = p->rotates_q ? (int32_t)p->seqlen_q : 0, x->seqlen_new = (int32_t)p->seqlen_new;
  x->hdim_q = (int32_t)p->hdim_q, x->hdim_v = (int32_t)p->hdim_v;
  x->heads = (int32_t)heads, x->head_ratio = p->heads_kv ? (int32_t)(heads / p->heads_kv) : 1;
  x->q_strides = kw_hip_strides(p->q_out);
  x->k_strides = kw_hip_strides(p->k_cache), x->v_strides = kw_hip_strides(p->v_cache);
  x->k_new_strides = kw_hip_strides(p->k), x->v_new_strides = kw_hip_strides(p->v);
  x->rotary_dim = (int32_t)p->rotary_dim, x->turn_by_row = 1;
  x->pages_stride = (int32_t)p->page_table_stride, x->page_size = (int32_t)p->page_size;
  const int64_t queries = kw_hip_tiles(x->seqlen_q, kernel->traits.tile_m0);
  const int64_t keys = kw_hip_tiles(p->seqlen_new, kernel->traits.tile_n0);
  made->grid[0] = (uint32_t)(queries > keys ? queries : keys);
  made->grid[1] = (uint32_t)heads, made->grid[2] = (uint32_t)p->batch;
  made->adds_heads = p->rotates_q && p->rope != KW_ROPE_NONE;
  made->first.batch = (int32_t)p->batch, made->first.rows = (int32_t)p->seqlen_q;
  made->first.heads = (int32_t)p->heads_q, made->first.hdim = (int32_t)p->hdim_q, made->first.head_ratio = 1;
  made->first.from_strides = kw_hip_strides(p->q), made->first.to_strides = kw_hip_strides(p->q_out);
}

/* Q is turned in place; a sum of one head is a copy. */
static kw_status copy_queries(const kw_hip_attention* kernel, const kw_hip_attention_plan* plan, const kw_launch* where,
                              const kw_append_args* given) {
  kw_hip_head_sum_arguments copy = plan->first;
  const int64_t count = (int64_t)copy.batch * copy.rows * copy.heads * copy.hdim;
  if (given->q == given->q_out || count == 0) return KW_OK;
  copy.from = given->q, copy.to = given->q_out;
  return kw_hip_launch(&kernel->beside, where, (uint32_t)kw_hip_tiles(count, KW_HIP_ATTENTION_BLOCK),
                       KW_HIP_ATTENTION_BLOCK, &copy, sizeof copy);
}

kw_status kw_hip_launch_append(const kw_hip_attention* kernel, const kw_hip_attention_plan* plan,
                               const kw_launch* where, const kw_append_args* given) {
  kw_hip_append_arguments x = plan->arguments.append;
  x.q = given->q_out, x.k = given->k_cache, x.v = given->v_cache, x.k_new = given->k, x.v_new = given->v;
  x.cosines = given->cos, x.sines = given->sin, x.lengths_k = given->seqlens_k, x.pages = given->page_table;
  const kw_status status = plan->adds_heads ? copy_queries(kernel, plan, where, given) : KW_OK;
  return status == KW_OK ? kw_hip_launch_planned(kernel, plan, where, &x, sizeof x) : status;
}
