// Attention as the dispatcher sees it: what is refused, how problems are cached, which stages a problem takes and what
// each of them gets. The kernels are the test's; they write numbers that tell who wrote them.
#include "kernelwright/attention.h"

#include <stddef.h>

#include <vector>

#include "handle.hpp"

namespace {

constexpr int64_t kBatch = 2, kHeads = 4, kKvHeads = 2, kQueries = 3, kKeys = 96, kHdim = 8;

kw_attention_problem make(uint32_t op = KW_OP_ATTENTION) {
  kw_attention_problem p = {};
  p.base = {sizeof p, op};
  p.version = KW_ATTENTION_VERSION;
  p.dtype_q = p.dtype_kv = p.dtype_o = KW_FP32;
  p.num_splits = op == KW_OP_ATTENTION ? 0 : 1;
  p.batch = kBatch, p.heads_q = kHeads, p.heads_kv = kKvHeads, p.hdim_q = p.hdim_v = kHdim;
  p.max_seqlen_q = kQueries, p.max_seqlen_k = kKeys;
  p.window_left = p.window_right = -1;
  p.scale = 0.5;
  p.q = p.o = {kQueries * kHeads * kHdim, kHdim, kHeads * kHdim};
  p.k = p.v = {kKeys * kKvHeads * kHdim, kHdim, kKvHeads * kHdim};
  if (op == KW_OP_ATTENTION_BACKWARD) p.d_o = p.dq = p.q, p.dk = p.dv = p.k;
  return p;
}

kw_attention_problem paged() {
  kw_attention_problem p = make();
  p.page_table = KW_PAGES_BLOCK, p.kv_lengths = 1;
  p.pages = 20, p.page_size = 16, p.page_table_stride = 6;
  p.k.request = p.v.request = 16 * kKvHeads * kHdim;
  return p;
}

kw_append_problem append_problem() {
  kw_append_problem p = {};
  p.base = {sizeof p, KW_OP_ATTENTION_APPEND};
  p.version = KW_ATTENTION_VERSION;
  p.dtype = p.dtype_rotary = KW_FP32;
  p.rope = KW_ROPE_HALF, p.rotates_q = 1, p.rotary_dim = 4, p.rotary_places = 100;
  p.batch = kBatch, p.heads_q = kHeads, p.heads_kv = kKvHeads, p.hdim_q = p.hdim_v = kHdim;
  p.seqlen_q = p.seqlen_new = 1, p.capacity = kKeys;
  p.q = p.q_out = {kHeads * kHdim, kHdim, kHeads * kHdim};
  p.k = p.v = {kKvHeads * kHdim, kHdim, kKvHeads * kHdim};
  p.k_cache = p.v_cache = {kKeys * kKvHeads * kHdim, kHdim, kKvHeads * kHdim};
  return p;
}

template <class Problem, class Change>
void refused(Problem p, Change change, const char* field, const char* allowed) {
  CHECK(kw_problem_validate(&p.base) == KW_OK);
  change(&p);
  CHECK_FAILS(kw_problem_validate(&p.base), KW_INVALID_ARGUMENT, field, allowed);
}

using P = kw_attention_problem;

void forward_problems_are_validated() {
  refused(make(), [](P* p) { p->base.struct_size = 8; }, "struct_size = 8", "504");
  refused(make(), [](P* p) { p->version = 2; }, "version = 2", "1");
  refused(make(), [](P* p) { p->dtype_kv = 99; }, "dtype_kv = 99", "1 (fp32)");
  refused(make(), [](P* p) { p->mask = KW_MASK_GENERIC; }, "mask = 3", "0 (none) to 2 (bottom_right)");
  refused(make(), [](P* p) { p->random_bytes = 1; }, "random_bytes = 1", "0 to 0");
  refused(make(), [](P* p) { p->dtype_bias = KW_FP32; }, "dtype_bias", "elementwise bias only");
  refused(make(), [](P* p) { p->heads_q = 3; }, "heads_q = 3", "multiple of heads_kv = 2");
  refused(make(), [](P* p) { p->batch = -1; }, "batch = -1", "0 to");
  refused(make(), [](P* p) { p->window_right = 0; }, "window_right", "with a mask only");
  refused(make(), [](P* p) { p->window_left = -2; }, "window_left = -2", "-1 to");
  refused(make(), [](P* p) { p->soft_cap = -1; }, "soft_cap", "0 or more");
  refused(make(), [](P* p) { p->scale = 1 / (p->soft_cap); }, "scale = inf", "finite numbers");
  refused(make(), [](P* p) { p->dropout = 1, p->dropout_p = 1; }, "dropout_p", "below 1");
  refused(make(), [](P* p) { p->total_q = 6; }, "total_q", "group mode only");
  refused(make(), [](P* p) { p->min_seqlen_q = 2; }, "min_seqlen_q", "group mode only");
  refused(make(), [](P* p) { p->group = 1; }, "total_q = 0", "from the longest request, 3");
  refused(make(), [](P* p) { p->pages = 1; }, "pages", "with a page table only");
  refused(make(), [](P* p) { p->dbias = 1; }, "dbias", "backward only");
  refused(make(), [](P* p) { p->leaves_splits = 1; }, "leaves_splits = 1", "0 to 0");
  refused(make(), [](P* p) { p->slopes_stride = 4; }, "slopes_stride", "with ALiBi");
  refused(make(), [](P* p) { p->scale_block_q = 4; }, "scale_block_q", "with block scales");
  refused(make(), [](P* p) { p->o.head = 0; }, "strides of O let results overlap", "8 or more");
  refused(make(), [](P* p) { p->k.row = -1; }, "row stride of K = -1", "0 or more");
  refused(make(), [](P* p) { p->q.request = INT64_MAX; }, "Q spans too much memory", "at most");
  refused(make(), [](P* p) { p->dq.row = 1; }, "strides of dQ", "this problem has none");
  refused(paged(), [](P* p) { p->kv_lengths = 0; }, "kv_lengths = 0", "block table: 1");
  refused(paged(), [](P* p) { p->page_table = KW_PAGES_LIST; }, "kv_lengths = 1", "page list: 0");
  refused(paged(), [](P* p) { p->page_size = 0; }, "page_size = 0", "1 to");
  refused(paged(), [](P* p) { p->page_table_stride = 5; }, "page_table_stride = 5", "6 or more");
  P broadcast = make();
  broadcast.bias = KW_BIAS_ELEMENTWISE, broadcast.dtype_bias = KW_FP32;
  broadcast.bias_strides = {0, 0, kKeys};  // one matrix for all
  broadcast.k.head = 0;                    // and one head of K
  CHECK(kw_problem_validate(&broadcast.base) == KW_OK);
}

void backward_and_append_problems_are_validated() {
  const P back = make(KW_OP_ATTENTION_BACKWARD);
  refused(back, [](P* p) { p->lse = 1; }, "lse", "allowed backward");
  refused(back, [](P* p) { p->num_splits = 0; }, "num_splits", "allowed backward");
  refused(back, [](P* p) { p->dbias = 1; }, "dbias = 1", "elementwise bias");
  refused(back, [](P* p) { p->dk.head = 0; }, "strides of dK let results overlap", "8 or more");
  refused(back, [](P* p) { p->dq_slices = 1; }, "dq_slices = 1", "0 to 0");
  using A = kw_append_problem;
  const A append = append_problem();
  refused(append, [](A* p) { p->version = 0; }, "version = 0", "1");
  refused(append, [](A* p) { p->rotary_dim = 10; }, "rotary_dim = 10", "to hdim_q = 8");
  refused(append, [](A* p) { p->rotary_dim = 3; }, "rotary_dim = 3", "even");
  refused(append, [](A* p) { p->rotates_q = 0; }, "heads_q", "where Q is rotated");
  refused(append, [](A* p) { p->rope = KW_ROPE_NONE; }, "rotates_q = 1", "0 to 0");
  refused(append, [](A* p) { p->capacity = 0; }, "capacity = 0", "1 to");
  refused(append, [](A* p) { p->k_cache.row = 4; }, "strides of K cache let results overlap", "8 or more");
}

// --- the kernels

kw_attention_traits traits_of(uint32_t family) {
  kw_attention_traits t = {};
  t.struct_size = sizeof t;
  t.family = family;
  t.dtype_q = t.dtype_kv = t.dtype_o = KW_FP32;
  t.hdim_q = t.hdim_v = 16;
  t.pad_s = t.pad_sk = t.pad_d = t.pad_dv = 1;
  t.tile_m0 = 16, t.tile_n0 = 32;
  t.groups = t.lses = KW_SERVES_BOTH;
  t.kv_lengths = KW_SERVES_BOTH;
  t.masks = KW_SERVES(KW_MASK_NONE);
  t.biases = t.sinks = t.dropouts = t.random_bytes = t.soft_caps = t.dbiases = t.min_seqlens_q = KW_SERVES(0);
  t.deterministics = KW_SERVES_BOTH;
  t.qscales = KW_SERVES(KW_QSCALE_NONE);
  t.page_tables = KW_SERVES(KW_PAGES_NONE), t.page_layouts = KW_SERVES(KW_PAGE_LINEAR);
  t.ropes = KW_SERVES(KW_ROPE_HALF), t.dtype_bias = KW_FP32;
  t.max_splits = 1, t.leaves_splits = KW_SERVES(0);
  if (family == KW_ATTENTION_FWD_SPLITKV) t.max_splits = 8, t.leaves_splits = KW_SERVES(1);
  if (family == KW_ATTENTION_FWD_SPLITKV_COMBINE) t.max_splits = 8;
  if (family == KW_ATTENTION_FWD_PAGEDKV) {
    t.page_tables = KW_SERVES(KW_PAGES_BLOCK), t.kv_lengths = KW_SERVES(1), t.page_size = 16;
  }
  if (family == KW_ATTENTION_BWD_DQ_DK_DV) t.leaves_dq = 2;
  return t;
}

struct Kernel {
  kw_attention_traits traits;
  kw_kernel descriptor;
  std::string identity;

  Kernel(uint32_t family, const char* name)
      : traits(traits_of(family)), descriptor(), identity(64, static_cast<char>('0' + family)) {
    descriptor.struct_size = sizeof descriptor;
    descriptor.abi_version = KW_ABI_VERSION;
    descriptor.op = KW_ATTENTION_OP_OF(family);
    descriptor.plan_bytes = sizeof(P);
    descriptor.name = name;
    descriptor.arch = "x86_64_v3";
    descriptor.identity = identity.c_str();
    descriptor.features = "";
    descriptor.traits = &traits;
    descriptor.supports = [](const kw_kernel*, const kw_problem* p, char*, size_t) {
      const auto& part = reinterpret_cast<const P&>(*p);
      if (p->op == KW_OP_ATTENTION_APPEND) return KW_OK;
      return part.leaves_splits <= 1 && part.num_splits >= 1 && part.dq_slices < 100 ? KW_OK : KW_UNSUPPORTED;
    };
    descriptor.workspace_size = [](const kw_kernel*, const kw_problem*, uint64_t* bytes) {
      *bytes = 64;
      return KW_OK;
    };
    descriptor.plan = [](const kw_kernel*, const kw_problem* p, void* storage) {
      memcpy(storage, p, p->struct_size);
      return KW_OK;
    };
    descriptor.launch = launch;
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  static kw_status launch(const kw_kernel* kernel, const void* plan, const kw_launch*, const void* arguments);
};

constexpr int64_t kRows = kBatch * kHeads * kQueries;

// Splits hold their number; the combination adds them up, as the conversion does the slices of dQ.
kw_status Kernel::launch(const kw_kernel* kernel, const void* plan, const kw_launch*, const void* arguments) {
  const auto& p = *static_cast<const P*>(plan);
  const auto& a = *static_cast<const kw_attention_args*>(arguments);
  switch (kernel->op) {
    case KW_OP_ATTENTION_PART:
      if (p.leaves_splits == 0) {
        static_cast<float*>(a.o)[0] = 100;
        return KW_OK;
      }
      for (uint32_t s = 0; s < p.num_splits; ++s) {
        for (int64_t i = 0; i < kRows * kHdim; ++i) a.o_splits[s * kRows * kHdim + i] = static_cast<float>(s + 1);
        for (int64_t i = 0; i < kRows; ++i) a.lse_splits[s * kRows + i] = static_cast<float>(10 * (s + 1));
      }
      return KW_OK;
    case KW_OP_ATTENTION_COMBINE:
      for (int64_t i = 0; i < kRows * kHdim; ++i) {
        float& sum = static_cast<float*>(a.o)[i] = 0;
        for (uint32_t s = 0; s < p.num_splits; ++s) {
          sum += a.o_splits[s * kRows * kHdim + i] + a.lse_splits[s * kRows + i / kHdim];
        }
      }
      return KW_OK;
    case KW_OP_ATTENTION_DOT:
      for (int64_t i = 0; i < kRows; ++i) a.d[i] = 7;
      return KW_OK;
    case KW_OP_ATTENTION_DQ_DK_DV:
      static_cast<float*>(a.dk)[0] = a.d[kRows - 1];
      for (uint32_t s = 0; s < p.dq_slices; ++s) {
        for (int64_t i = 0; i < kRows * kHdim; ++i) a.dq_sums[s * kRows * kHdim + i] = static_cast<float>(s + 1);
      }
      return KW_OK;
    case KW_OP_ATTENTION_CONVERT_DQ:
      for (int64_t i = 0; i < kRows * kHdim; ++i) {
        float& sum = static_cast<float*>(a.dq)[i] = 0;
        for (uint32_t s = 0; s < p.dq_slices; ++s) sum += a.dq_sums[s * kRows * kHdim + i];
      }
      return KW_OK;
    default:
      static_cast<float*>(static_cast<const kw_append_args*>(arguments)->k_cache)[0] = 3;
      return KW_OK;
  }
}

const Kernel kFwd(KW_ATTENTION_FWD, "fwd"), kSplit(KW_ATTENTION_FWD_SPLITKV, "split"),
    kPaged(KW_ATTENTION_FWD_PAGEDKV, "paged"), kCombine(KW_ATTENTION_FWD_SPLITKV_COMBINE, "combine"),
    kAppend(KW_ATTENTION_FWD_APPENDKV, "append"), kDot(KW_ATTENTION_BWD_DOT_DO_O, "dot"),
    kGradients(KW_ATTENTION_BWD_DQ_DK_DV, "gradients"), kConvert(KW_ATTENTION_BWD_CONVERT_DQ, "convert");

// 64 units: few rows leave most of them idle unless keys are split.
const kw_arch kArch = {sizeof kArch, KW_BACKEND_CUDA, "x86_64_v3", 64, 32, KW_FP8_OCP, 0, 1 << 20,
                       1.0,          1000.0,          {0, 64}};

struct Loaded {
  Handle h;
  explicit Loaded(std::vector<const kw_kernel*> given) : kernels(std::move(given)) {
    library = {sizeof(kw_library),
               KW_ABI_VERSION,
               "attention",
               &kArch,
               kernels.data(),
               kernels.size(),
               [](int32_t, char*, size_t) { return KW_OK; },
               [] { return ""; },
               [](uint32_t) { return KW_OK; },
               nullptr};
    CHECK(kw_dispatcher_add_descriptor(h.d, &library, nullptr) == KW_OK);
  }
  const kw_plan* plan(const kw_problem& p) {
    const kw_plan* made = nullptr;
    CHECK(kw_dispatcher_select(h.d, &p, &made) == KW_OK);
    return made;
  }
  std::vector<const kw_kernel*> kernels;
  kw_library library;
};

kw_plan_info info_of(const kw_plan* plan) {
  kw_plan_info info = {};
  info.struct_size = sizeof info;
  CHECK(kw_plan_get_info(plan, &info) == KW_OK);
  return info;
}

std::string kernels_of(const kw_plan* plan) {
  std::string names;
  for (uint32_t i = 0; i < info_of(plan).stage_count; ++i) {
    kw_stage_info info = {};
    info.struct_size = sizeof info;
    CHECK(kw_plan_get_stage(plan, i, &info) == KW_OK);
    names += (i == 0 ? "" : " ") + std::string(info.kernel->name);
  }
  return names;
}

void run(const kw_plan* plan, const void* args) {
  const uint64_t bytes = info_of(plan).workspace_bytes;
  void* workspace = nullptr;
  CHECK(posix_memalign(&workspace, 256, bytes) == 0);
  const kw_launch where = make_launch(workspace, bytes);
  CHECK(kw_plan_launch(plan, &where, args) == KW_OK);
  free(workspace);
}

void splits_are_combined() {
  Loaded all({&kFwd.descriptor, &kSplit.descriptor, &kCombine.descriptor, &kPaged.descriptor});
  P p = make();
  p.num_splits = 3;
  const kw_plan* plan = all.plan(p.base);
  CHECK(kernels_of(plan) == "split combine" && strcmp(info_of(plan).choices, "num_splits=3") == 0);
  const std::vector<float> read(1 << 16);
  std::vector<float> o(kRows * kHdim);
  kw_attention_args args = {};
  args.struct_size = sizeof args;
  args.q = args.k = args.v = read.data(), args.o = o.data();
  run(plan, &args);
  for (float each : o) CHECK(each == 1 + 2 + 3 + 10 + 20 + 30);
  p.num_splits = 1;  // then the part writes O
  plan = all.plan(p.base);
  CHECK(kernels_of(plan) == "fwd");
  run(plan, &args);
  CHECK(o[0] == 100);
  args.v = nullptr;
  CHECK_FAILS(kw_dispatcher_run(all.h.d, &p.base, &kLaunch, &args), KW_INVALID_ARGUMENT, "v is null");
  p.num_splits = 9;
  CHECK_FAILS(kw_dispatcher_select(all.h.d, &p.base, &plan), KW_NO_KERNEL, "num_splits is 9");
  CHECK(kernels_of(all.plan(paged().base)) == "paged");
}

// A long cache and one query: splits fill the units. Many queries: they are not worth a second launch.
void splits_follow_from_lengths_heads_and_units() {
  Loaded all({&kFwd.descriptor, &kSplit.descriptor, &kCombine.descriptor});
  const auto self_attention = [](int64_t queries, int64_t keys, int64_t batch) {
    P p = make();
    p.batch = batch, p.max_seqlen_q = queries, p.max_seqlen_k = keys;
    p.q.request = p.o.request = queries * kHeads * kHdim, p.k.request = p.v.request = keys * kKvHeads * kHdim;
    return p;
  };
  CHECK(kernels_of(all.plan(self_attention(1, 16384, 1).base)) == "split combine");
  CHECK(kernels_of(all.plan(self_attention(4096, 4096, 4).base)) == "fwd");
  CHECK(kernels_of(all.plan(self_attention(1, 16384, 64).base)) == "fwd");
  CHECK(kernels_of(all.plan(self_attention(1, 64, 1).base)) == "fwd");
}

// Blocks that read keys of their own: two for each of 64 units. With 3 heads no power of two fills them.
void splits_fill_the_units() {
  Kernel packed(KW_ATTENTION_FWD_SPLITKV, "packed"), combine(KW_ATTENTION_FWD_SPLITKV_COMBINE, "combine");
  packed.traits.packs_heads = 1, packed.traits.blocks_per_cu = 2, packed.traits.leaves_splits = KW_SERVES_BOTH;
  packed.traits.max_splits = combine.traits.max_splits = 4096;
  Loaded all({&packed.descriptor, &combine.descriptor});
  P p = make();
  p.batch = 1, p.max_seqlen_q = 1, p.max_seqlen_k = 1 << 18, p.heads_q = 6, p.heads_kv = 3;
  p.q.request = p.o.request = p.heads_q * kHdim, p.q.row = p.o.row = p.heads_q * kHdim;
  p.k.row = p.v.row = p.heads_kv * kHdim, p.k.request = p.v.request = p.max_seqlen_k * p.k.row;
  const kw_plan* plan = all.plan(p.base);
  CHECK(kernels_of(plan) == "packed combine" && strcmp(info_of(plan).choices, "num_splits=42") == 0);
  p.max_seqlen_k = 64, p.k.request = p.v.request = p.max_seqlen_k * p.k.row;
  CHECK(kernels_of(all.plan(p.base)) == "packed");
}

void gradients_take_three_stages() {
  Loaded all({&kDot.descriptor, &kGradients.descriptor, &kConvert.descriptor});
  const P p = make(KW_OP_ATTENTION_BACKWARD), forward = make();
  const kw_plan* plan = all.plan(p.base);
  CHECK(kernels_of(plan) == "dot gradients convert" && strcmp(info_of(plan).choices, "dq_slices=3") == 0);
  std::vector<float> dq(kRows * kHdim), dk(kBatch * kKeys * kKvHeads * kHdim), dv(dk.size());
  kw_attention_args args = {};
  args.struct_size = sizeof args;
  std::vector<float> read(1 << 16);
  args.q = args.k = args.v = args.d_o = read.data();
  args.o = args.lse = read.data();
  args.dq = dq.data(), args.dk = dk.data(), args.dv = dv.data();
  run(plan, &args);
  for (float each : dq) CHECK(each == 1 + 2 + 3);
  CHECK(dk[0] == 7);
  CHECK_FAILS(kw_dispatcher_select(all.h.d, &forward.base, &plan), KW_NO_KERNEL,
              "attention part fp32 batch b2 heads 4/2 q3 k96 d8");
}

void gradients_with_less_work_come_first() {
  Kernel twice(KW_ATTENTION_BWD_DQ_DK_DV, "twice");
  twice.identity[0] = 'x';
  twice.traits.work_percent = 140;
  const P p = make(KW_OP_ATTENTION_BACKWARD);
  Loaded both({&kDot.descriptor, &twice.descriptor, &kGradients.descriptor, &kConvert.descriptor});
  CHECK(kernels_of(both.plan(p.base)) == "dot gradients convert");
  twice.traits.struct_size = offsetof(kw_attention_traits, work_percent);  // as of a library from before
  Loaded alone({&kDot.descriptor, &twice.descriptor, &kConvert.descriptor});
  CHECK(kernels_of(alone.plan(p.base)) == "dot twice convert");
}

void problems_and_kernels_are_matched() {
  Loaded all({&kFwd.descriptor, &kAppend.descriptor});
  const auto lacks = [&](void (*change)(P*), const char* why) {
    P p = make();
    change(&p);
    const kw_plan* plan = nullptr;
    CHECK_FAILS(kw_dispatcher_select(all.h.d, &p.base, &plan), KW_NO_KERNEL, why);
  };
  lacks([](P* p) { p->dtype_q = KW_BF16; }, "dtype_q is bf16, this kernel serves fp32");
  lacks([](P* p) { p->hdim_q = 17, p->q.head = p->k.head = 17; }, "hdim_q is 17, this kernel serves up to 16");
  lacks([](P* p) { p->mask = KW_MASK_TOP_LEFT, p->window_right = 0; }, "mask is top_left");
  lacks([](P* p) { p->mask = KW_MASK_TOP_LEFT, p->window_right = 5; }, "mask is generic");
  lacks([](P* p) { p->bias = KW_BIAS_ALIBI; }, "bias is alibi");
  lacks([](P* p) { p->soft_cap = 3; }, "the problem has soft cap");
  lacks([](P* p) { p->sink = 1; }, "the problem has sinks");
  lacks([](P* p) { p->dropout = 1, p->dropout_p = 0.5; }, "the problem has dropout");
  P again = make();
  const kw_plan* first = all.plan(again.base);
  CHECK(all.plan(again.base) == first);
  again.scale = 0.25;
  CHECK(all.plan(again.base) != first);
  const kw_append_problem append = append_problem();
  const kw_plan* plan = all.plan(append.base);
  CHECK(kernels_of(plan) == "append");
  std::vector<float> memory(1 << 16);
  float *const read = memory.data(), *const q = read + (1 << 14), *const k = q + (1 << 14), *const v = k + (1 << 14);
  const int32_t zero = 0;
  kw_append_args args = {sizeof args, 0, q, q, read, read, k, v, &zero, nullptr, read, read};
  run(plan, &args);
  CHECK(k[0] == 3);
  args.cos = nullptr;
  CHECK_FAILS(kw_dispatcher_run(all.h.d, &append.base, &kLaunch, &args), KW_INVALID_ARGUMENT, "cos is null");
  kw_append_problem wrong = append;
  wrong.rope = KW_ROPE_INTERLEAVED;
  CHECK_FAILS(kw_dispatcher_select(all.h.d, &wrong.base, &plan), KW_NO_KERNEL, "rotary embedding is interleaved");
}

void descriptors_must_be_complete() {
  Kernel broken(KW_ATTENTION_FWD, "broken");
  broken.traits.max_splits = 0;
  const kw_kernel* const kernels[] = {&broken.descriptor};
  Loaded fine({&kFwd.descriptor});
  kw_library library = fine.library;
  library.kernels = kernels;
  CHECK_FAILS(kw_dispatcher_add_descriptor(fine.h.d, &library, nullptr), KW_LOAD_FAILED, "max_splits 0");
  broken.traits.max_splits = 1;
  broken.traits.family = KW_ATTENTION_BWD_DOT_DO_O;
  CHECK_FAILS(kw_dispatcher_add_descriptor(fine.h.d, &library, nullptr), KW_LOAD_FAILED, "family of another op");
}

}  // namespace

void attention() {
  forward_problems_are_validated();
  backward_and_append_problems_are_validated();
  splits_are_combined();
  splits_follow_from_lengths_heads_and_units();
  splits_fill_the_units();
  gradients_take_three_stages();
  gradients_with_less_work_come_first();
  problems_and_kernels_are_matched();
  descriptors_must_be_complete();
}
