// Convolutions as text and JSON.
#include "kernelwright/convolution/checks.h"
#include "kernelwright/dispatcher/convolution/problem.hpp"
#include "kernelwright/dispatcher/convolution/problem_fields.hpp"

namespace kernelwright {
namespace {

// "56x56": the dimensions that the layout has.
void extents(const kw_conv_problem& p, const int64_t* values, Text* text) {
  for (int dim = 3 - static_cast<int>(kw_conv_dims(p.layout)), first = dim; dim < 3; ++dim) {
    if (dim > first) text->add('x');
    text->add(values[dim]);
  }
}

void described(const kw_conv_problem& p, const char* name, const int64_t* values, int64_t usual, Text* text) {
  if (kw_conv_everywhere(values, usual)) return;
  extents(p, values, &text->add(name));
}

}  // namespace

void describe_conv(const kw_problem& problem, Text* text) {
  const kw_conv_problem& p = as_conv(problem);
  text->add(kw_conv_op_name(p.base.op)).add(' ').add(kw_dtype_name(p.dtype_x));
  if (p.dtype_y != p.dtype_x) text->add("->").add(kw_dtype_name(p.dtype_y));
  text->add(' ').add(kw_conv_layout_name(p.layout)).add(" n").add(p.n).add(" c").add(p.c).add(" k").add(p.k).add(' ');
  extents(p, p.extent, text);
  extents(p, p.filter, &text->add(" filter "));
  if (p.groups != 1) text->add(" groups ").add(p.groups);
  described(p, " stride ", p.stride, 1, text);
  described(p, " dilation ", p.dilation, 1, text);
  described(p, " padding ", p.pad_left, 0, text);
  bool symmetric = true;
  for (int dim = 0; dim < 3; ++dim) symmetric = symmetric && p.pad_left[dim] == p.pad_right[dim];
  if (!symmetric)
    extents(p, p.pad_right, &text->add(kw_conv_everywhere(p.pad_left, 0) ? " padding right " : " right "));
  if (p.split_k > 1) text->add(" split_k ").add(p.split_k);
  if (p.bias != 0) text->add(" bias");
  if (p.residual != 0) text->add(" residual");
  if (p.activation != KW_ACTIVATION_NONE) text->add(' ').add(kw_activation_name(p.activation));
}

void conv_json(const kw_problem& problem, Text* text) {
  fields_json(kw_conv_op_name(problem.op), kConvProblemFields, problem, text);
  text->add('}');
}

}  // namespace kernelwright
