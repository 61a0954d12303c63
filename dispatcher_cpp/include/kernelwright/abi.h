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

/* D tensors of one problem. */
#define KW_MAX_D 4

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

/* How the D tensors are combined with the product. */
typedef enum kw_d_op { KW_D_ADD = 0, KW_D_MULTIPLY = 1 } kw_d_op;

typedef enum kw_activation {
  KW_ACTIVATION_NONE = 0,
  KW_ACTIVATION_RELU = 1,
  KW_ACTIVATION_GELU = 2,      /* x/2 (1 + erf(x/sqrt(2))) */
  KW_ACTIVATION_FAST_GELU = 3, /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
  KW_ACTIVATION_SILU = 4,      /* x / (1 + exp(-x)) */
  KW_ACTIVATION_SIGMOID = 5,   /* 1 / (1 + exp(-x)) */
  KW_ACTIVATION_TANH = 6
} kw_activation;

/* How stream-K adds up the parts of a tile. */
typedef enum kw_stream_k { KW_STREAM_K_NONE = 0, KW_STREAM_K_LINEAR = 1, KW_STREAM_K_TREE = 2 } kw_stream_k;

/* First member of every problem. */
typedef struct kw_problem {
  uint32_t struct_size;
  uint32_t op; /* kw_op */
} kw_problem;

/* D[m,n] = act((alpha * sum_k A[m,k] B[k,n] + beta * C[m,n]) op D0[m,n] op D1[m,n] ...).
 *
 * C, D and the tensors D0 to D3 share dtype_c and layout_c; C and D share ldc too, and may be the same memory. A
 * leading dimension is the distance, in elements, between rows (row-major) or columns (column-major). batch such
 * products of one shape lie stride_* elements apart. The struct has no padding bytes, so it can be hashed as memory;
 * what a problem does not use is 0.
 */
typedef struct kw_gemm_problem {
  kw_problem base;
  uint32_t dtype_a, dtype_b, dtype_c, dtype_acc; /* kw_dtype */
  uint32_t layout_a, layout_b, layout_c;         /* kw_layout */
  uint32_t split_k; /* number of K slices that are summed; 1 = none; 0 = the dispatcher chooses, kernels never see it */
  int64_t m, n, k;  /* >= 0 */
  int64_t lda, ldb, ldc;
  double alpha, beta;
  int64_t batch;                        /* >= 1 */
  int64_t stride_a, stride_b, stride_c; /* from one product to the next; 0 for A or B: shared by all */
  uint32_t num_d;                       /* D tensors, at most KW_MAX_D */
  uint32_t d_op;                        /* kw_d_op */
  uint32_t activation;                  /* kw_activation */
  uint32_t reserved;                    /* 0 */
  int64_t ld_multi_d[KW_MAX_D];         /* 0: one line for all, e.g. a bias of n values where C is row-major */
  int64_t stride_multi_d[KW_MAX_D];     /* 0: shared by all of the batch */
  uint64_t b_format; /* 0: B as layout_b says; else kw_gemm_traits.b_format of the kernel that shuffled it */
} kw_gemm_problem;

/* Pointers of one launch. c may be null when beta is 0. stream is a cudaStream_t or hipStream_t, null on CPU. */
typedef struct kw_gemm_args {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  const void* a;
  const void* b;
  const void* c;
  void* d;
  void* workspace; /* aligned to 256 bytes; its contents need no initialisation */
  uint64_t workspace_bytes;
  void* stream;
  const void* multi_d[KW_MAX_D]; /* D0 to D3, as many as the problem has */
} kw_gemm_args;

/* One product of a grouped GEMM, in elements as in kw_gemm_problem. */
typedef struct kw_gemm_group {
  int64_t m, n, k;
  int64_t lda, ldb, ldc;
} kw_gemm_group;

/* group_count products D = alpha * A B + beta * C of different shapes. groups lies in host memory and is read during
 * the call only. */
typedef struct kw_grouped_gemm_problem {
  kw_problem base;
  uint32_t dtype_a, dtype_b, dtype_c, dtype_acc;
  uint32_t layout_a, layout_b, layout_c;
  uint32_t reserved;   /* 0 */
  int64_t group_count; /* >= 0 */
  const kw_gemm_group* groups;
  double alpha, beta;
} kw_grouped_gemm_problem;

/* groups is what the problem said; a, b, c and d are arrays in host memory of group_count pointers each, read during
 * the call only. c may be null when beta is 0. */
typedef struct kw_grouped_gemm_args {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  int64_t group_count;
  const kw_gemm_group* groups;
  const void* const* a;
  const void* const* b;
  const void* const* c;
  void* const* d;
  void* workspace;
  uint64_t workspace_bytes;
  void* stream;
} kw_grouped_gemm_args;

/* What selection may know about a GEMM kernel without parsing text. */
typedef struct kw_gemm_traits {
  uint32_t struct_size;
  uint32_t dtype_a, dtype_b, dtype_c, dtype_acc;
  uint32_t layout_a, layout_b, layout_c;
  uint32_t tile_m, tile_n, tile_k;
  uint32_t wave_m, wave_n, wave_k;
  uint32_t warp_tile_m, warp_tile_n, warp_tile_k;
  uint32_t pad_m, pad_n, pad_k;
  uint32_t persistent;
  uint32_t max_split_k;
  uint32_t num_d, d_op, activation; /* exactly these are served */
  uint32_t batched;                 /* serves batch > 1 */
  uint32_t stream_k;                /* kw_stream_k */
  uint16_t cluster_m, cluster_n;    /* tiles whose workgroups share operands; 0 = 1 */
  uint64_t b_format;                /* how shuffle_b orders B; 0 = it does not */
} kw_gemm_traits;

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
