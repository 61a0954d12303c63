// The text behind kw_last_error(): one fixed buffer per thread, so that reporting cannot fail.
#ifndef KERNELWRIGHT_DISPATCHER_SUPPORT_ERROR_HPP
#define KERNELWRIGHT_DISPATCHER_SUPPORT_ERROR_HPP

#include "kernelwright/abi.h"

namespace kernelwright {

// Stores the formatted text and returns status, so that a failure is one return statement. Text is cut at 4 KiB.
// Exported for operations that are registered from outside.
KW_EXPORT kw_status fail(kw_status status, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_SUPPORT_ERROR_HPP
