// Growing text for error sentences and JSON, independent of the process's locale.
#ifndef KERNELWRIGHT_DISPATCHER_SUPPORT_TEXT_HPP
#define KERNELWRIGHT_DISPATCHER_SUPPORT_TEXT_HPP

#include <stddef.h>
#include <stdint.h>

#include "kernelwright/abi.h"
#include "kernelwright/dispatcher/support/vec.hpp"

namespace kernelwright {

// Exported for operations that are registered from outside.
class KW_EXPORT Text {
 public:
  Text& add(const char* text);
  Text& add(char character);
  Text& add(int64_t value);
  Text& add(uint64_t value);
  Text& add(int32_t value) { return add(static_cast<int64_t>(value)); }
  Text& add(uint32_t value) { return add(static_cast<uint64_t>(value)); }
  // Shortest round-trip form is not needed: three decimals for times and ratios …
  Text& fixed3(double value);
  // … and 17 significant digits where the value itself matters. JSON has no infinity or NaN: those become null.
  Text& exact(double value);
  // A JSON string with quotes; null becomes null.
  Text& quoted(const char* text);

  const char* c_str() const;
  size_t size() const { return bytes_.size(); }
  bool failed() const { return failed_; }  // memory ran out: the text is incomplete
  // A copy for which the caller calls free(); null when memory ran out.
  char* copy() const;
  // The buffer protocol of the public header.
  kw_status write_to(char* buffer, size_t bytes, size_t* needed) const;

 private:
  Vec<char> bytes_;  // without terminating zero until c_str() asks
  bool failed_ = false;
};

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_SUPPORT_TEXT_HPP
