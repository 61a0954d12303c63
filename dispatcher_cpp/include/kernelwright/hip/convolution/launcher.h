/* The host side of AMD convolution kernels: what a descriptor holds and the functions that serve it. */
#ifndef KERNELWRIGHT_HIP_CONVOLUTION_LAUNCHER_H
#define KERNELWRIGHT_HIP_CONVOLUTION_LAUNCHER_H

#include "kernelwright/convolution.h"
#include "kernelwright/hip/common/runtime.h"
#include "kernelwright/hip/convolution/arguments.h"
#include "kernelwright/hip/convolution/sizes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What traits of a descriptor points to: the public part first. */
typedef struct kw_hip_conv {
  kw_conv_traits traits;
  kw_hip_code code;
  uint32_t evenly_spaced; /* serves images whose points are everywhere equally far apart, and nothing else */
  kw_hip_code sum;        /* adds up the slices of a two-stage kernel, of the same image; else without an image */
} kw_hip_conv;

typedef struct kw_hip_conv_plan {
  kw_hip_conv_arguments arguments; /* pointers still null */
  uint32_t grid;                   /* workgroups along x; 0 = the result has no elements */
  uint32_t block;                  /* work-items per workgroup */
  uint32_t sum_grid;               /* 0 = the kernel writes the result itself */
  uint32_t aligned;                /* bytes that addresses of operands must be multiples of */
  uint32_t op;
  uint16_t bias, residual; /* does the problem have them? */
  uint64_t workspace_bytes;
} kw_hip_conv_plan;

/* The four functions of a descriptor. */
KW_HIDDEN kw_status kw_hip_conv_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                         size_t reason_bytes);
KW_HIDDEN kw_status kw_hip_conv_workspace_size(const kw_kernel* kernel, const kw_problem* problem, uint64_t* bytes);
KW_HIDDEN kw_status kw_hip_conv_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan);
KW_HIDDEN kw_status kw_hip_conv_launch(const kw_kernel* kernel, const void* plan, const kw_launch* launch,
                                       const void* args);

#ifdef __cplusplus
}
#endif
#endif
