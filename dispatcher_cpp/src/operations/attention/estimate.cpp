// See estimate_attention in problem.hpp.
#include <stddef.h>

#include "kernelwright/attention/checks.h"
#include "kernelwright/dispatcher/attention/problem.hpp"
#include "kernelwright/dispatcher/features.hpp"

namespace kernelwright {
namespace {

constexpr double kFillBytesPerClock = 48;  // as in gemm/analytic.hpp
constexpr double kSecondLaunchUs = 4;      // likewise
// Of NVIDIA GPUs: fitted to benchmarks/results/h200_attention_tuning_all_bf16_20261122.csv.gz by
// benchmarks/selection/fit_estimates.py, what tells wgmma kernels apart to measurements of their tiles.
constexpr double kSpareMask = 1.05;  // of a kernel for more masks than the problem needs
constexpr double kStreamed = 1.0;    // of the memory's bandwidth when all units read
// Clocks of a key, and bytes of K and V in another one: of a block by itself, and of those that share a compute unit.
constexpr double kAloneClocks = 18.48, kAloneBytes = 35.31, kSharedClocks = 3.676, kSharedBytes = 32.42;
// Of wgmma kernels: the work of a query and a key is so many products by the peak rate; the rest is softmax, of which
// three groups of warps hide more than two. Each tile has first scores and last products that nothing overlaps.
constexpr double kProductShare = 1.12, kSoftmaxWork = 110, kSoftmaxWorkOfThree = 87, kTileUs = 2;
constexpr double kTilesLaunchUs = 7.064;                         // of a launch of a wgmma kernel
constexpr double kLaunchUs = 0.9966, kWaveUs = 2.786;            // of a part, and of each wave of its blocks
constexpr double kCombineUs = 2.986, kCombineSplitUs = 0.08997;  // of the second stage, and of each split in it
constexpr double kSlowDot = 3.7;                                 // as in gemm/analytic_cpu.cpp
// Of a thread of a CPU: bytes of memory, what it waits for the last of the others (a share of a task), rows that take
// as long as fewer, and clocks of a value that a split leaves.
constexpr double kThreadBytesPerUs = 12000, kLastTask = 0.5, kFewRows = 4, kPartialClocks = 10;
// Between kernels that are predicted to be equal, a lower rank decides.
constexpr double kRank = 1e-9;

double max(double left, double right) { return left > right ? left : right; }

double ceil_div(double extent, double quantum) {
  const double quotient = extent / quantum, whole = static_cast<double>(static_cast<int64_t>(quotient));
  return whole < quotient ? whole + 1 : whole;
}

double rate(const kw_arch& arch, uint32_t dtype) {
  const double stated = dtype < 8 ? arch.flops_per_clock_per_cu[dtype] : 0.0;
  return stated > 0 ? stated : 1.0;
}

double clocks_per_us(const kw_arch& arch) { return (arch.clock_ghz > 0 ? arch.clock_ghz : 1.0) * 1e3; }

// Bytes per microsecond.
double bandwidth(const kw_arch& arch) { return (arch.memory_gbytes_per_s > 0 ? arch.memory_gbytes_per_s : 1.0) * 1e3; }

// Of a CPU's threads, which reach a share of what all of its cores do.
double bandwidth(const Place& place) {
  const double stated = bandwidth(*place.arch), threads = kThreadBytesPerUs * place.compute_units;
  return place.arch->backend == KW_BACKEND_CPU && threads < stated ? threads : stated;
}

// Operations per clock. Kernels for CPUs multiply in fp32, but for those that need dot products of bf16.
double rate_of(const kw_kernel& kernel, const kw_attention_problem& p, const Place& place) {
  if (place.arch->backend != KW_BACKEND_CPU) return rate(*place.arch, p.dtype_q);
  int length = 0;
  const bool dots = missing_feature("avx512_bf16", kernel.features, &length) == nullptr;
  return dots ? rate(*place.arch, KW_BF16) / (place.slow_dots ? kSlowDot : 1) : rate(*place.arch, KW_FP32);
}

// A typical request.
struct Shape {
  double requests, heads_q, heads_kv, queries, keys, hdim_q, hdim_v;
};

Shape shape_of(const kw_attention_problem& p) {
  const double batch = static_cast<double>(p.batch > 0 ? p.batch : 1);
  Shape s = {batch,
             static_cast<double>(p.heads_q),
             static_cast<double>(p.heads_kv),
             static_cast<double>(p.max_seqlen_q),
             static_cast<double>(p.max_seqlen_k),
             static_cast<double>(p.hdim_q),
             static_cast<double>(p.hdim_v)};
  if (p.group != 0) s.queries = static_cast<double>(p.total_q) / batch;
  if (p.total_k > 0) s.keys = static_cast<double>(p.total_k) / batch;
  return s;
}

// The part of queries x keys that the mask lets through: the mean over some rows.
double visible_part(const kw_attention_problem& p, const Shape& s) {
  if (p.mask == KW_MASK_NONE || s.keys <= 0 || s.queries <= 0) return 1;
  constexpr int kRows = 16;
  double seen = 0;
  for (int i = 0; i < kRows; ++i) {
    double place = s.queries * (i + 0.5) / kRows;
    if (p.mask == KW_MASK_BOTTOM_RIGHT) place += s.keys - s.queries;
    const double first = p.window_left < 0 ? 0 : max(0, place - static_cast<double>(p.window_left));
    double last = p.window_right < 0 ? s.keys : place + 1 + static_cast<double>(p.window_right);
    if (last > s.keys) last = s.keys;
    seen += max(0, last - first);
  }
  return max(seen / (kRows * s.keys), 1 / s.keys);
}

// How many keys a tile of queries reads, in whole tiles of keys: the mean over some tiles.
double keys_of_tile(const kw_attention_problem& p, const Shape& s, double tile_m, double tile_n) {
  if (p.mask == KW_MASK_NONE || s.keys <= 0 || s.queries <= 0) return ceil_div(s.keys, tile_n) * tile_n;
  constexpr int kMost = 16;
  const double tiles = ceil_div(s.queries, tile_m);
  const int some = tiles < kMost ? static_cast<int>(tiles) : kMost;
  double read = 0;
  for (int i = 0; i < some; ++i) {
    double place = static_cast<double>(static_cast<int64_t>(tiles * (i + 0.5) / some)) * tile_m;
    if (p.mask == KW_MASK_BOTTOM_RIGHT) place += s.keys - s.queries;
    const double first = p.window_left < 0 ? 0 : max(0, place - static_cast<double>(p.window_left));
    double last = p.window_right < 0 ? s.keys : max(0, place + tile_m + static_cast<double>(p.window_right));
    if (last > s.keys) last = s.keys;
    read += max(0, ceil_div(last, tile_n) - static_cast<double>(static_cast<int64_t>(first / tile_n)));
  }
  return max(read / some, 1) * tile_n;
}

double row_bytes(const kw_attention_problem& p, const Shape& s) {
  return s.requests * s.queries * s.heads_q *
         (s.hdim_q * kw_dtype_bytes(p.dtype_q) + s.hdim_v * kw_dtype_bytes(p.dtype_o));
}

double key_bytes(const kw_attention_problem& p, const Shape& s) {
  return s.keys * (s.hdim_q + s.hdim_v) * kw_dtype_bytes(p.dtype_kv);
}

// Head dimensions as the kernel multiplies them.
double padded(uint32_t built, double asked) { return built > asked ? built : asked; }

double units_of(const kw_attention_traits& t, const Place& place) {
  return static_cast<double>(place.compute_units) * (t.blocks_per_cu > 1 ? t.blocks_per_cu : 1);
}

// Blocks of a kernel without splits.
double tiles_of(const kw_attention_traits& t, const Shape& s) {
  const double shared = t.packs_heads != 0 ? s.heads_q / s.heads_kv : 1;
  return ceil_div(s.queries * shared, t.tile_m0) * s.heads_q / shared * s.requests;
}

// Tiles of a compute unit of a wgmma kernel: where masks or lengths make them unequal, units take them one by one.
double rounds_of(const kw_attention_problem& p, const Estimate& e, const kw_attention_traits& t, const Place& place) {
  return p.mask != KW_MASK_NONE || p.group != 0 ? max(1, e.tiles / units_of(t, place)) : e.waves;
}

void settle(const kw_attention_problem& p, const kw_attention_traits& t, const kw_arch& arch, Estimate* e) {
  const uint32_t kind = kw_attention_mask_kind(&p);
  if ((t.masks & KW_SERVES(kind)) == 0) e->compute_us *= kSpareMask;
  e->total_us =
      arch.backend == KW_BACKEND_CPU ? e->compute_us + e->memory_us : max(max(e->compute_us, e->fill_us), e->memory_us);
  e->total_us *= 1 + kRank * t.selection_rank;
}

// Blocks that each read keys of their own, of so many bytes each, one wave after the other. A wave takes as long as one
// block does, as the blocks that share a unit do, or as memory does for all of them; `readers` blocks read the same.
double streaming_us(double blocks, const kw_attention_traits& t, const Place& place, double keys, double key_bytes,
                    double readers) {
  const double units = units_of(t, place), memory = kStreamed * bandwidth(*place.arch);
  const auto wave = [&](double count) {
    const double alone = kAloneClocks + key_bytes / kAloneBytes, shared = kSharedClocks + key_bytes / kSharedBytes;
    const double clocks = keys * max(alone, ceil_div(count, place.compute_units) * shared);
    return kWaveUs + max(clocks / clocks_per_us(*place.arch), count * keys * key_bytes / readers / memory);
  };
  const double whole = static_cast<double>(static_cast<int64_t>(blocks / units)), rest = blocks - whole * units;
  return whole * wave(units) + (rest > 0 ? wave(rest) : 0);
}

// Rows of a block of a CPU kernel, in which heads that share K and V stand one below the other. Few rows take as long
// as some more, since K and V are read for them.
double rows_of(const kw_attention_traits& t, const Shape& s) {
  const double rows = max(kFewRows, s.queries * s.heads_q / s.heads_kv);
  return rows < t.tile_m0 ? rows : t.tile_m0;
}

// Tasks of the busiest thread of a CPU: threads take one after another.
double tasks_of(double tiles, double threads) { return max(1, tiles / threads + kLastTask * (1 - 1 / threads)); }

Estimate part(const kw_attention_problem& p, const kw_attention_traits& t, const Place& place, double rate) {
  const kw_arch& arch = *place.arch;
  const Shape s = shape_of(p);
  const double splits = p.num_splits > 1 ? p.num_splits : 1;
  const double seen = visible_part(p, s), clocks = clocks_per_us(arch),
               per_cu = t.blocks_per_cu > 1 ? t.blocks_per_cu : 1;
  const bool cuda = arch.backend == KW_BACKEND_CUDA, streams = cuda && t.packs_heads != 0, wgmma = cuda && !streams;
  const double read = wgmma ? keys_of_tile(p, s, t.tile_m0, t.tile_n0) : s.keys * seen;
  const double keys = ceil_div(read / splits, t.tile_n0) * t.tile_n0;
  const bool cpu = arch.backend == KW_BACKEND_CPU;
  const double hdims = cpu ? s.hdim_q + s.hdim_v : padded(t.hdim_q, s.hdim_q) + padded(t.hdim_v, s.hdim_v);
  Estimate e;
  e.tiles = tiles_of(t, s) * splits;
  e.waves = ceil_div(e.tiles, units_of(t, place));
  const double rows = cpu ? rows_of(t, s) : t.tile_m0;
  const double softmax = t.tile_m0 > 128 ? kSoftmaxWorkOfThree : kSoftmaxWork;
  const double work = wgmma ? kProductShare * hdims + softmax : hdims;
  const double tile_us = per_cu * 2 * rows * keys * work / rate / clocks;
  e.compute_us = wgmma ? rounds_of(p, e, t, place) * (tile_us + kTileUs)
                       : (cpu ? tasks_of(e.tiles, units_of(t, place)) : e.waves) * tile_us;
  if (streams) {
    const double readers = tiles_of(t, s) / (s.requests * s.heads_kv);
    e.fill_us = streaming_us(e.tiles, t, place, keys, hdims * kw_dtype_bytes(p.dtype_kv), readers);
  } else if (!cpu) {
    e.fill_us = e.waves * per_cu * keys * hdims * kw_dtype_bytes(p.dtype_kv) / kFillBytesPerClock / clocks;
  }
  const double partial = p.leaves_splits == 1 ? 4 * splits * s.requests * s.queries * s.heads_q * (s.hdim_v + 1) : 0;
  e.memory_us = (row_bytes(p, s) + s.requests * s.heads_kv * key_bytes(p, s) + 2 * partial) / bandwidth(place);
  const double asked = s.requests * s.heads_q * s.queries * s.keys * seen * (s.hdim_q + s.hdim_v);
  const double done = e.tiles * rows * keys * hdims;
  e.useful = done > asked ? asked / done : 1;
  if (cpu) e.memory_us += partial / 4 * kPartialClocks / place.compute_units / clocks;
  settle(p, t, arch, &e);
  if (streams) {
    e.total_us += kLaunchUs + (p.leaves_splits == 1 ? kCombineUs + kCombineSplitUs * splits : 0);
  } else if (cuda) {
    e.total_us += kTilesLaunchUs + (p.leaves_splits == 1 ? kSecondLaunchUs : 0);
  } else if (p.leaves_splits == 1) {
    e.total_us += kSecondLaunchUs;
  }
  return e;
}

double work(const kw_attention_traits& t) {
  const bool stated = t.struct_size > offsetof(kw_attention_traits, work_percent) && t.work_percent > 0;
  return stated ? t.work_percent / 100.0 : 1;
}

Estimate gradients(const kw_attention_problem& p, const kw_attention_traits& t, const Place& place, double rate) {
  const kw_arch& arch = *place.arch;
  const Shape s = shape_of(p);
  const double tile_m = t.tile_m0 > 0 ? t.tile_m0 : 1, tile_n = t.tile_n0 > 0 ? t.tile_n0 : 1;
  const double queries = ceil_div(s.queries * visible_part(p, s), tile_m) * tile_m;
  const double hdims = work(t) * (3 * padded(t.hdim_q, s.hdim_q) + 2 * padded(t.hdim_v, s.hdim_v));
  Estimate e;
  e.tiles = ceil_div(s.keys, tile_n) * s.heads_q * s.requests;
  e.waves = ceil_div(e.tiles, units_of(t, place));
  const double per_cu = t.blocks_per_cu > 1 ? t.blocks_per_cu : 1;
  e.compute_us = e.waves * per_cu * 2 * tile_n * queries * hdims / rate / clocks_per_us(arch);
  const double sums = 8.0 * p.dq_slices * s.requests * s.queries * s.heads_q * s.hdim_q;
  e.memory_us = (2 * row_bytes(p, s) + 2 * s.requests * s.heads_kv * key_bytes(p, s) + sums) / bandwidth(arch);
  settle(p, t, arch, &e);
  if (p.dq_slices > 0) e.total_us += kSecondLaunchUs;
  return e;
}

Estimate moved(double bytes, const kw_attention_traits& t, const Place& place) {
  Estimate e;
  e.memory_us = bytes / bandwidth(place);
  e.total_us = e.memory_us * (1 + kRank * t.selection_rank);
  return e;
}

}  // namespace

uint32_t splits_that_fill(const kw_attention_traits& traits, const kw_attention_problem& problem, const Place& place) {
  const double tiles = tiles_of(traits, shape_of(problem));
  return tiles > 0 ? static_cast<uint32_t>(units_of(traits, place) / tiles) : 0;
}

Estimate estimate_attention(const kw_kernel& kernel, const kw_problem& problem, const Place& place) {
  const kw_attention_problem& p = as_attention(problem);
  const kw_attention_traits& t = attention_traits(kernel);
  if (problem.op == KW_OP_ATTENTION_PART) return part(p, t, place, rate_of(kernel, p, place));
  if (problem.op == KW_OP_ATTENTION_DQ_DK_DV) return gradients(p, t, place, rate_of(kernel, p, place));
  const Shape s = shape_of(p);
  const double rows = s.requests * s.queries * s.heads_q;
  const double out_q = rows * s.hdim_q * kw_dtype_bytes(p.dtype_q), out_v = rows * s.hdim_v * kw_dtype_bytes(p.dtype_o);
  if (problem.op == KW_OP_ATTENTION_DOT) return moved(2 * out_v, t, place);
  if (problem.op == KW_OP_ATTENTION_COMBINE) return moved(4.0 * p.num_splits * rows * s.hdim_v + out_v, t, place);
  return moved(4.0 * p.dq_slices * rows * s.hdim_q + out_q, t, place);
}

Estimate estimate_append(const kw_kernel& kernel, const kw_problem& problem, const Place& place) {
  const kw_append_problem& p = as_append(problem);
  const int64_t keys = p.heads_kv * p.seqlen_new * (p.hdim_q + p.hdim_v), queries = p.heads_q * p.seqlen_q * p.hdim_q;
  const double elements = 2.0 * static_cast<double>(p.batch) * static_cast<double>(keys + queries);
  return moved(elements * kw_dtype_bytes(p.dtype), attention_traits(kernel), place);
}

}  // namespace kernelwright
