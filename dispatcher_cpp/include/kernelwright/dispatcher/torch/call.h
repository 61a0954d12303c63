/* Operators of torch that launch known plans, for the Python bindings: torch calls them without Python between.
 *
 * launch_two to launch_six take as many tensors and a number that stands for all options, look the plan up by shapes,
 * strides, dtypes and devices, allocate the result through torch, and launch on its current stream; pair_three and
 * pair_four have two results, triple_six three. Of operands that nothing is known of, and where the launch fails, a
 * result is an undefined tensor, None in Python, which then takes the road with all checks and has learn_three to
 * learn_nine, of so many tensors with the results among them, remember the plan. */
#ifndef KERNELWRIGHT_DISPATCHER_TORCH_CALL_H
#define KERNELWRIGHT_DISPATCHER_TORCH_CALL_H

#include "kernelwright/dispatcher.h"
#include "kernelwright/dispatcher/torch/shim.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KW_TORCH_TENSORS 6
#define KW_TORCH_RESULTS 3
#define KW_TORCH_ARGS_BYTES 768
#define KW_TORCH_COUNTERS 8
#define KW_TORCH_LIMIT 4096u /* plans that are known at once */

/* What a launch needs beside the tensors. Read while it is learned. */
typedef struct kw_torch_known {
  uint32_t struct_size;
  int32_t device;      /* ordinal */
  const kw_plan* plan; /* lives until kw_torch_forget returns */
  uint64_t workspace_bytes;
  const void* args;                          /* the argument struct, but for the addresses of the tensors */
  uint32_t args_bytes;                       /* of it, KW_TORCH_ARGS_BYTES at most */
  uint32_t counter;                          /* which of KW_TORCH_COUNTERS counts the calls */
  uint32_t results;                          /* 1 to KW_TORCH_RESULTS */
  uint32_t offsets[KW_TORCH_TENSORS];        /* in the argument struct, of the address of each tensor */
  uint32_t result_offsets[KW_TORCH_RESULTS]; /* and of each result */
} kw_torch_known;

typedef struct kw_torch_count {
  uint64_t calls;
  uint64_t host_ns;
} kw_torch_count;

/* Implements the operators, which are defined in torch's namespace kernelwright, for CPUs, and for GPUs where shim
 * has their stream. Once in a process. */
KW_EXPORT kw_status kw_torch_use(const kw_torch_shim* shim);
/* Forgets all plans, and returns once no thread launches them. */
KW_EXPORT void kw_torch_forget(void);
/* In the child of a fork, whose other threads, with the launches that they were in, are gone. */
KW_EXPORT void kw_torch_after_fork(void);
/* Calls so far of one counter, and their time on the host as every 16th tells it; begins anew if reset is not 0. */
KW_EXPORT kw_torch_count kw_torch_counted(uint32_t counter, uint32_t reset);

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_DISPATCHER_TORCH_CALL_H */
