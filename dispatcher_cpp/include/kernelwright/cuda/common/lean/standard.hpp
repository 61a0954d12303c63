// What CUTLASS uses of the C++ library's streams and algorithms. Their headers are a quarter of the text that a
// compiler reads, and nothing in a kernel prints. Whoever needs true streams includes <ostream> before CUTLASS.
#pragma once

// Types of 6 and 4 bits, of which CUTLASS has its own.
#define CCCL_DISABLE_NVFP6_SUPPORT

#include <__algorithm/copy.h>
#include <__algorithm/max.h>
#include <__algorithm/min.h>

#include <initializer_list>
#include <stdexcept>
#include <utility>

#if defined(_LIBCPP_OSTREAM)
#include <iomanip>
#include <iostream>
#else
#include "kernelwright/cuda/common/quiet/null_stream.hpp"

#define KERNELWRIGHT_CUDA_QUIET_IOSTREAM  // <iostream>, which would include <ostream>

_LIBCPP_BEGIN_NAMESPACE_STD

class ios_base {
 public:
  static constexpr int failbit = 4;
};

template <>
class basic_ostream<char> {
 public:
  void setstate(int) {}
};

template <class T>
ostream& operator<<(ostream& out, const T&) {
  return out;
}
inline ostream& endl(ostream& out) { return out; }
inline int setw(int width) { return width; }

_LIBCPP_END_NAMESPACE_STD
#endif
