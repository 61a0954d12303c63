// What one compiled CPU kernel of a norm hands to the launcher, which shares rows among threads.
//
// Sizes and strides are in elements.
#ifndef KERNELWRIGHT_CPU_NORM_KERNEL_HPP
#define KERNELWRIGHT_CPU_NORM_KERNEL_HPP

#include "kernelwright/abi.h"
#include "kernelwright/norm.h"

namespace kernelwright::cpu {

// The rows from `begin` to `end` of a launch, in its own words.
struct norm_rows {
  const kw_norm_problem* problem;
  const kw_norm_args* args;
  int64_t begin, end;
  float* sums;  // backward: what these rows add to dweight, then what they add to dbias, of those that are asked for
};

// Sums of blocks of rows, each of `columns` values and `pitch` behind the one before, become a gradient.
struct norm_sums {
  const float* sums;
  int64_t pitch, blocks;
  void* to;
  bool wide;             // the gradient is fp32 whatever the kernel's type
  int64_t begin, count;  // columns
};

using norm_rows_function = void (*)(const norm_rows&);
using norm_sums_function = void (*)(const norm_sums&);

// kw_kernel::traits points to `traits`, so the launcher finds the rest behind it.
struct norm_kernel {
  kw_norm_traits traits;
  uint32_t op;  // kw_norm_op
  uint32_t reserved;
  norm_rows_function rows;
  norm_sums_function finish;  // backward only
};

}  // namespace kernelwright::cpu

// The launcher, one per library; compiled for baseline x86-64 so that asking is safe on any processor.
extern "C" {
KW_HIDDEN kw_status kw_cpu_norm_supports(const kw_kernel*, const kw_problem*, char* reason, size_t reason_bytes);
KW_HIDDEN kw_status kw_cpu_norm_workspace_size(const kw_kernel*, const kw_problem*, uint64_t* bytes);
KW_HIDDEN kw_status kw_cpu_norm_plan(const kw_kernel*, const kw_problem*, void* plan);
KW_HIDDEN kw_status kw_cpu_norm_launch(const kw_kernel*, const void* plan, const kw_launch*, const void* args);
}

// Storage of a plan, see plan.hpp.
#define KW_CPU_NORM_PLAN_BYTES 192u

#endif  // KERNELWRIGHT_CPU_NORM_KERNEL_HPP
