// What one compiled CPU kernel of attention hands to the drivers that block, schedule and thread it.
//
// Scores are computed transposed, with keys as rows and queries as lanes: S^T = K Q^T, so that softmax runs along the
// rows without a look at neighbouring lanes, its probabilities are the next product's panel as they lie, and
// O^T = V^T P^T. K and V take the part of A in gemm/micro (panels of MR keys, and of MR elements of V's rows), queries
// that of B (panels of NR). A "row" is a query of a head; rows of all heads that share K and V may share a block.
// Scores are in units of log 2. Sizes are in elements unless a name says units.
#ifndef KERNELWRIGHT_CPU_ATTENTION_KERNEL_HPP
#define KERNELWRIGHT_CPU_ATTENTION_KERNEL_HPP

#include "kernelwright/attention.h"
#include "kernelwright/cpu/gemm/kernel.hpp"

namespace kernelwright::cpu {

// Rows that are worth no panel: their products read K and V where they lie.
constexpr int64_t kFewRows = 8;

// Random bytes of dropout of a row: those of its place in the problem.
struct dropout_row {
  uint64_t place;  // offset + 64 * head
  int64_t query;
};

// What the scores of a problem have in common.
struct score_rules {
  float alpha;           // times Q K^T
  float cap;             // of soft caps: alpha is divided by it, and tanh multiplied
  uint64_t seed;         // of dropout
  uint32_t keeps;        // bytes up to it are kept
  bool dropout, biased;  // is there a dropout, an elementwise bias?
};

// A block of rows. Arrays have an element for each row, and behind them for those that fill up the last panel.
struct row_block {
  int64_t rows;
  void** o;
  float** lse;  // of rows whose LSE nobody wants: null
  const void** bias;
  dropout_row* dropout;
  float *place, *low, *high;  // among the keys: the row's own, the first and the last that it sees
  float* slope;
  float *top, *sum;  // the largest score so far, the sum of powers below it
};

// Keys that are multiplied at a time, packed: `k` in panels of MR keys, `v` in panels of MR elements of rows.
struct key_block {
  const float *k, *v;
  int64_t first, count;
  int64_t k_steps;  // units of a row of K
  int64_t v_steps;  // units that a panel of V was packed with
  int64_t hdim_v;
};

struct attend_call {
  const score_rules* rules;
  const row_block* rows;
  key_block keys;
  const float* q;  // panels of NR rows
  float* scores;   // NR x tile_n0, and as many factors of dropout behind them
  float* partial;  // sums of O, panel by panel of rows, transposed
};

// The same for few rows, with K and V as they lie.
struct few_call {
  const score_rules* rules;
  const row_block* rows;
  const void *k, *v;
  int64_t ld_k, ld_v, first, count;
  int64_t hdim_q, hdim_v, ld_q, ld_o;
  const float* q;  // rows x ld_q
  float* scores;   // kFewRows x tile_n0 twice
  float* fresh;    // kFewRows x ld_o
  float* partial;  // kFewRows x ld_o
};

struct finish_call {
  const row_block* rows;
  const float* partial;
  int64_t hdim_v;
  float factor;  // of O beside the sums
  bool fp32;     // is O fp32 whatever the kernel's type?
};

// Rows without products: of D (O is a, dO is b), of combinations (splits of O are a) and of sums of dQ (they are a).
struct line_call {
  int64_t rows, hdim;
  const void *a, *b;
  int64_t ld_a, ld_b;
  int64_t slices, slice_stride;  // splits of O, slices of dQ
  const float* lse_splits;
  int64_t lse_stride;
  float* numbers;  // D, or LSE unless nobody wants it
  void* to;
  int64_t ld_to;
  float factor;  // of D, and of what combinations write
};

// Rows of 8-bit numbers that become fp32, times a factor, side by side.
struct widen_rows_call {
  const void* from;
  int64_t ld, rows, hdim;
  float factor;
  float* to;
};

// One row that a rotary embedding turns; `to` may be `from`.
struct rotate_call {
  const void *from, *cos, *sin;
  void* to;
  int64_t rotary_dim;
  bool interleaved;
};
constexpr int64_t kMaxRotary = 1024;

// A panel of rows and a block of keys of the backward pass. `top` of the rows is LSE in units of log 2, `sum` is D.
struct gradient_call {
  const score_rules* rules;
  const row_block* rows;
  int64_t first, count;  // keys
  int64_t hdim_q, hdim_v;
  float scale, kept_factor;              // of Q K^T; 1 / (1 - dropout_p)
  const float *k, *v;                    // panels of MR keys
  const float* k_columns;                // panels of MR elements of K's rows
  const float *q, *d_o;                  // panels of NR rows
  const float *q_columns, *d_o_columns;  // panels of NR elements of rows
  float *scores, *slopes, *factors;      // NR x count each
  float* packed;                         // panels of MR keys of NR values
  uint16_t* narrow;                      // NR x count, where products take pairs
  float* turned;                         // hdim_q x NR
  float *dk, *dv;                        // sums, count x hdim in whole vectors; null = not wanted
  float** dq;                            // sums of each row; null = not wanted
  void** dbias;                          // rows of all keys; null = not wanted
};

using line_function = void (*)(const line_call&);
using widen_rows_function = void (*)(const widen_rows_call&);
using rotate_function = void (*)(const rotate_call&);
using gradient_function = void (*)(const gradient_call&);
using attend_function = void (*)(const attend_call&);
using few_function = void (*)(const few_call&);
using finish_rows_function = void (*)(const finish_call&);

// kw_kernel::traits points to `traits`, so the drivers find the rest behind it.
struct attention_kernel {
  kw_attention_traits traits;
  uint32_t required_features;
  uint32_t input_bytes, output_bytes, bias_bytes;
  uint32_t staged_bytes;                 // of an element of Q, K and V where `pack` and `few` read it
  int64_t mr, nr, lanes, depth;          // rows and columns of a register block; values of K in a unit
  pack_function pack_q, pack_k, pack_v;  // to panels of NR rows; of MR keys; of MR elements
  widen_function widen;
  attend_function attend;
  few_function few;
  finish_rows_function finish, finish_few;
  pack_function pack_columns;  // of the backward pass: to panels of NR elements of rows
  gradient_function gradients;
  widen_rows_function widen_rows;  // of 8-bit operands, else null
  line_function lines;             // of families without products; of the backward pass: sums to elements
  rotate_function rotate;          // of append
};

}  // namespace kernelwright::cpu

// The driver, one per library; compiled for baseline x86-64 so that asking is safe on any processor.
extern "C" {
KW_HIDDEN kw_status kw_cpu_attention_supports(const kw_kernel*, const kw_problem*, char* reason, size_t reason_bytes);
KW_HIDDEN kw_status kw_cpu_attention_workspace_size(const kw_kernel*, const kw_problem*, uint64_t* bytes);
KW_HIDDEN kw_status kw_cpu_attention_plan(const kw_kernel*, const kw_problem*, void* plan);
KW_HIDDEN kw_status kw_cpu_attention_launch(const kw_kernel*, const void* plan, const kw_launch*, const void* args);
}

// Storage of a plan, see launchers/cpu/attention/plan.hpp.
#define KW_CPU_ATTENTION_PLAN_BYTES 1024u

#endif  // KERNELWRIGHT_CPU_ATTENTION_KERNEL_HPP
