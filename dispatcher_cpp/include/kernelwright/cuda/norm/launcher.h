/* The host side of CUDA kernels of norms: what a descriptor holds and the functions that serve it. */
#ifndef KERNELWRIGHT_CUDA_NORM_LAUNCHER_H
#define KERNELWRIGHT_CUDA_NORM_LAUNCHER_H

#include "kernelwright/cuda/common/runtime.h"
#include "kernelwright/norm.h"
#include "kernelwright/norm/gpu/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What traits of a descriptor points to: the public part first. */
typedef struct kw_cuda_norm {
  kw_norm_traits traits;
  const void* function;
  const void* sum; /* backward: adds slices up */
} kw_cuda_norm;

KW_HIDDEN kw_status kw_cuda_norm_supports(const kw_kernel*, const kw_problem*, char* reason, size_t reason_bytes);
KW_HIDDEN kw_status kw_cuda_norm_workspace_size(const kw_kernel*, const kw_problem*, uint64_t* bytes);
KW_HIDDEN kw_status kw_cuda_norm_make_plan(const kw_kernel*, const kw_problem*, void* plan);
KW_HIDDEN kw_status kw_cuda_norm_launch(const kw_kernel*, const void* plan, const kw_launch*, const void* args);

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_CUDA_NORM_LAUNCHER_H */
