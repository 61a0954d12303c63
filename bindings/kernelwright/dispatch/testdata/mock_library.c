/* A kernel library for tests of the dispatcher: naive fp32 GEMMs, one that does nothing, one that fails.
 *
 * Macros choose what is wrong with it: MOCK_ABI (version), MOCK_DEVICE (kw_status of check_device), MOCK_EMPTY,
 * MOCK_NULL, MOCK_NO_SYMBOL, MOCK_ARCH, MOCK_BACKEND, MOCK_NAME, MOCK_SEED (one hex digit in every identity), MOCK_OLD
 * (a table that ends before set_runtime), MOCK_ANY_DEVICE (accepts every ordinal), MOCK_NARROW (dtype of A and B of the
 * kernel that does nothing), MOCK_VARIANTS (instead of the plain kernels one of each variant, and a plain one),
 * MOCK_ANY_EPILOGUE (of the variants, the one that adds serves any epilogue), MOCK_IDLE (no variant computes anything),
 * MOCK_FP8_FORMAT (kw_fp8_format of the architecture), MOCK_STREAMS (the row-major kernel is launched by a GPU runtime
 * that is linked in), MOCK_MODEL (a selection model of this version comes with it, which judges fp32 problems of 100
 * rows or fewer and prefers large tiles).
 */
#include <stdio.h>
#include <string.h>

#include "kernelwright/gemm.h"
#include "kernelwright/gemm/checks.h"
#include "kernelwright/gemm/groups.h"
#include "kernelwright/heuristic.h"

#ifndef MOCK_ABI
#define MOCK_ABI KW_ABI_VERSION
#endif
#ifndef MOCK_ARCH
#define MOCK_ARCH "x86_64_v3"
#endif
#ifndef MOCK_NAME
#define MOCK_NAME "mock"
#endif
#ifndef MOCK_SEED
#define MOCK_SEED "0"
#endif
#ifndef MOCK_BACKEND
#define MOCK_BACKEND KW_BACKEND_CPU
#endif
#ifndef MOCK_DEVICE
#define MOCK_DEVICE KW_OK
#endif

#ifndef MOCK_NARROW
#define MOCK_NARROW KW_FP16
#endif

#define WORKSPACE 4096u

static _Thread_local char error_text[128];

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

#define DIGITS_62 "123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
#define IDENTITY(digit) MOCK_SEED digit DIGITS_62

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

#ifdef MOCK_VARIANTS
static kw_status grouped_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  (void)kernel;
  const kw_grouped_gemm_problem* p = (const kw_grouped_gemm_problem*)problem;
  for (int64_t i = 0; i < p->group_count; ++i) {
    if (p->groups[i].k <= 1000) continue;
    snprintf(reason, bytes, "group %lld: k is %lld, the mock serves 1000", (long long)i, (long long)p->groups[i].k);
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

static kw_status grouped_plan(const kw_kernel* kernel, const kw_problem* problem, void* storage) {
  (void)kernel;
  memcpy(storage, problem, sizeof(kw_grouped_gemm_problem));
  return KW_OK;
}

static kw_status launch_grouped(const kw_kernel* kernel, const void* storage, const kw_launch* where,
                                const void* arguments) {
  (void)kernel;
  const kw_grouped_gemm_problem* p = (const kw_grouped_gemm_problem*)storage;
  const kw_grouped_gemm_args* args = (const kw_grouped_gemm_args*)arguments;
  if (where->workspace_bytes > 0) memset(where->workspace, 0x5a, where->workspace_bytes);
  for (int64_t i = 0; i < args->group_count; ++i) {
    const kw_gemm_problem one = kw_problem_of_group(p, &args->groups[i]);
    multiply(&one, (const float*)args->a[i], (const float*)args->b[i],
             args->c == NULL ? NULL : (const float*)args->c[i], NULL, (float*)args->d[i], plain_b);
  }
  return KW_OK;
}

/* Like kernels with a workspace: leaves split_k = 1 to others. */
static kw_status split_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason, size_t bytes) {
  if (((const kw_gemm_problem*)problem)->split_k != 1) return supports(kernel, problem, reason, bytes);
  snprintf(reason, bytes, "split_k is 1, another kernel does that without a workspace");
  return KW_UNSUPPORTED;
}

static kw_status shuffle_bytes(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  (void)kernel;
  const kw_gemm_problem* p = (const kw_gemm_problem*)problem;
  *bytes = (uint64_t)(p->n * p->k) * sizeof(float);
  return KW_OK;
}

static kw_status shuffle(const kw_kernel* kernel, const kw_problem* problem, const void* b, void* shuffled) {
  (void)kernel;
  const kw_gemm_problem* p = (const kw_gemm_problem*)problem;
  for (int64_t i = 0; i < p->k; ++i) {
    for (int64_t j = 0; j < p->n; ++j) {
      ((float*)shuffled)[shuffled_b(p, i, j)] = ((const float*)b)[at(p->layout_b, p->ldb, i, j)];
    }
  }
  return KW_OK;
}

static const kw_gemm_extension preshuffle = {
    .struct_size = sizeof(kw_gemm_extension), .shuffle_b_bytes = shuffle_bytes, .shuffle_b = shuffle};

#define SQUARE(n, layout_of_b)                                                                                     \
  .struct_size = sizeof(kw_gemm_traits), .dtype_a = KW_FP32, .dtype_b = KW_FP32, .dtype_c = KW_FP32,               \
  .dtype_acc = KW_FP32, .layout_b = layout_of_b, .tile_m = n, .tile_n = n, .tile_k = 32, .wave_m = 1, .wave_n = 1, \
  .wave_k = 1, .warp_tile_m = 4, .warp_tile_n = 8, .warp_tile_k = 1, .pad_m = 1, .pad_n = 1, .pad_k = 1

static const kw_gemm_traits v_plain = {SQUARE(32, KW_ROW_MAJOR), .max_split_k = 1};
static const kw_gemm_traits v_batched = {SQUARE(32, KW_ROW_MAJOR), .max_split_k = 1, .batched = 1};
#ifdef MOCK_ANY_EPILOGUE
static const kw_gemm_traits v_add = {SQUARE(32, KW_ROW_MAJOR), .max_split_k = 1, .num_d = KW_MAX_D, .batched = 1,
                                     .activation = KW_ACTIVATION_ANY};
#else
static const kw_gemm_traits v_add = {SQUARE(32, KW_ROW_MAJOR), .max_split_k = 1, .num_d = 1, .batched = 1,
                                     .activation = KW_ACTIVATION_RELU};
#endif
static const kw_gemm_traits v_times = {SQUARE(32, KW_ROW_MAJOR), .max_split_k = 1, .num_d = 2, .d_op = KW_D_MULTIPLY};
static const kw_gemm_traits v_grouped = {SQUARE(32, KW_ROW_MAJOR), .max_split_k = 1};
static const kw_gemm_traits v_shuffled = {SQUARE(32, KW_COL_MAJOR), .max_split_k = 1, .b_format = 77};
static const kw_gemm_traits v_split = {SQUARE(128, KW_ROW_MAJOR), .max_split_k = 16};

#ifdef MOCK_IDLE
#define LAUNCH(function) launch_nothing
#else
#define LAUNCH(function) function
#endif
#define VARIANT(id, the_op, digit, label, traits_of, serves, needs, plans, launches, more) \
  DESCRIPTOR(id, the_op, digit, label, "", traits_of, serves, needs, plans, LAUNCH(launches), more)

VARIANT(k_plain, KW_OP_GEMM, "9", "gemm_fp32_rrr_plain", v_plain, supports, no_workspace, plan, launch_naive, NULL);
VARIANT(k_batched, KW_OP_GEMM, "a", "gemm_fp32_rrr_batched", v_batched, supports, no_workspace, plan, launch_naive,
        NULL);
VARIANT(k_add, KW_OP_GEMM, "b", "gemm_fp32_rrr_multid_Add_Relu_d1", v_add, supports, no_workspace, plan, launch_naive,
        NULL);
VARIANT(k_times, KW_OP_GEMM, "c", "gemm_fp32_rrr_multid_Multiply_d2", v_times, supports, no_workspace, plan,
        launch_naive, NULL);
VARIANT(k_grouped, KW_OP_GROUPED_GEMM, "d", "gemm_fp32_rrr_grouped", v_grouped, grouped_supports, some_workspace,
        grouped_plan, launch_grouped, NULL);
VARIANT(k_shuffled, KW_OP_GEMM, "e", "gemm_fp32_rcr_preshuffle", v_shuffled, supports, no_workspace, plan, launch_naive,
        &preshuffle);
VARIANT(k_split, KW_OP_GEMM, "f", "gemm_fp32_rrr_splitk", v_split, split_supports, some_workspace, plan, launch_naive,
        NULL);

static const kw_kernel* const kernels[] = {&k_plain, &k_batched, &k_add, &k_times, &k_grouped, &k_shuffled, &k_split};
static const kw_kernel* const plain_kernels[] __attribute__((unused)) =
#else
static const kw_kernel* const kernels[] =
#endif
    {&k_large, &k_small, &k_whole, &k_rrr, &k_ccr, &k_crr, &k_fails, &k_noop, &k_exotic};

#ifndef MOCK_FP8_FORMAT
#define MOCK_FP8_FORMAT KW_FP8_OCP
#endif
static const kw_arch arch = {.struct_size = sizeof(kw_arch),
                             .backend = MOCK_BACKEND,
                             .name = MOCK_ARCH,
                             .compute_units = 4,
                             .wave_size = 1,
                             .fp8_format = MOCK_FP8_FORMAT,
                             .lds_bytes = 1u << 20,
                             .clock_ghz = 2.0,
                             .memory_gbytes_per_s = 40.0,
                             .flops_per_clock_per_cu = {0, 32, 32, 32, 0, 0, 64, 0}};

static kw_status check_device(int32_t device, char* reason, size_t bytes) {
#ifdef MOCK_ANY_DEVICE
  return (void)device, (void)reason, (void)bytes, KW_OK;
#endif
  if (MOCK_DEVICE == KW_OK && device == 0) return KW_OK;
  snprintf(reason, bytes, "the mock device %d is something else", (int)device);
  return MOCK_DEVICE == KW_OK ? KW_ARCH_MISMATCH : (kw_status)MOCK_DEVICE;
}

static const char* last_error(void) { return error_text; }

static kw_status set_num_threads(uint32_t threads) {
  if (threads <= 64) return KW_OK;
  snprintf(error_text, sizeof error_text, "at most 64 threads");
  return KW_INVALID_ARGUMENT;
}

/* The runtime is written down and opened by nobody: launches run here. */
static char runtime[4096];

static kw_status set_runtime(const char* path) {
  if (MOCK_BACKEND != KW_BACKEND_HIP) {
    snprintf(error_text, sizeof error_text, "the mock needs no runtime");
    return KW_UNSUPPORTED;
  }
  if (runtime[0] != 0 && strcmp(runtime, path) != 0) {
    snprintf(error_text, sizeof error_text, "the mock uses %.50s already", runtime);
    return KW_INVALID_ARGUMENT;
  }
  snprintf(runtime, sizeof runtime, "%s", path);
  return KW_OK;
}

#ifdef MOCK_OLD
#define TABLE_BYTES offsetof(kw_library, set_runtime)
#elif defined(MOCK_MODEL)
#define TABLE_BYTES sizeof(kw_library_models)
#else
#define TABLE_BYTES sizeof(kw_library)
#endif

#ifdef MOCK_EMPTY
#define KERNEL_COUNT 0
#else
#define KERNEL_COUNT (sizeof kernels / sizeof kernels[0])
#endif

#ifdef MOCK_MODEL
static kw_status other_score(void* user, const kw_problem* problem, kw_candidate* candidates, uint64_t count) {
  (void)user, (void)problem, (void)candidates, (void)count;
  return KW_UNSUPPORTED;
}

static kw_status score(void* user, const kw_problem* problem, kw_candidate* candidates, uint64_t count) {
  const kw_gemm_problem* p = (const kw_gemm_problem*)problem;
  if (problem->op != KW_OP_GEMM || p->dtype_a != KW_FP32 || p->m > 100) return KW_UNSUPPORTED;
  const uint32_t units = *(const uint32_t*)user;
  for (uint64_t i = 0; i < count; ++i) {
    candidates[i].score = -(double)((const kw_gemm_traits*)candidates[i].kernel->traits)->tile_m - units;
  }
  return KW_OK;
}

static const kw_heuristic other_model = {sizeof(kw_heuristic), MOCK_MODEL, "other", MOCK_ARCH, "", "", other_score};
static const kw_heuristic model = {sizeof(kw_heuristic), MOCK_MODEL, "large_tiles", MOCK_ARCH, "", "", score};
static const kw_heuristic* const models[] = {&other_model, &model};
#define MODELS models, sizeof models / sizeof models[0]
#else
#define MODELS NULL, 0
#endif

#ifdef MOCK_NO_SYMBOL
KW_EXPORT const kw_library* some_other_symbol(void);
const kw_library* some_other_symbol(void) {
#else
const kw_library* kw_library_get(void) {
#endif
  static const kw_library_models library = {{TABLE_BYTES, MOCK_ABI, MOCK_NAME, &arch, kernels, KERNEL_COUNT,
                                             check_device, last_error, set_num_threads, set_runtime},
                                            MODELS};
#ifdef MOCK_NULL
  return (void)library, NULL;
#else
  return &library.base;
#endif
}
