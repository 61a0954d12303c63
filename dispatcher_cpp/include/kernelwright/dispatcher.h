/* libkernelwright: loads kernel libraries, picks a kernel for each problem, keeps the plan.
 *
 * C99, versioned, handles only. A function that can fail returns a kw_status and leaves a text for kw_last_error() in
 * the calling thread. Structs that callers fill start with their own size; their members `reserved` must be 0, and a
 * function refuses others; null options mean defaults. A dispatcher may be shared by threads, several may live in one
 * process, and nothing here touches a device before a library is checked against it (see kw_device_check).
 */
#ifndef KERNELWRIGHT_DISPATCHER_H
#define KERNELWRIGHT_DISPATCHER_H

#include "kernelwright/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KW_DISPATCHER_VERSION 3u

/* Default number of cached plans; about 16 MiB in total. */
#define KW_DEFAULT_PLAN_LIMIT 16384u

typedef struct kw_dispatcher kw_dispatcher;
typedef struct kw_plan kw_plan;

/* When a library is asked whether the device can run it. */
typedef enum kw_device_check {
  KW_CHECK_ON_ADD = 0,    /* adding a library for another device fails */
  KW_CHECK_ON_LAUNCH = 1, /* first launch per library; adding, selecting and explaining touch no device */
  KW_CHECK_NEVER = 2      /* planning for a device that is not here; a launch is refused */
} kw_device_check;

typedef struct kw_dispatcher_options {
  uint32_t struct_size;
  uint32_t device_check;  /* kw_device_check */
  int32_t device;         /* ordinal, 0 or more; 0 on CPU */
  uint32_t compute_units; /* of the device; 0 = the architecture's, or the CPUs of the affinity mask */
  const char* arch;       /* libraries must be for exactly this one; null = whatever the device accepts */
  const char* features;   /* of the device, separated by spaces; null = detected on CPU, none elsewhere */
  uint32_t plan_limit;    /* plans in the cache, 0 = KW_DEFAULT_PLAN_LIMIT; see kw_dispatcher_select */
  uint32_t reserved;      /* 0 */
} kw_dispatcher_options;

/* Whether a library's file is compared with its manifest before any of its code runs. */
typedef enum kw_digest_check {
  KW_DIGEST_OF_MANIFEST = 0, /* manifest.json beside the file must name it, and have its SHA-256 */
  KW_DIGEST_UNCHECKED = 1    /* whatever the file holds is loaded, and no manifest is needed */
} kw_digest_check;

typedef struct kw_library_options {
  uint32_t struct_size;
  int32_t priority;      /* of all its kernels; higher is preferred, default 0 */
  uint32_t digest_check; /* kw_digest_check, of kw_dispatcher_add_library */
  uint32_t reserved;     /* 0 */
} kw_library_options;

typedef struct kw_kernel_info {
  uint32_t struct_size;
  int32_t priority;
  const kw_kernel* kernel;
  const kw_library* library;
} kw_kernel_info;

/* A kernel that serves the problem, with a value of what the problem leaves open: a kernel is there once for each value
 * that it serves, one next to the other. A callback provider fills score. */
typedef struct kw_candidate {
  const kw_kernel* kernel;
  const kw_arch* arch;
  int32_t priority;
  uint32_t value; /* slices of GEMM and of backward weight, splits of attention; 0 = the problem leaves nothing open */
  double score;   /* lower is better; infinity = do not use */
} kw_candidate;

typedef enum kw_provider {
  KW_SELECT_ANALYTIC = 0,  /* lowest predicted time (see Operation::estimate); ties like first fit */
  KW_SELECT_FIRST_FIT = 1, /* highest priority, then name, then architecture */
  KW_SELECT_EXPLICIT = 2,  /* one kernel by name, "arch/name" or identity; other stages of its plans are analytic */
  KW_SELECT_CALLBACK = 3,  /* lowest score of a caller's function; ties like first fit, of one kernel by time */
  KW_SELECT_AUTO = 4       /* what a dispatcher starts with: the first learned model of its libraries that ranks the
                            * problem, as of KW_SELECT_CALLBACK; where none does, as of KW_SELECT_ANALYTIC */
} kw_provider;

/* Scores candidates. Called with the dispatcher locked: it must not call back into it. With KW_UNSUPPORTED it leaves
 * the problem to the predicted times, as of KW_SELECT_ANALYTIC, and reasons say so. Any other failure fails the
 * selection.
 */
typedef kw_status (*kw_score_fn)(void* user, const kw_problem* problem, kw_candidate* candidates, uint64_t count);

typedef struct kw_selection_options {
  uint32_t struct_size;
  uint32_t provider;  /* kw_provider */
  const char* kernel; /* KW_SELECT_EXPLICIT */
  kw_score_fn score;  /* KW_SELECT_CALLBACK */
  void* user;
  const char* label; /* KW_SELECT_CALLBACK: how reasons call it; null = "callback" */
} kw_selection_options;

/* Texts live as long as the plan. */
typedef struct kw_plan_info {
  uint32_t struct_size;
  uint32_t stage_count; /* kernels that a launch starts, one behind the other */
  /* What the caller provides: the results that stages leave for later ones, and behind them the largest of the
   * workspaces of the stages themselves. */
  uint64_t workspace_bytes;
  const char* choices; /* what was chosen or stated, of all stages, e.g. "split_k=4"; name=value, separated by spaces */
  const char* reason;  /* a few words: why these kernels; kw_dispatcher_explain has the whole ranking */
} kw_plan_info;

typedef struct kw_stage_info {
  uint32_t struct_size;
  uint32_t reserved; /* set to 0 */
  const kw_kernel* kernel;
  const kw_library* library;
  uint64_t scratch_offset;  /* in the workspace, of the results that this stage leaves for later ones */
  uint64_t scratch_bytes;   /* of these; 0 = none */
  uint64_t workspace_bytes; /* of the kernel itself, behind the results of all stages */
  const char* choices;      /* of this stage; "" = none */
  const char* reason;       /* a few words: why this kernel */
} kw_stage_info;

KW_EXPORT uint32_t kw_dispatcher_version(void);
KW_EXPORT uint32_t kw_dispatcher_abi_version(void);
KW_EXPORT const char* kw_status_name(kw_status status);
/* Text of the last failure in the calling thread; "" if none. Valid until the next failure in that thread. */
KW_EXPORT const char* kw_last_error(void);

KW_EXPORT kw_status kw_dispatcher_create(const kw_dispatcher_options* options, kw_dispatcher** dispatcher);
/* Frees its plans too. Libraries stay mapped: their worker threads may outlive the dispatcher. */
KW_EXPORT void kw_dispatcher_destroy(kw_dispatcher* dispatcher);

/* Loads a library file, the one whose digest was compared even if its path names another by then (see kw_digest_check).
 * A provenance statement beside it is not read: `kernelwright verify` and the Python API compare that too.
 *
 * Both check ABI version, architecture, device and descriptors, and add all or none. Libraries may share kernels, as
 * the library of a wheel and one that was compiled on this machine: of each identity the copy that came first stays,
 * with its library and priority. A kernel with the name of another one and another identity is refused, with the paths
 * of both libraries. The models of a library are asked also where all its kernels were there before: models rank
 * kernels of every library, and are asked in the order in which libraries were added (KW_SELECT_AUTO). Adding a library
 * once more changes nothing.
 */
KW_EXPORT kw_status kw_dispatcher_add_library(kw_dispatcher* dispatcher, const char* path,
                                              const kw_library_options* options);
/* library stays the caller's and must outlive the dispatcher. */
KW_EXPORT kw_status kw_dispatcher_add_descriptor(kw_dispatcher* dispatcher, const kw_library* library,
                                                 const kw_library_options* options);

/* Kernels in first-fit order. find accepts a name, "arch/name" or an identity. info->struct_size is set by the caller.
 */
KW_EXPORT uint64_t kw_dispatcher_kernel_count(kw_dispatcher* dispatcher);
KW_EXPORT kw_status kw_dispatcher_kernel_at(kw_dispatcher* dispatcher, uint64_t index, kw_kernel_info* info);
KW_EXPORT kw_status kw_dispatcher_find_kernel(kw_dispatcher* dispatcher, const char* kernel, kw_kernel_info* info);
KW_EXPORT kw_status kw_dispatcher_set_priority(kw_dispatcher* dispatcher, const char* kernel, int32_t priority);
KW_EXPORT kw_status kw_dispatcher_set_selection(kw_dispatcher* dispatcher, const kw_selection_options* options);
/* Threads of CPU launches, 0 = the affinity mask; for every CPU library of the dispatcher, process-wide. */
KW_EXPORT kw_status kw_dispatcher_set_num_threads(kw_dispatcher* dispatcher, uint32_t threads);

/* Whose threads run CPU launches, for the whole process. Threads of other libraries that spin for work, as OpenMP's do
 * after each call of torch, slow down everybody else's; sharing them does not. */
typedef enum kw_threads {
  KW_THREADS_AUTO = 0,    /* an OpenMP runtime that is loaded now, else the dispatcher's own */
  KW_THREADS_OWN = 1,     /* the default: started by the first launch that wants them */
  KW_THREADS_OPENMP = 2,  /* of the loaded runtime (torch's, where there are several), within its own limits */
  KW_THREADS_CALLBACK = 3 /* of the application */
} kw_threads;
/* parallel is copied, and read for KW_THREADS_CALLBACK alone; it is asked by one launch at a time, others run on their
 * calling thread. A forked child starts with threads of its own where its parent used OpenMP's. KW_RUNTIME_MISSING:
 * no OpenMP runtime is loaded. */
KW_EXPORT kw_status kw_set_threads(uint32_t source, const kw_parallel* parallel);
/* The source in use, never KW_THREADS_AUTO; *runtime (may be null) gets the path of the OpenMP runtime, else "". */
KW_EXPORT uint32_t kw_threads_in_use(const char** runtime);

/* JSON into buffer. *needed (may be null) gets the bytes including the terminating zero; KW_BUFFER_TOO_SMALL if more
 * than bytes, in which case buffer may be null. */
/* Of each library the number of its kernels, and how many of them came with a library before (shared). */
KW_EXPORT kw_status kw_dispatcher_export_json(kw_dispatcher* dispatcher, char* buffer, size_t bytes, size_t* needed);
/* The ranking of every kernel with reasons; "selection" is what was asked for, such as "auto", and "ranked_by", of each
 * stage, what compared the kernels: the name of a model, or "predicted time". */
KW_EXPORT kw_status kw_dispatcher_explain(kw_dispatcher* dispatcher, const kw_problem* problem, char* buffer,
                                          size_t bytes, size_t* needed);

/* Sizes, dtypes, layouts, leading dimensions and whatever else can be wrong with a problem of any operation; touches no
 * dispatcher. Zero sizes are legal. */
KW_EXPORT kw_status kw_problem_validate(const kw_problem* problem);

/* The plan for a problem: from the cache (no lock, no allocation), or chosen and cached. It lives as long as the
 * dispatcher (or until clear_plans), also when libraries, priorities or the selection change later. The dispatcher
 * cannot know when a plan is no longer in use, so it drops none for another: once plan_limit plans are there, including
 * those from before such a change, it refuses a new one with KW_OUT_OF_MEMORY. Plans of grouped problems are not
 * cached: make them with kw_plan_create, or have kw_dispatcher_run make one for each launch. */
KW_EXPORT kw_status kw_dispatcher_select(kw_dispatcher* dispatcher, const kw_problem* problem, const kw_plan** plan);
/* A plan of the caller's own, chosen anew and not cached; it must not be used after the dispatcher is destroyed. */
KW_EXPORT kw_status kw_plan_create(kw_dispatcher* dispatcher, const kw_problem* problem, kw_plan** plan);
/* Frees a plan of kw_plan_create, also after its dispatcher. No thread may be in a call with it; a launch that still
 * runs on a GPU has its own copy. Null is allowed. */
KW_EXPORT void kw_plan_destroy(kw_plan* plan);
KW_EXPORT kw_status kw_plan_get_info(const kw_plan* plan, kw_plan_info* info);
KW_EXPORT uint64_t kw_plan_workspace_size(const kw_plan* plan);
/* info->struct_size is set by the caller. index is below stage_count; stages run in this order. */
KW_EXPORT kw_status kw_plan_get_stage(const kw_plan* plan, uint32_t index, kw_stage_info* info);
/* Starts all stages on the stream of launch, whose device is that of the dispatcher. args is the argument struct of the
 * operation, e.g. kw_gemm_args, or kw_grouped_gemm_args with the groups that were planned. Any number of threads may
 * launch a plan at once, each with its own workspace.
 *
 * Before a kernel is launched: the sizes, reserved members and device of both structs; pointers that are null though
 * the problem needs them; the workspace's size and alignment; and by address that no element of what is written belongs
 * to another operand too, nor any operand to the workspace. Operands may interleave, such as blocks side by side in one
 * matrix. Allowed in place: D where C is, y where its residual is, rotated Q where Q is. Not checked: whether memory is
 * there, what it holds on a GPU (lengths, page tables, page lists, two requests that append to one row of a page; CPU
 * kernels check these), the factors of blocks and pages of 8-bit attention, and operands of launches that overlap in
 * time. */
KW_EXPORT kw_status kw_plan_launch(const kw_plan* plan, const kw_launch* launch, const void* args);
/* Selects and launches. Works with a full cache too: a problem that is not in it is then planned for each launch. */
KW_EXPORT kw_status kw_dispatcher_run(kw_dispatcher* dispatcher, const kw_problem* problem, const kw_launch* launch,
                                      const void* args);

KW_EXPORT uint64_t kw_dispatcher_plan_count(kw_dispatcher* dispatcher);
/* Forgets and frees every plan. No other thread may be using this dispatcher or its plans. */
KW_EXPORT void kw_dispatcher_clear_plans(kw_dispatcher* dispatcher);

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_DISPATCHER_H */
