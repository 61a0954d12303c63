// See estimate_conv in problem.hpp.
#include "kernelwright/convolution/checks.h"
#include "kernelwright/dispatcher/convolution/problem.hpp"

namespace kernelwright {
namespace {

constexpr double kFillBytesPerClock = 48;  // as in gemm/analytic.hpp
constexpr double kSecondLaunchUs = 4;      // likewise
// A kernel for more dimensions computes more of the addresses; between otherwise equal kernels that decides.
constexpr double kSpareDimension = 1.01;

double max(double left, double right) { return left > right ? left : right; }

double ceil_div(double extent, double quantum) {
  const double quotient = extent / quantum, whole = static_cast<double>(static_cast<int64_t>(quotient));
  return whole < quotient ? whole + 1 : whole;
}

double rate(const kw_arch& arch, uint32_t dtype) {
  const double stated = dtype < 8 ? arch.flops_per_clock_per_cu[dtype] : 0.0;
  return stated > 0 ? stated : 1.0;
}

struct Shape {
  double groups, m, n, k;
};

Shape shape_of(const kw_conv_problem& p) {
  const kw_conv_gemm g = kw_conv_as_gemm(&p);
  Shape s = {static_cast<double>(p.groups), static_cast<double>(g.m), static_cast<double>(g.n),
             static_cast<double>(g.k)};
  if (p.base.op == KW_OP_CONV_BACKWARD_DATA) {
    const double points =
        static_cast<double>(p.extent[0]) * static_cast<double>(p.extent[1]) * static_cast<double>(p.extent[2]);
    s.m = static_cast<double>(p.n) * points;
    s.k /= static_cast<double>(p.stride[0] * p.stride[1] * p.stride[2]);
    if (s.k < 1) s.k = 1;
  }
  return s;
}

// Of x, w and y.
struct Bytes {
  double x, w, y;
};

Bytes tensor_bytes(const kw_conv_problem& p) {
  const double images = static_cast<double>(p.n);
  const double x = images * static_cast<double>(p.c) * static_cast<double>(p.extent[0]) *
                   static_cast<double>(p.extent[1]) * static_cast<double>(p.extent[2]);
  const double w =
      static_cast<double>(p.k) * static_cast<double>(p.c / p.groups) * static_cast<double>(kw_conv_filter_points(&p));
  const double y = images * static_cast<double>(p.k) * static_cast<double>(kw_conv_out_points(&p));
  return {x * kw_dtype_bytes(p.dtype_x), w * kw_dtype_bytes(p.dtype_w), y * kw_dtype_bytes(p.dtype_y)};
}

// What a kernel moves, each tensor once.
double memory_bytes(const kw_conv_problem& p) {
  const Bytes b = tensor_bytes(p);
  const double slices = p.split_k > 1 ? 8.0 * p.split_k * b.w / kw_dtype_bytes(p.dtype_w) : 0.0;
  return b.x + b.w + b.y + (p.residual != 0 ? b.y : 0.0) + slices;
}

void compute(const kw_conv_problem& p, const kw_arch& arch, const kw_conv_traits& t, double units, Estimate* e) {
  Shape s = shape_of(p);
  const double asked = s.groups * s.m * s.n * s.k, clocks = (arch.clock_ghz > 0 ? arch.clock_ghz : 1.0) * 1e3;
  if (t.depthwise != 0) {
    e->tiles = e->waves = 1;
    e->compute_us = 2.0 * asked / rate(arch, KW_FP32) / units / clocks;
    return;
  }
  const double merged = t.num_groups_to_merge > 1 ? t.num_groups_to_merge : 1;
  s.groups = ceil_div(s.groups, merged);
  s.n *= merged;
  (p.base.op == KW_OP_CONV_WEIGHT_SLICES ? s.m : s.k) *= merged;
  const double tile_m = t.tile_m, tile_n = t.tile_n, tile_k = t.tile_k, slices = p.split_k > 1 ? p.split_k : 1;
  const double steps = ceil_div(ceil_div(s.k, tile_k), slices);
  e->tiles = s.groups * ceil_div(s.m, tile_m) * ceil_div(s.n, tile_n) * slices;
  e->waves = ceil_div(e->tiles, units);
  const double each = 2.0 * tile_m * tile_n * tile_k / rate(arch, p.dtype_x);
  e->compute_us = e->waves * steps * each / clocks;
  const double lines = (tile_m + tile_n) * kw_dtype_bytes(p.dtype_x) * tile_k;
  e->fill_us = e->waves * steps * lines / kFillBytesPerClock / clocks;
  const double padded = e->tiles * steps * tile_m * tile_n * tile_k;
  e->useful = padded > asked ? asked / padded : 1.0;
}

}  // namespace

Estimate estimate_conv(const kw_kernel& kernel, const kw_problem& problem, const Place& place) {
  const kw_conv_problem& p = as_conv(problem);
  const kw_conv_traits& t = conv_traits(kernel);
  const kw_arch& arch = *place.arch;
  const double bandwidth = (arch.memory_gbytes_per_s > 0 ? arch.memory_gbytes_per_s : 1.0) * 1e3;
  Estimate e;
  if (p.base.op == KW_OP_CONV_SUM_SLICES) {
    e.memory_us = e.total_us = (4.0 * p.split_k / kw_dtype_bytes(p.dtype_w) + 1.0) * tensor_bytes(p).w / bandwidth;
    return e;
  }
  if (arch.backend == KW_BACKEND_CUDA) return estimate_conv_cuda(kernel, p, place);
  if (arch.backend == KW_BACKEND_CPU) {
    e = estimate_conv_cpu(kernel, p, place);
    e.memory_us = memory_bytes(p) / bandwidth;
    e.total_us = e.compute_us + e.memory_us;
    return e;
  }
  compute(p, arch, t, place.compute_units, &e);
  for (uint32_t dims = kw_conv_dims(p.layout); dims < kw_conv_dims(t.layout); ++dims) e.compute_us *= kSpareDimension;
  e.memory_us = memory_bytes(p) / bandwidth;
  e.total_us = max(max(e.compute_us, e.fill_us), e.memory_us);
  if (p.leaves_slices == 1) e.total_us += kSecondLaunchUs;
  return e;
}

}  // namespace kernelwright
