#include "kernelwright/dispatcher/gemm/problem.hpp"
#include "kernelwright/dispatcher/gemm/problem_fields.hpp"
#include "kernelwright/gemm/checks.h"
#include "kernelwright/gemm/groups.h"

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
  fields_json(kw_gemm_op_name(problem.op), kGemmProblemFields, problem, text);
  layout_text(as_gemm(problem), &text->add(",\"layout\":\""));
  text->add("\"}");
}

void grouped_json(const kw_problem& problem, Text* text) {
  const kw_grouped_gemm_problem& p = as_grouped(problem);
  fields_json(kw_gemm_op_name(problem.op), kGroupedGemmProblemFields, problem, text);
  layout_text(kw_types_of_groups(&p), &text->add(",\"layout\":\""));
  text->add("\",\"groups\":[");
  for (int64_t i = 0; i < p.group_count; ++i) {
    const kw_gemm_group& g = p.groups[i];
    text->add(i == 0 ? "{" : ",{").add("\"m\":").add(g.m).add(",\"n\":").add(g.n).add(",\"k\":").add(g.k);
    text->add(",\"lda\":").add(g.lda).add(",\"ldb\":").add(g.ldb).add(",\"ldc\":").add(g.ldc).add('}');
  }
  text->add("]}");
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
