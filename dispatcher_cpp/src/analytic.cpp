#include "tilewright/dispatcher/analytic.hpp"

#include "tilewright/dispatcher/problem.hpp"

namespace tilewright {
namespace {

double ceil_div(int64_t extent, uint32_t quantum) {
  return static_cast<double>(extent / quantum + (extent % quantum != 0 ? 1 : 0));
}

double rate(const tw_arch& arch, uint32_t dtype) {
  const double stated = dtype < 8 ? arch.flops_per_clock_per_cu[dtype] : 0.0;
  return stated > 0 ? stated : 1.0;
}

double max(double left, double right) { return left > right ? left : right; }

// Of a register block, per warp_tile_k steps along k.
double block_clocks(const tw_arch& arch, const tw_gemm_traits& t) {
  const double lanes = max(1.0, rate(arch, t.warp_tile_k > 1 ? t.dtype_a : uint32_t{TW_FP32}) / (4.0 * t.warp_tile_k));
  const double vectors = t.warp_tile_n / lanes;
  return max(max(t.warp_tile_m * vectors, t.warp_tile_m + vectors), 8.0) / 2.0;
}

}  // namespace

Estimate estimate(const tw_gemm_problem& p, const tw_arch& arch, const tw_gemm_traits& t, uint32_t compute_units) {
  Estimate e;
  if (p.m == 0 || p.n == 0) return e;
  const bool cpu = arch.backend == TW_BACKEND_CPU;
  const uint32_t quantum_m = cpu ? t.warp_tile_m : t.tile_m;
  const uint32_t quantum_n = cpu ? t.warp_tile_n : t.tile_n;
  const uint32_t quantum_k = cpu ? t.warp_tile_k : t.tile_k;
  const double split = p.split_k;
  const double units = compute_units;

  e.tiles = ceil_div(p.m, quantum_m) * ceil_div(p.n, quantum_n) * split;
  const double full_waves = static_cast<double>(static_cast<int64_t>(e.tiles / units));
  e.waves = full_waves + (full_waves * units < e.tiles ? 1 : 0);

  const double k_steps = ceil_div(p.k, quantum_k);
  const double slice = static_cast<double>(static_cast<int64_t>((k_steps + split - 1) / split)) * quantum_k;
  const double clocks_per_us = (arch.clock_ghz > 0 ? arch.clock_ghz : 1.0) * 1e3;
  const double tile_compute = (cpu ? block_clocks(arch, t) * slice / t.warp_tile_k
                                   : 2.0 * quantum_m * quantum_n * slice / rate(arch, p.dtype_a)) /
                              clocks_per_us;

  const double m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  const double operands = m * k * ceil_div(p.n, t.tile_n) * dtype_bytes(p.dtype_a) +
                          n * k * ceil_div(p.m, t.tile_m) * dtype_bytes(p.dtype_b);
  const double passes = cpu ? 2.0 * max(1.0, ceil_div(p.k, t.tile_k)) - 1.0 : split;  // over the results
  const double results = m * n * dtype_bytes(p.dtype_c) * (passes + (p.beta != 0.0 ? 1.0 : 0.0));
  const double bytes_per_us = (arch.memory_gbytes_per_s > 0 ? arch.memory_gbytes_per_s : 1.0) * 1e3;
  const double tile_memory = (operands + results) / e.tiles * (units < e.tiles ? units : e.tiles) / bytes_per_us;

  e.compute_us = e.waves * tile_compute;
  e.memory_us = e.waves * tile_memory;
  e.total_us = cpu ? e.compute_us + e.memory_us : max(e.compute_us, e.memory_us);
  const double padded = e.tiles * quantum_m * quantum_n * slice;
  e.useful = padded > 0 ? m * n * k / padded : 1.0;
  return e;
}

}  // namespace tilewright
