/* Plain kernels of mock_library.c, which includes this file and defines what it needs: naive fp32 GEMMs of each layout,
 * one that does nothing, one that fails. */
#include "kernelwright/gemm.h"
#include "kernelwright/gemm/checks.h"

#define WORKSPACE 4096u

static int64_t at(uint32_t layout, int64_t ld, int64_t row, int64_t column) {
  return layout == KW_ROW_MAJOR ? row * ld + column : column * ld + row;
}

static kw_status supports(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  const kw_gemm_problem* p = (const kw_gemm_problem*)problem;
  const kw_gemm_traits* t = (const kw_gemm_traits*)kernel->traits;
  if (p->split_k > t->max_split_k) {
    snprintf(reason, bytes, "split_k is %u, the kernel serves at most %u", p->split_k, t->max_split_k);
    return KW_UNSUPPORTED;
  }
  if (!t->pad_k && p->k % t->tile_k != 0) {
    snprintf(reason, bytes, "k is %lld, not a multiple of tile_k %u", (long long)p->k, t->tile_k);
    return KW_UNSUPPORTED;
  }
  return kw_gemm_variant_matches(t, p, reason, bytes);
}

static kw_status no_workspace(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  (void)kernel, (void)problem;
  *bytes = 0;
  return KW_OK;
}

static kw_status some_workspace(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  (void)kernel;
  *bytes = WORKSPACE;
  if (problem->op == KW_OP_GEMM) *bytes *= 1 + (uint64_t)((const kw_gemm_problem*)problem)->m / 64;
  return KW_OK;
}

static kw_status plan(const kw_kernel* kernel, const kw_problem* problem, void* storage) {
  (void)kernel;
  memcpy(storage, problem, sizeof(kw_gemm_problem));
  return KW_OK;
}

/* One product of a batch, or of a group. b(row, column) is where the kernel reads B. */
typedef int64_t (*place)(const kw_gemm_problem* p, int64_t row, int64_t column);

static int64_t plain_b(const kw_gemm_problem* p, int64_t row, int64_t column) {
  return at(p->layout_b, p->ldb, row, column);
}

/* The order of the mock's own: the last element first, columns together. */
static int64_t shuffled_b(const kw_gemm_problem* p, int64_t row, int64_t column) {
  return p->n * p->k - 1 - (column * p->k + row);
}

static float finished(const kw_gemm_problem* p, const float* const* ds, int64_t i, int64_t j, double value) {
  for (uint32_t x = 0; x < p->num_d; ++x) {
    const int64_t ld = p->ld_multi_d[x];
    const double d = ds[x][ld == 0 ? (p->layout_c == KW_ROW_MAJOR ? j : i) : at(p->layout_c, ld, i, j)];
    value = p->d_op == KW_D_MULTIPLY ? value * d : value + d;
  }
  return (float)(p->activation == KW_ACTIVATION_RELU && value < 0 ? 0 : value);
}

static void multiply(const kw_gemm_problem* p, const float* a, const float* b, const float* c, const float* const* ds,
                     float* d, place where) {
  for (int64_t i = 0; i < p->m; ++i) {
    for (int64_t j = 0; j < p->n; ++j) {
      double sum = 0;
      for (int64_t x = 0; x < p->k; ++x) sum += (double)a[at(p->layout_a, p->lda, i, x)] * b[where(p, x, j)];
      const int64_t to = at(p->layout_c, p->ldc, i, j);
      d[to] = finished(p, ds, i, j, p->alpha * sum + (p->beta != 0.0 ? p->beta * c[to] : 0.0));
    }
  }
}

/* Launches by device, of all threads. */
KW_EXPORT int mock_launches[4];

static kw_status launch_naive(const kw_kernel* kernel, const void* storage, const kw_launch* where,
                              const void* arguments) {
  __atomic_add_fetch(&mock_launches[where->device & 3], 1, __ATOMIC_SEQ_CST);
  const kw_gemm_problem* p = (const kw_gemm_problem*)storage;
  const kw_gemm_args* args = (const kw_gemm_args*)arguments;
  const int is_shuffled = ((const kw_gemm_traits*)kernel->traits)->b_format != 0;
  if (where->workspace_bytes > 0) memset(where->workspace, 0x5a, where->workspace_bytes);
  for (int64_t x = 0; x < p->batch; ++x) {
    const float* ds[KW_MAX_D] = {0};
    for (uint32_t y = 0; y < p->num_d; ++y) ds[y] = (const float*)args->multi_d[y] + x * p->stride_multi_d[y];
    multiply(p, (const float*)args->a + x * p->stride_a, (const float*)args->b + x * p->stride_b,
             args->c == NULL ? NULL : (const float*)args->c + x * p->stride_c, ds, (float*)args->d + x * p->stride_c,
             is_shuffled ? shuffled_b : plain_b);
  }
  return KW_OK;
}

#ifdef MOCK_STREAMS
/* Of the GPU runtime that this file is linked with: its streams run kernels later. */
kw_status mock_enqueue(const kw_kernel* kernel, const void* storage, const kw_launch* where, const void* arguments,
                       kw_status (*now)(const kw_kernel*, const void*, const kw_launch*, const void*));
const char* mock_runtime_error(void);

static kw_status launch_later(const kw_kernel* kernel, const void* storage, const kw_launch* where,
                              const void* arguments) {
  const kw_status status = mock_enqueue(kernel, storage, where, arguments, launch_naive);
  if (status != KW_OK) snprintf(error_text, sizeof error_text, "%s", mock_runtime_error());
  return status;
}
#else
#define launch_later launch_naive
#endif

static kw_status launch_nothing(const kw_kernel* kernel, const void* storage, const kw_launch* where,
                                const void* arguments) {
  (void)kernel, (void)storage, (void)where, (void)arguments;
  return KW_OK;
}

static kw_status launch_fails(const kw_kernel* kernel, const void* storage, const kw_launch* where,
                              const void* arguments) {
  (void)kernel, (void)storage, (void)where, (void)arguments;
  snprintf(error_text, sizeof error_text, "the mock runtime said no");
  return KW_LAUNCH_FAILED;
}

#ifdef MOCK_MISBEHAVES
#include "misbehave.h"

static kw_status launch_misbehaving(const kw_kernel* kernel, const void* storage, const kw_launch* where,
                                    const void* arguments) {
  misbehave(getenv("MOCK_DEED"));
  return launch_naive(kernel, storage, where, arguments);
}

static kw_status plan_misbehaving(const kw_kernel* kernel, const kw_problem* problem, void* storage) {
  misbehave(getenv("MOCK_PLANS"));
  return plan(kernel, problem, storage);
}
#define usual_plan plan_misbehaving
#else
#define usual_plan plan
#define launch_misbehaving launch_naive
#endif

#define TRAITS(dtype, acc, la, lb, tm, tn, tk, mr, nr, padk) \
  {.struct_size = sizeof(kw_gemm_traits),                    \
   .dtype_a = dtype,                                         \
   .dtype_b = dtype,                                         \
   .dtype_c = acc,                                           \
   .dtype_acc = acc,                                         \
   .layout_a = la,                                           \
   .layout_b = lb,                                           \
   .tile_m = tm,                                             \
   .tile_n = tn,                                             \
   .tile_k = tk,                                             \
   .wave_m = 1,                                              \
   .wave_n = 1,                                              \
   .wave_k = 1,                                              \
   .warp_tile_m = mr,                                        \
   .warp_tile_n = nr,                                        \
   .warp_tile_k = 1,                                         \
   .pad_m = 1,                                               \
   .pad_n = 1,                                               \
   .pad_k = padk,                                            \
   .max_split_k = 1}
#define DESCRIPTOR(id, the_op, digit, label, feature, traits_of, serves, needs, plans, launches, more) \
  static const kw_kernel id = {                                                                        \
      .struct_size = sizeof(kw_kernel),                                                                \
      .abi_version = MOCK_ABI,                                                                         \
      .op = the_op,                                                                                    \
      .plan_bytes = sizeof(kw_gemm_problem),                                                           \
      .name = label,                                                                                   \
      .arch = MOCK_ARCH,                                                                               \
      .identity = IDENTITY(digit),                                                                     \
      .spec_json = "{\"arch\":\"" MOCK_ARCH "\",\"spec\":{\"op\":\"gemm\",\"digit\":\"" digit "\"}}",  \
      .features = feature,                                                                             \
      .traits = &traits_of,                                                                            \
      .supports = serves,                                                                              \
      .workspace_size = needs,                                                                         \
      .plan = plans,                                                                                   \
      .launch = launches,                                                                              \
      .extension = more}
#define KERNEL(id, digit, label, feature, traits, workspace, launch) \
  DESCRIPTOR(id, KW_OP_GEMM, digit, label, feature, traits, supports, workspace, usual_plan, launch, NULL)

static const kw_gemm_traits rcr_large = TRAITS(KW_FP32, KW_FP32, 0, 1, 128, 128, 64, 64, 64, 1);
static const kw_gemm_traits rcr_small = TRAITS(KW_FP32, KW_FP32, 0, 1, 32, 32, 32, 4, 8, 1);
static const kw_gemm_traits rcr_whole = TRAITS(KW_FP32, KW_FP32, 0, 1, 64, 64, 64, 16, 16, 0);
static const kw_gemm_traits rrr = TRAITS(KW_FP32, KW_FP32, 0, 0, 32, 32, 32, 4, 8, 1);
static const kw_gemm_traits ccr = TRAITS(KW_FP32, KW_FP32, 1, 1, 32, 32, 32, 4, 8, 1);
static const kw_gemm_traits crr = TRAITS(KW_FP32, KW_FP32, 1, 0, 32, 32, 32, 4, 8, 1);
static const kw_gemm_traits fails = TRAITS(KW_INT8, KW_INT32, 0, 1, 32, 32, 32, 4, 8, 1);
static const kw_gemm_traits nothing = {.struct_size = sizeof(kw_gemm_traits),
                                       .dtype_a = MOCK_NARROW,
                                       .dtype_b = MOCK_NARROW,
                                       .dtype_c = KW_FP16,
                                       .dtype_acc = KW_FP32,
                                       .tile_m = 32,
                                       .tile_n = 32,
                                       .tile_k = 32,
                                       .wave_m = 1,
                                       .wave_n = 1,
                                       .wave_k = 1,
                                       .warp_tile_m = 4,
                                       .warp_tile_n = 8,
                                       .warp_tile_k = 1,
                                       .pad_m = 1,
                                       .pad_n = 1,
                                       .pad_k = 1,
                                       .max_split_k = 1};

KERNEL(k_large, "0", "gemm_fp32_rcr_128x128x64", "", rcr_large, no_workspace, launch_naive);
KERNEL(k_small, "1", "gemm_fp32_rcr_32x32x32", "", rcr_small, no_workspace, launch_misbehaving);
KERNEL(k_whole, "2", "gemm_fp32_rcr_64x64x64_whole", "", rcr_whole, no_workspace, launch_naive);
KERNEL(k_rrr, "3", "gemm_fp32_rrr_32x32x32", "", rrr, some_workspace, launch_later);
KERNEL(k_ccr, "4", "gemm_fp32_ccr_32x32x32", "", ccr, no_workspace, launch_naive);
KERNEL(k_crr, "5", "gemm_fp32_crr_32x32x32", "", crr, no_workspace, launch_naive);
KERNEL(k_fails, "6", "gemm_int8_rcr_fails", "", fails, no_workspace, launch_fails);
KERNEL(k_noop, "7", "gemm_fp16_rrr_nothing", "", nothing, no_workspace, launch_nothing);
KERNEL(k_exotic, "8", "a_gemm_fp32_rcr_exotic", "made_up_feature", rcr_small, no_workspace, launch_naive);
