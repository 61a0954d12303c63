// A function of layouts whose result is known from the types of its arguments is not called.
#pragma once

#include <cute/config.hpp>

namespace kernelwright::lean {

// What `f` returns. If that is an empty type, nothing of f is compiled to code that optimisers would then take away: f
// must have no effects.
template <class F>
CUTE_HOST_DEVICE constexpr auto known(const F& f) {
  using result = decltype(f());
  if constexpr (__is_empty(result))
    return result{};
  else
    return f();
}

}  // namespace kernelwright::lean
