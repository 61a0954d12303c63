/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/convolution/rules/hip_sizes.py by `kernelwright formulas`, and explained there. */
#ifndef KERNELWRIGHT_HIP_CONVOLUTION_SIZES_H
#define KERNELWRIGHT_HIP_CONVOLUTION_SIZES_H

#define KW_HIP_CONV_SUM_BLOCK 256
#define KW_HIP_CONV_MAX_SPLIT_K 1024

#endif /* KERNELWRIGHT_HIP_CONVOLUTION_SIZES_H */
