/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/attention/rules/hip_sizes.py by `kernelwright formulas`, and explained there. */
#ifndef KERNELWRIGHT_HIP_ATTENTION_SIZES_H
#define KERNELWRIGHT_HIP_ATTENTION_SIZES_H

#define KW_HIP_ATTENTION_BLOCK 256
#define KW_HIP_ATTENTION_MAX_GRID 65535

#endif /* KERNELWRIGHT_HIP_ATTENTION_SIZES_H */
