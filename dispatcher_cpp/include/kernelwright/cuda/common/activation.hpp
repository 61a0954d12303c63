// Activations as functions of one number, and the one that a problem asks for.
#pragma once

#include <cutlass/cutlass.h>

#include "kernelwright/epilogue.h"

namespace kernelwright::cuda {

namespace function {

struct none {
  template <class T>
  CUTLASS_DEVICE static T of(T x) {
    return x;
  }
};
struct relu {
  template <class T>
  CUTLASS_DEVICE static T of(T x) {
    return x < T(0) ? T(0) : x;  // NaN stays NaN
  }
};
struct gelu {
  CUTLASS_DEVICE static float of(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)); }
};
struct sigmoid {
  CUTLASS_DEVICE static float of(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
};
struct silu {
  CUTLASS_DEVICE static float of(float x) { return x * sigmoid::of(x); }
};
struct fast_gelu {
  // x/2 (1 + tanh(y)) = x sigmoid(2y) with y = sqrt(2/pi) (x + 0.044715 x^3).
  CUTLASS_DEVICE static float of(float x) {
    return x * sigmoid::of(1.59576912160573081f * x * (1.0f + 0.044715f * x * x));
  }
};
struct hyperbolic_tangent {
  CUTLASS_DEVICE static float of(float x) { return tanhf(x); }
};

// What a kernel is built with that chooses by the problem.
struct any {};

}  // namespace function

// Calls `use` with the function that Activation is, or with the one of a problem (KW_ACTIVATION_...). The switch is the
// same for all threads, so it stands around whole loops.
template <class Activation, class Use>
CUTLASS_DEVICE void with_activation(uint32_t asked, Use const& use) {
  if constexpr (!cutlass::platform::is_same<Activation, function::any>::value) return use(Activation{});
  switch (asked) {
    case KW_ACTIVATION_RELU:
      return use(function::relu{});
    case KW_ACTIVATION_GELU:
      return use(function::gelu{});
    case KW_ACTIVATION_FAST_GELU:
      return use(function::fast_gelu{});
    case KW_ACTIVATION_SILU:
      return use(function::silu{});
    case KW_ACTIVATION_SIGMOID:
      return use(function::sigmoid{});
    case KW_ACTIVATION_TANH:
      return use(function::hyperbolic_tangent{});
    default:
      return use(function::none{});
  }
}

}  // namespace kernelwright::cuda
