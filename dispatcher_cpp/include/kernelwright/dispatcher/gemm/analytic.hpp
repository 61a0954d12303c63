// Predicts the time of a GEMM kernel from the architecture's numbers: tile and wave quantisation on a roofline.
//
// On a GPU, t_m t_n split_k = t tiles over U compute units need w = ceil(t/U) waves; u = min(U, t) run at a time.
//   k'      = ceil(ceil(k/tile_k) / split_k) tile_k
//   compute = w 2 tile_m tile_n k' / (flops per clock per unit * clock)
//   fill    = w (tile_m bytes_a + tile_n bytes_b) k' / (48 bytes per clock * clock): caches to one unit's LDS
//   memory  = (operands + results) / bandwidth
//   results = m n bytes_c (split_k + [beta != 0])
// and the launch takes the longest of the three. Padding is in the tiles and in k': a partial tile costs a whole one.
// With split_k > 1, slices pass their sums through memory in 4 bytes each: m n (8 split_k + bytes_c [1 + [beta != 0]]).
//
// On AMD GPUs a second launch adds slices up, 4 us behind the first, and overlaps with nothing: reading them, m n
// 4 split_k bytes, is taken out of the memory time and added to the whole. Stream-K's partial tiles likewise.
//
// A batch multiplies tiles and bytes, but for an operand that it shares, which is read once. D tensors are read once,
// m n bytes_c each or, as one line, n. Stream-K cuts t tiles of i steps into U equal parts, so nothing is quantised:
//   compute = ceil(t i / U) 2 tile_m tile_n tile_k / (flops per clock per unit * clock)
// and each unit writes and reads one partial tile in 4 bytes per element. Of a grouped problem all tiles share the
// units: w counts the tiles of all groups, and a wave takes the mean of their times; bytes add up.
//
// Tiles that run together share panels through the last-level cache. The v = max(1, u/split_k) output tiles of a wave
// are taken to be a rectangle of r rows and v/r columns of tiles, r the power of two (at most t_m) that reads least;
// memory then gives each row its panel of A once, and each column its panel of B:
//   operands = (t_m t_n / v) k (r (m/t_m) bytes_a + (v/r) (n/t_n) bytes_b)
//
// Hopper's kernels are warp-specialised, and their times were measured, so they have a formula of their own. Tiles come
// in whole clusters; w counts waves of them. A step along k takes the longer of
//   multiply = (tile_k bytes / 32) (rows / 64) max(2 64 columns (32 / bytes) / rate, 14 + columns / 4) 0.88
//   fill     = max((tile_m / cluster_n + tile_n / cluster_m) tile_k bytes / 108 + (tile_m + tile_n) tile_k bytes / 131,
//                  2043 / (stages - 1))
// clocks (of both where only two stages of operands fit), rows and columns being wgmma's (a kernel may compute the
// transposed product, which takes 2 % more), and 19 more for barriers, 58 in a cluster. A workgroup of a cluster asks
// for its share of the operands, and receives them all. A tile then takes tile_m tile_n bytes_c / 17 clocks to store,
// of which pingpong shows a quarter. Memory delivers 0.88 of its stated rate if each multiprocessor has 10 KB on the
// way. The launch takes the longer of both, 0.27 of the shorter, and 1 us. Slices of K are added up one after the
// other, each in 0.4 us and a clock for each 8 elements of its tile, after 6 us for the flags.
//
// On a CPU the time is that of the busiest thread, in clocks. Register blocks of r rows and v vectors, those at edges
// smaller, take
//   max(r v / 2, (r + v) / 2, 5) + r / 20
// per warp_tile_k steps along k: two multiply-add units of latency 4 need 8 sums in flight, and two loads fit in a
// clock. Dot products of bf16 take 3.7 times as long where the processor is slow at them. Packing does not overlap with
// multiplying, so it is added, by the vector; so is reading panels that other threads packed, passing sums from one
// cache block along k to the next, adding up slices, and waiting for the other threads after each stage. Problems of
// few rows or columns read their matrix where it lies: all kernels take them alike.
//
// The rates are peaks, so predictions are near lower bounds, but Hopper's: those are within 16 % (standard deviation).
//
// Sources: NVIDIA, Matrix Multiplication Background User's Guide, "Tile Quantization" and "Wave Quantization";
// Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009; NVIDIA A100 white paper (5120 bytes per clock from L2 to
// 108 SMs: 47 each) and AMD CDNA 3 white paper (2 KiB per clock from L2 to the 38 units of a die: 54 each), for fill;
// Low, Igual, Smith, Quintana-Orti, "Analytical Modeling Is Enough for High-Performance BLIS", ACM TOMS 43(2), 2016,
// section 4.2 (register blocks).
#ifndef KERNELWRIGHT_DISPATCHER_GEMM_ANALYTIC_HPP
#define KERNELWRIGHT_DISPATCHER_GEMM_ANALYTIC_HPP

#include "kernelwright/dispatcher/estimate.hpp"
#include "kernelwright/gemm.h"

namespace kernelwright {

// compute_units > 0. A dtype for which the architecture states no rate counts as one operation per clock: it ranks
// last.
// split_k > 0. An estimate above most_us may end early, as Place says.
Estimate estimate(const kw_gemm_problem& problem, const kw_arch& arch, const kw_gemm_traits& traits,
                  uint32_t compute_units, double most_us = HUGE_VAL);
Estimate estimate(const kw_grouped_gemm_problem& problem, const kw_arch& arch, const kw_gemm_traits& traits,
                  uint32_t compute_units);

// The same on a CPU, which estimate() calls.
Estimate estimate_cpu(const kw_gemm_problem& problem, const kw_gemm_traits& traits, const Place& place);
Estimate estimate_cpu(const kw_grouped_gemm_problem& problem, const kw_gemm_traits& traits, const Place& place);

// The same on an NVIDIA GPU, which estimate() calls.
Estimate estimate_cuda(const kw_gemm_problem& problem, const kw_arch& arch, const kw_gemm_traits& traits,
                       uint32_t multiprocessors, double most_us);

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_GEMM_ANALYTIC_HPP
