// The text behind tw_last_error(): one fixed buffer per thread, so that reporting cannot fail.
#ifndef TILEWRIGHT_DISPATCHER_ERROR_HPP
#define TILEWRIGHT_DISPATCHER_ERROR_HPP

#include "tilewright/abi.h"

namespace tilewright {

// Stores the formatted text and returns status, so that a failure is one return statement. Text is cut at 4 KiB.
tw_status fail(tw_status status, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace tilewright

#endif  // TILEWRIGHT_DISPATCHER_ERROR_HPP
