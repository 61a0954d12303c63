// Ranges and JSON of problems, by the tables of their fields.
#include "kernelwright/dispatcher/support/fields.hpp"

#include <string.h>

#include "kernelwright/dispatcher/support/error.hpp"

namespace kernelwright {
namespace {

template <typename T>
T entry(const Field& field, const kw_problem& problem, uint32_t index) {
  T value;
  memcpy(&value, reinterpret_cast<const unsigned char*>(&problem) + field.offset + index * sizeof value, sizeof value);
  return value;
}

int64_t number(const Field& field, const kw_problem& problem, uint32_t index) {
  return field.type == kUint32 ? entry<uint32_t>(field, problem, index) : entry<int64_t>(field, problem, index);
}

uint32_t entries(const Field& field, const kw_problem& problem) {
  if (field.counted == 0) return field.length;
  uint32_t count;
  memcpy(&count, reinterpret_cast<const unsigned char*>(&problem) + field.counted, sizeof count);
  return count < field.length ? count : field.length;
}

kw_status out_of_range(const char* what, const Field& field, uint32_t index, int64_t value) {
  const auto wide = [](int64_t number) { return static_cast<long long>(number); };
  char along[] = " along ?";
  if (field.axes != nullptr) along[7] = field.axes[index];
  const char* const place = field.axes != nullptr ? along : "";
  if (field.word != nullptr) {
    return fail(KW_INVALID_ARGUMENT, "%s: %s = %lld; allowed: %lld (%s) to %lld (%s)", what, field.name, wide(value),
                wide(field.least), field.word(static_cast<uint32_t>(field.least)), wide(field.most),
                field.word(static_cast<uint32_t>(field.most)));
  }
  if (field.most == INT64_MAX) {
    return fail(KW_INVALID_ARGUMENT, "%s: %s%s = %lld%s; allowed: %lld or more", what, field.name, place, wide(value),
                value < 0 && field.least == 0 ? " is negative" : "", wide(field.least));
  }
  return fail(KW_INVALID_ARGUMENT, "%s: %s%s = %lld; allowed: %lld to %lld", what, field.name, place, wide(value),
              wide(field.least), wide(field.most));
}

void value_json(const Field& field, const kw_problem& problem, uint32_t index, Text* text) {
  if (field.type == kReal) {
    text->exact(entry<double>(field, problem, index));
  } else if (field.type == kUint64) {
    text->add(entry<uint64_t>(field, problem, index));
  } else if (field.word != nullptr) {
    text->quoted(field.word(entry<uint32_t>(field, problem, index)));
  } else {
    text->add(number(field, problem, index));
  }
}

}  // namespace

kw_status check_range(const char* what, const Field* fields, size_t count, const kw_problem& problem) {
  for (const Field* field = fields; field < fields + count; ++field) {
    if (field->type == kUint64 || field->type == kReal) continue;
    for (uint32_t i = 0; i == 0 || i < field->length; ++i) {
      const int64_t value = number(*field, problem, i);
      if (value < field->least || value > field->most) return out_of_range(what, *field, i, value);
    }
  }
  return KW_OK;
}

void fields_json(const char* op, const Field* fields, size_t count, const kw_problem& problem, Text* text) {
  text->add("{\"op\":").quoted(op);
  for (const Field* field = fields; field < fields + count; ++field) {
    if (field->hidden) continue;
    text->add(",\"").add(field->name).add("\":");
    if (field->length == 0) {
      value_json(*field, problem, 0, text);
      continue;
    }
    text->add('[');
    for (uint32_t i = 0; i < entries(*field, problem); ++i)
      value_json(*field, problem, i, &text->add(i == 0 ? "" : ","));
    text->add(']');
  }
}

}  // namespace kernelwright
