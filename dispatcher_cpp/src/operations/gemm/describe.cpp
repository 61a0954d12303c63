#include "kernelwright/dispatcher/gemm/problem.hpp"
#include "kernelwright/gemm/checks.h"

namespace kernelwright {
namespace {

char layout_letter(uint32_t layout) { return layout == KW_ROW_MAJOR ? 'r' : 'c'; }

void layout_text(const kw_gemm_problem& s, Text* text) {
  text->add(layout_letter(s.layout_a)).add(layout_letter(s.layout_b)).add(layout_letter(s.layout_c));
}

void signature_text(const kw_gemm_problem& s, Text* text) {
  text->add(kw_dtype_name(s.dtype_a));
  if (s.dtype_b != s.dtype_a) text->add("*").add(kw_dtype_name(s.dtype_b));
  if (s.dtype_c != s.dtype_a) text->add("->").add(kw_dtype_name(s.dtype_c));
  layout_text(s, &text->add(' '));
}

void signature_json(const kw_gemm_problem& s, Text* text) {
  text->add(",\"dtype_a\":").quoted(kw_dtype_name(s.dtype_a)).add(",\"dtype_b\":").quoted(kw_dtype_name(s.dtype_b));
  text->add(",\"dtype_c\":").quoted(kw_dtype_name(s.dtype_c)).add(",\"dtype_acc\":").quoted(kw_dtype_name(s.dtype_acc));
  layout_text(s, &text->add(",\"layout\":\""));
  text->add('"');
}

template <typename Shape>  // a problem or a group
void shape_json(const Shape& s, Text* text) {
  text->add("\"m\":").add(s.m).add(",\"n\":").add(s.n).add(",\"k\":").add(s.k);
  text->add(",\"lda\":").add(s.lda).add(",\"ldb\":").add(s.ldb).add(",\"ldc\":").add(s.ldc);
}

void list_json(const char* name, const int64_t* values, uint32_t count, Text* text) {
  text->add(",\"").add(name).add("\":[");
  for (uint32_t i = 0; i < count; ++i) text->add(i == 0 ? "" : ",").add(values[i]);
  text->add(']');
}

}  // namespace

void describe_gemm(const kw_problem& problem, Text* text) {
  const kw_gemm_problem& p = as_gemm(problem);
  signature_text(p, &text->add("gemm "));
  text->add(' ');
  if (p.batch != 1) text->add(p.batch).add('*');
  text->add(p.m).add('x').add(p.n).add('x').add(p.k);
  if (p.split_k > 1) text->add(" split_k ").add(p.split_k);
  if (p.num_d != 0) text->add(' ').add(kw_d_op_name(p.d_op)).add(' ').add(p.num_d).add(" D");
  if (p.activation != KW_ACTIVATION_NONE) text->add(' ').add(kw_activation_name(p.activation));
  if (p.b_format != 0) text->add(" B shuffled");
}

void gemm_json(const kw_problem& problem, Text* text) {
  const kw_gemm_problem& p = as_gemm(problem);
  text->add("{\"op\":\"gemm\",");
  shape_json(p, text);
  signature_json(p, text);
  text->add(",\"split_k\":").add(p.split_k).add(",\"alpha\":").exact(p.alpha).add(",\"beta\":").exact(p.beta);
  text->add(",\"batch\":").add(p.batch).add(",\"stride_a\":").add(p.stride_a);
  text->add(",\"stride_b\":").add(p.stride_b).add(",\"stride_c\":").add(p.stride_c);
  text->add(",\"num_d\":").add(p.num_d).add(",\"d_op\":").quoted(kw_d_op_name(p.d_op));
  text->add(",\"activation\":").quoted(kw_activation_name(p.activation));
  list_json("ld_multi_d", p.ld_multi_d, p.num_d, text);
  list_json("stride_multi_d", p.stride_multi_d, p.num_d, text);
  text->add(",\"b_format\":").add(p.b_format).add('}');
}

void grouped_json(const kw_problem& problem, Text* text) {
  const kw_grouped_gemm_problem& p = as_grouped(problem);
  text->add("{\"op\":\"grouped_gemm\",\"groups\":[");
  for (int64_t i = 0; i < p.group_count; ++i) {
    shape_json(p.groups[i], &text->add(i == 0 ? "{" : ",{"));
    text->add('}');
  }
  text->add(']');
  signature_json(kw_types_of_groups(&p), text);
  text->add(",\"alpha\":").exact(p.alpha).add(",\"beta\":").exact(p.beta).add('}');
}

void describe_grouped(const kw_problem& problem, Text* text) {
  const kw_grouped_gemm_problem& p = as_grouped(problem);
  signature_text(kw_types_of_groups(&p), &text->add("grouped gemm "));
  text->add(" of ").add(p.group_count).add(p.group_count == 1 ? " group" : " groups");
  constexpr int64_t kShown = 4;
  for (int64_t i = 0; i < p.group_count && i < kShown; ++i) {
    const kw_gemm_group& g = p.groups[i];
    text->add(i == 0 ? ": " : ", ").add(g.m).add('x').add(g.n).add('x').add(g.k);
  }
  if (p.group_count > kShown) text->add(", …");
}

}  // namespace kernelwright
