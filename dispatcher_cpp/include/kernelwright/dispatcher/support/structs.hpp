// Structs that callers fill: their size, and the members that later versions may give a meaning.
//
// Every struct is checked here. A member is found by its name, `reserved` or `reserved_float`, so a struct that gets
// one is checked without a further line; tests/reserved_test.py finds members of other names that begin like this.
#ifndef KERNELWRIGHT_DISPATCHER_SUPPORT_STRUCTS_HPP
#define KERNELWRIGHT_DISPATCHER_SUPPORT_STRUCTS_HPP

#include <stddef.h>

#include "kernelwright/dispatcher/support/error.hpp"

namespace kernelwright {

template <typename T>
auto reserved_of(const T& given, int) -> decltype(static_cast<double>(given.reserved)) {
  return static_cast<double>(given.reserved);
}
template <typename T>
double reserved_of(const T&, long) {
  return 0;
}
template <typename T>
auto reserved_float_of(const T& given, int) -> decltype(static_cast<double>(given.reserved_float)) {
  return static_cast<double>(given.reserved_float);
}
template <typename T>
double reserved_float_of(const T&, long) {
  return 0;
}

inline kw_status check_zero(const char* what, const char* member, double value) {
  if (value == 0) return KW_OK;
  return fail(KW_INVALID_ARGUMENT, "%s: %s = %.17g; allowed: 0, since this version gives it no meaning", what, member,
              value);
}

// KW_INVALID_ARGUMENT for a reserved member that is not 0; `what` begins the sentence.
template <typename T>
kw_status check_reserved(const char* what, const T& given) {
  if (kw_status status = check_zero(what, "reserved", reserved_of(given, 0))) return status;
  return check_zero(what, "reserved_float", reserved_float_of(given, 0));
}

// The struct_size that a caller stated of a struct, e.g. "gemm args".
KW_EXPORT kw_status check_size(const char* what, uint32_t given, size_t wanted);

// The arguments of a launch: there, of this version, and reserved members 0. `type` is the struct's name.
template <typename T>
kw_status check_args(const char* what, const char* type, const T* given) {
  if (given == nullptr) return fail(KW_INVALID_ARGUMENT, "args is null; allowed: a pointer to %s", type);
  if (kw_status status = check_size(what, given->struct_size, sizeof(T))) return status;
  return check_reserved(what, *given);
}

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_SUPPORT_STRUCTS_HPP
