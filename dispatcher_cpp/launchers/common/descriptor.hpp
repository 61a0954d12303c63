// What launchers of every backend read from pointers of the ABI.
#ifndef KERNELWRIGHT_LAUNCHERS_COMMON_DESCRIPTOR_HPP
#define KERNELWRIGHT_LAUNCHERS_COMMON_DESCRIPTOR_HPP

#include "kernelwright/abi.h"

namespace kernelwright {

// What traits of a descriptor points to, and the problem that its operation takes.
template <class Held>
const Held& held_by(const kw_kernel* kernel) {
  return *static_cast<const Held*>(kernel->traits);
}
template <class Problem>
const Problem& as(const kw_problem* problem) {
  return *reinterpret_cast<const Problem*>(problem);
}

}  // namespace kernelwright

#endif  // KERNELWRIGHT_LAUNCHERS_COMMON_DESCRIPTOR_HPP
