// Which operands of a launch share memory.
#include <string.h>

#include "kernelwright/dispatcher/operands.hpp"
#include "kernelwright/dispatcher/support/error.hpp"
#include "kernelwright/dispatcher/support/sort.hpp"
#include "kernelwright/dispatcher/support/text.hpp"
#include "kernelwright/widths.h"

namespace kernelwright {
namespace {

constexpr size_t kCompared = 32;  // so many operands are compared with each other; more are sorted by address

uint64_t address_of(const Operand& operand, const void* args) {
  const void* at = nullptr;
  memcpy(&at, static_cast<const char*>(args) + operand.member, sizeof at);
  if (operand.index >= 0 && at != nullptr) at = static_cast<const void* const*>(at)[operand.index];
  return reinterpret_cast<uintptr_t>(at);
}

bool cross(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes) { return b - a < a_bytes || a - b < b_bytes; }

int64_t greatest_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

// Bytes side by side at each place that strides lead to: dense dimensions belong to them. *step becomes the greatest
// divisor of it and all other strides.
int64_t dense_bytes(const Operand& operand, int64_t* step) {
  int64_t inner = operand.inner;
  bool merged[kOperandDims] = {};
  for (int pass = 0; pass < kOperandDims; ++pass) {
    for (int i = 0; i < kOperandDims; ++i) {
      if (merged[i] || (operand.extents[i] > 1 && operand.strides[i] != inner)) continue;
      merged[i] = true;
      inner *= operand.extents[i] > 1 ? operand.extents[i] : 1;
    }
  }
  for (int i = 0; i < kOperandDims; ++i) {
    if (!merged[i]) *step = greatest_divisor(operand.strides[i] * operand.item, *step);
  }
  return inner * operand.item;
}

// All strides of both are multiples of a step: they share nothing if their places within a step do not meet.
bool side_by_side(const Operand& a, const Operand& b, int64_t distance) {
  int64_t step = 0;
  const int64_t bytes_a = dense_bytes(a, &step), bytes_b = dense_bytes(b, &step);
  if (step == 0) return false;
  const int64_t place = ((distance % step) + step) % step;
  return place >= bytes_a && place + bytes_b <= step;
}

// Both as one tensor with a further dimension of two: sorted by stride, each dimension steps over all that the ones
// before it span.
bool interleave(const Operand& a, const Operand& b, int64_t distance) {
  if (a.item != b.item || distance % a.item != 0) return false;
  struct Dimension {
    int64_t stride, extent;
  } dims[kOperandDims + 1] = {{(distance < 0 ? -distance : distance) / a.item, 2}};
  for (int i = 0; i < kOperandDims; ++i) {
    if (a.extents[i] > 1 && b.extents[i] > 1 && a.strides[i] != b.strides[i]) return false;
    dims[i + 1] = {a.extents[i] > 1 ? a.strides[i] : b.strides[i],
                   a.extents[i] > b.extents[i] ? a.extents[i] : b.extents[i]};
  }
  sort(dims, kOperandDims + 1, [](const Dimension& x, const Dimension& y) { return x.stride < y.stride; });
  int64_t span = a.inner > b.inner ? a.inner : b.inner;
  for (const Dimension& dim : dims) {
    if (dim.extent < 2) continue;
    if (dim.stride < span) return false;
    span += (dim.extent - 1) * dim.stride;
  }
  return true;
}

struct Placed {
  uint64_t begin;
  size_t at;  // in the list
};

class Comparison {
 public:
  Comparison(const char* what, const Operand* operands) : what_(what), operands_(operands) {}

  // KW_OK unless two operands, one of them written, share an element.
  kw_status compare(const Placed& left, const Placed& right) const {
    const Operand &a = operands_[left.at], &b = operands_[right.at];
    if (!(a.written || b.written) || !cross(left.begin, a.bytes, right.begin, b.bytes)) return KW_OK;
    const bool same = a.in_place == static_cast<int64_t>(right.at) || b.in_place == static_cast<int64_t>(left.at);
    if (same && left.begin == right.begin) return KW_OK;
    const auto distance = static_cast<int64_t>(right.begin - left.begin);
    if (side_by_side(a, b, distance) || interleave(a, b, distance)) return KW_OK;
    Text text;
    name(a.written ? a : b, &text);
    name(a.written ? b : a, &text.add(" shares memory with "));
    return fail(KW_INVALID_ARGUMENT, "%s: %s, %s; pass memory of its own", what_, text.c_str(),
                same ? "and is not the same tensor" : "which the launch uses too");
  }
  kw_status compare_workspace(const Placed& operand, const void* workspace, uint64_t bytes) const {
    const Operand& one = operands_[operand.at];
    if (!cross(operand.begin, one.bytes, reinterpret_cast<uintptr_t>(workspace), bytes)) return KW_OK;
    Text text;
    name(one, &text);
    return fail(KW_INVALID_ARGUMENT, "launch: workspace shares memory with %s; pass memory of its own", text.c_str());
  }

 private:
  static void name(const Operand& operand, Text* text) {
    text->add(operand.name);
    if (operand.index >= 0) text->add('[').add(operand.index).add(']');
  }

  const char* what_;
  const Operand* operands_;
};

// Sorted by address, each is compared with those that reach into it.
kw_status compare_sorted(const Comparison& comparison, const Operand* operands, Vec<Placed>* all) {
  sort(all->begin(), all->size(), [](const Placed& left, const Placed& right) {
    return left.begin != right.begin ? left.begin < right.begin : left.at < right.at;
  });
  size_t open = 0;  // the first ones of the list are those that reach beyond the next one's beginning
  for (size_t i = 0; i < all->size(); ++i) {
    const Placed next = (*all)[i];
    size_t kept = 0;
    for (size_t j = 0; j < open; ++j) {
      const Placed before = (*all)[j];
      if (next.begin - before.begin >= operands[before.at].bytes) continue;
      if (kw_status status = comparison.compare(before, next)) return status;
      (*all)[kept++] = before;
    }
    (*all)[kept++] = next;
    open = kept;
  }
  return KW_OK;
}

}  // namespace

void measure(Operand* operand) {
  int64_t last = operand->inner;
  bool empty = operand->inner == 0;
  for (int dim = 0; dim < kOperandDims; ++dim) {
    empty = empty || operand->extents[dim] == 0;
    if (operand->extents[dim] > 1) last = kw_add(last, kw_mul(operand->extents[dim] - 1, operand->strides[dim]));
  }
  // No memory is as large as KW_TOO_LARGE, so no launch of such a problem passes.
  operand->bytes = empty ? 0 : static_cast<uint64_t>(kw_mul(last, operand->item));
}

void list_spans(OperandList* list) {
  list->plain = list->count <= kCompared;
  for (size_t i = 0; i < list->count; ++i) list->plain = list->plain && list->operands[i].index < 0;
  for (int written = 1; list->plain && written >= 0; --written) {
    for (size_t i = 0; i < list->count; ++i) {
      const Operand& one = list->operands[i];
      if (one.bytes == 0 || one.written != (written == 1)) continue;
      list->spans[list->span_count++] = {one.bytes, one.member};
    }
    if (written == 1) list->written = list->span_count;
  }
}

bool spans_cross(const OperandList& list, const void* args, const void* workspace, uint64_t workspace_bytes) {
  uint64_t at[kCompared];
  const uint64_t scratch = reinterpret_cast<uintptr_t>(workspace);
  bool overlap = false;
  for (size_t i = 0; i < list.span_count; ++i) {
    memcpy(&at[i], static_cast<const char*>(args) + list.spans[i].member, sizeof at[i]);
    overlap |= cross(at[i], list.spans[i].bytes, scratch, workspace_bytes);
    const size_t before = i < list.written ? i : list.written;
    for (size_t j = 0; j < before; ++j) overlap |= cross(at[j], list.spans[j].bytes, at[i], list.spans[i].bytes);
  }
  return overlap;
}

kw_status check_apart(const char* what, const Operand* operands, size_t count, const void* args, const void* workspace,
                      uint64_t workspace_bytes) {
  const Comparison comparison(what, operands);
  Placed few[kCompared];
  Vec<Placed> many;
  size_t distinct = 0;
  if (count > kCompared && !many.reserve(count)) return fail(KW_OUT_OF_MEMORY, "%s: no memory to compare them", what);
  for (size_t i = 0; i < count; ++i) {
    if (operands[i].bytes == 0) continue;
    const Placed one = {address_of(operands[i], args), i};
    if (one.begin == 0) continue;
    if (workspace_bytes != 0) {
      if (kw_status status = comparison.compare_workspace(one, workspace, workspace_bytes)) return status;
    }
    if (count > kCompared) {
      if (!many.push(one)) return fail(KW_OUT_OF_MEMORY, "%s: no memory to compare them", what);
      continue;
    }
    for (size_t j = 0; j < distinct; ++j) {
      if (kw_status status = comparison.compare(few[j], one)) return status;
    }
    few[distinct++] = one;
  }
  return count > kCompared ? compare_sorted(comparison, operands, &many) : KW_OK;
}

}  // namespace kernelwright
