// Everything that can be wrong with a convolution.
#include "kernelwright/convolution/checks.h"
#include "kernelwright/dispatcher/convolution/problem.hpp"
#include "kernelwright/dispatcher/convolution/problem_fields.hpp"
#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/widths.h"

namespace kernelwright {
namespace {

constexpr int64_t kMaxElements = INT64_MAX / 64;  // so that byte offsets and paddings fit into int64 for every dtype
constexpr const char* kDims = "dhw";

long long wide(int64_t value) { return static_cast<long long>(value); }

// What only one of the operations has.
kw_status check_extras(const kw_conv_problem& p) {
  if (p.base.op != KW_OP_CONV_FORWARD && (p.bias != 0 || p.residual != 0 || p.activation != KW_ACTIVATION_NONE)) {
    return fail(KW_INVALID_ARGUMENT, "%s problem: bias, residual or activation is not 0; allowed: forward only",
                kw_conv_op_name(p.base.op));
  }
  const bool weight = p.base.op >= KW_OP_CONV_BACKWARD_WEIGHT;
  if (!weight && p.split_k != 1) {
    return fail(KW_INVALID_ARGUMENT, "%s problem: split_k = %u; allowed: 1", kw_conv_op_name(p.base.op), p.split_k);
  }
  const bool stage = p.base.op == KW_OP_CONV_WEIGHT_SLICES || p.base.op == KW_OP_CONV_SUM_SLICES;
  if (p.leaves_slices > (stage ? kSlicesOpen : 0)) {
    return fail(KW_INVALID_ARGUMENT, "%s problem: leaves_slices = %u; allowed: 0", kw_conv_op_name(p.base.op),
                p.leaves_slices);
  }
  return KW_OK;
}

kw_status check_counts(const kw_conv_problem& p) {
  const struct {
    const char* field;
    int64_t value;
  } channels[] = {{"c", p.c}, {"k", p.k}};
  for (const auto& count : channels) {
    if (count.value % p.groups == 0) continue;
    return fail(KW_INVALID_ARGUMENT, "conv problem: %s = %lld; allowed: a multiple of groups = %lld", count.field,
                wide(count.value), wide(p.groups));
  }
  return KW_OK;
}

kw_status check_dimension(const kw_conv_problem& p, int dim) {
  const bool absent = dim < 3 - static_cast<int>(kw_conv_dims(p.layout));
  if (absent && (p.extent[dim] != 1 || p.filter[dim] != 1 || p.stride[dim] != 1 || p.dilation[dim] != 1 ||
                 p.pad_left[dim] != 0 || p.pad_right[dim] != 0)) {
    return fail(KW_INVALID_ARGUMENT, "conv problem: layout %s has no dimension %c; allowed there: 1, padding 0",
                kw_conv_layout_name(p.layout), kDims[dim]);
  }
  const int64_t padded = kw_add(kw_add(p.pad_left[dim], p.pad_right[dim]), p.extent[dim]);
  if (padded > kMaxElements) {
    return fail(KW_INVALID_ARGUMENT, "conv problem: extent + padding along %c overflows; allowed: at most %lld",
                kDims[dim], wide(kMaxElements));
  }
  if (kw_mul(p.dilation[dim], p.filter[dim] - 1) >= padded) {
    return fail(
        KW_INVALID_ARGUMENT,
        "conv problem: a filter of %lld points, dilation %lld, leaves no output along %c; allowed: a reach of at "
        "most extent + padding = %lld",
        wide(p.filter[dim]), wide(p.dilation[dim]), kDims[dim], wide(padded));
  }
  return KW_OK;
}

// Extents of a tensor in the order of memory strides.
struct Tensor {
  const char* name;
  int64_t extents[KW_CONV_STRIDES];
  const int64_t* strides;
  bool written;
};

// Elements of a tensor must have distinct addresses where they are written: sorted by stride, each dimension steps over
// all that the ones before span.
kw_status check_overlap(const Tensor& t) {
  int order[KW_CONV_STRIDES];
  int count = 0;
  for (int i = 0; i < KW_CONV_STRIDES; ++i) {
    if (t.extents[i] < 2) continue;
    int at = count++;
    for (; at > 0 && t.strides[order[at - 1]] > t.strides[i]; --at) order[at] = order[at - 1];
    order[at] = i;
  }
  int64_t span = 1;
  for (int i = 0; i < count; ++i) {
    const int64_t stride = t.strides[order[i]];
    if (stride < span) {
      return fail(KW_INVALID_ARGUMENT,
                  "conv problem: strides of %s let results overlap; allowed: %lld or more for %lld", t.name, wide(span),
                  wide(stride));
    }
    span = (t.extents[order[i]] - 1) * stride + span;
  }
  return KW_OK;
}

kw_status check_tensor(const Tensor& t, uint32_t layout) {
  int64_t last = 0;
  for (int i = 0; i < KW_CONV_STRIDES; ++i) {
    if (t.strides[i] < 0) {
      return fail(KW_INVALID_ARGUMENT, "conv problem: stride %d of %s = %lld; allowed: 0 or more", i, t.name,
                  wide(t.strides[i]));
    }
    last = kw_add(last, kw_mul(t.extents[i] > 0 ? t.extents[i] - 1 : 0, t.strides[i]));
    if (last > kMaxElements) {
      return fail(KW_INVALID_ARGUMENT, "conv problem: %s spans too much memory; allowed: at most %lld elements", t.name,
                  wide(kMaxElements));
    }
  }
  const bool innermost = layout != KW_CONV_NGCHW;
  const int unit = innermost ? 1 : 4;
  if (t.strides[unit] != 1) {
    return fail(KW_INVALID_ARGUMENT, "conv problem: stride %d of %s = %lld; allowed in layout %s: 1", unit, t.name,
                wide(t.strides[unit]), kw_conv_layout_name(layout));
  }
  return t.written ? check_overlap(t) : KW_OK;
}

kw_status check_tensors(const kw_conv_problem& p) {
  const bool forward = p.base.op == KW_OP_CONV_FORWARD, data = p.base.op == KW_OP_CONV_BACKWARD_DATA;
  const Tensor x = {"x", {p.n, p.c, p.extent[0], p.extent[1], p.extent[2]}, p.stride_x, data};
  const Tensor y = {"y", {p.n, p.k, kw_conv_out(&p, 0), kw_conv_out(&p, 1), kw_conv_out(&p, 2)}, p.stride_y, forward};
  if (kw_status status = check_tensor(x, p.layout)) return status;
  if (kw_status status = check_tensor(y, p.layout)) return status;
  int64_t weights = kw_mul(p.k, p.c / p.groups), points = p.n > 0 ? p.n : 1;
  for (int dim = 0; dim < 3; ++dim) {
    weights = kw_mul(weights, p.filter[dim]);
    points = kw_mul(points, kw_conv_out(&p, dim));
  }
  if (weights > kMaxElements || points > kMaxElements) {
    return fail(KW_INVALID_ARGUMENT, "conv problem: weights or outputs overflow; allowed: at most %lld elements",
                wide(kMaxElements));
  }
  return KW_OK;
}

}  // namespace

kw_status validate_conv(const kw_problem& problem) {
  const kw_conv_problem& p = as_conv(problem);
  if (kw_status status = check_reserved("conv problem", p)) return status;
  if (kw_status status = check_range("conv problem", kConvProblemFields, problem)) return status;
  if (kw_status status = check_extras(p)) return status;
  if (kw_status status = check_counts(p)) return status;
  for (int dim = 0; dim < 3; ++dim) {
    if (kw_status status = check_dimension(p, dim)) return status;
  }
  return check_tensors(p);
}

kw_status validate_conv_args(const kw_problem& problem, const void* args) {
  const kw_conv_problem& p = as_conv(problem);
  const auto* given = static_cast<const kw_conv_args*>(args);
  if (kw_status status = check_args("conv args", "kw_conv_args", given)) return status;
  const bool none = p.n == 0;
  if (none && (p.base.op == KW_OP_CONV_FORWARD || p.base.op == KW_OP_CONV_BACKWARD_DATA)) return KW_OK;
  const char* missing = given->d == nullptr ? "d" : nullptr;
  if (!none && given->a == nullptr) missing = "a";
  if (!none && given->b == nullptr && p.base.op != KW_OP_CONV_SUM_SLICES) missing = "b";
  if (p.bias != 0 && given->bias == nullptr) missing = "bias";
  if (p.residual != 0 && given->residual == nullptr) missing = "residual";
  if (missing == nullptr) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "conv args: %s is null; this problem needs it", missing);
}

}  // namespace kernelwright
