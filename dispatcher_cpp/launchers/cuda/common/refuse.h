/* Why a kernel does not serve a problem, as a sentence for the caller. */
#ifndef KERNELWRIGHT_CUDA_LAUNCHERS_COMMON_REFUSE_H
#define KERNELWRIGHT_CUDA_LAUNCHERS_COMMON_REFUSE_H

#include <stdarg.h>
#include <stdio.h>

#include "kernelwright/abi.h"

typedef struct kw_reason {
  char* text; /* may be null */
  size_t bytes;
} kw_reason;

/* Writes the sentence and returns KW_UNSUPPORTED. */
__attribute__((format(printf, 2, 3))) static inline kw_status kw_cuda_refuse(kw_reason reason, const char* format,
                                                                             ...) {
  if (reason.text && reason.bytes) {
    va_list args;
    va_start(args, format);
    vsnprintf(reason.text, reason.bytes, format, args);
    va_end(args);
  }
  return KW_UNSUPPORTED;
}

#endif /* KERNELWRIGHT_CUDA_LAUNCHERS_COMMON_REFUSE_H */
