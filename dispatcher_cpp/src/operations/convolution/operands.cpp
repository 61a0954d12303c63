// The memory that operands of convolutions occupy.
#include <stddef.h>

#include "kernelwright/convolution/checks.h"
#include "kernelwright/dispatcher/convolution/problem.hpp"
#include "kernelwright/widths.h"

namespace kernelwright {
namespace {

// Images of `channels` channels of all groups. The innermost dimension is dense: channels, or W in KW_CONV_NGCHW.
Operand images(const kw_conv_problem& p, bool of_x, uint32_t dtype) {
  const int64_t* const strides = of_x ? p.stride_x : p.stride_y;
  int64_t points[KW_CONV_SPATIAL];
  for (int dim = 0; dim < KW_CONV_SPATIAL; ++dim) points[dim] = of_x ? p.extent[dim] : kw_conv_out(&p, dim);
  const int64_t channels = of_x ? p.c : p.k;
  const bool channels_first = p.layout == KW_CONV_NGCHW;
  Operand made;
  made.item = kw_dtype_bytes(dtype);
  made.inner = channels_first ? points[2] : channels;
  made.extents[0] = p.n, made.strides[0] = strides[0];
  made.extents[1] = points[0], made.strides[1] = strides[2];
  made.extents[2] = points[1], made.strides[2] = strides[3];
  made.extents[3] = channels_first ? channels : points[2];
  made.strides[3] = channels_first ? strides[1] : strides[4];
  measure(&made);
  return made;
}

Operand dense(int64_t elements, uint32_t dtype) {
  Operand made;
  made.item = kw_dtype_bytes(dtype);
  made.inner = elements;
  measure(&made);
  return made;
}

void put(const char* name, size_t member, Operand made, Operand* operands, size_t* count) {
  made.name = name;
  made.member = static_cast<uint32_t>(member);
  operands[(*count)++] = made;
}

}  // namespace

size_t conv_operands(const kw_problem& problem, Operand* operands) {
  const kw_conv_problem& p = as_conv(problem);
  if (operands == nullptr) return 5;
  size_t count = 0;
  const bool data = p.base.op == KW_OP_CONV_BACKWARD_DATA, weight = p.base.op == KW_OP_CONV_BACKWARD_WEIGHT;
  const Operand x = images(p, true, p.dtype_x), y = images(p, false, p.dtype_y);
  const Operand w = dense(kw_mul3(p.k, p.c / p.groups, kw_conv_filter_points(&p)), p.dtype_w);
  put("d", offsetof(kw_conv_args, d), data ? x : weight ? w : y, operands, &count);
  operands[0].written = true;
  put("a", offsetof(kw_conv_args, a), data ? y : x, operands, &count);
  put("b", offsetof(kw_conv_args, b), weight ? y : w, operands, &count);
  if (p.bias != 0) put("bias", offsetof(kw_conv_args, bias), dense(p.k, p.dtype_y), operands, &count);
  if (p.residual != 0) {
    put("residual", offsetof(kw_conv_args, residual), y, operands, &count);
    operands[count - 1].in_place = 0;
  }
  return count;
}

}  // namespace kernelwright
