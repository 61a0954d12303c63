// What launchers of NVIDIA kernels say of problems and pointers that they do not take.
#ifndef KERNELWRIGHT_CUDA_LAUNCHERS_COMMON_CHECKS_HPP
#define KERNELWRIGHT_CUDA_LAUNCHERS_COMMON_CHECKS_HPP

#include <stdarg.h>
#include <stdio.h>

#include "kernelwright/cuda/common/runtime.h"
#include "launchers/common/descriptor.hpp"

namespace kernelwright::cuda::launchers {

using kernelwright::as;
using kernelwright::held_by;

// Where the sentence for a caller goes that no kernel serves; text may be null.
struct reason {
  char* text;
  size_t bytes;
};

// Writes the sentence and returns KW_UNSUPPORTED.
__attribute__((format(printf, 2, 3))) inline kw_status refuse(reason where, const char* format, ...) {
  if (where.text && where.bytes) {
    va_list args;
    va_start(args, format);
    vsnprintf(where.text, where.bytes, format, args);
    va_end(args);
  }
  return KW_UNSUPPORTED;
}

// An operand of a launch by name. Tensors have `aligned` = kAligned, lists of numbers 1.
constexpr uint32_t kAligned = 16;
struct operand {
  const char* name;
  const void* at;
  bool needed;
  uint32_t aligned = kAligned;
};

inline kw_status check_operand(const operand& x) {
  if (!x.needed) return KW_OK;
  if (!x.at) return kw_cuda_fail(KW_INVALID_ARGUMENT, "%s is null", x.name);
  if (reinterpret_cast<uintptr_t>(x.at) % x.aligned == 0) return KW_OK;
  return kw_cuda_fail(KW_INVALID_ARGUMENT, "%s is %p; this kernel needs addresses that are multiples of %u bytes",
                      x.name, x.at, x.aligned);
}

template <int Count>
kw_status check_operands(const operand (&operands)[Count]) {
  for (const operand& one : operands) {
    const kw_status status = check_operand(one);
    if (status != KW_OK) return status;
  }
  return KW_OK;
}

template <class Args>
kw_status check_size(const Args* args) {
  if (args && args->struct_size >= sizeof *args) return KW_OK;
  return kw_cuda_fail(KW_INVALID_ARGUMENT, "args has %u bytes; ABI %u needs %u", args ? args->struct_size : 0,
                      KW_ABI_VERSION, static_cast<unsigned>(sizeof *args));
}

}  // namespace kernelwright::cuda::launchers

#endif  // KERNELWRIGHT_CUDA_LAUNCHERS_COMMON_CHECKS_HPP
