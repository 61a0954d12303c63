/* libtilewright: loads kernel libraries, picks a kernel for each problem, keeps the plan.
 *
 * C99, versioned, handles only. A function that can fail returns a tw_status and leaves a text for tw_last_error() in
 * the calling thread. Structs that callers fill start with their own size; null options mean defaults. A dispatcher may
 * be shared by threads, several may live in one process, and nothing here touches a device before a library is checked
 * against it (see tw_device_check).
 */
#ifndef TILEWRIGHT_DISPATCHER_H
#define TILEWRIGHT_DISPATCHER_H

#include "tilewright/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TW_DISPATCHER_VERSION 1u

/* Plans that a dispatcher keeps when its options do not say: some 8 MiB, and as much again of kernels' own data. */
#define TW_DEFAULT_PLAN_LIMIT 16384u

typedef struct tw_dispatcher tw_dispatcher;
typedef struct tw_plan tw_plan;

/* When a library is asked whether the device can run it. */
typedef enum tw_device_check {
  TW_CHECK_ON_ADD = 0,    /* adding a library for another device fails */
  TW_CHECK_ON_LAUNCH = 1, /* first launch per library; adding, selecting and explaining touch no device */
  TW_CHECK_NEVER = 2      /* planning for a device that is not here; a launch is refused */
} tw_device_check;

typedef struct tw_dispatcher_options {
  uint32_t struct_size;
  uint32_t device_check;  /* tw_device_check */
  int32_t device;         /* ordinal, 0 on CPU */
  uint32_t compute_units; /* of the device; 0 = the architecture's, or the CPUs of the affinity mask */
  const char* arch;       /* libraries must be for exactly this one; null = whatever the device accepts */
  const char* features;   /* of the device, separated by spaces; null = detected on CPU, none elsewhere */
  uint32_t plan_limit;    /* plans in the cache, 0 = TW_DEFAULT_PLAN_LIMIT; see tw_dispatcher_select */
  uint32_t reserved;      /* 0 */
} tw_dispatcher_options;

typedef struct tw_library_options {
  uint32_t struct_size;
  int32_t priority; /* of all its kernels; higher is preferred, default 0 */
} tw_library_options;

typedef struct tw_kernel_info {
  uint32_t struct_size;
  int32_t priority;
  const tw_kernel* kernel;
  const tw_library* library;
} tw_kernel_info;

/* A kernel that serves the problem; a callback provider fills score. */
typedef struct tw_candidate {
  const tw_kernel* kernel;
  const tw_arch* arch;
  int32_t priority;
  uint32_t reserved;
  double score; /* lower is better; infinity = do not use */
} tw_candidate;

typedef enum tw_provider {
  TW_SELECT_ANALYTIC = 0,  /* lowest predicted time, see tilewright/dispatcher/analytic.hpp; ties like first fit */
  TW_SELECT_FIRST_FIT = 1, /* highest priority, then name, then architecture */
  TW_SELECT_EXPLICIT = 2,  /* one kernel by name, "arch/name" or identity */
  TW_SELECT_CALLBACK = 3   /* lowest score of a caller's function; ties like first fit */
} tw_provider;

/* Scores candidates. Called with the dispatcher locked: it must not call back into it. A failure fails the selection.
 */
typedef tw_status (*tw_score_fn)(void* user, const tw_problem* problem, tw_candidate* candidates, uint64_t count);

typedef struct tw_selection_options {
  uint32_t struct_size;
  uint32_t provider;  /* tw_provider */
  const char* kernel; /* TW_SELECT_EXPLICIT */
  tw_score_fn score;  /* TW_SELECT_CALLBACK */
  void* user;
  const char* label; /* TW_SELECT_CALLBACK: how reasons call it; null = "callback" */
} tw_selection_options;

typedef struct tw_plan_info {
  uint32_t struct_size;
  uint32_t split_k; /* the problem's, or what was chosen where that is 0 */
  const tw_kernel* kernel;
  const tw_library* library;
  uint64_t workspace_bytes;
  const char* reason; /* a few words: why this kernel; tw_dispatcher_explain has the whole ranking */
} tw_plan_info;

TW_EXPORT uint32_t tw_dispatcher_version(void);
TW_EXPORT uint32_t tw_dispatcher_abi_version(void);
TW_EXPORT const char* tw_status_name(tw_status status);
/* Text of the last failure in the calling thread; "" if none. Valid until the next failure in that thread. */
TW_EXPORT const char* tw_last_error(void);

TW_EXPORT tw_status tw_dispatcher_create(const tw_dispatcher_options* options, tw_dispatcher** dispatcher);
/* Frees its plans too. Libraries stay mapped: their worker threads may outlive the dispatcher. */
TW_EXPORT void tw_dispatcher_destroy(tw_dispatcher* dispatcher);

/* Both check ABI version, architecture, device and descriptors; refuse a kernel that is there already; add all or none.
 */
TW_EXPORT tw_status tw_dispatcher_add_library(tw_dispatcher* dispatcher, const char* path,
                                              const tw_library_options* options);
/* library stays the caller's and must outlive the dispatcher. */
TW_EXPORT tw_status tw_dispatcher_add_descriptor(tw_dispatcher* dispatcher, const tw_library* library,
                                                 const tw_library_options* options);

/* Kernels in first-fit order. find accepts a name, "arch/name" or an identity. info->struct_size is set by the caller.
 */
TW_EXPORT uint64_t tw_dispatcher_kernel_count(tw_dispatcher* dispatcher);
TW_EXPORT tw_status tw_dispatcher_kernel_at(tw_dispatcher* dispatcher, uint64_t index, tw_kernel_info* info);
TW_EXPORT tw_status tw_dispatcher_find_kernel(tw_dispatcher* dispatcher, const char* kernel, tw_kernel_info* info);
TW_EXPORT tw_status tw_dispatcher_set_priority(tw_dispatcher* dispatcher, const char* kernel, int32_t priority);
TW_EXPORT tw_status tw_dispatcher_set_selection(tw_dispatcher* dispatcher, const tw_selection_options* options);
/* Threads of CPU launches, 0 = the affinity mask; for every CPU library of the dispatcher, process-wide. */
TW_EXPORT tw_status tw_dispatcher_set_num_threads(tw_dispatcher* dispatcher, uint32_t threads);

/* JSON into buffer. *needed (may be null) gets the bytes including the terminating zero; TW_BUFFER_TOO_SMALL if more
 * than bytes, in which case buffer may be null. */
TW_EXPORT tw_status tw_dispatcher_export_json(tw_dispatcher* dispatcher, char* buffer, size_t bytes, size_t* needed);
TW_EXPORT tw_status tw_dispatcher_explain(tw_dispatcher* dispatcher, const tw_problem* problem, char* buffer,
                                          size_t bytes, size_t* needed);

/* Sizes, dtypes, layouts, leading dimensions and whatever else can be wrong with a tw_gemm_problem or a
 * tw_grouped_gemm_problem; touches no dispatcher. Zero sizes are legal. */
TW_EXPORT tw_status tw_problem_validate(const tw_problem* problem);

/* The plan for a tw_gemm_problem: from the cache (no lock, no allocation), or chosen and cached. It lives as long as
 * the dispatcher (or until clear_plans), also when libraries, priorities or the selection change later. Since nobody
 * says when a plan is no longer in use, none is dropped for another: once plan_limit plans are there, including those
 * of before such a change, a new one is refused with TW_OUT_OF_MEMORY. Plans of grouped problems are not cached: make
 * them with tw_plan_create, or have tw_dispatcher_run make one for each launch. */
TW_EXPORT tw_status tw_dispatcher_select(tw_dispatcher* dispatcher, const tw_problem* problem, const tw_plan** plan);
/* A plan of the caller's own, chosen anew and not cached; it must not be used after the dispatcher is destroyed. */
TW_EXPORT tw_status tw_plan_create(tw_dispatcher* dispatcher, const tw_problem* problem, tw_plan** plan);
/* Frees a plan of tw_plan_create, also after its dispatcher. No thread may be in a call with it; a launch that still
 * runs on a GPU has its own copy. Null is allowed. */
TW_EXPORT void tw_plan_destroy(tw_plan* plan);
TW_EXPORT tw_status tw_plan_get_info(const tw_plan* plan, tw_plan_info* info);
TW_EXPORT uint64_t tw_plan_workspace_size(const tw_plan* plan);
/* args is tw_gemm_args, or tw_grouped_gemm_args with the groups that were planned. Any number of threads at once, each
 * with its own workspace. */
TW_EXPORT tw_status tw_plan_launch(const tw_plan* plan, const void* args);
/* Selects and launches. Works with a full cache too: a problem that is not in it is then planned for each launch. */
TW_EXPORT tw_status tw_dispatcher_run(tw_dispatcher* dispatcher, const tw_problem* problem, const void* args);

/* B in the order of a kernel's own, for kernels with a b_format (preshuffle). The first call ranks those kernels for
 * the problem (its b_format must be 0; m counts, it is the size that will be asked for) and says the best one's format
 * and bytes. The second orders b, which is in host memory as layout_b and ldb say, into shuffled of that many bytes;
 * the problem's b_format says for which format. Both k x n and dtype_b must be those of the problems that use it; these
 * set b_format to the same number. TW_NO_KERNEL where no kernel of that format serves the problem. */
TW_EXPORT tw_status tw_dispatcher_shuffled_b(tw_dispatcher* dispatcher, const tw_problem* problem, uint64_t* b_format,
                                             uint64_t* bytes);
TW_EXPORT tw_status tw_dispatcher_shuffle_b(tw_dispatcher* dispatcher, const tw_problem* problem, const void* b,
                                            void* shuffled, uint64_t bytes);

TW_EXPORT uint64_t tw_dispatcher_plan_count(tw_dispatcher* dispatcher);
/* Forgets and frees every plan. No other thread may be using this dispatcher or its plans. */
TW_EXPORT void tw_dispatcher_clear_plans(tw_dispatcher* dispatcher);

#ifdef __cplusplus
}
#endif
#endif /* TILEWRIGHT_DISPATCHER_H */
