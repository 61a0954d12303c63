// Attention problems as text and JSON.
#include "kernelwright/attention/checks.h"
#include "kernelwright/dispatcher/attention/problem.hpp"
#include "kernelwright/dispatcher/attention/problem_fields.hpp"

namespace kernelwright {
namespace {

void pair(const char* name, int64_t first, int64_t second, Text* text) {
  text->add(name).add(first);
  if (second != first) text->add('/').add(second);
}

void mask_text(const kw_attention_problem& p, Text* text) {
  if (p.mask == KW_MASK_NONE) return;
  if (kw_attention_mask_kind(&p) == KW_MASK_GENERIC) {
    text->add(" window ").add(p.window_left).add(',').add(p.window_right);
  } else {
    text->add(" causal");
  }
  text->add(p.mask == KW_MASK_TOP_LEFT ? " top left" : " bottom right");
}

void pages_text(uint32_t table, uint32_t layout, int64_t size, Text* text) {
  if (table == KW_PAGES_NONE) return;
  text->add(table == KW_PAGES_BLOCK ? " block table of " : " page list of ").add(size);
  if (layout == KW_PAGE_VECTORIZED) text->add(" vectorized");
}

}  // namespace

void describe_attention(const kw_problem& problem, Text* text) {
  const kw_attention_problem& p = as_attention(problem);
  text->add(kw_attention_op_name(p.base.op)).add(' ').add(kw_dtype_name(p.dtype_q));
  if (p.dtype_kv != p.dtype_q) text->add('/').add(kw_dtype_name(p.dtype_kv));
  if (p.dtype_o != p.dtype_q) text->add("->").add(kw_dtype_name(p.dtype_o));
  text->add(p.group != 0 ? " group" : " batch").add(" b").add(p.batch);
  pair(" heads ", p.heads_q, p.heads_kv, text);
  text->add(" q").add(p.max_seqlen_q).add(" k").add(p.max_seqlen_k);
  pair(" d", p.hdim_q, p.hdim_v, text);
  mask_text(p, text);
  if (p.bias != KW_BIAS_NONE) text->add(' ').add(kw_bias_name(p.bias)).add(" bias");
  if (p.soft_cap != 0) text->add(" soft cap");
  if (p.sink != 0) text->add(" sinks");
  if (p.dropout != 0) text->add(" dropout");
  if (p.lse != 0) text->add(" lse");
  if (p.kv_lengths != 0) text->add(" kv lengths");
  pages_text(p.page_table, p.page_layout, p.page_size, text);
  if (p.qscale != KW_QSCALE_NONE) text->add(" scaled");
  if (p.dbias != 0) text->add(" dbias");
  if (p.deterministic != 0) text->add(" deterministic");
  if (p.num_splits > 1) text->add(" splits ").add(p.num_splits);
}

void attention_json(const kw_problem& problem, Text* text) {
  fields_json(kw_attention_op_name(problem.op), kAttentionProblemFields, problem, text);
  text->add('}');
}

void describe_append(const kw_problem& problem, Text* text) {
  const kw_append_problem& p = as_append(problem);
  text->add("attention append ").add(kw_dtype_name(p.dtype)).add(" b").add(p.batch);
  text->add(" heads ").add(p.heads_kv).add(" new ").add(p.seqlen_new);
  pair(" d", p.hdim_q, p.hdim_v, text);
  if (p.rope != KW_ROPE_NONE) text->add(" rotary ").add(kw_rope_name(p.rope)).add(' ').add(p.rotary_dim);
  if (p.rotates_q != 0) text->add(" q").add(p.seqlen_q).add(" of ").add(p.heads_q).add(" heads");
  pages_text(p.page_table, p.page_layout, p.page_size, text);
}

void append_json(const kw_problem& problem, Text* text) {
  fields_json(kw_attention_op_name(problem.op), kAppendProblemFields, problem, text);
  text->add('}');
}

}  // namespace kernelwright
