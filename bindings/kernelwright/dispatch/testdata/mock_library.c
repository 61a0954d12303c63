/* A kernel library for tests of the dispatcher: naive fp32 GEMMs, one that does nothing, one that fails.
 *
 * Macros choose what is wrong with it: MOCK_ABI (version), MOCK_DEVICE (kw_status of check_device), MOCK_EMPTY,
 * MOCK_NULL, MOCK_NO_SYMBOL, MOCK_ARCH, MOCK_BACKEND, MOCK_NAME, MOCK_SEED (one hex digit in every identity), MOCK_OLD
 * (a table that ends before set_runtime), MOCK_ANY_DEVICE (accepts every ordinal), MOCK_NARROW (dtype of A and B of the
 * kernel that does nothing), MOCK_VARIANTS (instead of the plain kernels one of each variant, and a plain one),
 * MOCK_ANY_EPILOGUE (of the variants, the one that adds serves any epilogue), MOCK_IDLE (no variant computes anything),
 * MOCK_FP8_FORMAT (kw_fp8_format of the architecture), MOCK_STREAMS (the row-major kernel is launched by a GPU runtime
 * that is linked in), MOCK_MODEL (a selection model of this version comes with it, which ranks fp32 problems of 100
 * rows or fewer and prefers large tiles).
 */
#include <stdio.h>
#include <string.h>

#include "kernelwright/abi.h"
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

static _Thread_local char error_text[128];

#define DIGITS_62 "123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
#define IDENTITY(digit) MOCK_SEED digit DIGITS_62

#include "mock_gemm.h"

#ifdef MOCK_VARIANTS
#include "mock_gemm_variants.h"

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
#include "mock_model.h"

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
