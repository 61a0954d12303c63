// A type that a template names and instantiates no earlier than it is instantiated itself.
#ifndef KERNELWRIGHT_HIP_COMMON_LEAN_LATER_HPP
#define KERNELWRIGHT_HIP_COMMON_LEAN_LATER_HPP

namespace kernelwright::lean {

template <class Parameter, class Type>
struct later {
  using type = Type;
};

}  // namespace kernelwright::lean

#endif
