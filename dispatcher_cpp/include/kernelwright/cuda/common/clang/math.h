/* Clang's CUDA mode needs these glibc classifiers, which CUDA's host headers call and glibc declares only for C. */
#include_next <math.h>
#ifndef KERNELWRIGHT_CUDA_COMMON_CLANG_MATH_H
#define KERNELWRIGHT_CUDA_COMMON_CLANG_MATH_H
extern "C" {
int __isnan(double);
int __isinf(double);
int __finite(double);
int __isnanf(float);
int __isinff(float);
int __finitef(float);
int __isnanl(long double);
int __isinfl(long double);
int __finitel(long double);
}
#endif
