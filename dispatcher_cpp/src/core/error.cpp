#include "kernelwright/dispatcher/support/error.hpp"

#include <stdarg.h>
#include <stdio.h>

#include "kernelwright/dispatcher.h"

namespace kernelwright {
namespace {
thread_local char last_error[4096];
}  // namespace

kw_status fail(kw_status status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char text[sizeof last_error];  // an argument may point into last_error
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  __builtin_memcpy(last_error, text, sizeof text);
  return status;
}

}  // namespace kernelwright

const char* kw_last_error(void) { return kernelwright::last_error; }

const char* kw_status_name(kw_status status) {
  switch (status) {
    case KW_OK:
      return "ok";
    case KW_INVALID_ARGUMENT:
      return "invalid argument";
    case KW_UNSUPPORTED:
      return "unsupported";
    case KW_NO_KERNEL:
      return "no kernel";
    case KW_ABI_MISMATCH:
      return "ABI mismatch";
    case KW_ARCH_MISMATCH:
      return "architecture mismatch";
    case KW_WORKSPACE_TOO_SMALL:
      return "workspace too small";
    case KW_RUNTIME_MISSING:
      return "runtime missing";
    case KW_LAUNCH_FAILED:
      return "launch failed";
    case KW_OUT_OF_MEMORY:
      return "out of memory";
    case KW_BUFFER_TOO_SMALL:
      return "buffer too small";
    case KW_LOAD_FAILED:
      return "load failed";
  }
  return "unknown status";
}
