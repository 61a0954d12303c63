// From the familiar struct to a problem of the dispatcher and its operands.
#include <math.h>
#include <string.h>

#include "kernelwright/attention/checks.h"
#include "kernelwright/dispatcher/compat/fmha_state.hpp"
#include "kernelwright/dispatcher/support/structs.hpp"

namespace kernelwright {
namespace {

using Args = fmha_dispatcher_args;

constexpr size_t kFirstVersionBytes = offsetof(Args, descale_q);

// The struct of this version; what an older one lacks is null.
kw_status copy(const Args* given, Args* made) {
  if (given == nullptr) return fail(KW_INVALID_ARGUMENT, "args is null");
  const bool same = given->struct_size == sizeof(Args) && given->version == FMHA_DISPATCHER_ARGS_VERSION;
  const bool first = given->struct_size == kFirstVersionBytes && given->version == 1;
  if (!same && !first) {
    return fail(KW_INVALID_ARGUMENT, "struct_size = %u, version = %u; allowed: %zu, %u, or %zu, 1", given->struct_size,
                given->version, sizeof(Args), FMHA_DISPATCHER_ARGS_VERSION, kFirstVersionBytes);
  }
  memcpy(made, given, given->struct_size);
  return KW_OK;
}

// Members that are 0 or 1, and counts.
kw_status check_ranges(const Args& given) {
  const struct {
    const char* name;
    int32_t value, most;
  } members[] = {{"is_group_mode", given.is_group_mode, 1},
                 {"i_perm", given.i_perm, 1},
                 {"is_deterministic", given.is_deterministic, 1},
                 {"batch", given.batch, INT32_MAX},
                 {"seqlen_q", given.seqlen_q, INT32_MAX},
                 {"seqlen_k", given.seqlen_k, INT32_MAX},
                 {"num_splits", given.num_splits, INT32_MAX},
                 {"page_block_size", given.page_block_size, INT32_MAX},
                 {"page_count", given.page_count, INT32_MAX},
                 {"page_table_width", given.page_table_width, INT32_MAX},
                 {"cache_capacity", given.cache_capacity, INT32_MAX},
                 {"mask_type", given.mask_type, FMHA_MASK_BOTTOM_RIGHT},
                 {"bias_type", given.bias_type, FMHA_BIAS_ALIBI},
                 {"rope_type", given.rope_type, FMHA_ROPE_HALF}};
  for (const auto& one : members) {
    if (one.value >= 0 && one.value <= one.most) continue;
    return fail(KW_INVALID_ARGUMENT, "%s = %d; allowed: 0 %s", one.name, one.value,
                one.most == INT32_MAX ? "or more"
                : one.most == 1       ? "or 1"
                                      : "to 2");
  }
  return KW_OK;
}

kw_status check(const Args* given) {
  if (kw_status status = check_reserved("fmha_dispatcher_args", *given)) return status;
  if (given->operation < FMHA_FORWARD || given->operation > FMHA_APPEND_KV) {
    return fail(KW_INVALID_ARGUMENT, "operation = %d; allowed: 0 forward, 1 backward, 2 append", given->operation);
  }
  if (kw_status status = check_ranges(*given)) return status;
  if (given->is_group_mode != 0 && given->seqstart_q == nullptr) {
    return fail(KW_INVALID_ARGUMENT, "seqstart_q is null; group mode needs it");
  }
  return KW_OK;
}

// Of Q, K and V; of O; of an elementwise bias.
struct Types {
  uint32_t in, out, bias;
};

kw_status read_types(const char* name, Types* types) {
  constexpr struct {
    const char* name;
    Types types;
  } kKnown[] = {{"fp32", {KW_FP32, KW_FP32, KW_FP32}},   {"fp16", {KW_FP16, KW_FP16, KW_FP16}},
                {"bf16", {KW_BF16, KW_BF16, KW_BF16}},   {"fp8", {KW_FP8, KW_FP8, KW_FP32}},
                {"fp8fp16", {KW_FP8, KW_FP16, KW_FP32}}, {"fp8bf16", {KW_FP8, KW_BF16, KW_FP32}},
                {"fp8fp32", {KW_FP8, KW_FP32, KW_FP32}}};
  for (const auto& one : kKnown) {
    *types = one.types;
    if (name != nullptr && strcmp(name, one.name) == 0) return KW_OK;
  }
  return fail(KW_INVALID_ARGUMENT, "data_type = %s; allowed: fp32, fp16, bf16, fp8, fp8fp16, fp8bf16, fp8fp32",
              name == nullptr ? "null" : name);
}

// What overflows becomes the largest stride, which the dispatcher refuses.
int64_t times(int64_t left, int64_t right) {
  int64_t product = 0;
  return __builtin_mul_overflow(left, right, &product) ? INT64_MAX : product;
}

// Of a tensor without gaps.
kw_attention_strides dense(bool heads_first, int64_t heads, int64_t rows, int64_t hdim, bool group) {
  const int64_t request = group ? 0 : times(times(heads, rows), hdim);
  if (heads_first) return {request, times(rows, hdim), hdim};
  return {request, hdim, times(heads, hdim)};
}

struct Filling {
  FmhaCall* call;

  void add(size_t member, const void* host, int64_t bytes, bool read, bool written) const {
    const FmhaOperand one = {member, const_cast<void*>(host), static_cast<size_t>(bytes), read, written};
    if (host != nullptr && bytes > 0) call->operands[call->count++] = one;
  }
  void input(size_t member, const void* host, int64_t bytes) const { add(member, host, bytes, true, false); }
  void output(size_t member, void* host, int64_t bytes) const { add(member, host, bytes, false, true); }
};

#define MEMBER(name) offsetof(kw_attention_args, name)
#define APPEND_MEMBER(name) offsetof(kw_append_args, name)

void pages(const Args& a, uint32_t* table, int64_t* count, int64_t* size, int64_t* stride) {
  if (a.page_block_size == 0) return;
  *table = a.page_table_width > 0 ? KW_PAGES_BLOCK : KW_PAGES_LIST;
  *count = a.page_count, *size = a.page_block_size, *stride = a.page_table_width;
}

void sizes(const Args& a, const Types& types, kw_attention_problem* p) {
  const bool backward = a.operation == FMHA_BACKWARD;
  const uint32_t op = backward ? KW_OP_ATTENTION_BACKWARD : KW_OP_ATTENTION;
  p->base = {sizeof *p, op};
  p->version = KW_ATTENTION_VERSION;
  p->dtype_q = p->dtype_kv = types.in, p->dtype_o = types.out;
  if (a.descale_q != nullptr || a.descale_k != nullptr || a.descale_v != nullptr) p->qscale = KW_QSCALE_PER_TENSOR;
  p->batch = a.batch, p->heads_q = a.nhead_q, p->heads_kv = a.nhead_k, p->hdim_q = a.hdim_q, p->hdim_v = a.hdim_v;
  p->max_seqlen_q = a.seqlen_q, p->max_seqlen_k = a.seqlen_k;
  p->group = a.is_group_mode != 0 ? 1 : 0;
  if (p->group != 0) p->total_q = a.seqstart_q[a.batch];
  if (p->group != 0 && a.seqstart_k != nullptr && a.page_block_size == 0) p->total_k = a.seqstart_k[a.batch];
  p->kv_lengths = a.seqlen_k_ptr != nullptr ? 1 : 0;
  pages(a, &p->page_table, &p->pages, &p->page_size, &p->page_table_stride);
  p->num_splits = backward ? 1 : a.num_splits > 0 ? static_cast<uint32_t>(a.num_splits) : 0;
}

void scores(const Args& a, const FmhaForm& form, const Types& types, kw_attention_problem* p) {
  const bool backward = a.operation == FMHA_BACKWARD;
  p->mask = static_cast<uint32_t>(a.mask_type), p->bias = static_cast<uint32_t>(a.bias_type);
  p->window_left = a.window_size_left, p->window_right = a.window_size_right;
  p->dtype_bias = a.bias_type == FMHA_BIAS_ELEMENTWISE ? types.bias : 0;
  p->lse = !backward && a.lse != nullptr ? 1 : 0;
  p->sink = !backward && a.sinks != nullptr ? 1 : 0;
  const bool given = a.scale != 0 || form.scale_may_be_zero;
  p->scale = given ? static_cast<double>(a.scale) : 1 / sqrt(static_cast<double>(a.hdim_q));
  p->soft_cap = static_cast<double>(a.logits_soft_cap);
  p->dropout_p = static_cast<double>(a.p_drop), p->dropout = a.p_drop != 0 ? 1 : 0;
  p->dbias = backward && a.dbias != nullptr ? 1 : 0;
  p->deterministic = backward && a.is_deterministic != 0 ? 1 : 0;
}

void strides(const Args& a, const FmhaForm& form, kw_attention_problem* p) {
  const bool group = p->group != 0, paged = p->page_table != KW_PAGES_NONE, heads_first = a.i_perm != 0;
  const bool keys_heads_first = paged ? heads_first || form.pages_heads_first : heads_first;
  const int64_t rows = group ? p->total_q : p->max_seqlen_q;
  const int64_t keys = paged ? p->page_size : group ? p->total_k : p->max_seqlen_k;
  p->q = dense(heads_first, p->heads_q, rows, p->hdim_q, group);
  p->o = dense(heads_first, p->heads_q, rows, p->hdim_v, group);
  p->k = dense(keys_heads_first, p->heads_kv, keys, p->hdim_q, group && !paged);
  p->v = dense(keys_heads_first, p->heads_kv, keys, p->hdim_v, group && !paged);
  p->page_layout = paged ? form.page_layout : static_cast<uint32_t>(KW_PAGE_LINEAR);
  if (p->page_layout == KW_PAGE_VECTORIZED) p->k.row = p->v.row = 0;
  const kw_attention_strides square = {group ? 0 : times(times(p->heads_q, rows), p->max_seqlen_k),
                                       times(rows, p->max_seqlen_k), p->max_seqlen_k};
  if (p->bias == KW_BIAS_ELEMENTWISE) p->bias_strides = square;
  if (p->dbias != 0) p->dbias_strides = square;
  if (a.operation == FMHA_BACKWARD) p->d_o = p->o, p->dq = p->q, p->dk = p->k, p->dv = p->v;
}

void tables(const Args& a, const kw_attention_problem& p, const Filling& to) {
  const int64_t starts = 4 * (p.batch + 1);
  if (p.group != 0) to.input(MEMBER(cu_seqlens_q), a.seqstart_q, starts);
  if (p.group != 0 && p.page_table == KW_PAGES_NONE) to.input(MEMBER(cu_seqlens_k), a.seqstart_k, starts);
  if (p.kv_lengths != 0) to.input(MEMBER(seqlens_k), a.seqlen_k_ptr, 4 * p.batch);
  if (p.page_table == KW_PAGES_BLOCK) to.input(MEMBER(page_table), a.page_table, 4 * p.batch * p.page_table_stride);
  if (p.page_table != KW_PAGES_LIST || a.page_indptr == nullptr) return;
  to.input(MEMBER(page_table), a.page_table, 4 * static_cast<int64_t>(a.page_indptr[p.batch]));
  to.input(MEMBER(page_indptr), a.page_indptr, starts);
  to.input(MEMBER(last_page_lengths), a.last_page_lengths, 4 * p.batch);
}

void operands(const Args& a, const kw_attention_problem& p, const Filling& to) {
  const int64_t requests = p.page_table != KW_PAGES_NONE ? p.pages : p.group != 0 ? 1 : p.batch;
  const int64_t keys = p.page_table != KW_PAGES_NONE ? p.page_size : p.group != 0 ? p.total_k : p.max_seqlen_k;
  const int64_t rows = kw_attention_rows(&p), rows_k = requests * keys * p.heads_kv;
  const int64_t item = kw_dtype_bytes(p.dtype_q), item_o = kw_dtype_bytes(p.dtype_o);
  const int64_t item_bias = kw_dtype_bytes(p.dtype_bias);
  to.input(MEMBER(q), a.q, rows * p.hdim_q * item);
  to.input(MEMBER(k), a.k, rows_k * p.hdim_q * item);
  to.input(MEMBER(v), a.v, rows_k * p.hdim_v * item);
  if (p.bias == KW_BIAS_ELEMENTWISE) to.input(MEMBER(bias), a.bias, rows * p.max_seqlen_k * item_bias);
  if (p.bias == KW_BIAS_ALIBI) to.input(MEMBER(bias), a.bias, 4 * p.heads_q);
  if (p.sink != 0) to.input(MEMBER(sinks), a.sinks, 4 * p.heads_q);
  if (p.qscale != KW_QSCALE_NONE) {
    to.input(MEMBER(descale_q), a.descale_q, 4);
    to.input(MEMBER(descale_k), a.descale_k, 4);
    to.input(MEMBER(descale_v), a.descale_v, 4);
  }
  if (item_o == 1) to.input(MEMBER(scale_o), a.scale_o, 4);
  tables(a, p, to);
  if (a.operation == FMHA_FORWARD) {
    // Rows of skipped requests stay, so what was there is brought along.
    to.add(MEMBER(o), a.o, rows * p.hdim_v * item_o, true, true);
    to.add(MEMBER(lse), a.lse, 4 * rows, true, true);
    return;
  }
  to.input(MEMBER(o), a.o, rows * p.hdim_v * item_o);
  to.input(MEMBER(d_o), a.d_o, rows * p.hdim_v * item_o);
  to.input(MEMBER(lse), a.lse, 4 * rows);
  to.output(MEMBER(dq), a.dq, rows * p.hdim_q * item);
  to.output(MEMBER(dk), a.dk, rows_k * p.hdim_q * item);
  to.output(MEMBER(dv), a.dv, rows_k * p.hdim_v * item);
  if (p.dbias != 0) to.add(MEMBER(dbias), a.dbias, rows * p.max_seqlen_k * item_bias, true, true);
}

void append(const Args& a, uint32_t dtype, FmhaCall* call) {
  kw_append_problem& p = call->append;
  const bool rotary = a.rope_type != FMHA_ROPE_NO, queries = a.q != nullptr && rotary;
  p.base = {sizeof p, KW_OP_ATTENTION_APPEND};
  p.version = KW_ATTENTION_VERSION;
  p.dtype = dtype, p.dtype_rotary = rotary ? dtype : 0;
  p.rope = static_cast<uint32_t>(a.rope_type);
  p.batch = a.batch, p.heads_kv = a.nhead_k, p.hdim_q = a.hdim_q, p.hdim_v = a.hdim_v, p.seqlen_new = a.seqlen_k;
  if (queries) p.rotates_q = 1, p.heads_q = a.nhead_q, p.seqlen_q = a.seqlen_q;
  pages(a, &p.page_table, &p.pages, &p.page_size, &p.page_table_stride);
  p.capacity = p.page_table != KW_PAGES_NONE ? p.page_size * p.page_table_stride : a.cache_capacity;
  p.rotary_dim = a.rotary_dim, p.rotary_places = a.rotary_places;
  const int64_t rows = p.page_table != KW_PAGES_NONE ? p.page_size : p.capacity;
  const bool heads_first = a.i_perm != 0;
  const auto strides = [&](int64_t heads, int64_t count, int64_t hdim) {
    return dense(heads_first, heads, count, hdim, false);
  };
  if (queries) p.q = p.q_out = strides(p.heads_q, p.seqlen_q, p.hdim_q);
  p.k = strides(p.heads_kv, p.seqlen_new, p.hdim_q), p.v = strides(p.heads_kv, p.seqlen_new, p.hdim_v);
  p.k_cache = strides(p.heads_kv, rows, p.hdim_q), p.v_cache = strides(p.heads_kv, rows, p.hdim_v);
  const Filling to = {call};
  const int64_t item = kw_dtype_bytes(dtype), fresh = p.batch * p.heads_kv * p.seqlen_new;
  const int64_t held = (p.page_table != KW_PAGES_NONE ? p.pages : p.batch) * p.heads_kv * rows;
  if (queries) {
    to.input(APPEND_MEMBER(q), a.q, p.batch * p.heads_q * p.seqlen_q * p.hdim_q * item);
    to.output(APPEND_MEMBER(q_out), a.q_out, p.batch * p.heads_q * p.seqlen_q * p.hdim_q * item);
  }
  to.input(APPEND_MEMBER(k), a.k, fresh * p.hdim_q * item);
  to.input(APPEND_MEMBER(v), a.v, fresh * p.hdim_v * item);
  to.add(APPEND_MEMBER(k_cache), a.k_cache, held * p.hdim_q * item, true, true);
  to.add(APPEND_MEMBER(v_cache), a.v_cache, held * p.hdim_v * item, true, true);
  to.input(APPEND_MEMBER(seqlens_k), a.seqlen_k_ptr, 4 * p.batch);
  if (p.page_table != KW_PAGES_NONE) {
    to.input(APPEND_MEMBER(page_table), a.page_table, 4 * p.batch * p.page_table_stride);
  }
  const int64_t turns = p.rotary_places * p.rotary_dim / 2 * item;
  if (rotary) to.input(APPEND_MEMBER(cos), a.cos, turns), to.input(APPEND_MEMBER(sin), a.sin, turns);
}

}  // namespace

kw_status fmha_call(const fmha_dispatcher_args* args, const FmhaForm& form, FmhaCall* call) {
  Args whole{};
  const Args* const given = &whole;
  Types types{};
  if (kw_status status = copy(args, &whole)) return status;
  if (kw_status status = check(given)) return status;
  if (kw_status status = read_types(given->data_type, &types)) return status;
  call->appends = given->operation == FMHA_APPEND_KV;
  call->attention_args.struct_size = sizeof(kw_attention_args);
  call->append_args.struct_size = sizeof(kw_append_args);
  if (call->appends) {
    if (given->q != nullptr && given->q == given->q_out) {
      return fail(KW_INVALID_ARGUMENT, "q_out is q; allowed: other memory, since timed launches would rotate it again");
    }
    append(*given, types.in, call);
    return kw_problem_validate(&call->problem());
  }
  kw_attention_problem* p = &call->attention;
  sizes(*given, types, p);
  scores(*given, form, types, p);
  strides(*given, form, p);
  if (kw_status status = kw_problem_validate(&p->base)) return status;  // then no size below overflows
  call->attention_args.seed = given->drop_seed, call->attention_args.offset = given->drop_offset;
  operands(*given, *p, {call});
  return KW_OK;
}

}  // namespace kernelwright
