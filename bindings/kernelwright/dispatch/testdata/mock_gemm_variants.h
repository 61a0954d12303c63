/* One kernel of each variant, behind the plain ones of mock_gemm.h: MOCK_VARIANTS of mock_library.c. */
#include "kernelwright/gemm/groups.h"

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
