// Forward kernels of CK Tile: O, or parts of it, and what puts parts together.
#include "kernelwright/attention/checks.h"
#include "launchers/hip/attention/conditions.h"
#include "launchers/hip/attention/families.hpp"

namespace kernelwright::hip {
namespace {

// One query that sees all keys: the heads that share one of K and V are rows of one tile, where offsets of as many rows
// fit.
bool packs_heads(const kw_attention_traits& t, const kw_attention_problem& p) {
  const bool whole =
      p.mask == KW_MASK_NONE || (p.mask == KW_MASK_BOTTOM_RIGHT && p.window_left < 0 && p.window_right >= 0);
  const int64_t ratio = p.heads_q / p.heads_kv;
  const bool rows_fit = kw_fits_int32(kw_mul(p.q.head, ratio)) &&
                        kw_bytes_fit_int32(kw_mul(p.q.head, kw_add(ratio, t.tile_m0)), kw_dtype_bytes(p.dtype_q));
  return t.family == KW_ATTENTION_FWD_SPLITKV && !p.group && p.max_seqlen_q == 1 && p.bias == KW_BIAS_NONE && whole &&
         rows_fit;
}

void set_problem(const kw_attention_problem& p, kw_hip_attention_arguments* x, int* lost) {
  const kw_attention_strides none = {0, 0, 0}, lse = per_row(p, 1);
  x->seqlen_q = kw_as_int32(p.max_seqlen_q, lost), x->seqlen_k = kw_as_int32(p.max_seqlen_k, lost);
  x->hdim_q = kw_as_int32(p.hdim_q, lost), x->hdim_v = kw_as_int32(p.hdim_v, lost);
  x->heads = kw_as_int32(p.heads_q, lost), x->head_ratio = kw_as_int32(p.heads_q / p.heads_kv, lost);
  x->q_strides = strides_of(p.q, lost), x->k_strides = strides_of(p.k, lost);
  x->v_strides = strides_of(p.v, lost);
  x->o_strides = strides_of(p.leaves_splits ? per_row(p, p.hdim_v) : p.o, lost);
  x->bias_strides = strides_of(p.bias_strides, lost);
  x->random_strides = strides_of(p.random_bytes ? per_row(p, p.max_seqlen_k) : none, lost);
  x->lse_head_stride = kw_as_int32(lse.head, lost), x->lse_batch_stride = kw_as_int32(lse.request, lost);
  x->slopes_batch_stride = kw_as_int32(p.slopes_stride, lost);
  x->min_seqlen_q = kw_as_int32(p.min_seqlen_q, lost) - 1;  // CK Tile skips requests that have as many, too
  x->batch = kw_as_int32(p.batch, lost), x->splits = kw_as_int32(p.num_splits, lost);
  if (p.leaves_splits) {
    x->split_stride_lse = kw_as_int32(kw_attention_rows(&p), lost);
    x->split_stride_o = kw_as_int32(kw_mul(kw_attention_rows(&p), p.hdim_v), lost);
  }
  x->pages_stride = kw_as_int32(p.page_table_stride, lost), x->page_size = kw_as_int32(p.page_size, lost);
  x->scale = static_cast<float>(p.scale), x->soft_cap = static_cast<float>(p.soft_cap);
  x->keep = static_cast<float>(1.0 - p.dropout_p);
}

void pack_heads(const kw_attention_problem& p, kw_hip_attention_arguments* x, int* lost) {
  const int64_t ratio = x->head_ratio;
  x->seqlen_q = x->head_ratio, x->heads = kw_as_int32(p.heads_kv, lost), x->head_ratio = 1;
  x->q_strides.row = x->q_strides.head, x->q_strides.head = kw_as_int32(kw_mul(x->q_strides.head, ratio), lost);
  x->o_strides.row = x->o_strides.head, x->o_strides.head = kw_as_int32(kw_mul(x->o_strides.head, ratio), lost);
  x->lse_head_stride = kw_as_int32(kw_mul(x->lse_head_stride, ratio), lost);
  x->window_left = x->window_right = -1;
}

// A kernel that writes LSE serves problems without: its LSE goes to the workspace.
void plan_lse(const kw_attention_traits& t, const kw_attention_problem& p, kw_hip_attention_plan* made) {
  if (t.lses == KW_SERVES(0) || p.lse || p.leaves_splits) return;
  made->lse_bytes = made->workspace_bytes + 1;
  const int64_t bytes = kw_mul(kw_attention_rows(&p), sizeof(float));
  if (!kw_fits_int64(bytes)) made->lost = 1;
  made->workspace_bytes += static_cast<uint64_t>(bytes);
}

template <class Element>
Element* workspace_at(const kw_launch* where, uint64_t offset) {
  return reinterpret_cast<Element*>(static_cast<char*>(where->workspace) + offset);
}

float* lse_of(const kw_hip_attention_plan& plan, const kw_launch* where, float* given) {
  return plan.lse_bytes ? workspace_at<float>(where, plan.lse_bytes - 1) : given;
}

// Kernels of batch prefill take ragged requests. Requests of one length lie one behind the other, or have one row each.
void plan_even_requests(const kw_attention_problem& p, kw_hip_attention_plan* made) {
  kw_hip_attention_arguments* x = &made->arguments.part;
  if (p.max_seqlen_q == 1) {
    x->q_strides.row = x->q_strides.batch, x->o_strides.row = x->o_strides.batch;
    x->bias_strides.row = x->bias_strides.batch;
  }
  made->list.queries = x->seqlen_q;
  made->queries_bytes = made->workspace_bytes;
  made->workspace_bytes += (static_cast<uint64_t>(p.batch) + 1) * sizeof(int32_t);
}

void plan_places(const kw_hip_attention& kernel, const kw_attention_problem& p, kw_hip_attention_plan* made) {
  const int64_t stride = kw_hip_attention_places(&kernel.traits, &p), all = kw_mul(p.batch, stride);
  made->list.page_size = kw_as_int32(p.page_size, &made->lost);
  made->list.pages_stride = kw_as_int32(p.page_table_stride, &made->lost);
  made->list.places_stride = kw_as_int32(stride, &made->lost);
  made->list.past_end = kw_as_int32(kw_mul(p.pages, p.page_size), &made->lost);
  made->arguments.part.page_count = made->list.past_end;
  made->list_grid = kw_as_uint32(kw_parts(stride, KW_HIP_ATTENTION_BLOCK), &made->lost);
  // The kernel counts places of all requests in 32 bits.
  made->second_bytes = static_cast<uint64_t>(kw_as_int32(all, &made->lost)) * sizeof(int32_t);
  made->workspace_bytes = made->second_bytes + 2 * static_cast<uint64_t>(p.batch) * sizeof(int32_t);
  if (!p.group) plan_even_requests(p, made);
}

// The order of tiles of queries, heads and requests along the grid differs between kernels.
void set_grid(const kw_attention_traits& t, const kw_attention_problem& p, kw_hip_attention_plan* made) {
  const kw_hip_attention_arguments& x = made->arguments.part;
  const uint32_t tiles = kw_as_uint32(kw_parts(x.seqlen_q, t.tile_m0), &made->lost);
  const uint32_t heads = static_cast<uint32_t>(x.heads), batch = static_cast<uint32_t>(x.batch);
  const uint32_t parts = kw_as_uint32(kw_mul(tiles, p.num_splits), &made->lost);
  const uint32_t split[3] = {parts, heads, batch}, last[3] = {heads, batch, tiles};
  const uint32_t first[3] = {tiles, heads, batch}, between[3] = {heads, tiles, batch};
  const bool lengths = p.group && p.kv_lengths;
  const uint32_t* grid = t.family == KW_ATTENTION_FWD_SPLITKV                ? split
                         : t.family == KW_ATTENTION_BATCH_PREFILL || lengths ? last
                         : t.family == KW_ATTENTION_FWD_PAGEDKV              ? first
                                                                             : between;
  memcpy(made->grid, grid, sizeof made->grid);
  if (tiles == 0 || heads == 0 || batch == 0) made->grid[0] = 0;
}

// Makes places of keys out of pages.
kw_status launch_places(const kw_hip_attention& kernel, const kw_hip_attention_plan& plan, const kw_launch* where,
                        const kw_attention_args& given, kw_hip_attention_arguments* x) {
  kw_hip_page_list_arguments list = plan.list;
  const uint32_t grid[3] = {plan.list_grid, static_cast<uint32_t>(x->batch), 1};
  list.pages = given.page_table, list.page_starts = given.page_indptr;
  list.last_lengths = given.last_page_lengths, list.lengths_k = given.seqlens_k;
  list.places = workspace_at<int32_t>(where, 0);
  list.ends = workspace_at<int32_t>(where, plan.second_bytes);
  x->pages = list.places, x->page_starts = list.ends;
  if (plan.queries_bytes) x->seqstart_q = list.query_starts = workspace_at<int32_t>(where, plan.queries_bytes);
  return kw_hip_launch_grid(&kernel.beside, where, grid, KW_HIP_ATTENTION_BLOCK, &list, sizeof list);
}

}  // namespace

void plan_part(const kw_hip_attention& kernel, const kw_attention_problem& p, kw_hip_attention_plan* made) {
  const kw_attention_traits& t = kernel.traits;
  kw_hip_attention_arguments* x = &made->arguments.part;
  set_problem(p, x, &made->lost);
  set_mask(p, x);
  if (packs_heads(t, p)) pack_heads(p, x, &made->lost);
  made->leaves = p.leaves_splits;
  made->scaled = p.qscale != KW_QSCALE_NONE, made->narrow = kw_dtype_bytes(p.dtype_o) == 1;
  if (t.family == KW_ATTENTION_BATCH_PREFILL) plan_places(kernel, p, made);
  plan_lse(t, p, made);
  set_grid(t, p, made);
}

kw_status launch_part(const kw_hip_attention& kernel, const kw_hip_attention_plan& plan, const kw_launch* where,
                      const kw_attention_args& given) {
  if (plan.grid[0] == 0) return KW_OK;
  kw_hip_attention_arguments x = plan.arguments.part;
  x.q = given.q, x.k = given.k, x.v = given.v, x.bias = given.bias;
  x.o = plan.leaves ? given.o_splits : given.o;
  x.lse = plan.leaves ? given.lse_splits : lse_of(plan, where, given.lse);
  x.random_bytes = given.random_bytes, x.seed = given.seed, x.offset = given.offset;
  x.seqstart_q = given.cu_seqlens_q, x.seqstart_k = given.cu_seqlens_k, x.lengths_k = given.seqlens_k;
  x.pages = given.page_table;
  if (plan.scaled) x.descale_q = given.descale_q, x.descale_k = given.descale_k, x.descale_v = given.descale_v;
  if (plan.narrow && !plan.leaves) x.scale_o = given.scale_o;
  const bool places = kernel.traits.family == KW_ATTENTION_BATCH_PREFILL;
  const kw_status status = places ? launch_places(kernel, plan, where, given, &x) : KW_OK;
  return status == KW_OK ? launch_planned(kernel, plan, where, &x) : status;
}

void plan_combine(const kw_hip_attention& kernel, const kw_attention_problem& p, uint32_t rows,
                  kw_hip_attention_plan* made) {
  kw_hip_combine_arguments* x = &made->arguments.combine;
  const kw_attention_strides lse = per_row(p, 1);
  const int64_t tiles = kw_mul(kw_parts(p.max_seqlen_q, rows), kw_parts(p.hdim_v, kernel.columns));
  int* lost = &made->lost;
  x->batch = kw_as_int32(p.batch, lost), x->seqlen_q = kw_as_int32(p.max_seqlen_q, lost);
  x->hdim_v = kw_as_int32(p.hdim_v, lost), x->splits = kw_as_int32(p.num_splits, lost);
  x->part_strides = strides_of(per_row(p, p.hdim_v), lost), x->o_strides = strides_of(p.o, lost);
  x->part_lse_head_stride = x->lse_head_stride = kw_as_int32(lse.head, lost);
  x->part_lse_batch_stride = x->lse_batch_stride = kw_as_int32(lse.request, lost);
  x->split_stride_lse = kw_as_int32(kw_attention_rows(&p), lost);
  x->split_stride_o = kw_as_int32(kw_mul(kw_attention_rows(&p), p.hdim_v), lost);
  made->narrow = kw_dtype_bytes(p.dtype_o) == 1;
  plan_lse(kernel.traits, p, made);
  while (made->code + 1 < kernel.count && 1u << (made->code + KW_HIP_FEWEST_SPLITS_LOG2) < p.num_splits) ++made->code;
  made->grid[0] = kw_as_uint32(tiles, lost);
  made->grid[1] = kw_as_uint32(p.heads_q, lost), made->grid[2] = kw_as_uint32(p.batch, lost);
}

kw_status launch_combine(const kw_hip_attention& kernel, const kw_hip_attention_plan& plan, const kw_launch* where,
                         const kw_attention_args& given) {
  kw_hip_combine_arguments x = plan.arguments.combine;
  x.o_parts = given.o_splits, x.lse_parts = given.lse_splits, x.o = given.o;
  x.lse = lse_of(plan, where, given.lse);
  x.seqstart_q = given.cu_seqlens_q;
  x.scale_o = plan.narrow ? given.scale_o : nullptr;
  return launch_planned(kernel, plan, where, &x);
}

}  // namespace kernelwright::hip
