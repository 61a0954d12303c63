// From structs of the C ABI to what the formulas read. Grouped problems add up what their groups take.
#include "kernelwright/dispatcher/gemm/estimate.hpp"

#include "kernelwright/dispatcher/gemm/formulas/hopper.h"
#include "kernelwright/dispatcher/gemm/formulas/processors.h"
#include "kernelwright/dispatcher/gemm/formulas/tiles.h"
#include "kernelwright/dispatcher/support/cdna.h"
#include "kernelwright/gemm/checks.h"
#include "kernelwright/gemm/groups.h"

namespace kernelwright {
namespace {

constexpr uint32_t kWgmmaRows = 64;  // of one extent of its matrices; kernels that multiply by mma.sync have fewer

double real(int64_t value) { return static_cast<double>(value); }
double bytes_of(uint32_t dtype) { return kw_dtype_bytes(dtype); }

double at_least_one(double value) { return value > 1 ? value : 1; }

Estimate on_hopper(const kw_gemm_problem& p, const kw_gemm_traits& t, const Place& place) {
  const kw_gemm_hopper_Problem problem = {real(p.m),
                                          real(p.n),
                                          real(p.k),
                                          at_least_one(real(p.batch)),
                                          at_least_one(p.split_k),
                                          bytes_of(p.dtype_a),
                                          bytes_of(p.dtype_c),
                                          1.0 + (p.beta != 0 ? 1 : 0) + p.num_d};
  const kw_gemm_hopper_Kernel kernel = {1.0 * t.tile_m,
                                        1.0 * t.tile_n,
                                        1.0 * t.tile_k,
                                        1.0 * t.warp_tile_m,
                                        1.0 * t.warp_tile_n,
                                        at_least_one(t.cluster_m),
                                        at_least_one(t.cluster_n),
                                        t.wave_m == 1 && t.wave_n == 1,
                                        t.stream_k != KW_STREAM_K_NONE,
                                        t.max_split_k > 1,
                                        t.activation == KW_ACTIVATION_ANY,
                                        t.warp_tile_m < kWgmmaRows && t.warp_tile_n < kWgmmaRows};
  return estimate_of(kw_gemm_hopper_estimate(problem, kernel, device_of(place, p.dtype_a), place.most_us));
}

Estimate on_processor(const kw_gemm_problem& p, const kw_gemm_traits& t, const Place& place) {
  const kw_gemm_processors_Problem problem = {
      real(p.m),      real(p.n), real(p.k), real(p.batch), 1.0 * p.split_k, bytes_of(p.dtype_a), p.dtype_c == KW_FP32,
      t.b_format != 0};
  const kw_gemm_processors_Kernel kernel = {1.0 * t.warp_tile_m,
                                            1.0 * t.warp_tile_n,
                                            1.0 * t.warp_tile_k,
                                            1.0 * t.tile_m,
                                            1.0 * t.tile_n,
                                            1.0 * t.tile_k,
                                            place.slow_dots && t.dtype_a == KW_BF16 && t.warp_tile_k == 2,
                                            t.dtype_a == KW_FP32,
                                            t.stream_k != KW_STREAM_K_NONE,
                                            t.persistent != 0,
                                            t.activation == KW_ACTIVATION_ANY};
  return estimate_of(kw_gemm_processors_estimate(problem, kernel, device_of(place, p.dtype_a)));
}

// Elements of all D tensors: one line each, or all of C; one for a batch, or one for each of its products.
double d_elements(const kw_gemm_problem& p) {
  double elements = 0;
  for (uint32_t i = 0; i < p.num_d; ++i) {
    const double line = real(p.layout_c == KW_ROW_MAJOR ? p.n : p.m);
    const double one = p.ld_multi_d[i] == 0 ? line : real(p.m) * real(p.n);
    elements += p.stride_multi_d[i] == 0 ? one : real(p.batch) * one;
  }
  return elements;
}

kw_products_Problem problem_of(const kw_gemm_problem& p) {
  const double batch = real(p.batch);
  return {real(p.m),
          real(p.n),
          real(p.k),
          batch,
          1.0 * p.split_k,
          bytes_of(p.dtype_a),
          bytes_of(p.dtype_b),
          bytes_of(p.dtype_c),
          p.stride_a == 0 ? 1.0 : batch,
          p.stride_b == 0 ? 1.0 : batch,
          p.beta != 0,
          d_elements(p)};
}

kw_gemm_tiles_Kernel kernel_of(const kw_gemm_traits& t, const kw_arch& arch) {
  const bool stream = t.stream_k != KW_STREAM_K_NONE;
  const bool twice = arch.backend == KW_BACKEND_HIP && (t.max_split_k > 1 || stream);
  return {1.0 * t.tile_m, 1.0 * t.tile_n, 1.0 * t.tile_k, stream, twice};
}

Estimate on_cdna(const kw_gemm_problem& p, const kw_gemm_traits& t, const Place& place) {
  const kw_gemm_tiles_Kernel tiles = kernel_of(t, *place.arch);
  const kw_cdna_Kernel kernel = {1.0 * t.tile_m,
                                 1.0 * t.tile_n,
                                 1.0 * t.tile_k,
                                 at_least_one(t.wave_m),
                                 at_least_one(t.wave_n),
                                 at_least_one(t.wave_k),
                                 t.b_format != 0,
                                 tiles.stream_k,
                                 tiles.twice,
                                 times_of(*place.arch) == KW_TIMES_CDNA4};
  return estimate_of(kw_cdna_estimate(problem_of(p), kernel, device_of(place, p.dtype_a), place.most_us));
}

// Register blocks of all groups, each group's time behind the others'.
void add_on_processor(const kw_gemm_problem& one, const kw_gemm_traits& t, const Place& place, Estimate* sum) {
  const Estimate each = on_processor(one, t, place);
  sum->tiles += each.tiles;
  sum->compute_us += each.compute_us;
  sum->memory_us += each.memory_us;
  sum->total_us += each.total_us;
  sum->useful += each.useful * each.tiles;
}

}  // namespace

Estimate estimate(const kw_gemm_problem& p, const kw_gemm_traits& t, const Place& place) {
  const uint32_t times = times_of(*place.arch);
  if (times == KW_TIMES_HOPPER) return on_hopper(p, t, place);
  if (times == KW_TIMES_PROCESSORS) return on_processor(p, t, place);
  if (times == KW_TIMES_CDNA3 || times == KW_TIMES_CDNA4) return on_cdna(p, t, place);
  const kw_machine_Device device = device_of(place, p.dtype_a);
  return estimate_of(kw_gemm_tiles_estimate(problem_of(p), kernel_of(t, *place.arch), device, place.most_us));
}

Estimate estimate(const kw_grouped_gemm_problem& p, const kw_gemm_traits& t, const Place& place) {
  Estimate e;
  kw_gemm_tiles_Grouped sum = {};
  kw_machine_Device device = {};
  e.useful = 0;
  for (int64_t i = 0; i < p.group_count; ++i) {
    const kw_gemm_problem one = kw_problem_of_group(&p, &p.groups[i]);
    if (one.m == 0 || one.n == 0) continue;
    device = device_of(place, one.dtype_a);
    if (place.arch->backend == KW_BACKEND_CPU) {
      add_on_processor(one, t, place, &e);
    } else {
      sum = kw_gemm_tiles_add_group(sum, problem_of(one), kernel_of(t, *place.arch), device);
    }
  }
  if (place.arch->backend != KW_BACKEND_CPU) return estimate_of(kw_gemm_tiles_estimate_groups(sum, device));
  e.useful = e.tiles > 0 ? e.useful / e.tiles : 1;
  e.waves = kw_ceil(e.tiles / place.compute_units);
  return e;
}

}  // namespace kernelwright
