// The memory that operands of norms occupy.
#include <stddef.h>

#include "kernelwright/dispatcher/norm/problem.hpp"
#include "kernelwright/norm/checks.h"

namespace kernelwright {
namespace {

struct Rows {
  int64_t rows, columns, stride;
  uint32_t dtype;
};

class Operands {
 public:
  explicit Operands(Operand* list) : list_(list) {}

  // Its place in the list.
  int64_t put(const char* name, size_t member, const Rows& rows, bool written = false) {
    Operand& made = list_[count_] = Operand();
    made.name = name;
    made.member = static_cast<uint32_t>(member);
    made.item = kw_dtype_bytes(rows.dtype);
    made.written = written;
    made.inner = rows.columns;
    made.extents[0] = rows.rows;
    made.strides[0] = rows.stride;
    measure(&made);
    return static_cast<int64_t>(count_++);
  }

  // One of two tensors of the same elements may be the other.
  void may_be(int64_t one, int64_t other) {
    const Operand &a = list_[one], &b = list_[other];
    const bool same = a.item == b.item && (a.extents[0] < 2 || a.strides[0] == b.strides[0]);
    if (same) list_[one].in_place = other;
  }

  size_t count() const { return count_; }

 private:
  Operand* list_;
  size_t count_ = 0;
};

}  // namespace

size_t norm_operands(const kw_problem& problem, Operand* operands) {
  const kw_norm_problem& p = as_norm(problem);
  if (operands == nullptr) return 8;
  const bool backward = kw_norm_is_backward(&p);
  const Rows vector = {1, p.columns, 0, p.dtype_w};
  Operands list(operands);
  const int64_t y = list.put("y", offsetof(kw_norm_args, y), {p.rows, p.columns, p.stride_y, p.dtype_y}, true);
  const int64_t x = list.put("x", offsetof(kw_norm_args, x), {p.rows, p.columns, p.stride_x, p.dtype_x});
  list.may_be(y, x);
  if (p.weight != 0) list.put("weight", offsetof(kw_norm_args, weight), vector);
  if (p.bias != 0 && !backward) list.put("bias", offsetof(kw_norm_args, bias), vector);
  if (p.residual != 0) {
    const int64_t residual =
        list.put("residual", offsetof(kw_norm_args, residual), {p.rows, p.columns, p.stride_residual, p.dtype_x});
    if (backward) {
      list.may_be(residual, y);
    } else {
      const int64_t sum =
          list.put("sum", offsetof(kw_norm_args, sum), {p.rows, p.columns, p.stride_sum, p.dtype_x}, true);
      list.may_be(residual, sum);
      list.may_be(x, sum);
    }
  }
  if (kw_norm_is_quantised(&p)) list.put("scales", offsetof(kw_norm_args, scales), {1, p.rows, 0, KW_FP32}, true);
  if (!backward) return list.count();
  list.may_be(list.put("dy", offsetof(kw_norm_args, dy), {p.rows, p.columns, p.stride_dy, p.dtype_x}), y);
  if (p.weight != 0) list.put("dweight", offsetof(kw_norm_args, dweight), vector, true);
  if (p.bias != 0) list.put("dbias", offsetof(kw_norm_args, dbias), vector, true);
  return list.count();
}

}  // namespace kernelwright
