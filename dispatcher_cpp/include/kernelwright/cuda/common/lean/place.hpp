// An element of a tensor at a known coordinate: its place is computed once by the compiler, not by code that optimisers
// then fold, of which a matrix instruction would need some for each of its registers.
#pragma once

#include <cute/config.hpp>

namespace kernelwright::lean {

template <class T, class = void>
inline constexpr bool has_static_layout = false;
template <class T>
inline constexpr bool has_static_layout<T, decltype(void(sizeof(typename T::layout_type)))> =
    __is_empty(typename T::layout_type);

// What x[coordinate] is: x is a tensor, or a pointer.
template <int coordinate, class T>
CUTE_HOST_DEVICE constexpr decltype(auto) at(T& x) {
  if constexpr (has_static_layout<__remove_cv(T)>) {
    constexpr int place = typename T::layout_type{}(coordinate);
    return x.data()[place];
  } else {
    return x[coordinate];
  }
}

}  // namespace kernelwright::lean
