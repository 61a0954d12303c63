// The kernel of CK Tile that writes new keys into a cache.
#include "launchers/hip/attention/families.hpp"

namespace kernelwright::hip {

void plan_append(const kw_hip_attention& kernel, const kw_append_problem& p, kw_hip_attention_plan* made) {
  kw_hip_append_arguments* x = &made->arguments.append;
  int* lost = &made->lost;
  const int64_t heads = p.rotates_q ? p.heads_q : p.heads_kv;
  x->seqlen_q = p.rotates_q ? kw_as_int32(p.seqlen_q, lost) : 0, x->seqlen_new = kw_as_int32(p.seqlen_new, lost);
  x->hdim_q = kw_as_int32(p.hdim_q, lost), x->hdim_v = kw_as_int32(p.hdim_v, lost);
  x->heads = kw_as_int32(heads, lost), x->head_ratio = p.heads_kv ? kw_as_int32(heads / p.heads_kv, lost) : 1;
  x->q_strides = strides_of(p.q_out, lost);
  x->k_strides = strides_of(p.k_cache, lost), x->v_strides = strides_of(p.v_cache, lost);
  x->k_new_strides = strides_of(p.k, lost), x->v_new_strides = strides_of(p.v, lost);
  x->rotary_dim = kw_as_int32(p.rotary_dim, lost), x->turn_by_row = 1;
  x->pages_stride = kw_as_int32(p.page_table_stride, lost), x->page_size = kw_as_int32(p.page_size, lost);
  const int64_t queries = kw_parts(x->seqlen_q, kernel.traits.tile_m0);
  const int64_t keys = kw_parts(p.seqlen_new, kernel.traits.tile_n0);
  made->grid[0] = kw_as_uint32(kw_larger(queries, keys), lost);
  made->grid[1] = kw_as_uint32(heads, lost), made->grid[2] = kw_as_uint32(p.batch, lost);
  made->adds_heads = p.rotates_q && p.rope != KW_ROPE_NONE;
  if (!made->adds_heads) return;
  made->first.batch = kw_as_int32(p.batch, lost), made->first.rows = kw_as_int32(p.seqlen_q, lost);
  made->first.heads = kw_as_int32(p.heads_q, lost), made->first.hdim = x->hdim_q, made->first.head_ratio = 1;
  made->first.from_strides = strides_of(p.q, lost), made->first.to_strides = strides_of(p.q_out, lost);
}

kw_status launch_append(const kw_hip_attention& kernel, const kw_hip_attention_plan& plan, const kw_launch* where,
                        const kw_append_args& given) {
  kw_hip_append_arguments x = plan.arguments.append;
  x.q = given.q_out, x.k = given.k_cache, x.v = given.v_cache, x.k_new = given.k, x.v_new = given.v;
  x.cosines = given.cos, x.sines = given.sin, x.lengths_k = given.seqlens_k, x.pages = given.page_table;
  kw_status status = KW_OK;
  if (plan.adds_heads && given.q != given.q_out) {  // Q is turned in place; a sum of one head is a copy
    kw_hip_head_sum_arguments copy = plan.first;
    copy.from = given.q, copy.to = given.q_out;
    status = launch_elements(kernel.beside, where, int64_t{copy.batch} * copy.rows * copy.heads * copy.hdim, &copy);
  }
  return status == KW_OK ? launch_planned(kernel, plan, where, &x) : status;
}

}  // namespace kernelwright::hip
