// Attention problems as text and JSON.
#include "kernelwright/attention/checks.h"
#include "kernelwright/dispatcher/attention/problem.hpp"

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
  text->add(' ').add(kw_page_table_name(table)).add(" of ").add(size);
  if (layout == KW_PAGE_VECTORIZED) text->add(" vectorized");
}

void strides_json(const char* name, const kw_attention_strides& s, Text* text) {
  text->add(",\"").add(name).add("\":[").add(s.request).add(',').add(s.head).add(',').add(s.row).add(']');
}

struct Named {
  const char* name;
  int64_t value;
};

template <size_t kCount>
void numbers_json(const Named (&all)[kCount], Text* text) {
  for (const Named& each : all) text->add(",\"").add(each.name).add("\":").add(each.value);
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
  const kw_attention_problem& p = as_attention(problem);
  text->add("{\"op\":").quoted(kw_attention_op_name(p.base.op)).add(",\"dtype_q\":").quoted(kw_dtype_name(p.dtype_q));
  text->add(",\"dtype_kv\":").quoted(kw_dtype_name(p.dtype_kv)).add(",\"dtype_o\":").quoted(kw_dtype_name(p.dtype_o));
  text->add(",\"mask\":").quoted(kw_mask_name(p.mask)).add(",\"bias\":").quoted(kw_bias_name(p.bias));
  text->add(",\"page_table\":").quoted(kw_page_table_name(p.page_table));
  numbers_json({{"group", p.group},
                {"lse", p.lse},
                {"sink", p.sink},
                {"dropout", p.dropout},
                {"random_bytes", p.random_bytes},
                {"kv_lengths", p.kv_lengths},
                {"qscale", p.qscale},
                {"page_layout", p.page_layout},
                {"dbias", p.dbias},
                {"deterministic", p.deterministic},
                {"num_splits", p.num_splits},
                {"batch", p.batch},
                {"heads_q", p.heads_q},
                {"heads_kv", p.heads_kv},
                {"hdim_q", p.hdim_q},
                {"hdim_v", p.hdim_v},
                {"max_seqlen_q", p.max_seqlen_q},
                {"max_seqlen_k", p.max_seqlen_k},
                {"total_q", p.total_q},
                {"total_k", p.total_k},
                {"window_left", p.window_left},
                {"window_right", p.window_right},
                {"min_seqlen_q", p.min_seqlen_q},
                {"pages", p.pages},
                {"page_size", p.page_size}},
               text);
  text->add(",\"scale\":").exact(p.scale).add(",\"soft_cap\":").exact(p.soft_cap);
  text->add(",\"dropout_p\":").exact(p.dropout_p);
  strides_json("q", p.q, text);
  strides_json("k", p.k, text);
  strides_json("v", p.v, text);
  strides_json("o", p.o, text);
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
  const kw_append_problem& p = as_append(problem);
  text->add("{\"op\":\"attention append\",\"dtype\":").quoted(kw_dtype_name(p.dtype));
  text->add(",\"rope\":").quoted(kw_rope_name(p.rope)).add(",\"page_table\":").quoted(kw_page_table_name(p.page_table));
  numbers_json({{"rotates_q", p.rotates_q},
                {"page_layout", p.page_layout},
                {"batch", p.batch},
                {"heads_q", p.heads_q},
                {"heads_kv", p.heads_kv},
                {"hdim_q", p.hdim_q},
                {"hdim_v", p.hdim_v},
                {"seqlen_q", p.seqlen_q},
                {"seqlen_new", p.seqlen_new},
                {"capacity", p.capacity},
                {"pages", p.pages},
                {"page_size", p.page_size},
                {"rotary_dim", p.rotary_dim},
                {"rotary_places", p.rotary_places}},
               text);
  strides_json("k_cache", p.k_cache, text);
  strides_json("v_cache", p.v_cache, text);
  text->add('}');
}

}  // namespace kernelwright
