// A strict reader of one JSON object: finds members of it and looks at every byte of the rest.
#ifndef KERNELWRIGHT_DISPATCHER_LOADING_JSON_HPP
#define KERNELWRIGHT_DISPATCHER_LOADING_JSON_HPP

#include <stddef.h>

namespace kernelwright {

// A part of a document, as it is written there.
struct JsonText {
  const char* begin = nullptr;  // null = absent
  size_t bytes = 0;

  // Between the quotes of a string without escapes; absent for any other value.
  JsonText inside() const;
  // As much of it as fits into an error message.
  size_t shown() const { return bytes < 100 ? bytes : 100; }
};

struct JsonMember {
  const char* key;
  JsonText value;
};

// Fills the values of the members that the object has. Null, or the reason why the document is refused: it is no JSON
// object (RFC 8259), something stands behind it, a key of the object itself has an escape or stands there twice among
// those asked for, or values nest more than 64 deep.
const char* read_json_object(const char* text, size_t bytes, JsonMember* members, size_t count);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_LOADING_JSON_HPP
