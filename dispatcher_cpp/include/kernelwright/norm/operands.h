/* Which operands a launch of a norm needs, as the dispatcher and launchers ask alike. */
#ifndef KERNELWRIGHT_NORM_OPERANDS_H
#define KERNELWRIGHT_NORM_OPERANDS_H

#include "kernelwright/norm/checks.h"

/* Whether a pointer is null that the problem needs; then its name goes to `missing`. Without rows, gradients of weights
 * alone are written. */
static inline bool kw_norm_lacks_operand(const kw_norm_problem* p, const kw_norm_args* args, const char** missing) {
  const bool rows = p->rows != 0, backward = kw_norm_is_backward(p);
  const struct {
    const char* name;
    bool needed;
    const void* given;
  } operands[] = {
      {"x", rows, args->x},
      {"weight", rows && p->weight != 0, args->weight},
      {"bias", rows && p->bias != 0 && !backward, args->bias},
      {"residual", rows && p->residual != 0, args->residual},
      {"dy", rows && backward, args->dy},
      {"y", rows, args->y},
      {"sum", rows && kw_norm_writes_sum(p), args->sum},
      {"scales", rows && kw_norm_is_quantised(p), args->scales},
      {"dweight", backward && p->weight != 0, args->dweight},
      {"dbias", backward && p->bias != 0, args->dbias},
  };
  for (size_t i = 0; i < sizeof operands / sizeof operands[0]; ++i) {
    if (!operands[i].needed || operands[i].given != NULL) continue;
    *missing = operands[i].name;
    return true;
  }
  return false;
}

#endif /* KERNELWRIGHT_NORM_OPERANDS_H */
