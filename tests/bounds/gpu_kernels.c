/* Descriptors over the launchers' own host code for AMD and NVIDIA GPUs, without code objects: what planning needs.
 *
 * Traits are those of kernels that are shipped, with the widest choices. Nothing is ever launched.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernelwright/cuda/attention/launcher.h"
#include "kernelwright/cuda/convolution/launcher.h"
#include "kernelwright/cuda/gemm/launcher.h"
#include "kernelwright/hip/attention/launcher.h"
#include "kernelwright/hip/convolution/launcher.h"
#include "kernelwright/hip/gemm/launcher.h"

#define EVERY 0xffffffffu /* of a set */

/* --- what only a device, or a code object, knows */

int kw_hip_read_facts(const kw_hip_code* code, void* facts, size_t bytes) {
  const kw_hip_gemm_facts gemm = {KW_HIP_GEMM_FACTS_MAGIC, sizeof(kw_hip_gemm_arguments), 256, 8, 8, 8, 1, 4, 0, 0};
  const kw_hip_conv_facts conv = {KW_HIP_CONV_FACTS_MAGIC, sizeof(kw_hip_conv_arguments), 256, 1};
  kw_hip_attention_facts attention = {KW_HIP_ATTENTION_FACTS_MAGIC, 0, 256, 64};
  const char kind = code->facts[0];
  attention.arguments_bytes = kind == 'c'   ? sizeof(kw_hip_combine_arguments)
                              : kind == 'a' ? sizeof(kw_hip_append_arguments)
                              : kind == 'b' ? sizeof(kw_hip_gradient_arguments)
                                            : sizeof(kw_hip_attention_arguments);
  if (kind != 'G')
    memcpy(facts, kind == 'g' ? (const void*)&gemm : kind == 'v' ? (const void*)&conv : (const void*)&attention, bytes);
  if (kind == 'G') {
    kw_hip_gemm_facts grouped = gemm;
    grouped.arguments_bytes = sizeof(kw_hip_grouped_arguments);
    memcpy(facts, &grouped, bytes);
  }
  return 1;
}

static _Thread_local char said[512];

static kw_status keep(kw_status status, const char* format, va_list args) {
  vsnprintf(said, sizeof said, format, args);
  return status;
}
kw_status kw_hip_fail(kw_status status, const char* format, ...) {
  va_list args;
  va_start(args, format);
  keep(status, format, args);
  va_end(args);
  return status;
}
kw_status kw_cuda_fail(kw_status status, const char* format, ...) {
  va_list args;
  va_start(args, format);
  keep(status, format, args);
  va_end(args);
  return status;
}
kw_status kw_hip_launch(const kw_hip_code* code, const kw_launch* where, uint32_t grid, uint32_t block, void* arguments,
                        size_t bytes) {
  (void)code, (void)where, (void)grid, (void)block, (void)arguments, (void)bytes;
  return KW_OK;
}
kw_status kw_hip_launch_grid(const kw_hip_code* code, const kw_launch* where, const uint32_t* grid, uint32_t block,
                             void* arguments, size_t bytes) {
  return kw_hip_launch(code, where, grid[0], block, arguments, bytes);
}
kw_status kw_cuda_enter(const kw_launch* launch, int* pushed) { return (void)launch, *pushed = 0, KW_OK; }
kw_status kw_cuda_leave(int pushed, kw_status status) { return (void)pushed, status; }
kw_status kw_cuda_multiprocessors(int device, int* count) { return (void)device, *count = 132, KW_OK; }
kw_status kw_cuda_prepare(const void* kernel, int shared_bytes, int device, uint64_t* done) {
  return (void)kernel, (void)shared_bytes, (void)device, (void)done, KW_OK;
}
kw_status kw_cuda_launch_failed(const kw_kernel* kernel, int error) {
  return kw_cuda_fail(KW_LAUNCH_FAILED, "%s: %d", kernel->name, error);
}
kw_status kw_cuda_workspace_too_small(const kw_kernel* kernel, uint64_t needed, uint64_t given) {
  return kw_cuda_fail(KW_WORKSPACE_TOO_SMALL, "%s: %llu of %llu", kernel->name, (unsigned long long)given,
                      (unsigned long long)needed);
}

kw_status kw_cuda_driver_function(const char* name, void** slot, void** function) {
  return (void)slot, (void)function, kw_cuda_fail(KW_RUNTIME_MISSING, "%s: no driver", name);
}
kw_status kw_cuda_conv_start(const kw_kernel* kernel, const void* function, uint32_t blocks, uint32_t threads,
                             uint32_t shared_bytes, void* params, void* stream) {
  (void)function, (void)blocks, (void)threads, (void)shared_bytes, (void)params, (void)stream;
  return kw_cuda_fail(KW_LAUNCH_FAILED, "%s: no device", kernel->name);
}

static kw_status no_workspace(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes) {
  return (void)kernel, (void)problem, *bytes = 0, KW_OK;
}

static kw_status never(const kw_kernel* kernel, const void* plan, const kw_launch* launch, const void* args) {
  return (void)plan, (void)launch, (void)args, kw_cuda_fail(KW_LAUNCH_FAILED, "%s: no device", kernel->name);
}

/* --- descriptors: NAME is a C identifier, ID two hex digits that no other kernel of its list has */

#define IDENTITY(ID) ID ID ID ID ID ID ID ID ID ID ID ID ID ID ID ID ID ID ID ID ID ID ID ID ID ID ID ID ID ID ID ID
#define KERNEL(NAME, ARCH, ID, OP, PLAN, TRAITS, SUPPORTS, WORKSPACE, MAKE, LAUNCH) \
  static const kw_kernel NAME = {                                                   \
      .struct_size = sizeof(kw_kernel),                                             \
      .abi_version = KW_ABI_VERSION,                                                \
      .op = OP,                                                                     \
      .plan_bytes = sizeof(PLAN),                                                   \
      .name = #NAME,                                                                \
      .arch = ARCH,                                                                 \
      .identity = IDENTITY(ID),                                                     \
      .spec_json = "{}",                                                            \
      .features = "",                                                               \
      .traits = TRAITS,                                                             \
      .supports = SUPPORTS,                                                         \
      .workspace_size = WORKSPACE,                                                  \
      .plan = MAKE,                                                                 \
      .launch = LAUNCH,                                                             \
  };

#define TILES                                                                                           \
  .tile_m = 128, .tile_n = 128, .tile_k = 32, .wave_m = 2, .wave_n = 2, .wave_k = 1, .warp_tile_m = 32, \
  .warp_tile_n = 32, .warp_tile_k = 16
#define GEMM(...)                         \
  {.struct_size = sizeof(kw_gemm_traits), \
   .dtype_a = KW_FP16,                    \
   .dtype_b = KW_FP16,                    \
   .dtype_c = KW_FP16,                    \
   .dtype_acc = KW_FP32,                  \
   .layout_b = KW_COL_MAJOR,              \
   TILES,                                 \
   __VA_ARGS__}
#define CONV(...)                         \
  {.struct_size = sizeof(kw_conv_traits), \
   .dtype_x = KW_FP16,                    \
   .dtype_w = KW_FP16,                    \
   .dtype_y = KW_FP16,                    \
   .dtype_acc = KW_FP32,                  \
   .layout = KW_CONV_NDHWGC,              \
   TILES,                                 \
   .vector_a = 1,                         \
   .vector_b = 1,                         \
   .vector_c = 1,                         \
   .num_groups_to_merge = 1,              \
   __VA_ARGS__}
#define ATTENTION(FAMILY, ...)                 \
  {.struct_size = sizeof(kw_attention_traits), \
   .family = FAMILY,                           \
   .dtype_q = KW_FP16,                         \
   .dtype_kv = KW_FP16,                        \
   .dtype_o = KW_FP16,                         \
   .dtype_bias = KW_FP16,                      \
   .hdim_q = 128,                              \
   .hdim_v = 128,                              \
   .vector_q = 8,                              \
   .vector_v = 8,                              \
   .pad_s = 1,                                 \
   .pad_sk = 1,                                \
   .pad_d = 1,                                 \
   .pad_dv = 1,                                \
   .tile_m0 = 128,                             \
   .tile_n0 = 128,                             \
   .tile_k0 = 32,                              \
   .tile_n1 = 128,                             \
   .tile_k1 = 32,                              \
   .groups = EVERY,                            \
   .masks = EVERY,                             \
   .biases = EVERY,                            \
   .lses = EVERY,                              \
   .sinks = EVERY,                             \
   .dropouts = EVERY,                          \
   .random_bytes = EVERY,                      \
   .soft_caps = EVERY,                         \
   .kv_lengths = EVERY,                        \
   .dbiases = EVERY,                           \
   .deterministics = EVERY,                    \
   .min_seqlens_q = EVERY,                     \
   .qscales = EVERY,                           \
   .ropes = EVERY,                             \
   .page_layouts = EVERY,                      \
   __VA_ARGS__}

/* AMD */

static const unsigned char image[1];
#define CODE(KIND) {.image = image, .image_end = image + 1, .function = "f", .facts = KIND}
#define HIP_GEMM(NAME, ID, FAMILY, OP, KIND, ...)                                                  \
  static const kw_hip_gemm NAME##_held = {                                                         \
      .traits = GEMM(__VA_ARGS__), .code = CODE(KIND), .sum = CODE(KIND), .workgroups = 608};      \
  KERNEL(NAME, "gfx942", ID, OP, kw_hip_##FAMILY##_plan, &NAME##_held, kw_hip_##FAMILY##_supports, \
         kw_hip_##FAMILY##_workspace_size, kw_hip_##FAMILY##_make_plan, kw_hip_##FAMILY##_launch)
HIP_GEMM(hip_gemm, "10", gemm, KW_OP_GEMM, "g", .max_split_k = 1, .batched = 1, .pad_m = 1, .pad_n = 1, .pad_k = 1)
HIP_GEMM(hip_split, "11", gemm, KW_OP_GEMM, "g", .max_split_k = KW_HIP_MAX_SPLIT_K)
HIP_GEMM(hip_stream, "12", gemm, KW_OP_GEMM, "g", .max_split_k = 1, .stream_k = KW_STREAM_K_LINEAR)
HIP_GEMM(hip_fused, "13", gemm, KW_OP_GEMM, "g", .max_split_k = 1, .num_d = 2, .activation = KW_ACTIVATION_RELU,
         .batched = 1)
HIP_GEMM(hip_grouped, "14", grouped, KW_OP_GROUPED_GEMM, "G", .max_split_k = 1)

#define HIP_CONV(NAME, ID, OP, ...)                                                                                \
  static const kw_hip_conv NAME##_held = {.code = CODE("v"), __VA_ARGS__};                                         \
  KERNEL(NAME, "gfx942", ID, OP, kw_hip_conv_plan, &NAME##_held, kw_hip_conv_supports, kw_hip_conv_workspace_size, \
         kw_hip_conv_make_plan, kw_hip_conv_launch)
HIP_CONV(hip_forward, "20", KW_OP_CONV_FORWARD, .traits = CONV(.max_split_k = 1))
HIP_CONV(hip_data, "21", KW_OP_CONV_BACKWARD_DATA, .traits = CONV(.max_split_k = 1))
HIP_CONV(hip_weight, "22", KW_OP_CONV_WEIGHT_SLICES, .traits = CONV(.max_split_k = 1))
HIP_CONV(hip_two_stage, "23", KW_OP_CONV_WEIGHT_SLICES, .traits = CONV(.max_split_k = KW_HIP_CONV_MAX_SPLIT_K),
         .sum = CODE("v"))

#define HIP_ATTENTION(NAME, ID, FAMILY, KIND, ...)                                                        \
  static const kw_hip_code NAME##_codes[] = {CODE(KIND), CODE(KIND), CODE(KIND), CODE(KIND), CODE(KIND)}; \
  static const kw_hip_attention NAME##_held = {.traits = ATTENTION(FAMILY, __VA_ARGS__),                  \
                                               .aligned = 16,                                             \
                                               .columns = 32,                                             \
                                               .codes = NAME##_codes,                                     \
                                               .count = 5,                                                \
                                               .beside = CODE(KIND),                                      \
                                               .clear = CODE(KIND)};                                      \
  KERNEL(NAME, "gfx942", ID, KW_ATTENTION_OP_OF(FAMILY), kw_hip_attention_plan, &NAME##_held,             \
         kw_hip_attention_supports, kw_hip_attention_workspace_size, kw_hip_attention_make_plan,          \
         kw_hip_attention_launch)
#define PAGED .page_tables = EVERY, .max_splits = 1, .leaves_splits = KW_SERVES(0)
HIP_ATTENTION(hip_fwd, "30", KW_ATTENTION_FWD, "f", .page_tables = KW_SERVES(0), .max_splits = 1,
              .leaves_splits = KW_SERVES(0))
HIP_ATTENTION(hip_prefill, "31", KW_ATTENTION_BATCH_PREFILL, "f", PAGED)
HIP_ATTENTION(hip_splitkv, "32", KW_ATTENTION_FWD_SPLITKV, "f", .page_tables = EVERY, .max_splits = 128,
              .leaves_splits = KW_SERVES(1))
HIP_ATTENTION(hip_combine, "33", KW_ATTENTION_FWD_SPLITKV_COMBINE, "c", .max_splits = 128)
HIP_ATTENTION(hip_dot, "34", KW_ATTENTION_BWD_DOT_DO_O, "b", .page_tables = KW_SERVES(0))
HIP_ATTENTION(hip_gradients, "35", KW_ATTENTION_BWD_DQ_DK_DV, "b", .page_tables = KW_SERVES(0), .leaves_dq = 2)
HIP_ATTENTION(hip_convert, "36", KW_ATTENTION_BWD_CONVERT_DQ, "b", .page_tables = KW_SERVES(0))
HIP_ATTENTION(hip_append, "37", KW_ATTENTION_FWD_APPENDKV, "a", .page_tables = EVERY)

/* NVIDIA */

#define CUDA_GEMM(NAME, ID, FAMILY, OP, ...)                                                                         \
  static const kw_gemm_traits NAME##_traits = GEMM(__VA_ARGS__);                                                     \
  KERNEL(NAME, "sm_90a", ID, OP, kw_cuda_##FAMILY##_plan, &NAME##_traits, kw_cuda_##FAMILY##_supports, no_workspace, \
         kw_cuda_##FAMILY##_plan_problem, never)
CUDA_GEMM(cuda_gemm, "40", gemm, KW_OP_GEMM, .max_split_k = 16)
CUDA_GEMM(cuda_fused, "41", gemm, KW_OP_GEMM, .max_split_k = 1, .num_d = 2, .activation = KW_ACTIVATION_RELU,
          .batched = 1)
CUDA_GEMM(cuda_batched, "42", gemm, KW_OP_GEMM, .max_split_k = 1, .batched = 1)
CUDA_GEMM(cuda_grouped, "43", grouped, KW_OP_GROUPED_GEMM, .max_split_k = 1)

static uint64_t prepared[1];
#define CUDA_CONV(NAME, ID, OP, ...)                                                                                  \
  static const kw_cuda_conv NAME##_held = {                                                                           \
      .traits = CONV(__VA_ARGS__), .shared_bytes = 1, .threads = 384, .prepared = prepared};                          \
  KERNEL(NAME, "sm_90a", ID, OP, kw_cuda_conv_plan, &NAME##_held, kw_cuda_conv_supports, kw_cuda_conv_workspace_size, \
         kw_cuda_conv_make_plan, never)
CUDA_CONV(cuda_forward, "50", KW_OP_CONV_FORWARD, .max_split_k = 1)
CUDA_CONV(cuda_data, "51", KW_OP_CONV_BACKWARD_DATA, .max_split_k = 1)
CUDA_CONV(cuda_weight, "52", KW_OP_CONV_WEIGHT_SLICES, .max_split_k = 512)
CUDA_CONV(cuda_direct, "53", KW_OP_CONV_FORWARD, .max_split_k = 1, .depthwise = 1)
CUDA_CONV(cuda_direct_data, "54", KW_OP_CONV_BACKWARD_DATA, .max_split_k = 1, .depthwise = 1)
CUDA_CONV(cuda_direct_weight, "55", KW_OP_CONV_WEIGHT_SLICES, .max_split_k = 512, .depthwise = 1)

#define CUDA_ATTENTION(NAME, ID, FAMILY, KIND, ...)                                             \
  static const kw_attention_traits NAME##_traits = ATTENTION(FAMILY, __VA_ARGS__);              \
  KERNEL(NAME, "sm_90a", ID, KW_ATTENTION_OP_OF(FAMILY), kw_cuda_##KIND##_plan, &NAME##_traits, \
         kw_cuda_##KIND##_supports, no_workspace, kw_cuda_##KIND##_plan_problem, never)
CUDA_ATTENTION(cuda_fwd, "60", KW_ATTENTION_FWD, attention, .page_tables = KW_SERVES(0), .max_splits = 1,
               .leaves_splits = KW_SERVES(0))
CUDA_ATTENTION(cuda_prefill, "61", KW_ATTENTION_BATCH_PREFILL, attention, PAGED)
CUDA_ATTENTION(cuda_splitkv, "62", KW_ATTENTION_FWD_SPLITKV, attention, .page_tables = EVERY, .max_splits = 128,
               .leaves_splits = EVERY, .packs_heads = 1, .blocks_per_cu = 2)
CUDA_ATTENTION(cuda_combine, "63", KW_ATTENTION_FWD_SPLITKV_COMBINE, attention, .max_splits = 128)
CUDA_ATTENTION(cuda_dot, "64", KW_ATTENTION_BWD_DOT_DO_O, attention, .page_tables = KW_SERVES(0))
CUDA_ATTENTION(cuda_gradients, "65", KW_ATTENTION_BWD_DQ_DK_DV, attention, .page_tables = KW_SERVES(0), .leaves_dq = 1)
CUDA_ATTENTION(cuda_convert, "66", KW_ATTENTION_BWD_CONVERT_DQ, attention, .page_tables = KW_SERVES(0))
CUDA_ATTENTION(cuda_append, "67", KW_ATTENTION_FWD_APPENDKV, append, .page_tables = EVERY)

extern const kw_kernel* const kHipKernels[];
extern const kw_kernel* const kCudaKernels[];
const kw_kernel* const kHipKernels[] = {&hip_gemm,    &hip_split,   &hip_stream,  &hip_fused,     &hip_grouped,
                                        &hip_forward, &hip_data,    &hip_weight,  &hip_two_stage, &hip_fwd,
                                        &hip_prefill, &hip_splitkv, &hip_combine, &hip_dot,       &hip_gradients,
                                        &hip_convert, &hip_append,  NULL};
const kw_kernel* const kCudaKernels[] = {
    &cuda_gemm,   &cuda_fused,       &cuda_batched,       &cuda_grouped, &cuda_forward, &cuda_data,    &cuda_weight,
    &cuda_direct, &cuda_direct_data, &cuda_direct_weight, &cuda_fwd,     &cuda_prefill, &cuda_splitkv, &cuda_combine,
    &cuda_dot,    &cuda_gradients,   &cuda_convert,       &cuda_append,  NULL};
