/* Checks of problems against kernels that operations share: for dispatcher and backends.
 *
 * C99. Functions that return a kw_status write one sentence into reason unless they return KW_OK; reason may be null
 * where bytes is 0.
 */
#ifndef KERNELWRIGHT_CHECKS_H
#define KERNELWRIGHT_CHECKS_H

#include <stdio.h>

#include "kernelwright/abi.h"

/* KW_UNSUPPORTED at the first of count dtypes for which the kernel is not built; names are those of the problem's
 * fields. */
static inline kw_status kw_dtypes_match(int count, const char* const* names, const uint32_t* asked,
                                        const uint32_t* built, char* reason, size_t bytes) {
  for (int i = 0; i < count; ++i) {
    if (asked[i] == built[i]) continue;
    snprintf(reason, bytes, "%s is %s, this kernel serves %s", names[i], kw_dtype_name(asked[i]),
             kw_dtype_name(built[i]));
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

#endif /* KERNELWRIGHT_CHECKS_H */
