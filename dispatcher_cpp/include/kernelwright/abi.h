/* The contract between a kernel library and whoever loads it.
 *
 * C99, versioned, no exceptions, no allocation and no global state inside a launch. Every struct that may grow starts
 * with its own size. Sizes are int64 and count elements unless a name says bytes. A problem and its arguments are two
 * types: a problem can be planned once and launched with many sets of pointers, from many threads.
 */
#ifndef KERNELWRIGHT_ABI_H
#define KERNELWRIGHT_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KW_ABI_VERSION 2u

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

typedef enum kw_op { KW_OP_GEMM = 1, KW_OP_GROUPED_GEMM = 2 } kw_op;

typedef enum kw_dtype {
  KW_FP32 = 1,
  KW_FP16 = 2,
  KW_BF16 = 3,
  KW_FP8 = 4, /* e4m3: FNUZ on gfx942, OCP elsewhere */
  KW_BF8 = 5, /* e5m2: FNUZ on gfx942, OCP elsewhere */
  KW_INT8 = 6,
  KW_INT32 = 7
} kw_dtype;

typedef enum kw_layout { KW_ROW_MAJOR = 0, KW_COL_MAJOR = 1 } kw_layout;

typedef enum kw_backend { KW_BACKEND_CPU = 1, KW_BACKEND_HIP = 2, KW_BACKEND_CUDA = 3 } kw_backend;

/* First member of every problem. */
typedef struct kw_problem {
  uint32_t struct_size;
  uint32_t op; /* kw_op */
} kw_problem;

typedef struct kw_kernel kw_kernel;
struct kw_kernel {
  uint32_t struct_size;
  uint32_t abi_version;
  uint32_t op;
  uint32_t plan_bytes;   /* storage that plan() fills, aligned to 64 bytes */
  const char* name;      /* readable, unique within an architecture, never parsed */
  const char* arch;      /* e.g. "gfx942" */
  const char* identity;  /* 64 hex digits: sha256 of the canonical JSON of (arch, spec) */
  const char* spec_json; /* that JSON */
  const char* features;  /* what the device must have beyond arch, separated by spaces; "" = nothing */
  const void* traits;    /* kw_gemm_traits */

  /* KW_OK, or KW_UNSUPPORTED with one sentence in reason. Touches no device. */
  kw_status (*supports)(const kw_kernel*, const kw_problem*, char* reason, size_t reason_bytes);
  kw_status (*workspace_size)(const kw_kernel*, const kw_problem*, uint64_t* bytes);
  /* Fills plan_bytes at plan for a supported problem; afterwards the plan is read-only and may be shared by threads. */
  kw_status (*plan)(const kw_kernel*, const kw_problem*, void* plan);
  /* args is kw_gemm_args or kw_grouped_gemm_args. Asynchronous on GPUs, complete on return on CPUs. */
  kw_status (*launch)(const kw_kernel*, const void* plan, const void* args);
  /* Null unless the traits have a b_format. Bytes that B of the problem takes shuffled, and shuffling it: both in host
   * memory, b as layout_b and ldb say. The m of the problem does not matter. */
  kw_status (*shuffle_b_bytes)(const kw_kernel*, const kw_problem*, uint64_t* bytes);
  kw_status (*shuffle_b)(const kw_kernel*, const kw_problem*, const void* b, void* shuffled);
};

/* Numbers of the architecture file that analytic selection needs. */
typedef struct kw_arch {
  uint32_t struct_size;
  uint32_t backend; /* kw_backend */
  const char* name;
  uint32_t compute_units; /* CUs, SMs or cores of the reference device; 0 = ask the device */
  uint32_t wave_size;     /* lanes; 1 on CPU */
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
