// Tables of the fields of problems, which `kernelwright headers` makes of descriptions: ranges and JSON of all of them.
#ifndef KERNELWRIGHT_DISPATCHER_SUPPORT_FIELDS_HPP
#define KERNELWRIGHT_DISPATCHER_SUPPORT_FIELDS_HPP

#include <stddef.h>

#include "kernelwright/abi.h"
#include "kernelwright/dispatcher/support/text.hpp"

namespace kernelwright {

enum FieldType { kUint32, kUint64, kInt64, kReal };

struct Field {
  const char* name;
  size_t offset;
  FieldType type;
  uint32_t length = 0;                          // entries of an array; 0 = a single value
  int64_t least = INT64_MIN, most = INT64_MAX;  // of legal values; nothing is asked of kUint64 and kReal
  const char* (*word)(uint32_t) = nullptr;      // of an enumeration; null: a number
  const char* axes = nullptr;                   // a letter for each entry; null: messages name the field only
  size_t counted = 0;                           // offset of the uint32_t that says how many entries JSON shows; 0: all
  bool hidden = false;                          // from JSON
};

// KW_INVALID_ARGUMENT for the first value out of its range; `what` begins the sentence, e.g. "conv problem".
kw_status check_range(const char* what, const Field* fields, size_t count, const kw_problem& problem);
// An object with the problem's op, by its name, and its fields, without the closing brace.
void fields_json(const char* op, const Field* fields, size_t count, const kw_problem& problem, Text* text);

template <size_t kCount>
kw_status check_range(const char* what, const Field (&fields)[kCount], const kw_problem& problem) {
  return check_range(what, fields, kCount, problem);
}
template <size_t kCount>
void fields_json(const char* op, const Field (&fields)[kCount], const kw_problem& problem, Text* text) {
  fields_json(op, fields, kCount, problem, text);
}

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_SUPPORT_FIELDS_HPP
