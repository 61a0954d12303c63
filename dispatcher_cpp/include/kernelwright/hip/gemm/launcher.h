/* The host side of AMD GEMM kernels: what a descriptor holds and the functions that serve it. */
#ifndef KERNELWRIGHT_HIP_GEMM_LAUNCHER_H
#define KERNELWRIGHT_HIP_GEMM_LAUNCHER_H

#include "kernelwright/gemm.h"
#include "kernelwright/hip/common/runtime.h"
#include "kernelwright/hip/gemm/arguments.h"
#include "kernelwright/hip/gemm/sizes.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* The four functions of a descriptor. */
KW_HIDDEN kw_status kw_hip_gemm_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                         size_t reason_bytes);
KW_HIDDEN kw_status kw_hip_gemm_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes);
KW_HIDDEN kw_status kw_hip_gemm_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan);
KW_HIDDEN kw_status kw_hip_gemm_launch(const kw_kernel* kernel, const void* plan, const kw_launch* launch,
                                       const void* args);

/* Those of a grouped kernel. */
KW_HIDDEN kw_status kw_hip_grouped_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                            size_t reason_bytes);
KW_HIDDEN kw_status kw_hip_grouped_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes);
KW_HIDDEN kw_status kw_hip_grouped_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan);
KW_HIDDEN kw_status kw_hip_grouped_launch(const kw_kernel* kernel, const void* plan, const kw_launch* launch,
                                          const void* args);

/* The order in which a preshuffle kernel reads B. */
extern KW_HIDDEN const kw_gemm_extension kw_hip_preshuffle;

#ifdef __cplusplus
}
#endif
#endif
