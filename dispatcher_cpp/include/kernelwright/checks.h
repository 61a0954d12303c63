/* clang-format off */
/* Made of codegen/kernelwright/codegen/formulas/shared.py by `kernelwright formulas`, and explained there. */
#ifndef KERNELWRIGHT_CHECKS_H
#define KERNELWRIGHT_CHECKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernelwright/abi.h"
#include "kernelwright/dtypes.h"
#include "kernelwright/rules.h"


/* The kernel is built for another type of the operand; name is that of the problem's field. */
static inline kw_status kw_dtype_matches(const char* name, uint32_t asked, uint32_t built, char* reason, size_t bytes) {
  if (asked == built) {
    return KW_OK;
  }
  snprintf(reason, bytes, "%s is %s, this kernel serves %s", name, kw_dtype_name(asked), kw_dtype_name(built));
  return KW_UNSUPPORTED;
}

#endif /* KERNELWRIGHT_CHECKS_H */
