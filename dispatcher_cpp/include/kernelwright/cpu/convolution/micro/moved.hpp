// An output that begins at another point.
#ifndef KERNELWRIGHT_CPU_CONVOLUTION_MICRO_MOVED_HPP
#define KERNELWRIGHT_CPU_CONVOLUTION_MICRO_MOVED_HPP

#include "kernelwright/cpu/gemm/micro/epilogue.hpp"

namespace kernelwright::cpu {
namespace {

// The output, begun `offset` elements further on; one line for all outputs stays where it is.
template <class Epilogue>
KW_CPU_INLINE output moved_point(const output& from, int64_t offset) {
  using storage = typename Epilogue::storage;
  output to = from;
  to.d = static_cast<storage*>(to.d) + offset;
  if (to.c != nullptr) to.c = static_cast<const storage*>(to.c) + offset;
  for (uint32_t n = 0; n < Epilogue::num_d(from); ++n) {
    if (to.ld_multi_d[n] != 0) to.multi_d[n] = static_cast<const storage*>(to.multi_d[n]) + offset;
  }
  return to;
}

}  // namespace
}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_CONVOLUTION_MICRO_MOVED_HPP
