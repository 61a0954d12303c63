/* The host side of an AMD kernel library: what a descriptor holds and the functions that serve it.
 *
 * The HIP runtime is opened on the first launch or device check, so a library loads and answers `supports` and `plan`
 * on a machine without ROCm. Nothing is allocated here; code objects are loaded once per device and stay loaded.
 */
#ifndef KERNELWRIGHT_HIP_LAUNCHER_H
#define KERNELWRIGHT_HIP_LAUNCHER_H

#include "kernelwright/abi.h"
#include "kernelwright/hip/arguments.h"

#define KW_HIP_MAX_DEVICES 64
#define KW_HIP_MAX_SPLIT_K 1024

/* An embedded code object, its kernel and its facts. */
typedef struct kw_hip_code {
  const unsigned char* image;
  const unsigned char* image_end;
  const char* function;
  const char* facts;
  void** functions; /* KW_HIP_MAX_DEVICES handles, null until the code object is loaded on that device */
} kw_hip_code;

/* What traits of a descriptor points to: the public part first. */
typedef struct kw_hip_gemm {
  kw_gemm_traits traits;
  kw_hip_code code;
  kw_hip_code sum;     /* adds up what was left in the workspace, of the same image; finishes where K is empty */
  uint32_t workgroups; /* that the architecture's reference device runs at a time; of persistent kernels and stream-K */
} kw_hip_gemm;

typedef struct kw_hip_gemm_plan {
  kw_hip_gemm_arguments arguments; /* pointers still null */
  uint32_t grid;                   /* workgroups along x; 0 = nothing to multiply */
  uint32_t block;                  /* work-items per workgroup */
  uint32_t row_bytes;              /* alignment that pointers need */
  uint32_t sum_grid;               /* 0 = the kernel writes D itself */
  uint32_t num_d;
  uint32_t reserved;
  uint64_t workspace_bytes;
} kw_hip_gemm_plan;

/* The groups themselves lie in the caller's memory: a launch is told them again and compares the digest. */
typedef struct kw_hip_grouped_plan {
  int64_t group_count;
  uint64_t digest;
  uint32_t block;
  uint32_t row_bytes;
  float alpha, beta;
} kw_hip_grouped_plan;

/* How a preshuffle kernel wants B: depends on what a wave multiplies at a time, and on nothing else. */
#define KW_HIP_B_FORMAT(wave_size, warp_tile_n, warp_tile_k, element_bytes)                        \
  ((uint64_t)(wave_size) << 48 | (uint64_t)(element_bytes) << 32 | (uint64_t)(warp_tile_n) << 16 | \
   (uint64_t)(warp_tile_k))

/* gemm.c: the four functions of a descriptor. */
KW_HIDDEN kw_status kw_hip_gemm_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                         size_t reason_bytes);
KW_HIDDEN kw_status kw_hip_gemm_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes);
KW_HIDDEN kw_status kw_hip_gemm_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan);
KW_HIDDEN kw_status kw_hip_gemm_launch(const kw_kernel* kernel, const void* plan, const void* args);

/* grouped.c: those of a grouped kernel. */
KW_HIDDEN kw_status kw_hip_grouped_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                            size_t reason_bytes);
KW_HIDDEN kw_status kw_hip_grouped_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes);
KW_HIDDEN kw_status kw_hip_grouped_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan);
KW_HIDDEN kw_status kw_hip_grouped_launch(const kw_kernel* kernel, const void* plan, const void* args);

/* shuffle.c: the order in which a preshuffle kernel reads B. */
KW_HIDDEN kw_status kw_hip_shuffle_b_bytes(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes);
KW_HIDDEN kw_status kw_hip_shuffle_b(const kw_kernel* kernel, const kw_problem* problem, const void* b, void* shuffled);

/* conditions.c: does the kernel serve the problem? What is checked of a GEMM but the struct itself. */
KW_HIDDEN kw_status kw_hip_check_conditions(const kw_hip_gemm* gemm, const kw_gemm_problem* problem,
                                            const kw_hip_gemm_facts* facts, char* reason, size_t reason_bytes);
KW_HIDDEN int64_t kw_hip_round_up(int64_t value, int64_t unit);
KW_HIDDEN int64_t kw_hip_element_bytes(uint32_t dtype);
/* Output tiles of all matrices, and K tiles of one of them. */
KW_HIDDEN int64_t kw_hip_tiles(const kw_gemm_traits* traits, const kw_gemm_problem* problem);
KW_HIDDEN int64_t kw_hip_loops(const kw_gemm_traits* traits, const kw_gemm_problem* problem);

/* code_object.c: the constants that the device compiler left in the code object. 0 if they are not there. */
KW_HIDDEN int kw_hip_read_facts(const kw_hip_code* code, size_t arguments_bytes, kw_hip_gemm_facts* facts);

/* runtime.c: everything that calls HIP. */
KW_HIDDEN kw_status kw_hip_launch(const kw_hip_code* code, uint32_t grid, uint32_t block, void* arguments, size_t bytes,
                                  void* stream);
/* Remembers the text for kw_backend_last_error of this thread and returns the status. */
KW_HIDDEN kw_status kw_hip_fail(kw_status status, const char* format, ...) __attribute__((format(printf, 2, 3)));
KW_HIDDEN kw_status kw_backend_check_device(int32_t device, char* reason, size_t reason_bytes);
KW_HIDDEN const char* kw_backend_last_error(void);
KW_HIDDEN kw_status kw_backend_set_num_threads(uint32_t threads);
KW_HIDDEN kw_status kw_backend_set_runtime(const char* path);

#endif
