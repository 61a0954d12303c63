#include "tilewright/dispatcher/error.hpp"

#include <stdarg.h>
#include <stdio.h>

#include "tilewright/dispatcher.h"

namespace tilewright {
namespace {
thread_local char last_error[4096];
}  // namespace

tw_status fail(tw_status status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char text[sizeof last_error];  // an argument may point into last_error
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  __builtin_memcpy(last_error, text, sizeof text);
  return status;
}

}  // namespace tilewright

const char* tw_last_error(void) { return tilewright::last_error; }

const char* tw_status_name(tw_status status) {
  switch (status) {
    case TW_OK:
      return "ok";
    case TW_INVALID_ARGUMENT:
      return "invalid argument";
    case TW_UNSUPPORTED:
      return "unsupported";
    case TW_NO_KERNEL:
      return "no kernel";
    case TW_ABI_MISMATCH:
      return "ABI mismatch";
    case TW_ARCH_MISMATCH:
      return "architecture mismatch";
    case TW_WORKSPACE_TOO_SMALL:
      return "workspace too small";
    case TW_RUNTIME_MISSING:
      return "runtime missing";
    case TW_LAUNCH_FAILED:
      return "launch failed";
    case TW_OUT_OF_MEMORY:
      return "out of memory";
    case TW_BUFFER_TOO_SMALL:
      return "buffer too small";
    case TW_LOAD_FAILED:
      return "load failed";
  }
  return "unknown status";
}
