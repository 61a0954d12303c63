/* libdispatcher_fmha_lib.so: fused attention by the function names that users of the CK Tile dispatcher know.
 *
 * The library is the dispatcher of kernelwright/dispatcher.h with kernel libraries loaded into it. New programs call
 * fmha_dispatcher_run() with one struct that states its size and version, and has the operands of its features.
 * Programs that were written for that dispatcher call the positional functions at the end of this file.
 *
 * Memory: operands are in host memory, or in that of the device that is current in the calling thread; both are copied
 * to memory of the call's own on that device, and results back. seqstart_q, seqstart_k and page_indptr of the struct
 * are in host memory. With CPU libraries everything is in host memory and nothing is copied. Programs that have
 * streams, strides or no time for copies use kernelwright/dispatcher.h.
 *
 * Any number of threads may call anything at once. Functions that can fail return a negative number and leave a
 * sentence for fmha_dispatcher_last_error() in the calling thread.
 */
#ifndef KERNELWRIGHT_DISPATCHER_FMHA_LIB_H
#define KERNELWRIGHT_DISPATCHER_FMHA_LIB_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FMHA_DISPATCHER_EXPORT __attribute__((visibility("default")))
#else
#define FMHA_DISPATCHER_EXPORT
#endif

#define FMHA_DISPATCHER_ARGS_VERSION 2u

enum {
  FMHA_DISPATCHER_OK = 0,
  FMHA_DISPATCHER_ERROR = -1,    /* wrong arguments, not initialised, or a failed launch */
  FMHA_DISPATCHER_NO_KERNEL = -2 /* no kernel serves the problem */
};

/* What to compute. Forward takes contiguous or paged K and V, and as many splits as the dispatcher or the caller says.
 */
enum { FMHA_FORWARD = 0, FMHA_BACKWARD = 1, FMHA_APPEND_KV = 2 };
/* mask_type; windows are -1 and 0 in causal masks, -1 and -1 without a mask */
enum { FMHA_MASK_NO = 0, FMHA_MASK_TOP_LEFT = 1, FMHA_MASK_BOTTOM_RIGHT = 2 };
/* bias_type */
enum { FMHA_BIAS_NO = 0, FMHA_BIAS_ELEMENTWISE = 1, FMHA_BIAS_ALIBI = 2 };
/* rope_type */
enum { FMHA_ROPE_NO = 0, FMHA_ROPE_INTERLEAVED = 1, FMHA_ROPE_HALF = 2 };

/* Tensors are dense. With i_perm 1 heads stand before rows (batch, heads, rows, hdim), with 0 rows before heads. In
 * group mode the rows of all requests stand one behind the other: (total, heads, hdim) or (heads, total, hdim). Members
 * that a problem does not use are 0 or null. */
typedef struct fmha_dispatcher_args {
  uint32_t struct_size;  /* sizeof(fmha_dispatcher_args); version 1: up to descale_q */
  uint32_t version;      /* FMHA_DISPATCHER_ARGS_VERSION, or 1 */
  const char* data_type; /* of Q, K, V and O: "fp32", "fp16" or "bf16"; "fp8fp16", "fp8bf16" or "fp8fp32": Q, K and V
                          * have 8 bits, O has those of the second name; "fp8": all have */
  int32_t operation;     /* FMHA_FORWARD, ... */
  int32_t is_group_mode, i_perm; /* 0 or 1, as is_deterministic */
  int32_t batch, nhead_q, nhead_k;
  int32_t seqlen_q, seqlen_k; /* group mode: of the longest request; append: new rows of q, and of k and v */
  int32_t hdim_q, hdim_v;
  int32_t mask_type, window_size_left, window_size_right;
  int32_t bias_type;  /* elementwise: batch x nhead_q x seqlen_q x seqlen_k; group: nhead_q x total x seqlen_k, in fp32
                       * for 8-bit operands; ALiBi: nhead_q slopes in fp32 */
  int32_t num_splits; /* parts of the keys; 0: the dispatcher chooses */
  int32_t is_deterministic;
  int32_t page_block_size; /* keys of a page; 0: K and V, or the caches, are contiguous */
  int32_t page_count;      /* pages of the cache: (pages, page_block_size, nhead_k, hdim), or heads before rows */
  int32_t
      page_table_width; /* page_table has batch x page_table_width entries; 0: page_indptr says where requests begin */
  int32_t cache_capacity;                       /* append without pages: rows that the caches hold for each request */
  int32_t rope_type, rotary_dim, rotary_places; /* append */
  int32_t reserved;                             /* 0 */
  float scale;                                  /* of Q K^T; 0: 1 / sqrt(hdim_q) */
  float logits_soft_cap;
  float p_drop;
  float reserved_float; /* 0 */
  uint64_t drop_seed, drop_offset;
  const void* q;
  const void* k; /* or cache; append: new rows */
  const void* v;
  void* o;    /* read by backward */
  float* lse; /* batch x nhead_q x seqlen_q; group: nhead_q x total; null: not written; read by backward */
  const void* bias;
  const float* sinks;          /* nhead_q */
  const int32_t* seqstart_q;   /* group: batch + 1 */
  const int32_t* seqstart_k;   /* group without pages: batch + 1 */
  const int32_t* seqlen_k_ptr; /* batch numbers of keys; with page_table_width and append needed */
  const int32_t* page_table;
  const int32_t* page_indptr;       /* batch + 1 */
  const int32_t* last_page_lengths; /* batch */
  const void* d_o;                  /* backward */
  void* dq;
  void* dk;
  void* dv;
  void* dbias;   /* null: not computed */
  void* k_cache; /* append: read and written */
  void* v_cache;
  void* q_out;     /* append: rotated q; null with q */
  const void* cos; /* rotary_places x rotary_dim / 2, of data_type */
  const void* sin;
  const float* descale_q; /* of 8-bit operands, one number each: stored value * factor = value; all null: 1 */
  const float* descale_k;
  const float* descale_v;
  const float* scale_o; /* where O has 8 bits, one number: stored O = O * factor */
} fmha_dispatcher_args;

/* "1.0.0": the version of these functions. */
FMHA_DISPATCHER_EXPORT const char* fmha_dispatcher_version(void);
/* Why the last call of this thread failed; "" if none did. Valid until the next failure in this thread. */
FMHA_DISPATCHER_EXPORT const char* fmha_dispatcher_last_error(void);

/* Loads kernel libraries: those that KERNELWRIGHT_FMHA_KERNELS names, or else of the folder dispatcher_fmha_kernels
 * beside this file, or else of the wheels kernelwright-kernels-attention-<arch> that are installed where this file is.
 * arch: the architecture that the kernels must be of, such as "gfx950"; null takes any. 0 or -1; 0 also if it was done
 * before, until fmha_dispatcher_cleanup(). */
FMHA_DISPATCHER_EXPORT int fmha_dispatcher_initialize(const char* arch);
/* The same with files or folders, separated by colons, in place of the environment; null leaves it to that. */
FMHA_DISPATCHER_EXPORT int fmha_dispatcher_initialize_from(const char* kernels, const char* arch);
/* Waits for calls under way and forgets everything; fmha_dispatcher_initialize() may follow. */
FMHA_DISPATCHER_EXPORT void fmha_dispatcher_cleanup(void);

/* Kernels that were loaded; 0 before fmha_dispatcher_initialize(). */
FMHA_DISPATCHER_EXPORT int fmha_dispatcher_kernel_count(void);
/* Their names, in a fixed order. 0 or -1, as for an index out of range or a buffer too small. */
FMHA_DISPATCHER_EXPORT int fmha_dispatcher_get_kernel_name(int index, char* name, int bytes);
/* The name of the first kernel that would run. 0, -1, or -2 if no kernel serves the problem. */
FMHA_DISPATCHER_EXPORT int fmha_dispatcher_select_kernel(const fmha_dispatcher_args* args, char* name, int bytes);
/* 1 if kernels serve the problem, else 0 and the reasons in fmha_dispatcher_last_error(). */
FMHA_DISPATCHER_EXPORT int fmha_dispatcher_is_supported(const fmha_dispatcher_args* args);
/* Computes. What is written shares no memory with anything else, also where copies are computed with. time_ms, unless
 * null: the average time of a launch, in milliseconds; the first one does not count. q_out differs from q, since
 * several launches would rotate it several times. 0, -1 or -2. */
FMHA_DISPATCHER_EXPORT int fmha_dispatcher_run(const fmha_dispatcher_args* args, float* time_ms);

/* One function for each family, with the arguments that clients of the CK Tile dispatcher bind. They never change.
 *
 *   mask_type      with window_left and window_right: -1 is no bound. Without these arguments 1 and 2 are causal
 *   bias_type      the bias, or its slopes, are zeros: it takes time and changes no result. So do those of has_sink:
 *                  a score of 0 in each row's sum
 *   has_lse        LSE is computed and not returned
 *   has_dropout    probability 0.2, seed 1, offset 0
 *   has_logits     0: there is no argument for the cap
 *   has_skip, skip_min_seqlen_q, traits_hdim_q, traits_hdim_v, is_store_randval, tile_n0   change nothing
 *   is_v_rowmajor  1
 *   perm           1: (batch, heads, rows, hdim), or (heads, total, hdim) in group mode; 0: rows before heads
 *   is_group_mode  requests of equal lengths
 *   page_block_size   0 or less: 64. K and V are (pages, nhead_k, page_block_size, hdim), pages in order, and seqlen_k
 *                  is a multiple of it
 *   data_type      as in the struct, but for "fp8", since there is no argument for scale_o; null: fp16. 8-bit operands
 *                  have no factors
 *   scale          0 is no default: scores are 0
 *   time_ms        as of fmha_dispatcher_run()
 *
 * 0; -1 for a value that is not among these, or a failed launch; -2 without a kernel. */
FMHA_DISPATCHER_EXPORT int fmha_dispatcher_run_fwd(const void* q, const void* k, const void* v, void* o, int batch,
                                                   int nhead_q, int nhead_k, int seqlen_q, int seqlen_k, int hdim_q,
                                                   int hdim_v, float scale, int mask_type, int bias_type, int has_lse,
                                                   int has_dropout, int traits_hdim_q, int traits_hdim_v,
                                                   int is_v_rowmajor, int perm, const char* data_type,
                                                   int is_group_mode, int window_left, int window_right, int has_logits,
                                                   int has_sink, int has_skip, float* time_ms);
/* (batch, heads, rows, hdim), or (heads, total, hdim) in group mode, where all operands are read too. has_dbias needs
 * an elementwise bias; its gradient is computed and not returned. */
FMHA_DISPATCHER_EXPORT int fmha_dispatcher_run_bwd(const void* q, const void* k, const void* v, const void* o,
                                                   const void* lse, const void* d_o, void* dq, void* dk, void* dv,
                                                   int batch, int nhead_q, int nhead_k, int seqlen_q, int seqlen_k,
                                                   int hdim_q, int hdim_v, float scale, const char* data_type,
                                                   int mask_type, int bias_type, int has_dropout, int has_dbias,
                                                   int is_deterministic, int is_group_mode, int is_store_randval,
                                                   int tile_n0, float* time_ms);
/* num_splits 0 or less: the dispatcher chooses. perm is 1 without group mode. */
FMHA_DISPATCHER_EXPORT int fmha_dispatcher_run_splitkv(const void* q, const void* k, const void* v, void* o, int batch,
                                                       int nhead_q, int nhead_k, int seqlen_q, int seqlen_k, int hdim_q,
                                                       int hdim_v, float scale, int mask_type, int num_splits,
                                                       int is_v_rowmajor, const char* data_type, int has_lse,
                                                       int is_group_mode, int perm, int has_logits, int bias_type,
                                                       int has_sink, int paged_kv, int page_block_size, int window_left,
                                                       int window_right, float* time_ms);
/* Q and O are (total, heads, hdim). */
FMHA_DISPATCHER_EXPORT int fmha_dispatcher_run_pagedkv(const void* q, const void* k, const void* v, void* o, int batch,
                                                       int nhead_q, int nhead_k, int seqlen_q, int seqlen_k, int hdim_q,
                                                       int hdim_v, float scale, int mask_type, int page_block_size,
                                                       int is_v_rowmajor, const char* data_type, int has_lse,
                                                       int has_logits, int has_sink, int skip_min_seqlen_q,
                                                       int bias_type, float* time_ms);
/* Appends to caches of the call's own that hold seqlen_q rows: there is no argument for what they become. (batch,
 * heads, rows, hdim). rope_type turns with cosines and sines of 0. To keep the caches call fmha_dispatcher_run(). */
FMHA_DISPATCHER_EXPORT int fmha_dispatcher_run_appendkv(const void* q, const void* k_new, const void* v_new, int batch,
                                                        int nhead_q, int nhead_k, int seqlen_q, int seqlen_knew,
                                                        int hdim_q, int hdim_v, int is_v_rowmajor, int rope_type,
                                                        int paged_kv, int page_block_size, const char* data_type,
                                                        float* time_ms);
/* Q and O are (total, heads, hdim). kv_layout 0: K is (pages, nhead_k, hdim_q / x, page_block_size, x), V is (pages,
 * nhead_k, page_block_size / x, hdim_v, x), x elements take 16 bytes; 1: (pages, nhead_k, page_block_size, hdim).
 * kv_lookup 0: by a block table; 1: by a list of pages. */
FMHA_DISPATCHER_EXPORT int fmha_dispatcher_run_batch_prefill(
    const void* q, const void* k, const void* v, void* o, int batch, int nhead_q, int nhead_k, int seqlen_q,
    int seqlen_k, int hdim_q, int hdim_v, float scale, int mask_type, int bias_type, int page_block_size, int kv_layout,
    int kv_lookup, int is_v_rowmajor, const char* data_type, int has_lse, int has_dropout, int has_logits, int has_sink,
    int skip_min_seqlen_q, float* time_ms);

#ifdef __cplusplus
}
#endif
#endif /* KERNELWRIGHT_DISPATCHER_FMHA_LIB_H */
