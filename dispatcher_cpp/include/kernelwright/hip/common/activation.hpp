// Activations in fp32 on the native exp2 and reciprocal, since no device library is linked.
#ifndef KERNELWRIGHT_HIP_COMMON_ACTIVATION_HPP
#define KERNELWRIGHT_HIP_COMMON_ACTIVATION_HPP

#include <hip/hip_runtime.h>

#include <type_traits>

#include "ck_tile/core.hpp"
#include "kernelwright/epilogue.h"

namespace kernelwright::hip {

inline constexpr float log2_e = 1.44269504088896340736f;

CK_TILE_DEVICE float exponential(float x) { return __builtin_amdgcn_exp2f(x * log2_e); }
CK_TILE_DEVICE float logistic(float x) { return __builtin_amdgcn_rcpf(1.0f + exponential(-x)); }

// Values of the polynomial with these coefficients, from that of x^0 on. Not an array: a constant one would be loaded
// from memory, since HIP lets the host change what it sees.
template <class... Rest>
CK_TILE_DEVICE float polynomial(float x, float first, Rest... rest) {
  if constexpr (sizeof...(rest) == 0)
    return first;
  else
    return __builtin_fmaf(polynomial(x, rest...), x, first);
}

// Least-squares fits at Chebyshev nodes, made for this file.
CK_TILE_DEVICE float erf_near_0(float x) {
  return x * polynomial(x * x, 1.12837917f, -0.37612630f, 0.11283626f, -0.02685540f, 0.00519121838f, -0.000803484665f,
                        0.0000793349390f);
}
CK_TILE_DEVICE float log2_erfc(float x) {
  return polynomial(x, 0.0000340207734f, -1.62860808f, -0.915410869f, -0.154577994f, 0.0353109835f, -0.00571036728f,
                    0.000571965386f, -0.0000263625561f);
}
CK_TILE_DEVICE float tanh_near_0(float x) {
  return x * polynomial(x * x, 1.0f, -0.333332777f, 0.133314186f, -0.0537398438f, 0.0206422551f, -0.00570996554f);
}

// Both parts are computed and one is taken: lanes rarely agree.
CK_TILE_DEVICE float error_function(float x) {
  const float size = __builtin_fabsf(x), far = __builtin_fminf(size, 4.0f);
  const float tail = 1.0f - __builtin_amdgcn_exp2f(log2_erfc(far));
  const float found = size < 1.0f ? erf_near_0(size) : tail;
  return __builtin_copysignf(x == x ? found : x, x);
}

CK_TILE_DEVICE float hyperbolic_tangent(float x) {
  const float size = __builtin_fabsf(x);
  const float tail = 1.0f - 2.0f * __builtin_amdgcn_rcpf(1.0f + exponential(2.0f * size));
  return __builtin_copysignf(size < 0.625f ? tanh_near_0(size) : tail, x);
}

struct none {
  CK_TILE_DEVICE static float of(float x) { return x; }
};
struct relu {  // NaN stays NaN
  CK_TILE_DEVICE static float of(float x) { return x < 0 ? 0.0f : x; }
};
struct gelu {
  CK_TILE_DEVICE static float of(float x) { return 0.5f * x * (1.0f + error_function(x * 0.70710678118654752440f)); }
};
struct fast_gelu {
  CK_TILE_DEVICE static float of(float x) { return x * logistic(2 * 0.797885f * (x + 0.044715f * x * x * x)); }
};
struct silu {
  CK_TILE_DEVICE static float of(float x) { return x * logistic(x); }
};
struct sigmoid {
  CK_TILE_DEVICE static float of(float x) { return logistic(x); }
};
struct tanh {
  CK_TILE_DEVICE static float of(float x) { return hyperbolic_tangent(x); }
};

// Of a description: the arguments say what the epilogue does. The same in all lanes, so branches cost scalars only.
struct any {};
template <class T>
inline constexpr bool any_epilogue = std::is_same_v<typename T::activation, any>;

// Calls `apply` with the activation of a kw_activation, and not at all for none.
template <class Apply>
CK_TILE_DEVICE void with_activation(uint32_t activation, const Apply& apply) {
  switch (activation) {
    case KW_ACTIVATION_RELU:
      return apply(relu{});
    case KW_ACTIVATION_GELU:
      return apply(gelu{});
    case KW_ACTIVATION_FAST_GELU:
      return apply(fast_gelu{});
    case KW_ACTIVATION_SILU:
      return apply(silu{});
    case KW_ACTIVATION_SIGMOID:
      return apply(sigmoid{});
    case KW_ACTIVATION_TANH:
      return apply(tanh{});
    default:
      return;
  }
}

}  // namespace kernelwright::hip

#endif
