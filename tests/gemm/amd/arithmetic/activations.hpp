// Every activation of every element: they are nowhere else seen before rounding.
#include "kernelwright/hip/common/activation.hpp"

template <class... Activations>
static __device__ void apply(float* y, const float* x, unsigned count) {
  const unsigned lane = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
  unsigned row = 0;
  ((y[row++ * count + lane] = Activations::of(x[lane])), ...);
}

extern "C" __global__ __launch_bounds__(256) void activations(float* y, const float* x, unsigned count) {
  using namespace kernelwright::hip;
  apply<none, relu, gelu, fast_gelu, silu, sigmoid, kernelwright::hip::tanh>(y, x, count);
}
