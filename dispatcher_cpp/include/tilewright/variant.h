/* Does a kernel's variant serve a problem? The same for every backend; the rest is the backend's own answer. */
#ifndef TILEWRIGHT_VARIANT_H
#define TILEWRIGHT_VARIANT_H

#include <stdio.h>

#include "tilewright/abi.h"

static inline const char* tw_activation_name(uint32_t activation) {
  static const char* const names[] = {"none", "relu", "gelu", "fast_gelu", "silu", "sigmoid", "tanh"};
  return activation < sizeof names / sizeof *names ? names[activation] : "unknown";
}

static inline const char* tw_d_op_name(uint32_t op) {
  static const char* const names[] = {"add", "multiply"};
  return op < sizeof names / sizeof *names ? names[op] : "unknown";
}

/* TW_OK, or TW_UNSUPPORTED with one sentence in reason: batch, D tensors, activation and the order of B. */
static inline tw_status tw_gemm_variant_matches(const tw_gemm_traits* t, const tw_gemm_problem* p, char* reason,
                                                size_t bytes) {
  if (p->batch < 1 || (p->batch > 1 && !t->batched))
    snprintf(reason, bytes, "batch is %lld, this kernel serves 1%s", (long long)p->batch, t->batched ? " or more" : "");
  else if (p->num_d != t->num_d)
    snprintf(reason, bytes, "the problem has %u D tensors, this kernel takes %u", p->num_d, t->num_d);
  else if (p->num_d != 0 && p->d_op != t->d_op)
    snprintf(reason, bytes, "d_op is %s, this kernel does %s", tw_d_op_name(p->d_op), tw_d_op_name(t->d_op));
  else if (p->activation != t->activation)
    snprintf(reason, bytes, "activation is %s, this kernel does %s", tw_activation_name(p->activation),
             tw_activation_name(t->activation));
  else if (p->b_format != t->b_format)
    snprintf(reason, bytes, "%s",
             p->b_format == 0   ? "B is not shuffled, and this kernel reads it in its own order: shuffle_b"
             : t->b_format == 0 ? "B is shuffled, and this kernel reads it as it is"
                                : "B is shuffled for another kernel: shuffle it for this one");
  else
    return TW_OK;
  return TW_UNSUPPORTED;
}

#endif /* TILEWRIGHT_VARIANT_H */
