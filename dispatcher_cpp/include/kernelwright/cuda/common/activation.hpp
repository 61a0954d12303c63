// Activations as functions of one number.
#pragma once

#include <cutlass/cutlass.h>

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

}  // namespace function

}  // namespace kernelwright::cuda
