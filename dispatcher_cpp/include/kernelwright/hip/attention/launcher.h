/* The host side of AMD attention kernels: what a descriptor holds and the functions that serve it. */
#ifndef KERNELWRIGHT_HIP_ATTENTION_LAUNCHER_H
#define KERNELWRIGHT_HIP_ATTENTION_LAUNCHER_H

#include "kernelwright/attention.h"
#include "kernelwright/hip/attention/arguments.h"
#include "kernelwright/hip/attention/gradient_arguments.h"
#include "kernelwright/hip/common/runtime.h"
#include "kernelwright/widths.h"

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
  uint64_t lse_bytes;                      /* offset of an LSE that nobody asked for, plus 1; 0 = there is none */
  uint64_t sums;                           /* elements to be cleared of dq_sums */
  kw_hip_head_sum_arguments first, second; /* of dK and dV where heads share them; the first of a copy of Q */
  kw_hip_page_list_arguments list;
  uint32_t list_grid;
  uint32_t adds_heads;     /* 1 = first and second are used */
  uint32_t scaled, narrow; /* 1 = operands have factors; O has 8 bits and one too */
  int lost;                /* 1 = a number does not fit into the argument that takes it: the plan is of no use */
} kw_hip_attention_plan;

/* attention.c: the four functions of a descriptor. */
KW_HIDDEN kw_status kw_hip_attention_supports(const kw_kernel* kernel, const kw_problem* problem, char* reason,
                                              size_t reason_bytes);
KW_HIDDEN kw_status kw_hip_attention_workspace_size(const kw_kernel* kernel, const kw_problem* problem,
                                                    uint64_t* bytes);
KW_HIDDEN kw_status kw_hip_attention_make_plan(const kw_kernel* kernel, const kw_problem* problem, void* plan);
KW_HIDDEN kw_status kw_hip_attention_launch(const kw_kernel* kernel, const void* plan, const kw_launch* launch,
                                            const void* args);

/* attn_forward.c, attn_gradients.c, attn_append.c: plans and launches of families. Problems are those that the kernel
 * serves. */
KW_HIDDEN void kw_hip_plan_part(const kw_hip_attention* kernel, const kw_attention_problem* problem,
                                kw_hip_attention_plan* made);
KW_HIDDEN void kw_hip_plan_combine(const kw_hip_attention* kernel, const kw_attention_problem* problem, uint32_t rows,
                                   kw_hip_attention_plan* made);
KW_HIDDEN void kw_hip_plan_gradients(const kw_hip_attention* kernel, const kw_attention_problem* problem, uint32_t rows,
                                     kw_hip_attention_plan* made);
KW_HIDDEN void kw_hip_plan_append(const kw_hip_attention* kernel, const kw_append_problem* problem,
                                  kw_hip_attention_plan* made);
KW_HIDDEN kw_status kw_hip_launch_part(const kw_hip_attention* kernel, const kw_hip_attention_plan* plan,
                                       const kw_launch* where, const kw_attention_args* given);
KW_HIDDEN kw_status kw_hip_launch_combine(const kw_hip_attention* kernel, const kw_hip_attention_plan* plan,
                                          const kw_launch* where, const kw_attention_args* given);
KW_HIDDEN kw_status kw_hip_launch_gradients(const kw_hip_attention* kernel, const kw_hip_attention_plan* plan,
                                            const kw_launch* where, const kw_attention_args* given);
KW_HIDDEN kw_status kw_hip_launch_append(const kw_hip_attention* kernel, const kw_hip_attention_plan* plan,
                                         const kw_launch* where, const kw_append_args* given);

/* attention.c: launches the kernel that the plan says. */
KW_HIDDEN kw_status kw_hip_launch_planned(const kw_hip_attention* kernel, const kw_hip_attention_plan* plan,
                                          const kw_launch* where, void* arguments, size_t bytes);

static inline int64_t kw_hip_tiles(int64_t extent, int64_t tile) { return kw_parts(extent, tile); }

/* The width of a window in 31 bits: no query is further from a key than all of both. */
static inline int32_t kw_hip_width(const kw_attention_problem* p, int64_t width) {
  const int64_t all = kw_add(p->max_seqlen_q, p->max_seqlen_k), most = all < INT32_MAX ? all : INT32_MAX;
  return (int32_t)(width < most ? width : most);
}

/* Strides that a kernel reads; *lost is set where one does not fit. */
static inline kw_hip_attention_strides kw_hip_strides(kw_attention_strides s, int* lost) {
  const kw_hip_attention_strides made = {kw_as_int32(s.row, lost), kw_as_int32(s.head, lost),
                                         kw_as_int32(s.request, lost)};
  return made;
}

/* Of dense tensors with heads outside of rows, such as parts of O; see "per row" in kernelwright/attention.h. One
 * request is not stepped over. */
static inline kw_attention_strides kw_hip_heads_first(int64_t batch, int64_t heads, int64_t rows, int64_t hdim) {
  const int64_t head = kw_mul(rows, hdim);
  const kw_attention_strides made = {batch > 1 ? kw_mul(heads, head) : 0, head, hdim};
  return made;
}
static inline kw_attention_strides kw_hip_per_row(const kw_attention_problem* p, int64_t hdim) {
  return kw_hip_heads_first(p->group ? 1 : p->batch, p->heads_q, p->group ? p->total_q : p->max_seqlen_q, hdim);
}

#endif
