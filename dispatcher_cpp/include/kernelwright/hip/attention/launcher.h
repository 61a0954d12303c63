/* The host side of AMD attention kernels: what a descriptor holds and the functions that serve it. */
#ifndef KERNELWRIGHT_HIP_ATTENTION_LAUNCHER_H
#define KERNELWRIGHT_HIP_ATTENTION_LAUNCHER_H

#include "kernelwright/attention.h"
#include "kernelwright/hip/attention/arguments.h"
#include "kernelwright/hip/attention/gradient_arguments.h"
#include "kernelwright/hip/common/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Combine kernels have a function for up to 8, 16, ... 128 splits; a grid is at most this large along y and z. */
#define KW_HIP_FEWEST_SPLITS_LOG2 3

/* What traits of a descriptor points to: the public part first. */
typedef struct kw_hip_attention {
  kw_attention_traits traits;
  uint32_t aligned;         /* bytes that addresses and strides of operands must be multiples of */
  uint32_t columns;         /* of V's head dimension in a workgroup: combine */
  const kw_hip_code* codes; /* of combine one for each number of splits; of others one */
  uint32_t count;           /* of codes */
  kw_hip_code beside;       /* batch_prefill: makes places of keys. bwd_dq_dk_dv and append: adds heads up; else none */
  kw_hip_code clear;        /* bwd_dq_dk_dv: clears the sums of dQ */
} kw_hip_attention;

typedef union kw_hip_attention_any {
  kw_hip_attention_arguments part;
  kw_hip_combine_arguments combine;
  kw_hip_append_arguments append;
  kw_hip_gradient_arguments gradients;
} kw_hip_attention_any;

/* Pointers in it are still null. */
typedef struct kw_hip_attention_plan {
  kw_hip_attention_any arguments;
  uint32_t grid[3];                        /* workgroups; the first is 0 = there is nothing to do */
  uint32_t block;                          /* work-items per workgroup */
  uint32_t code;                           /* which of the codes */
  uint32_t leaves;                         /* 1 = parts are left */
  uint64_t workspace_bytes, second_bytes;  /* in all; offset of what dV, or the ends of places, begin at */
  uint64_t queries_bytes;                  /* offset of where the queries of requests begin; 0 = the caller says */
  uint64_t lse_bytes;                      /* offset of an LSE that nobody asked for, plus 1; 0 = there is none */
  uint64_t sums;                           /* elements to be cleared of dq_sums */
  kw_hip_head_sum_arguments first, second; /* of dK and dV where heads share them; the first of a copy of Q */
  kw_hip_page_list_arguments list;
  uint32_t list_grid;
  uint32_t adds_heads;     /* 1 = first and second are used */
  uint32_t scaled, narrow; /* 1 = operands have factors; O has 8 bits and one too */
  int lost;                /* 1 = a number does not fit into the argument that takes it: the plan is of no use */
} kw_hip_attention_plan;

/* The four functions of a descriptor. */
KW_HIDDEN kw_status kw_hip_attention_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                              size_t reason_bytes);
KW_HIDDEN kw_status kw_hip_attention_workspace_size(const kw_kernel* kernel, const kw_problem* problem,
                                                    uint64_t* bytes);
KW_HIDDEN kw_status kw_hip_attention_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan);
KW_HIDDEN kw_status kw_hip_attention_launch(const kw_kernel* kernel, const void* plan, const kw_launch* launch,
                                            const void* args);

#ifdef __cplusplus
}
#endif
#endif
