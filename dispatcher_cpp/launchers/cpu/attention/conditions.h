/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/attention/rules/cpu.py by `kernelwright formulas`, and explained there. */
#ifndef LAUNCHERS_CPU_ATTENTION_CONDITIONS_H
#define LAUNCHERS_CPU_ATTENTION_CONDITIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernelwright/abi.h"
#include "kernelwright/attention.h"
#include "kernelwright/attention/checks.h"
#include "kernelwright/dtypes.h"
#include "kernelwright/rules.h"


/* What traits say, and a gradient of the bias for each request. */
static inline kw_status kw_cpu_attention_check(const kw_attention_traits* t, const kw_attention_problem* p, char* reason, size_t bytes) {
  kw_status status = KW_OK;
  const bool shared = p->dbias != 0 && p->batch > 1 && p->dbias_strides.request == 0 && !(p->group != 0);
  if ((status = kw_attention_traits_match(t, p, reason, bytes)) != KW_OK) return status;
  if (p->base.op == KW_OP_ATTENTION_DQ_DK_DV && shared) {
    snprintf(reason, bytes, "dbias is one for all %lld requests, this kernel writes one for each; add them up afterwards", (long long)(p->batch));
    return KW_UNSUPPORTED;
  }
  return KW_OK;
}

#endif /* LAUNCHERS_CPU_ATTENTION_CONDITIONS_H */
