/* The contract between a kernel library and a program that loads it: what every operation shares.
 *
 * C99, versioned; a launch throws nothing, allocates nothing and touches no global state. Every struct that may grow
 * starts with its own size. Sizes are int64 and count elements unless a name says bytes. A problem, the launch and its
 * arguments are three types: a problem can be planned once and launched with many sets of pointers, from many threads.
 * Problems, arguments and traits of an operation are in its own header, e.g. kernelwright/gemm.h.
 */
#ifndef KERNELWRIGHT_ABI_H
#define KERNELWRIGHT_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "kernelwright/dtypes.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KW_ABI_VERSION 3u

#if defined(__GNUC__)
#define KW_EXPORT __attribute__((visibility("default")))
#define KW_HIDDEN __attribute__((visibility("hidden")))
#else
#define KW_EXPORT
#define KW_HIDDEN
#endif

typedef enum kw_status {
  KW_OK = 0,
  KW_INVALID_ARGUMENT = 1,    /* a null pointer, a negative size, a leading dimension too small, … */
  KW_UNSUPPORTED = 2,         /* this kernel does not serve this problem; the reason says why */
  KW_NO_KERNEL = 3,           /* no kernel of the dispatcher serves the problem */
  KW_ABI_MISMATCH = 4,        /* library and dispatcher speak different ABI versions */
  KW_ARCH_MISMATCH = 5,       /* library and device are of different architectures */
  KW_WORKSPACE_TOO_SMALL = 6, /* workspace_bytes is below workspace_size(problem) */
  KW_RUNTIME_MISSING = 7,     /* the GPU runtime or driver cannot be loaded */
  KW_LAUNCH_FAILED = 8,       /* the GPU runtime refused the launch */
  KW_OUT_OF_MEMORY = 9,
  KW_BUFFER_TOO_SMALL = 10, /* a caller's text buffer; the size needed is reported */
  KW_LOAD_FAILED = 11       /* not a library, truncated, or without kw_library_get */
} kw_status;

typedef enum kw_backend { KW_BACKEND_CPU = 1, KW_BACKEND_HIP = 2, KW_BACKEND_CUDA = 3 } kw_backend;

/* How an architecture encodes 8-bit floats: OCP (with infinities or negative zero), or FNUZ (with neither). */
typedef enum kw_fp8_format { KW_FP8_OCP = 0, KW_FP8_FNUZ = 1 } kw_fp8_format;

/* First member of every problem. op says which struct it is: numbers below 65536 are KW_OP_… of the header of an
 * operation of this project, each once, and the others belong to operations that are registered from outside. */
typedef struct kw_problem {
  uint32_t struct_size; /* of the whole problem */
  uint32_t op;
} kw_problem;

/* Where one launch runs. Its operands are in the argument struct of the operation. */
typedef struct kw_launch {
  uint32_t struct_size;
  int32_t device;  /* ordinal, 0 on CPU; made current for the launch in the calling thread, then what was is restored */
  void* stream;    /* cudaStream_t or hipStream_t of that device, null = its default stream; null on CPU */
  void* workspace; /* on that device, aligned to 256 bytes; its contents need no initialisation */
  uint64_t workspace_bytes;
} kw_launch;

/* One thread's part of a launch. */
typedef void (*kw_part)(void* context, uint32_t index);

/* Who runs the parts of a launch. run() calls part(context, index) on up to `threads` threads, on the calling one with
 * index 0 or another, each with an index of its own below `threads`, and returns when all that began have ended.
 * Threads that come late find nothing left to do, and some may never come: parts wait for work that was taken, not for
 * threads. */
typedef struct kw_parallel {
  uint32_t struct_size;
  uint32_t reserved;
  void* pool; /* handed to run */
  void (*run)(void* pool, uint32_t threads, kw_part part, void* context);
} kw_parallel;

/* A launch on processors that says whose threads it may use; the dispatcher makes one of a kw_launch. Kernels tell them
 * apart by struct_size, and run on the calling thread alone where nobody is named. */
typedef struct kw_cpu_launch {
  kw_launch base;
  const kw_parallel* parallel; /* null: none but the calling thread */
} kw_cpu_launch;

typedef struct kw_kernel kw_kernel;
struct kw_kernel {
  uint32_t struct_size;
  uint32_t abi_version;
  uint32_t op;           /* of the problems that it serves */
  uint32_t plan_bytes;   /* storage that plan() fills, aligned to 64 bytes */
  const char* name;      /* readable, unique within an architecture, never parsed */
  const char* arch;      /* e.g. "gfx942" */
  const char* identity;  /* 64 hex digits: sha256 of the canonical JSON of (arch, spec) */
  const char* spec_json; /* that JSON */
  const char* features;  /* what the device must have beyond arch, separated by spaces; "" = nothing */
  const void* traits;    /* of the operation, e.g. kw_gemm_traits */

  /* KW_OK, or KW_UNSUPPORTED with one sentence in reason, or KW_INVALID_ARGUMENT where no kernel can serve such a
   * problem. Touches no device. */
  kw_status (*supports)(const kw_kernel*, const kw_problem*, char* reason, size_t reason_bytes);
  /* Of a supported problem, on any visible device; without one, on the reference device of the architecture. */
  kw_status (*workspace_size)(const kw_kernel*, const kw_problem*, uint64_t* bytes);
  /* Fills plan_bytes at plan for a supported problem; afterwards the plan is read-only and may be shared by threads. */
  kw_status (*plan)(const kw_kernel*, const kw_problem*, void* plan);
  /* args is the argument struct of the operation. Asynchronous on GPUs, complete on return on CPUs. */
  kw_status (*launch)(const kw_kernel*, const void* plan, const kw_launch*, const void* args);
  /* What the operation lets some kernels do besides, e.g. kw_gemm_extension; null = nothing. */
  const void* extension;
};

/* Which formulas predict times. Constants of KW_TIMES_HOPPER were fitted to an H200, those of KW_TIMES_CDNA3 and
 * KW_TIMES_CDNA4 to times that AMD published. 0 in libraries that do not say: processors' on CPUs, Hopper's on NVIDIA
 * GPUs, those of tiles on AMD GPUs. */
typedef enum kw_times {
  KW_TIMES_TILES = 1,
  KW_TIMES_PROCESSORS = 2,
  KW_TIMES_HOPPER = 3,
  KW_TIMES_CDNA3 = 4,
  KW_TIMES_CDNA4 = 5
} kw_times;

/* Numbers of the architecture file that callers and analytic selection need. */
typedef struct kw_arch {
  uint32_t struct_size;
  uint32_t backend; /* kw_backend */
  const char* name;
  uint32_t compute_units; /* CUs, SMs or cores of the reference device; 0 = ask the device */
  uint32_t wave_size;     /* lanes; 1 on CPU */
  uint32_t fp8_format;    /* kw_fp8_format */
  uint32_t times;         /* kw_times */
  uint64_t lds_bytes;     /* LDS or shared memory per workgroup; L2 per core on CPU */
  double clock_ghz;
  double memory_gbytes_per_s;
  double flops_per_clock_per_cu[8]; /* dense, indexed by kw_dtype of A; 0 = not offered */
} kw_arch;

typedef struct kw_library {
  uint32_t struct_size;
  uint32_t abi_version;
  const char* name;
  const kw_arch* arch;
  const kw_kernel* const* kernels;
  uint64_t kernel_count;
  /* Can the kernels run on this device ordinal? KW_OK, KW_ARCH_MISMATCH or KW_RUNTIME_MISSING, with one sentence. */
  kw_status (*check_device)(int32_t device, char* reason, size_t reason_bytes);
  /* Detail of the last failure in the calling thread, "" if none. */
  const char* (*last_error)(void);
  /* CPU: threads that a launch may use, 0 = all of the affinity mask. KW_UNSUPPORTED on GPUs. */
  kw_status (*set_num_threads)(uint32_t threads);
  /* AMD: the file to open as GPU runtime on first use, instead of the system's; for the whole process, and for good:
   * KW_INVALID_ARGUMENT once the library uses another one. KW_UNSUPPORTED elsewhere. Libraries whose struct_size ends
   * before this member do not have it. */
  kw_status (*set_runtime)(const char* path);
} kw_library;

/* The one symbol that a kernel library exports. */
KW_EXPORT const kw_library* kw_library_get(void);

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_ABI_H */
