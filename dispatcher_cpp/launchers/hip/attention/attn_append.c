/* The kernel of CK Tile that writes new keys into a cache. */
#include "kernelwright/hip/attention/launcher.h"

void kw_hip_plan_append(const kw_hip_attention* kernel, const kw_append_problem* p, kw_hip_attention_plan* made) {
  kw_hip_append_arguments* x = &made->arguments.append;
  int* lost = &made->lost;
  const int64_t heads = p->rotates_q ? p->heads_q : p->heads_kv;
  x->seqlen_q = p->rotates_q ? kw_as_int32(p->seqlen_q, lost) : 0, x->seqlen_new = kw_as_int32(p->seqlen_new, lost);
  x->hdim_q = kw_as_int32(p->hdim_q, lost), x->hdim_v = kw_as_int32(p->hdim_v, lost);
  x->heads = kw_as_int32(heads, lost), x->head_ratio = p->heads_kv ? kw_as_int32(heads / p->heads_kv, lost) : 1;
  x->q_strides = kw_hip_strides(p->q_out, lost);
  x->k_strides = kw_hip_strides(p->k_cache, lost), x->v_strides = kw_hip_strides(p->v_cache, lost);
  x->k_new_strides = kw_hip_strides(p->k, lost), x->v_new_strides = kw_hip_strides(p->v, lost);
  x->rotary_dim = kw_as_int32(p->rotary_dim, lost), x->turn_by_row = 1;
  x->pages_stride = kw_as_int32(p->page_table_stride, lost), x->page_size = kw_as_int32(p->page_size, lost);
  const int64_t queries = kw_hip_tiles(x->seqlen_q, kernel->traits.tile_m0);
  const int64_t keys = kw_hip_tiles(p->seqlen_new, kernel->traits.tile_n0);
  made->grid[0] = kw_as_uint32(queries > keys ? queries : keys, lost);
  made->grid[1] = kw_as_uint32(heads, lost), made->grid[2] = kw_as_uint32(p->batch, lost);
  made->adds_heads = p->rotates_q && p->rope != KW_ROPE_NONE;
  if (!made->adds_heads) return;
  made->first.batch = kw_as_int32(p->batch, lost), made->first.rows = kw_as_int32(p->seqlen_q, lost);
  made->first.heads = kw_as_int32(p->heads_q, lost), made->first.hdim = x->hdim_q, made->first.head_ratio = 1;
  made->first.from_strides = kw_hip_strides(p->q, lost), made->first.to_strides = kw_hip_strides(p->q_out, lost);
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
