// The memory of a launch's operands, and whether what it writes shares memory with anything else.
#ifndef KERNELWRIGHT_DISPATCHER_OPERANDS_HPP
#define KERNELWRIGHT_DISPATCHER_OPERANDS_HPP

#include <stddef.h>
#include <stdint.h>

#include "kernelwright/abi.h"

namespace kernelwright {

constexpr int kOperandDims = 4;

// A tensor: extents[i] steps of strides[i] elements along each dimension, to `inner` elements side by side.
struct Operand {
  const char* name = "";  // of the member of the argument struct
  uint32_t member = 0;    // its offset there
  uint32_t item = 1;      // bytes of an element
  int64_t index = -1;     // the member points to an array of pointers, of which it is this one; -1: it is the pointer
  int64_t in_place = -1;  // the operand, by its place in the list, that this one may be; -1: none
  bool written = false;
  int64_t inner = 0;
  int64_t extents[kOperandDims] = {1, 1, 1, 1};
  int64_t strides[kOperandDims] = {};
  uint64_t bytes = 0;  // from the first element to behind the last; 0: no element. See measure()
};

// What a launch reads of an operand that has elements.
struct Span {
  uint64_t bytes;
  uint64_t member;
};

// The operands of a plan, measured once.
struct OperandList {
  Operand* operands;  // null where nothing is compared
  Span* spans;        // where plain: written ones first
  size_t count, span_count, written;
  bool plain;  // few operands, whose addresses are members of the argument struct
};

// Fills in bytes. The problem is valid, so nothing overflows.
void measure(Operand* operand);

// KW_INVALID_ARGUMENT with both names where an operand that is written shares an element with another one, or the
// workspace with any. Operands that interleave, such as blocks side by side in one matrix, or K and V in one cache,
// share none. Null pointers are absent operands. Takes no memory for up to 32 operands.
kw_status check_apart(const char* what, const Operand* operands, size_t count, const void* args, const void* workspace,
                      uint64_t workspace_bytes);

// Fills in spans, for which there is room. Where spans do not cross, nothing is shared: a launch asks this first.
void list_spans(OperandList* list);
bool spans_cross(const OperandList& list, const void* args, const void* workspace, uint64_t workspace_bytes);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_OPERANDS_HPP
