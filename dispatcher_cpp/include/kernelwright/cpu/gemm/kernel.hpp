// What one compiled CPU kernel hands to the driver that blocks, schedules and threads it.
//
// A packed unit is four bytes in every kernel: one fp32 value, or two bf16, two int16 or four int8 values that are
// neighbours along K and are summed by one dot-product instruction; sums are four bytes too, fp32 or int32. A panel is
// `width` units per step along K, so that the inner loop reads packed memory in order. AMX takes 16 steps at a time,
// and A with the 16 units of a row side by side. Sizes are in elements unless a name says units or bytes.
#ifndef KERNELWRIGHT_CPU_GEMM_KERNEL_HPP
#define KERNELWRIGHT_CPU_GEMM_KERNEL_HPP

#include "kernelwright/cpu/common/blocks.hpp"
#include "kernelwright/cpu/common/features.hpp"
#include "kernelwright/gemm.h"

namespace kernelwright::cpu {

// Widest vector in units. A panel ends with so many spare units, because packing stores whole vectors.
constexpr int64_t kSpareUnits = 16;

// Distance between two panels; a multiple of a cache line.
constexpr int64_t panel_units(int64_t width, int64_t steps) { return round_up(width * steps, 16) + kSpareUnits; }

// Where one product finds its operands and memory of its own.
struct product {
  const void *a, *b, *c;
  void* d;
  const void* multi_d[KW_MAX_D];
  void* workspace;
};

// Where sums go: D = act((alpha * sum + beta * C) op D0 op D1 …).
struct output {
  const void* c;  // read only if beta != 0
  void* d;
  int64_t ldc;
  float alpha, beta;
  double alpha64, beta64;  // the same for int32 sums
  const void* multi_d[KW_MAX_D];
  int64_t ld_multi_d[KW_MAX_D];
  uint32_t num_d, d_op, activation;  // for kernels that read them here, see any_epilogue
};

// packed A · packed B [+ partial] of one cache block goes to the output, or partial [+]= A · B.
struct block {
  int64_t rows, cols, steps;  // steps along K, in units
  const void* a;              // panels of warp_tile_m rows
  const void* b;              // panels of warp_tile_n columns
  output to;
  // Sums over the K blocks done so far, one contiguous warp tile after another; null if D itself holds them (its type
  // is the accumulator's) or K is one block.
  void* partial;
  int64_t partial_panel_stride;  // from one panel of rows to the next
  bool first, last;              // is this the first, the last block along K?
};

// A · B of small fp32 matrices with A as it is, and B as it is (panel_stride = 0) or packed.
struct direct_block {
  int64_t rows, cols, depth;
  const float* a;
  int64_t a_row, a_step;  // from one row to the next, from one value of K to the next
  const float* b;
  int64_t b_step, panel_stride;
  output to;
};

// sums[s][line] = sum over k of vectors[s][k] * matrix[line, k], for few vectors and some lines of a matrix.
struct skinny_block {
  const float* vectors;  // count x vector_ld as `widen` makes them, zeros behind depth
  int64_t count, vector_ld, depth;
  const void* matrix;  // line by line, or k by k
  int64_t ld, lines;
  float* sums;
  int64_t sums_ld;
};

// Adds the sums of all slices up and writes the output. `sums` is the first slice, the others begin at `others`.
struct finish_block {
  float* sums;
  float* others;
  int64_t ld, rows, cols;
  int64_t slices, slice_stride;
  bool tree;  // in pairs of neighbours, then pairs of pairs, …; else one after the other
  output to;
};

// Pack `count` rows (of A) or columns (of B) by `depth` values of K, zero-filled to whole units and panels.
using pack_function = void (*)(void* panels, const void* source, int64_t ld, int64_t count, int64_t depth);
using multiply_function = void (*)(const block&);
using thread_function = void (*)();
using direct_function = void (*)(const direct_block&);
using skinny_function = void (*)(const skinny_block&);
using finish_function = void (*)(const finish_block&);
// `count` values, `stride` apart, as fp32 or as units of int8; zeros up to a whole number of vectors.
using widen_function = void (*)(float* to, const void* from, int64_t stride, int64_t count);
// Vectors that one pass over a matrix multiplies; more rows or columns are worth packing.
constexpr int64_t kMaxVectors = 4;

// What a kernel does beyond one plain product.
struct variant {
  uint32_t persistent, max_split_k, stream_k;  // as in kw_gemm_traits
  uint32_t batched, grouped, preshuffle;
};

// kw_kernel::traits points to `traits`, so the driver finds the rest behind it.
struct gemm_kernel {
  kw_gemm_traits traits;
  uint32_t required_features;
  uint32_t input_bytes, output_bytes;  // size of an element of A and B, of C and D
  uint32_t partial_in_output;          // D can hold what is summed so far
  uint32_t step_units;                 // units along K in traits.warp_tile_k values
  uint32_t grouped;
  pack_function pack_a, pack_b;
  thread_function enter, leave;  // around what a thread multiplies; null where nothing is to be done
  multiply_function multiply;
  finish_function finish;
  direct_function direct;                              // null unless elements are fp32
  skinny_function skinny_along_k, skinny_along_lines;  // the latter null if products are not summed in fp32
  widen_function widen;
  int64_t skinny_depth;  // values of K in four bytes of a widened vector
};

// Multiplies tiles of AMX, so fast that partial sums must stay in a thread's own cache.
inline bool multiplies_tiles(const gemm_kernel& kernel) { return kernel.step_units > 1; }

// Units along K of so many values, packed.
inline int64_t packed_steps(const gemm_kernel& kernel, int64_t depth) {
  return divide_up(depth, kernel.traits.warp_tile_k) * kernel.step_units;
}

}  // namespace kernelwright::cpu

// The driver, one per library; compiled for baseline x86-64 so that asking is safe on any processor.
extern "C" {
KW_HIDDEN kw_status kw_cpu_gemm_supports(const kw_kernel*, const kw_problem*, char* reason, size_t reason_bytes);
KW_HIDDEN kw_status kw_cpu_gemm_workspace_size(const kw_kernel*, const kw_problem*, uint64_t* bytes);
KW_HIDDEN kw_status kw_cpu_gemm_plan(const kw_kernel*, const kw_problem*, void* plan);
KW_HIDDEN kw_status kw_cpu_gemm_launch(const kw_kernel*, const void* plan, const kw_launch*, const void* args);
extern KW_HIDDEN const kw_gemm_extension kw_cpu_gemm_preshuffle;
}

// Storage of a plan, see products.hpp.
#define KW_CPU_GEMM_PLAN_BYTES 768u

#endif  // KERNELWRIGHT_CPU_GEMM_KERNEL_HPP
