/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/gemm/rules/hip_sizes.py by `kernelwright formulas`, and explained there. */
#ifndef KERNELWRIGHT_HIP_GEMM_SIZES_H
#define KERNELWRIGHT_HIP_GEMM_SIZES_H

#define KW_HIP_MAX_SPLIT_K 1024

#endif /* KERNELWRIGHT_HIP_GEMM_SIZES_H */
