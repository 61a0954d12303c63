/* CUDA declares __assert_fail noexcept, glibc does not; libraries are built with NDEBUG, so assert is nothing. */
#ifndef KERNELWRIGHT_CUDA_COMMON_CLANG_ASSERT_H
#define KERNELWRIGHT_CUDA_COMMON_CLANG_ASSERT_H
#define assert(condition) ((void)0)
extern "C" void __assert_fail(const char*, const char*, unsigned, const char*) noexcept;
#endif
