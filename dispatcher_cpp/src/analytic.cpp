#include "tilewright/dispatcher/analytic.hpp"

#include "tilewright/dispatcher/problem.hpp"

namespace tilewright {
namespace {

constexpr double kFillBytesPerClock = 48;

double ceil_div(int64_t extent, uint32_t quantum) {
  return static_cast<double>(extent / quantum + (extent % quantum != 0 ? 1 : 0));
}

// Of a quotient that is small enough to be counted: tiles, steps.
double ceiling(double value) {
  const double whole = static_cast<double>(static_cast<int64_t>(value));
  return whole < value ? whole + 1 : whole;
}

double rate(const tw_arch& arch, uint32_t dtype) {
  const double stated = dtype < 8 ? arch.flops_per_clock_per_cu[dtype] : 0.0;
  return stated > 0 ? stated : 1.0;
}

double max(double left, double right) { return left > right ? left : right; }
double min(double left, double right) { return left < right ? left : right; }

// Of a register block, per warp_tile_k steps along k.
double block_clocks(const tw_arch& arch, const tw_gemm_traits& t) {
  const double lanes = max(1.0, rate(arch, t.warp_tile_k > 1 ? t.dtype_a : uint32_t{TW_FP32}) / (4.0 * t.warp_tile_k));
  const double vectors = t.warp_tile_n / lanes;
  return max(max(t.warp_tile_m * vectors, t.warp_tile_m + vectors), 8.0) / 2.0;
}

// Bytes per step of k that v tiles side by side need: panels of bytes_a per row and bytes_b per column of tiles, in the
// rectangle that needs least. v is at most tiles_m * tiles_n.
double shared_panels(double v, double tiles_m, double tiles_n, double bytes_a, double bytes_b) {
  double least = v * (bytes_a + bytes_b);
  for (double rows = 1;; rows *= 2) {
    const double r = min(rows, tiles_m);
    if (v / r <= tiles_n) least = min(least, r * bytes_a + max(1.0, v / r) * bytes_b);
    if (r >= min(tiles_m, v)) return least;
  }
}

double operand_bytes(const tw_gemm_problem& p, const tw_gemm_traits& t, bool cpu, double concurrent) {
  const double m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  const double tiles_m = ceil_div(p.m, t.tile_m), tiles_n = ceil_div(p.n, t.tile_n);
  const double bytes_a = m * dtype_bytes(p.dtype_a), bytes_b = n * dtype_bytes(p.dtype_b);
  if (cpu) return k * (bytes_a * tiles_n + bytes_b * tiles_m);
  const double v = max(1.0, concurrent / p.split_k);
  return tiles_m * tiles_n / v * k * shared_panels(v, tiles_m, tiles_n, bytes_a / tiles_m, bytes_b / tiles_n);
}

}  // namespace

Estimate estimate(const tw_gemm_problem& p, const tw_arch& arch, const tw_gemm_traits& t, uint32_t compute_units) {
  Estimate e;
  if (p.m == 0 || p.n == 0) return e;
  const bool cpu = arch.backend == TW_BACKEND_CPU;
  const uint32_t quantum_m = cpu ? t.warp_tile_m : t.tile_m;
  const uint32_t quantum_n = cpu ? t.warp_tile_n : t.tile_n;
  const uint32_t quantum_k = cpu ? t.warp_tile_k : t.tile_k;
  const double split = p.split_k, units = compute_units;
  const double clocks_per_us = (arch.clock_ghz > 0 ? arch.clock_ghz : 1.0) * 1e3;
  const double bytes_per_us = (arch.memory_gbytes_per_s > 0 ? arch.memory_gbytes_per_s : 1.0) * 1e3;

  e.tiles = ceil_div(p.m, quantum_m) * ceil_div(p.n, quantum_n) * split;
  e.waves = ceiling(e.tiles / units);
  const double slice = ceiling(ceil_div(p.k, quantum_k) / split) * quantum_k;
  const double tile_clocks =
      cpu ? block_clocks(arch, t) * slice / t.warp_tile_k : 2.0 * quantum_m * quantum_n * slice / rate(arch, p.dtype_a);
  e.compute_us = e.waves * tile_clocks / clocks_per_us;
  if (!cpu) {
    const double step = 1.0 * t.tile_m * dtype_bytes(p.dtype_a) + 1.0 * t.tile_n * dtype_bytes(p.dtype_b);
    e.fill_us = e.waves * step * slice / kFillBytesPerClock / clocks_per_us;
  }

  const double m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  const double passes = cpu ? 2.0 * max(1.0, ceil_div(p.k, t.tile_k)) - 1.0 : split;  // over the results
  const double results = m * n * dtype_bytes(p.dtype_c) * (passes + (p.beta != 0.0 ? 1.0 : 0.0));
  e.memory_us = (operand_bytes(p, t, cpu, min(units, e.tiles)) + results) / bytes_per_us;

  e.total_us = cpu ? e.compute_us + e.memory_us : max(max(e.compute_us, e.fill_us), e.memory_us);
  const double padded = e.tiles * quantum_m * quantum_n * slice;
  e.useful = padded > 0 ? m * n * k / padded : 1.0;
  return e;
}

}  // namespace tilewright
