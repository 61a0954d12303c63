#include "kernelwright/dispatcher/gemm/analytic.hpp"

#include "kernelwright/gemm/checks.h"

namespace kernelwright {
namespace {

constexpr double kFillBytesPerClock = 48;
// From the end of a kernel to the work of the one behind it. What sharing K costs on Hopper (kCutUs in
// analytic_cuda.cpp): nobody measured it on an AMD GPU.
constexpr double kSecondLaunchUs = 4;

double ceil_div(int64_t extent, uint32_t quantum) {
  return static_cast<double>(extent / quantum + (extent % quantum != 0 ? 1 : 0));
}

// Of a quotient that is small enough to be counted: tiles, steps.
double ceiling(double value) {
  const double whole = static_cast<double>(static_cast<int64_t>(value));
  return whole < value ? whole + 1 : whole;
}

double rate(const kw_arch& arch, uint32_t dtype) {
  const double stated = dtype < 8 ? arch.flops_per_clock_per_cu[dtype] : 0.0;
  return stated > 0 ? stated : 1.0;
}

double max(double left, double right) { return left > right ? left : right; }
double min(double left, double right) { return left < right ? left : right; }

struct Operands {
  double a, b;
};

// Bytes per step of k that v tiles side by side need: panels of bytes_a per row and bytes_b per column of tiles, in the
// rectangle that needs least. v is at most tiles_m * tiles_n.
Operands shared_panels(double v, double tiles_m, double tiles_n, double bytes_a, double bytes_b) {
  Operands least = {v * bytes_a, v * bytes_b};
  for (double rows = 1;; rows *= 2) {
    const double r = min(rows, tiles_m);
    const Operands found = {r * bytes_a, max(1.0, v / r) * bytes_b};
    if (v / r <= tiles_n && found.a + found.b < least.a + least.b) least = found;
    if (r >= min(tiles_m, v)) return least;
  }
}

// Bytes that one product of a batch reads.
Operands operand_bytes(const kw_gemm_problem& p, const kw_gemm_traits& t, double concurrent) {
  const double m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  const double tiles_m = ceil_div(p.m, t.tile_m), tiles_n = ceil_div(p.n, t.tile_n);
  const double bytes_a = m * kw_dtype_bytes(p.dtype_a), bytes_b = n * kw_dtype_bytes(p.dtype_b);
  const double v = max(1.0, min(concurrent / p.split_k, tiles_m * tiles_n)), rounds = tiles_m * tiles_n / v * k;
  const Operands panels = shared_panels(v, tiles_m, tiles_n, bytes_a / tiles_m, bytes_b / tiles_n);
  return {rounds * panels.a, rounds * panels.b};
}

// Bytes of what is neither A nor B: results, C and D tensors, sums of slices.
double result_bytes(const kw_gemm_problem& p) {
  const double m = static_cast<double>(p.m), n = static_cast<double>(p.n), batch = static_cast<double>(p.batch);
  const double bytes_c = kw_dtype_bytes(p.dtype_c);
  double bytes = m * n * (bytes_c * (1.0 + (p.beta != 0.0 ? 1.0 : 0.0)) + (p.split_k > 1 ? 8.0 * p.split_k : 0.0));
  bytes *= batch;
  for (uint32_t i = 0; i < p.num_d; ++i) {
    const double line = p.layout_c == KW_ROW_MAJOR ? n : m;
    const double one = bytes_c * (p.ld_multi_d[i] == 0 ? line : m * n);
    bytes += p.stride_multi_d[i] == 0 ? one : batch * one;
  }
  return bytes;
}

// What one tile of a problem takes, and how many there are.
struct Tiles {
  double count;   // of the whole batch, slices included
  double steps;   // of tile_k, per tile
  double clocks;  // per step
  double fill;    // bytes per step
  double volume;  // multiplications per step, padding included
};

Tiles tiles_of(const kw_gemm_problem& p, const kw_arch& arch, const kw_gemm_traits& t) {
  Tiles tiles;
  tiles.count = ceil_div(p.m, t.tile_m) * ceil_div(p.n, t.tile_n) * p.split_k * static_cast<double>(p.batch);
  tiles.steps = ceiling(ceil_div(p.k, t.tile_k) / p.split_k);
  tiles.volume = 1.0 * t.tile_m * t.tile_n * t.tile_k;
  tiles.clocks = 2.0 * tiles.volume / rate(arch, p.dtype_a);
  const double lines = 1.0 * t.tile_m * kw_dtype_bytes(p.dtype_a) + 1.0 * t.tile_n * kw_dtype_bytes(p.dtype_b);
  tiles.fill = lines * t.tile_k;
  return tiles;
}

double clocks_per_us(const kw_arch& arch) { return (arch.clock_ghz > 0 ? arch.clock_ghz : 1.0) * 1e3; }
double bytes_per_us(const kw_arch& arch) {
  return (arch.memory_gbytes_per_s > 0 ? arch.memory_gbytes_per_s : 1.0) * 1e3;
}

double memory_bytes(const kw_gemm_problem& p, const kw_gemm_traits& t, double concurrent) {
  const double batch = static_cast<double>(p.batch);
  const Operands operands = operand_bytes(p, t, concurrent);
  return operands.a * (p.stride_a == 0 ? 1.0 : batch) + operands.b * (p.stride_b == 0 ? 1.0 : batch) + result_bytes(p);
}

// Does the launcher add up what workgroups leave of K in memory, by a second kernel?
bool launches_twice(const kw_arch& arch, const kw_gemm_traits& t) {
  return arch.backend == KW_BACKEND_HIP && (t.max_split_k > 1 || t.stream_k != KW_STREAM_K_NONE);
}

// The second kernel overlaps with nothing. bytes: of what it reads and writes, which memory_us has already.
void add_second_launch(const kw_arch& arch, double bytes, Estimate* e) {
  const double second_us = bytes / bytes_per_us(arch);
  e->total_us = max(max(e->compute_us, e->fill_us), e->memory_us - second_us) + second_us + kSecondLaunchUs;
}

void total(Estimate* e) { e->total_us = max(max(e->compute_us, e->fill_us), e->memory_us); }

}  // namespace

Estimate estimate(const kw_gemm_problem& p, const kw_arch& arch, const kw_gemm_traits& t, uint32_t compute_units,
                  double most_us) {
  if (arch.backend == KW_BACKEND_CUDA) return estimate_cuda(p, arch, t, compute_units, most_us);
  if (arch.backend == KW_BACKEND_CPU) return estimate_cpu(p, t, {&arch, compute_units});
  Estimate e;
  if (p.m == 0 || p.n == 0) return e;
  const double units = compute_units;
  const Tiles tiles = tiles_of(p, arch, t);
  e.tiles = tiles.count;
  const bool stream = t.stream_k != KW_STREAM_K_NONE;
  e.waves = stream ? e.tiles / units : ceiling(e.tiles / units);
  const double steps = stream ? ceiling(e.tiles * tiles.steps / units) : e.waves * tiles.steps;  // of the busiest unit
  e.compute_us = steps * tiles.clocks / clocks_per_us(arch);
  e.fill_us = steps * tiles.fill / kFillBytesPerClock / clocks_per_us(arch);
  e.total_us = max(e.compute_us, e.fill_us);
  if (e.total_us > most_us) return e;  // whatever memory takes

  double bytes = memory_bytes(p, t, min(units, e.tiles)), left = 0;  // left: parts of sums, in memory
  if (stream) {
    left = 4.0 * t.tile_m * t.tile_n * min(units, e.tiles * tiles.steps);
    bytes += 2.0 * left;
  } else if (launches_twice(arch, t)) {
    left = 4.0 * p.split_k * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.batch);
    if (p.split_k == 1) bytes += 2.0 * left;
  }
  e.memory_us = bytes / bytes_per_us(arch);
  total(&e);
  if (launches_twice(arch, t)) add_second_launch(arch, left, &e);
  const double padded = tiles.count * tiles.steps * tiles.volume, batch = static_cast<double>(p.batch);
  const double asked = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) * batch;
  e.useful = padded > 0 ? asked / padded : 1.0;
  return e;
}

Estimate estimate(const kw_grouped_gemm_problem& p, const kw_arch& arch, const kw_gemm_traits& t,
                  uint32_t compute_units) {
  Estimate e;
  double clocks = 0, fill = 0, bytes = 0, asked = 0, padded = 0;
  for (int64_t i = 0; i < p.group_count; ++i) {
    const kw_gemm_problem one = kw_problem_of_group(&p, &p.groups[i]);
    if (one.m == 0 || one.n == 0) continue;
    const Tiles tiles = tiles_of(one, arch, t);
    e.tiles += tiles.count;
    clocks += tiles.count * tiles.steps * tiles.clocks;
    fill += tiles.count * tiles.steps * tiles.fill;
    bytes += memory_bytes(one, t, min(compute_units, tiles.count));
    asked += static_cast<double>(one.m) * static_cast<double>(one.n) * static_cast<double>(one.k);
    padded += tiles.count * tiles.steps * tiles.volume;
  }
  if (e.tiles == 0) return e;
  e.waves = ceiling(e.tiles / compute_units);
  const double waves_us = e.waves / e.tiles / clocks_per_us(arch);
  e.compute_us = clocks * waves_us;
  e.fill_us = fill * waves_us / kFillBytesPerClock;
  e.memory_us = bytes / bytes_per_us(arch);
  total(&e);
  e.useful = padded > 0 ? asked / padded : 1.0;
  return e;
}

}  // namespace kernelwright
