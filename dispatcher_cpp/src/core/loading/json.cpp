#include "kernelwright/dispatcher/loading/json.hpp"

#include <string.h>

namespace kernelwright {
namespace {

constexpr int kDeepest = 64;

bool is_digit(char character) { return character >= '0' && character <= '9'; }

bool is_hex(char character) {
  return is_digit(character) || (character >= 'a' && character <= 'f') || (character >= 'A' && character <= 'F');
}

class Reader {
 public:
  Reader(const char* text, size_t bytes) : at_(text), end_(text + bytes) {}

  const char* object(JsonMember* members, size_t count) {
    space();
    if (!take('{')) return "it is no JSON object";
    space();
    if (!take('}')) {
      do {
        space();
        JsonText key;
        if (const char* why = member(&key, members, count)) return why;
        space();
      } while (take(','));
      if (!take('}')) return "a comma or the end of the object is missing";
    }
    space();
    return at_ == end_ ? nullptr : "something stands behind the object";
  }

 private:
  const char* member(JsonText* key, JsonMember* members, size_t count) {
    key->begin = at_;
    if (!string()) return "a key is missing or no string";
    key->bytes = static_cast<size_t>(at_ - key->begin);
    const JsonText name = key->inside();
    if (name.begin == nullptr) return "a key has an escape";
    space();
    if (!take(':')) return "a colon is missing";
    space();
    const char* begin = at_;
    if (!value(1)) return "a value is no JSON, or nests too deep";
    for (size_t i = 0; i < count; ++i) {
      if (strlen(members[i].key) != name.bytes || memcmp(members[i].key, name.begin, name.bytes) != 0) continue;
      if (members[i].value.begin != nullptr) return "a key stands there twice";
      members[i].value = {begin, static_cast<size_t>(at_ - begin)};
    }
    return nullptr;
  }

  bool value(int depth) {
    if (at_ == end_ || depth > kDeepest) return false;
    switch (*at_) {
      case '{':
        return sequence('{', '}', depth);
      case '[':
        return sequence('[', ']', depth);
      case '"':
        return string();
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        return number();
    }
  }

  bool sequence(char open, char close, int depth) {
    take(open);
    space();
    if (take(close)) return true;
    do {
      space();
      if (open == '{') {
        if (!string()) return false;
        space();
        if (!take(':')) return false;
        space();
      }
      if (!value(depth + 1)) return false;
      space();
    } while (take(','));
    return take(close);
  }

  bool string() {
    if (!take('"')) return false;
    while (at_ != end_ && *at_ != '"') {
      if (static_cast<unsigned char>(*at_) < 0x20) return false;
      if (*at_++ != '\\') continue;
      if (at_ == end_) return false;
      const char escaped = *at_++;
      if (escaped == 'u') {
        for (int i = 0; i < 4; ++i) {
          if (at_ == end_ || !is_hex(*at_++)) return false;
        }
      } else if (escaped == '\0' || strchr("\"\\/bfnrt", escaped) == nullptr) {
        return false;
      }
    }
    return take('"');
  }

  bool number() {
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      return digits();
    }
    return true;
  }

  bool digits() {
    const char* begin = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != begin;
  }

  bool word(const char* text) {
    for (; *text != '\0'; ++text) {
      if (!take(*text)) return false;
    }
    return true;
  }

  bool take(char character) {
    if (at_ == end_ || *at_ != character) return false;
    ++at_;
    return true;
  }

  void space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }

  const char* at_;
  const char* const end_;
};

}  // namespace

JsonText JsonText::inside() const {
  if (bytes < 2 || *begin != '"' || memchr(begin, '\\', bytes) != nullptr) return {};
  return {begin + 1, bytes - 2};
}

const char* read_json_object(const char* text, size_t bytes, JsonMember* members, size_t count) {
  return Reader(text, bytes).object(members, count);
}

}  // namespace kernelwright
