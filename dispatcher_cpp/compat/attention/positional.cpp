// The functions that clients of the CK Tile dispatcher bind: positional arguments, one function for each family. What
// they have no argument for (starts of requests, page tables, biases, sinks) is filled in as there.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernelwright/dispatcher/compat/fmha_filled.hpp"
#include "kernelwright/dispatcher/compat/fmha_state.hpp"

using namespace kernelwright;

namespace {

using Args = fmha_dispatcher_args;

constexpr int kDefaultPage = 64;  // keys, where page_block_size is 0 or less
constexpr float kDropped = 0.2f;  // of has_dropout, with seed 1 and offset 0
constexpr int kVectorized = 0;    // kv_layout; 1 is linear
constexpr int kBlockTable = 0;    // kv_lookup; 1 is a list

// The arguments that all forward and backward functions have in common.
struct Sizes {
  int batch, nhead_q, nhead_k, seqlen_q, seqlen_k, hdim_q, hdim_v;
};

// A struct that is being made of positional arguments. Whatever fails first stays.
class Made {
 public:
  Made(int operation, const Sizes& s, const char* dtype) {
    args.struct_size = sizeof args, args.version = FMHA_DISPATCHER_ARGS_VERSION;
    args.data_type = dtype != nullptr ? dtype : "fp16";
    args.operation = operation;
    args.batch = s.batch, args.nhead_q = s.nhead_q, args.nhead_k = s.nhead_k;
    args.seqlen_q = s.seqlen_q, args.seqlen_k = s.seqlen_k, args.hdim_q = s.hdim_q, args.hdim_v = s.hdim_v;
    args.window_size_left = args.window_size_right = -1;
    const bool narrow = strncmp(args.data_type, "fp8", 3) == 0;
    item_ = narrow ? 1 : strcmp(args.data_type, "fp32") == 0 ? 4 : 2;
    item_bias_ = narrow ? 4 : item_;
    allow("batch", s.batch, 0, INT32_MAX);
    allow("nhead_q", s.nhead_q, 1, INT32_MAX), allow("nhead_k", s.nhead_k, 1, INT32_MAX);
    allow("seqlen_q", s.seqlen_q, 0, INT32_MAX), allow("seqlen_k", s.seqlen_k, 0, INT32_MAX);
    allow("hdim_q", s.hdim_q, 1, INT32_MAX), allow("hdim_v", s.hdim_v, 1, INT32_MAX);
  }

  Args args{};
  FmhaForm form;

  void allow(const char* name, int value, int first, int last) {
    if (value < first || value > last) refuse("%s = %d; allowed: %d to %d", name, value, first, last);
  }
  __attribute__((format(printf, 2, 3))) void refuse(const char* format, ...) {
    if (status_ != KW_OK) return;
    char text[256];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    status_ = fail(KW_INVALID_ARGUMENT, "%s", text);
  }
  bool is_good() const { return status_ == KW_OK; }

  void scale(float value) { args.scale = value, form.scale_may_be_zero = true; }
  void only_rows(int is_v_rowmajor) {
    if (is_v_rowmajor == 0) refuse("is_v_rowmajor = 0; allowed: 1, since no kernel reads columns of V");
  }
  void no_cap(int has_logits) {
    if (has_logits != 0) {
      refuse("has_logits = %d; allowed: 0, since there is no argument for the cap; call fmha_dispatcher_run()",
             has_logits);
    }
  }
  // Without windows a mask is causal.
  void mask(int type) {
    args.mask_type = type;
    if (type != FMHA_MASK_NO) args.window_size_right = 0;
  }
  void mask(int type, int left, int right) {
    args.mask_type = type, args.window_size_left = left, args.window_size_right = right;
  }
  void dropout(int has) {
    if (has != 0) args.p_drop = kDropped, args.drop_seed = 1;
  }
  void lse(int has) {
    if (has != 0 && is_good())
      args.lse = static_cast<float*>(filled_.zeros(4, args.batch, args.nhead_q, args.seqlen_q));
  }
  void sinks(int has) {
    if (has != 0 && is_good()) args.sinks = static_cast<const float*>(filled_.zeros(4, args.nhead_q));
  }
  void bias(int type) {
    allow("bias_type", type, FMHA_BIAS_NO, FMHA_BIAS_ALIBI);
    if (type == FMHA_BIAS_NO || !is_good()) return;
    args.bias_type = type;
    args.bias = type == FMHA_BIAS_ALIBI ? filled_.zeros(4, args.nhead_q) : square();
  }
  void* square() { return filled_.zeros(item_bias_, args.batch, args.nhead_q, args.seqlen_q, args.seqlen_k); }
  void* tensor(int heads, int rows, int hdim) { return filled_.zeros(item_, args.batch, heads, rows, hdim); }
  void* zeros(int64_t rows, int64_t columns) { return filled_.zeros(item_, rows, columns); }

  // Requests of equal lengths. keys: also those of K and V.
  void group(bool keys) {
    args.is_group_mode = 1;
    args.seqstart_q = starts("seqlen_q", args.seqlen_q);
    if (keys) args.seqstart_k = starts("seqlen_k", args.seqlen_k);
  }
  // Pages of (nhead_k, size, hdim) elements in order, each request's behind those of the one before.
  void pages(int size, bool list) {
    page_size(size);
    const int64_t keys = args.seqlen_k, page = args.page_block_size, width = keys / page;
    if (keys == 0 || keys % page != 0) {
      refuse("seqlen_k = %d; allowed: multiples of page_block_size = %d above 0, since K and V have no more rows",
             args.seqlen_k, args.page_block_size);
    }
    table(width);
    form.pages_heads_first = true;
    if (!is_good()) return;
    if (!list) {
      args.page_table_width = static_cast<int32_t>(width);
      args.seqlen_k_ptr = filled_.counts(args.batch, keys, 0);
    } else {
      args.page_indptr = filled_.counts(int64_t{args.batch} + 1, 0, width);
      args.last_page_lengths = filled_.counts(args.batch, page, 0);
    }
  }
  // Caches of rows for each request, of which the first `held` are there: zeros, which nobody sees afterwards.
  void caches(int64_t rows, int held, bool paged, int size) {
    if (rows > INT32_MAX) refuse("seqlen_q + seqlen_knew = %lld; allowed: below 2^31", static_cast<long long>(rows));
    if (paged) {
      page_size(size);
      const int64_t width = (rows + args.page_block_size - 1) / args.page_block_size;
      table(width);
      args.page_table_width = static_cast<int32_t>(width);
      rows = width * args.page_block_size;
    }
    if (!is_good()) return;
    args.cache_capacity = paged ? 0 : static_cast<int32_t>(rows);
    args.seqlen_k_ptr = filled_.counts(args.batch, held, 0);
    args.k_cache = filled_.zeros(item_, args.batch, args.nhead_k, rows, args.hdim_q);
    args.v_cache = filled_.zeros(item_, args.batch, args.nhead_k, rows, args.hdim_v);
  }

  int run(float* time_ms) const {
    if (status_ != KW_OK || filled_.status() != KW_OK) return FMHA_DISPATCHER_ERROR;
    return fmha_run(&args, form, time_ms);
  }

 private:
  void page_size(int size) { args.page_block_size = size > 0 ? size : kDefaultPage; }
  const int32_t* starts(const char* name, int length) {
    if (int64_t{args.batch} * length > INT32_MAX) {
      refuse("batch = %d, %s = %d; allowed: products below 2^31", args.batch, name, length);
    }
    return is_good() ? filled_.counts(int64_t{args.batch} + 1, 0, length) : nullptr;
  }
  void table(int64_t width) {
    const int64_t pages = args.batch * width;
    if (pages > INT32_MAX) refuse("%lld pages; allowed: below 2^31", static_cast<long long>(pages));
    if (!is_good()) return;
    args.page_count = static_cast<int32_t>(pages);
    args.page_table = filled_.counts(pages, 0, 1);
  }

  Filled filled_;
  int64_t item_ = 2, item_bias_ = 2;
  kw_status status_ = KW_OK;
};

void operands(const void* q, const void* k, const void* v, void* o, Args* args) {
  args->q = q, args->k = k, args->v = v, args->o = o;
}

}  // namespace

int fmha_dispatcher_run_fwd(const void* q, const void* k, const void* v, void* o, int batch, int nhead_q, int nhead_k,
                            int seqlen_q, int seqlen_k, int hdim_q, int hdim_v, float scale, int mask_type,
                            int bias_type, int has_lse, int has_dropout, int traits_hdim_q, int traits_hdim_v,
                            int is_v_rowmajor, int perm, const char* data_type, int is_group_mode, int window_left,
                            int window_right, int has_logits, int has_sink, int has_skip, float* time_ms) {
  (void)traits_hdim_q, (void)traits_hdim_v;  // the dispatcher chooses the kernel
  (void)has_skip;                            // requests of fewer than 0 queries are skipped
  Made made(FMHA_FORWARD, {batch, nhead_q, nhead_k, seqlen_q, seqlen_k, hdim_q, hdim_v}, data_type);
  operands(q, k, v, o, &made.args);
  made.scale(scale);
  made.mask(mask_type, window_left, window_right);
  made.only_rows(is_v_rowmajor), made.no_cap(has_logits);
  made.bias(bias_type), made.lse(has_lse), made.dropout(has_dropout), made.sinks(has_sink);
  made.args.i_perm = perm == 1 ? 1 : 0;
  if (is_group_mode != 0) made.group(true);
  return made.run(time_ms);
}

int fmha_dispatcher_run_bwd(const void* q, const void* k, const void* v, const void* o, const void* lse,
                            const void* d_o, void* dq, void* dk, void* dv, int batch, int nhead_q, int nhead_k,
                            int seqlen_q, int seqlen_k, int hdim_q, int hdim_v, float scale, const char* data_type,
                            int mask_type, int bias_type, int has_dropout, int has_dbias, int is_deterministic,
                            int is_group_mode, int is_store_randval, int tile_n0, float* time_ms) {
  (void)is_store_randval;  // what would be stored has no argument
  (void)tile_n0;           // the kernel that is chosen knows its own
  Made made(FMHA_BACKWARD, {batch, nhead_q, nhead_k, seqlen_q, seqlen_k, hdim_q, hdim_v}, data_type);
  Args& args = made.args;
  operands(q, k, v, const_cast<void*>(o), &args);
  args.lse = static_cast<float*>(const_cast<void*>(lse)), args.d_o = d_o, args.dq = dq, args.dk = dk, args.dv = dv;
  made.scale(scale), made.mask(mask_type), made.bias(bias_type), made.dropout(has_dropout);
  args.i_perm = 1, args.is_deterministic = is_deterministic != 0 ? 1 : 0;
  if (has_dbias != 0 && bias_type != FMHA_BIAS_ELEMENTWISE) {
    made.refuse("has_dbias = %d, bias_type = %d; allowed: with bias_type = 1", has_dbias, bias_type);
  } else if (has_dbias != 0 && made.is_good()) {
    args.dbias = made.square();
  }
  if (is_group_mode != 0) made.group(true);
  return made.run(time_ms);
}

int fmha_dispatcher_run_splitkv(const void* q, const void* k, const void* v, void* o, int batch, int nhead_q,
                                int nhead_k, int seqlen_q, int seqlen_k, int hdim_q, int hdim_v, float scale,
                                int mask_type, int num_splits, int is_v_rowmajor, const char* data_type, int has_lse,
                                int is_group_mode, int perm, int has_logits, int bias_type, int has_sink, int paged_kv,
                                int page_block_size, int window_left, int window_right, float* time_ms) {
  Made made(FMHA_FORWARD, {batch, nhead_q, nhead_k, seqlen_q, seqlen_k, hdim_q, hdim_v}, data_type);
  operands(q, k, v, o, &made.args);
  made.scale(scale);
  made.mask(mask_type, window_left, window_right);
  made.only_rows(is_v_rowmajor), made.no_cap(has_logits);
  made.bias(bias_type), made.lse(has_lse), made.sinks(has_sink);
  // Without groups heads stand before rows there, whatever perm says.
  if (is_group_mode == 0 && perm != 1) made.refuse("perm = %d; allowed without group mode: 1", perm);
  made.args.i_perm = perm == 1 ? 1 : 0, made.args.num_splits = num_splits > 0 ? num_splits : 0;
  if (is_group_mode != 0) made.group(paged_kv == 0);
  if (paged_kv != 0) made.pages(page_block_size, false);
  return made.run(time_ms);
}

int fmha_dispatcher_run_pagedkv(const void* q, const void* k, const void* v, void* o, int batch, int nhead_q,
                                int nhead_k, int seqlen_q, int seqlen_k, int hdim_q, int hdim_v, float scale,
                                int mask_type, int page_block_size, int is_v_rowmajor, const char* data_type,
                                int has_lse, int has_logits, int has_sink, int skip_min_seqlen_q, int bias_type,
                                float* time_ms) {
  (void)skip_min_seqlen_q;  // as has_skip
  Made made(FMHA_FORWARD, {batch, nhead_q, nhead_k, seqlen_q, seqlen_k, hdim_q, hdim_v}, data_type);
  operands(q, k, v, o, &made.args);
  made.scale(scale), made.mask(mask_type), made.only_rows(is_v_rowmajor), made.no_cap(has_logits);
  made.bias(bias_type), made.lse(has_lse), made.sinks(has_sink);
  made.group(false), made.pages(page_block_size, false);
  return made.run(time_ms);
}

int fmha_dispatcher_run_appendkv(const void* q, const void* k_new, const void* v_new, int batch, int nhead_q,
                                 int nhead_k, int seqlen_q, int seqlen_knew, int hdim_q, int hdim_v, int is_v_rowmajor,
                                 int rope_type, int paged_kv, int page_block_size, const char* data_type,
                                 float* time_ms) {
  Made made(FMHA_APPEND_KV, {batch, nhead_q, nhead_k, seqlen_q, seqlen_knew, hdim_q, hdim_v}, data_type);
  Args& args = made.args;
  operands(q, k_new, v_new, nullptr, &args);
  made.only_rows(is_v_rowmajor), made.allow("rope_type", rope_type, FMHA_ROPE_NO, FMHA_ROPE_HALF);
  args.i_perm = 1, args.rope_type = rope_type;
  const int64_t places = int64_t{seqlen_q} + seqlen_knew;
  made.caches(places, seqlen_q, paged_kv != 0, page_block_size);
  if (rope_type != FMHA_ROPE_NO && made.is_good()) {
    args.rotary_dim = hdim_q, args.rotary_places = static_cast<int32_t>(places);
    args.cos = made.zeros(places, hdim_q), args.sin = made.zeros(places, hdim_q);
    if (q != nullptr) args.q_out = made.tensor(nhead_q, seqlen_q, hdim_q);
  }
  return made.run(time_ms);
}

int fmha_dispatcher_run_batch_prefill(const void* q, const void* k, const void* v, void* o, int batch, int nhead_q,
                                      int nhead_k, int seqlen_q, int seqlen_k, int hdim_q, int hdim_v, float scale,
                                      int mask_type, int bias_type, int page_block_size, int kv_layout, int kv_lookup,
                                      int is_v_rowmajor, const char* data_type, int has_lse, int has_dropout,
                                      int has_logits, int has_sink, int skip_min_seqlen_q, float* time_ms) {
  (void)skip_min_seqlen_q;  // as has_skip
  Made made(FMHA_FORWARD, {batch, nhead_q, nhead_k, seqlen_q, seqlen_k, hdim_q, hdim_v}, data_type);
  operands(q, k, v, o, &made.args);
  made.scale(scale), made.mask(mask_type), made.only_rows(is_v_rowmajor), made.no_cap(has_logits);
  made.allow("kv_layout", kv_layout, 0, 1), made.allow("kv_lookup", kv_lookup, 0, 1);
  made.bias(bias_type), made.lse(has_lse), made.dropout(has_dropout), made.sinks(has_sink);
  made.group(false), made.pages(page_block_size, kv_lookup != kBlockTable);
  if (kv_layout == kVectorized) made.form.page_layout = KW_PAGE_VECTORIZED;
  return made.run(time_ms);
}
