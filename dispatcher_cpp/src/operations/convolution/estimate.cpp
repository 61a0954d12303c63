// From structs of the C ABI to what the formulas of convolution read: see estimate_conv in problem.hpp.
#include "kernelwright/convolution/checks.h"
#include "kernelwright/convolution/folding.h"
#include "kernelwright/dispatcher/convolution/formulas/cdna.h"
#include "kernelwright/dispatcher/convolution/formulas/hopper.h"
#include "kernelwright/dispatcher/convolution/formulas/processors.h"
#include "kernelwright/dispatcher/convolution/formulas/tiles.h"
#include "kernelwright/dispatcher/convolution/problem.hpp"
#include "kernelwright/widths.h"

namespace kernelwright {
namespace {

double real(int64_t value) { return static_cast<double>(value); }

// As launchers/cuda/convolution/folding.cpp folds: not what a kernel cannot count in 31 bits.
int64_t fold_pitch(const kw_conv_problem& p) {
  if (!kw_fits_int16(p.stride[2]) || !kw_fits_int16(p.filter[2]) || !kw_fits_int32(p.pad_left[2])) return 0;
  return kw_conv_fold_pitch(&p);
}

kw_convolution_problem_Problem problem_of(const kw_conv_problem& p) {
  kw_convolution_problem_Problem made = {};
  made.backward_data = p.base.op == KW_OP_CONV_BACKWARD_DATA;
  made.backward_weight = p.base.op != KW_OP_CONV_FORWARD && !made.backward_data;
  made.split = made.backward_weight && p.split_k > 1 ? p.split_k : 1;
  made.size = kw_dtype_bytes(p.dtype_x);
  made.n = real(p.n), made.c = real(p.c), made.k = real(p.k), made.groups = real(p.groups);
  made.in_d = real(p.extent[0]), made.in_h = real(p.extent[1]), made.in_w = real(p.extent[2]);
  made.out_d = real(kw_conv_out(&p, 0)), made.out_h = real(kw_conv_out(&p, 1)), made.out_w = real(kw_conv_out(&p, 2));
  made.filter_d = real(p.filter[0]), made.filter_h = real(p.filter[1]), made.filter_w = real(p.filter[2]);
  made.stride_d = real(p.stride[0]), made.stride_h = real(p.stride[1]), made.stride_w = real(p.stride[2]);
  made.dilation_w = real(p.dilation[2]);
  made.residual = p.residual != 0;
  made.fold_pitch = real(fold_pitch(p));
  return made;
}

// Dimensions of a kernel that the problem lacks.
double spare_dimensions(const kw_conv_problem& p, const kw_conv_traits& t) {
  const int64_t asked = kw_conv_dims(p.layout), built = kw_conv_dims(t.layout);
  return built > asked ? real(built - asked) : 0;
}

Estimate on_processor(const kw_conv_problem& p, const kw_conv_traits& t, const Place& place) {
  const bool slow_dots = place.slow_dots && t.dtype_x == KW_BF16 && t.warp_tile_k > 1;
  const kw_convolution_processors_Kernel kernel = {
      1.0 * t.warp_tile_m, 1.0 * t.warp_tile_n, 1.0 * t.warp_tile_k,
      1.0 * t.tile_m,      1.0 * t.tile_n,      spare_dimensions(p, t),
      t.depthwise != 0,    slow_dots,           t.activation == KW_ACTIVATION_ANY};
  return estimate_of(kw_convolution_processors_estimate(problem_of(p), kernel, device_of(place, p.dtype_x)));
}

Estimate on_hopper(const kw_conv_problem& p, const kw_conv_traits& t, const Place& place) {
  const kw_convolution_hopper_Kernel kernel = {1.0 * t.tile_m, 1.0 * t.tile_n, 1.0 * t.wave_m, t.depthwise != 0};
  return estimate_of(kw_convolution_hopper_estimate(problem_of(p), kernel, device_of(place, p.dtype_x)));
}

double at_least_one(double value) { return value > 1 ? value : 1; }

// A second stage adds up slices that a kernel leaves.
Estimate on_cdna(const kw_conv_problem& p, const kw_conv_traits& t, const Place& place) {
  const bool newer = times_of(*place.arch) == KW_TIMES_CDNA4;
  const kw_cdna_Kernel kernel = {
      1.0 * t.tile_m,         1.0 * t.tile_n, 1.0 * t.tile_k, at_least_one(t.wave_m), at_least_one(t.wave_n),
      at_least_one(t.wave_k), false,          false,          p.leaves_slices == 1,   newer};
  const double merged = at_least_one(t.num_groups_to_merge), spare = spare_dimensions(p, t);
  return estimate_of(
      kw_convolution_cdna_estimate(problem_of(p), kernel, merged, spare, device_of(place, p.dtype_x), place.most_us));
}

// The second stage of backward weight reads all slices of dw and writes dw.
Estimate sum_of_slices(const kw_conv_problem& p, const Place& place) {
  const double size = kw_dtype_bytes(p.dtype_w),
               weights = real(p.k) * real(p.c / p.groups) * real(p.filter[0]) * real(p.filter[1]) * real(p.filter[2]);
  Estimate e;
  e.memory_us = e.total_us = (4.0 * p.split_k + size) * weights / device_of(place, p.dtype_w).bytes_per_us;
  return e;
}

}  // namespace

Estimate estimate_conv(const kw_kernel& kernel, const kw_problem& problem, const Place& place) {
  const kw_conv_problem& p = as_conv(problem);
  const kw_conv_traits& t = conv_traits(kernel);
  if (p.base.op == KW_OP_CONV_SUM_SLICES) return sum_of_slices(p, place);
  const uint32_t times = times_of(*place.arch);
  if (times == KW_TIMES_HOPPER) return on_hopper(p, t, place);
  if (times == KW_TIMES_PROCESSORS) return on_processor(p, t, place);
  if ((times == KW_TIMES_CDNA3 || times == KW_TIMES_CDNA4) && t.depthwise == 0) return on_cdna(p, t, place);
  const kw_convolution_tiles_Kernel tiles = {
      1.0 * t.tile_m,         1.0 * t.tile_n,
      1.0 * t.tile_k,         t.num_groups_to_merge > 1 ? 1.0 * t.num_groups_to_merge : 1.0,
      spare_dimensions(p, t), t.depthwise != 0,
      p.leaves_slices == 1};
  return estimate_of(kw_convolution_tiles_estimate(problem_of(p), tiles, device_of(place, p.dtype_x)));
}

}  // namespace kernelwright
