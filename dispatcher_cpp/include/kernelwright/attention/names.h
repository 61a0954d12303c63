/* What attention's numbers are called in messages.
 *
 * C99.
 */
#ifndef KERNELWRIGHT_ATTENTION_NAMES_H
#define KERNELWRIGHT_ATTENTION_NAMES_H

#include <stdio.h>

#include "kernelwright/attention.h"

/* "attention backward"; of the stages too. */
static inline const char* kw_attention_op_name(uint32_t op) {
  static const char* const names[] = {"attention",          "attention backward",   "attention part",
                                      "attention combine",  "attention append",     "attention dot",
                                      "attention dq_dk_dv", "attention convert_dq", "unknown"};
  return names[op >= KW_OP_ATTENTION && op <= KW_OP_ATTENTION_CONVERT_DQ ? op - KW_OP_ATTENTION : 8];
}

/* As specs spell it: "fwd_splitkv". */
static inline const char* kw_attention_family_name(uint32_t family) {
  static const char* const names[] = {
      "unknown",      "fwd",          "fwd_splitkv",  "fwd_pagedkv",   "batch_prefill", "fwd_splitkv_combine",
      "fwd_appendkv", "bwd_dot_do_o", "bwd_dq_dk_dv", "bwd_convert_dq"};
  return names[family <= KW_ATTENTION_BWD_CONVERT_DQ ? family : 0];
}

static inline const char* kw_mask_name(uint32_t mask) {
  static const char* const names[] = {"none", "top_left", "bottom_right", "generic", "unknown"};
  return names[mask <= KW_MASK_GENERIC ? mask : 4];
}

static inline const char* kw_bias_name(uint32_t bias) {
  static const char* const names[] = {"none", "elementwise", "alibi", "unknown"};
  return names[bias <= KW_BIAS_ALIBI ? bias : 3];
}

static inline const char* kw_page_table_name(uint32_t table) {
  static const char* const names[] = {"none", "block table", "page list", "unknown"};
  return names[table <= KW_PAGES_LIST ? table : 3];
}

static inline const char* kw_rope_name(uint32_t rope) {
  static const char* const names[] = {"none", "interleaved", "half", "unknown"};
  return names[rope <= KW_ROPE_HALF ? rope : 3];
}

#endif /* KERNELWRIGHT_ATTENTION_NAMES_H */
