/* Forward kernels of CK Tile: O, or parts of it, and what puts parts together. */
#include "kernelwright/attention/checks.h"
#include "kernelwright/hip/attention/launcher.h"

/* Masks as CK Tile numbers them. */
#define TOP_LEFT 1
#define BOTTOM_RIGHT 2

/* Behind a request's places of keys: the rest of a tile, and one that is loaded ahead. */
static int64_t places(const kw_attention_traits* t, const kw_attention_problem* p) {
  return (kw_hip_tiles(p->max_seqlen_k, t->tile_n0) + 1) * t->tile_n0;
}

/* One query that sees all keys: the heads that share one of K and V are rows of one tile. */
static int packs_heads(const kw_attention_traits* t, const kw_attention_problem* p) {
  const int whole =
      p->mask == KW_MASK_NONE || (p->mask == KW_MASK_BOTTOM_RIGHT && p->window_left < 0 && p->window_right >= 0);
  return t->family == KW_ATTENTION_FWD_SPLITKV && !p->group && p->max_seqlen_q == 1 && p->bias == KW_BIAS_NONE && whole;
}

/* CK Tile takes causal slopes for distances from the first key, which changes LSE: a window without an end that is
 * written as a width is none of these. */
static void set_mask(const kw_attention_problem* p, kw_hip_attention_arguments* x) {
  x->mask = p->mask == KW_MASK_TOP_LEFT ? TOP_LEFT : BOTTOM_RIGHT;
  x->window_left = kw_hip_width(p, p->window_left), x->window_right = kw_hip_width(p, p->window_right);
  if (p->bias == KW_BIAS_ALIBI && p->window_left < 0 && p->window_right == 0)
    x->window_left = kw_hip_width(p, INT32_MAX);
}

static void set_problem(const kw_attention_problem* p, kw_hip_attention_arguments* x) {
  x->seqlen_q = (int32_t)p->max_seqlen_q, x->seqlen_k = (int32_t)p->max_seqlen_k;
  x->hdim_q = (int32_t)p->hdim_q, x->hdim_v = (int32_t)p->hdim_v;
  x->heads = (int32_t)p->heads_q, x->head_ratio = (int32_t)(p->heads_q / p->heads_kv);
  x->q_strides = kw_hip_strides(p->q), x->k_strides = kw_hip_strides(p->k), x->v_strides = kw_hip_strides(p->v);
  x->o_strides = p->leaves_splits ? kw_hip_per_row(p, p->hdim_v) : kw_hip_strides(p->o);
  x->bias_strides = kw_hip_strides(p->bias_strides);
  x->random_strides = kw_hip_per_row(p, p->max_seqlen_k);
  const kw_hip_attention_strides lse = kw_hip_per_row(p, 1);
  x->lse_head_stride = lse.head, x->lse_batch_stride = lse.batch;
  x->slopes_batch_stride = (int32_t)p->slopes_stride;
  x->min_seqlen_q = (int32_t)p->min_seqlen_q - 1; /* CK Tile skips requests that have as many, too */
  x->batch = (int32_t)p->batch, x->splits = (int32_t)p->num_splits;
  x->split_stride_lse = (int32_t)kw_attention_rows(p);
  x->split_stride_o = (int32_t)(kw_attention_rows(p) * p->hdim_v);
  x->scale = (float)p->scale, x->soft_cap = (float)p->soft_cap;
  x->keep = (float)(1.0 - p->dropout_p);
}

static void pack_heads(const kw_attention_problem* p, kw_hip_attention_arguments* x) {
  const int32_t ratio = x->head_ratio;
  x->seqlen_q = ratio, x->heads = (int32_t)p->heads_kv, x->head_ratio = 1;
  x->q_strides.row = x->q_strides.head, x->q_strides.head *= ratio;
  x->o_strides.row = x->o_strides.head, x->o_strides.head *= ratio;
  x->lse_head_stride *= ratio;
  x->window_left = x->window_right = -1;
}

/* A kernel that writes LSE serves problems without: its LSE goes to the workspace. */
static void plan_lse(const kw_attention_traits* t, const kw_attention_problem* p, kw_hip_attention_plan* made) {
  if (t->lses == KW_SERVES(0) || p->lse || p->leaves_splits) return;
  made->lse_bytes = made->workspace_bytes + 1;
  made->workspace_bytes += (uint64_t)kw_attention_rows(p) * sizeof(float);
}

static float* lse_of(const kw_hip_attention_plan* plan, const kw_launch* where, float* given) {
  return plan->lse_bytes ? (float*)(void*)((char*)where->workspace + plan->lse_bytes - 1) : given;
}

static void plan_places(const kw_hip_attention* kernel, const kw_attention_problem* p, kw_hip_attention_plan* made) {
  const int64_t stride = places(&kernel->traits, p);
  made->list.page_size = (int32_t)p->page_size, made->list.pages_stride = (int32_t)p->page_table_stride;
  made->list.places_stride = (int32_t)stride;
  made->list.past_end = made->arguments.part.page_count = (int32_t)(p->pages * p->page_size);
  made->list_grid = (uint32_t)kw_hip_tiles(stride, KW_HIP_ATTENTION_BLOCK);
  made->second_bytes = (uint64_t)(p->batch * stride) * sizeof(int32_t);
  made->workspace_bytes = made->second_bytes + 2 * (uint64_t)p->batch * sizeof(int32_t);
}

void kw_hip_plan_part(const kw_hip_attention* kernel, const kw_attention_problem* p, kw_hip_attention_plan* made) {
  const kw_attention_traits* t = &kernel->traits;
  kw_hip_attention_arguments* x = &made->arguments.part;
  set_problem(p, x);
  set_mask(p, x);
  if (packs_heads(t, p)) pack_heads(p, x);
  const uint32_t tiles = (uint32_t)kw_hip_tiles(x->seqlen_q, t->tile_m0);
  const uint32_t heads = (uint32_t)x->heads, batch = (uint32_t)p->batch;
  const int lengths = p->group && p->kv_lengths;
  made->leaves = p->leaves_splits;
  made->scaled = p->qscale != KW_QSCALE_NONE, made->narrow = kw_dtype_bytes(p->dtype_o) == 1;
  x->pages_stride = (int32_t)p->page_table_stride, x->page_size = (int32_t)p->page_size;
  if (t->family == KW_ATTENTION_BATCH_PREFILL) plan_places(kernel, p, made);
  plan_lse(t, p, made);
  const uint32_t split[3] = {tiles * p->num_splits, heads, batch}, last[3] = {heads, batch, tiles};
  const uint32_t first[3] = {tiles, heads, batch}, between[3] = {heads, tiles, batch};
  const uint32_t* grid = t->family == KW_ATTENTION_FWD_SPLITKV                ? split
                         : t->family == KW_ATTENTION_BATCH_PREFILL || lengths ? last
                         : t->family == KW_ATTENTION_FWD_PAGEDKV              ? first
                                                                              : between;
  for (int i = 0; i < 3; ++i) made->grid[i] = grid[i];
  if (tiles == 0 || heads == 0 || batch == 0) made->grid[0] = 0;
}

kw_status kw_hip_launch_part(const kw_hip_attention* kernel, const kw_hip_attention_plan* plan, const kw_launch* where,
                             const kw_attention_args* given) {
  if (plan->grid[0] == 0) return KW_OK;
  kw_hip_attention_arguments x = plan->arguments.part;
  x.q = given->q, x.k = given->k, x.v = given->v, x.bias = given->bias;
  x.o = plan->leaves ? given->o_splits : given->o,
  x.lse = plan->leaves ? given->lse_splits : lse_of(plan, where, given->lse);
  x.random_bytes = given->random_bytes, x.seed = given->seed, x.offset = given->offset;
  x.seqstart_q = given->cu_seqlens_q, x.seqstart_k = given->cu_seqlens_k, x.lengths_k = given->seqlens_k;
  x.pages = given->page_table;
  if (plan->scaled) x.descale_q = given->descale_q, x.descale_k = given->descale_k, x.descale_v = given->descale_v;
  if (plan->narrow && !plan->leaves) x.scale_o = given->scale_o;
  if (kernel->traits.family == KW_ATTENTION_BATCH_PREFILL) {
    kw_hip_page_list_arguments list = plan->list;
    const uint32_t grid[3] = {plan->list_grid, (uint32_t)x.batch, 1};
    list.pages = given->page_table, list.page_starts = given->page_indptr;
    list.last_lengths = given->last_page_lengths, list.lengths_k = given->seqlens_k;
    list.places = where->workspace;
    list.ends = (int32_t*)(void*)((char*)where->workspace + plan->second_bytes);
    const kw_status status =
        kw_hip_launch_grid(&kernel->beside, where, grid, KW_HIP_ATTENTION_BLOCK, &list, sizeof list);
    if (status != KW_OK) return status;
    x.pages = list.places, x.page_starts = list.ends;
  }
  return kw_hip_launch_planned(kernel, plan, where, &x, sizeof x);
}

void kw_hip_plan_combine(const kw_hip_attention* kernel, const kw_attention_problem* p, uint32_t rows,
                         kw_hip_attention_plan* made) {
  kw_hip_combine_arguments* x = &made->arguments.combine;
  const kw_hip_attention_strides lse = kw_hip_per_row(p, 1);
  x->batch = (int32_t)p->batch, x->seqlen_q = (int32_t)p->max_seqlen_q, x->hdim_v = (int32_t)p->hdim_v;
  x->splits = (int32_t)p->num_splits;
  x->part_strides = kw_hip_per_row(p, p->hdim_v), x->o_strides = kw_hip_strides(p->o);
  x->part_lse_head_stride = x->lse_head_stride = lse.head;
  x->part_lse_batch_stride = x->lse_batch_stride = lse.batch;
  x->split_stride_lse = (int32_t)kw_attention_rows(p);
  x->split_stride_o = (int32_t)(kw_attention_rows(p) * p->hdim_v);
  made->narrow = kw_dtype_bytes(p->dtype_o) == 1;
  plan_lse(&kernel->traits, p, made);
  while (made->code + 1 < kernel->count && 1u << (made->code + KW_HIP_FEWEST_SPLITS_LOG2) < p->num_splits) ++made->code;
  made->grid[0] = (uint32_t)(kw_hip_tiles(p->max_seqlen_q, rows) * kw_hip_tiles(p->hdim_v, kernel->columns));
  made->grid[1] = (uint32_t)p->heads_q, made->grid[2] = (uint32_t)p->batch;
}

kw_status kw_hip_launch_combine(const kw_hip_attention* kernel, const kw_hip_attention_plan* plan,
                                const kw_launch* where, const kw_attention_args* given) {
  kw_hip_combine_arguments x = plan->arguments.combine;
  x.o_parts = given->o_splits, x.lse_parts = given->lse_splits, x.o = given->o;
  x.lse = lse_of(plan, where, given->lse);
  x.seqstart_q = given->cu_seqlens_q;
  x.scale_o = plan->narrow ? given->scale_o : NULL;
  return kw_hip_launch_planned(kernel, plan, where, &x, sizeof x);
}
