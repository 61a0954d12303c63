#include "kernelwright/dispatcher/support/text.hpp"

#include <math.h>
#include <stdio.h>
#include <string.h>

namespace kernelwright {

Text& Text::add(char character) {
  if (!bytes_.push(character)) failed_ = true;
  return *this;
}

Text& Text::add(const char* text) {
  for (const char* c = text; *c != '\0'; ++c) add(*c);
  return *this;
}

Text& Text::add(uint64_t value) {
  char digits[24];
  snprintf(digits, sizeof digits, "%llu", static_cast<unsigned long long>(value));
  return add(digits);
}

Text& Text::add(int64_t value) {
  char digits[24];
  snprintf(digits, sizeof digits, "%lld", static_cast<long long>(value));
  return add(digits);
}

Text& Text::fixed3(double value) {
  if (!isfinite(value)) return add("null");
  if (fabs(value) >= 1e15) return exact(value);  // beyond what a scaled int64 holds
  const bool negative = value < 0;
  const int64_t scaled = static_cast<int64_t>(fabs(value) * 1000.0 + 0.5);
  char digits[32];
  snprintf(digits, sizeof digits, "%s%lld.%03lld", negative ? "-" : "", static_cast<long long>(scaled / 1000),
           static_cast<long long>(scaled % 1000));
  return add(digits);
}

Text& Text::exact(double value) {
  if (!isfinite(value)) return add("null");
  char digits[40];
  snprintf(digits, sizeof digits, "%.17g", value);
  bool in_point = false;
  for (const char* c = digits; *c != '\0'; ++c) {
    const bool number = (*c >= '0' && *c <= '9') || *c == '-' || *c == '+' || *c == 'e';
    if (number) {
      add(*c);
    } else if (!in_point) {
      add('.');  // whatever the locale writes there, possibly several bytes
    }
    in_point = !number;
  }
  return *this;
}

Text& Text::quoted(const char* text) {
  if (text == nullptr) return add("null");
  add('"');
  for (const char* c = text; *c != '\0'; ++c) {
    const unsigned char byte = static_cast<unsigned char>(*c);
    if (byte == '"' || byte == '\\') {
      add('\\').add(*c);
    } else if (byte < 0x20) {
      char escape[8];
      snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(byte));
      add(escape);
    } else {
      add(*c);
    }
  }
  return add('"');
}

const char* Text::c_str() const {
  Text* self = const_cast<Text*>(this);
  if (!self->bytes_.push('\0')) {
    self->failed_ = true;
    return "";
  }
  self->bytes_.resize_down(bytes_.size() - 1);
  return bytes_.begin();
}

char* Text::copy() const { return failed_ ? nullptr : strdup(c_str()); }

kw_status Text::write_to(char* buffer, size_t bytes, size_t* needed) const {
  const size_t size = bytes_.size() + 1;
  if (needed != nullptr) *needed = size;
  if (failed_) return KW_OUT_OF_MEMORY;
  if (buffer == nullptr || bytes < size) return KW_BUFFER_TOO_SMALL;
  memcpy(buffer, c_str(), size);
  return KW_OK;
}

}  // namespace kernelwright
