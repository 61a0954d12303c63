// What one compiled CPU kernel hands to the driver that blocks, schedules and threads it.
//
// A packed unit is four bytes in every kernel: one fp32 value, or two bf16 or int16 values that are neighbours along K
// and are summed by one dot-product instruction. A panel is `width` units per step along K, so that the inner loop
// reads packed memory in order. Sizes are in elements unless a name says units or bytes.
#ifndef TILEWRIGHT_CPU_KERNEL_HPP
#define TILEWRIGHT_CPU_KERNEL_HPP

#include "tilewright/abi.h"

namespace tilewright::cpu {

// Widest vector in units. A panel ends with so many spare units, because packing stores whole vectors.
constexpr int64_t kSpareUnits = 16;

constexpr int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
constexpr int64_t round_up(int64_t a, int64_t b) { return divide_up(a, b) * b; }

// Distance between two panels; a multiple of a cache line.
constexpr int64_t panel_units(int64_t width, int64_t steps) { return round_up(width * steps, 16) + kSpareUnits; }

// Processor features beyond the architecture level, as bits.
enum feature : uint32_t { kNoFeature = 0, kAvx512Bf16 = 1 };

// D = alpha * (packed A · packed B [+ partial]) + beta * C for one cache block, or partial [+]= A · B.
struct block {
  int64_t rows, cols, steps;  // steps along K, in units
  const void* a;              // panels of warp_tile_m rows
  const void* b;              // panels of warp_tile_n columns
  const void* c;              // read only if beta != 0
  void* d;
  int64_t ldc;
  // Sums over the K blocks done so far, one contiguous warp tile after another; null if D itself holds them (its type
  // is the accumulator's) or K is one block.
  void* partial;
  int64_t partial_panel_stride;  // from one panel of rows to the next
  bool first, last;              // is this the first, the last block along K?
  float alpha, beta;
};

// Pack `count` rows (of A) or columns (of B) by `depth` values of K, zero-filled to whole units and panels.
using pack_function = void (*)(void* panels, const void* source, int64_t ld, int64_t count, int64_t depth);
using multiply_function = void (*)(const block&);

// tw_kernel::traits points to `traits`, so the driver finds the rest behind it.
struct gemm_kernel {
  tw_gemm_traits traits;
  uint32_t required_features;
  uint32_t input_bytes, output_bytes;  // size of an element of A and B, of C and D
  uint32_t partial_in_output;          // D's type is the accumulator's
  pack_function pack_a, pack_b;
  multiply_function multiply;
};

}  // namespace tilewright::cpu

// The driver, one per library; compiled for baseline x86-64 so that asking is safe on any processor.
extern "C" {
TW_HIDDEN tw_status tw_cpu_gemm_supports(const tw_kernel*, const tw_problem*, char* reason, size_t reason_bytes);
TW_HIDDEN tw_status tw_cpu_gemm_workspace_size(const tw_kernel*, const tw_problem*, uint64_t* bytes);
TW_HIDDEN tw_status tw_cpu_gemm_plan(const tw_kernel*, const tw_problem*, void* plan);
TW_HIDDEN tw_status tw_cpu_gemm_launch(const tw_kernel*, const void* plan, const void* args);
}

// Storage of a plan, see driver.hpp.
#define TW_CPU_GEMM_PLAN_BYTES 512u

#endif  // TILEWRIGHT_CPU_KERNEL_HPP
