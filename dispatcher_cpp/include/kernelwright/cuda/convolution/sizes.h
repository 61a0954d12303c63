/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/convolution/rules/cuda_sizes.py by `kernelwright formulas`, and explained there. */
#ifndef KERNELWRIGHT_CUDA_CONVOLUTION_SIZES_H
#define KERNELWRIGHT_CUDA_CONVOLUTION_SIZES_H

#define KW_CUDA_CONV_STEP 64
#define KW_CUDA_CONV_STRIP 7

#endif /* KERNELWRIGHT_CUDA_CONVOLUTION_SIZES_H */
