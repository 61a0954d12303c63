// Predicts the time of a GEMM kernel from the architecture's numbers: tile and wave quantisation on a roofline.
//
// With tiles t = ceil(m/q_m) ceil(n/q_n) split_k over U compute units, the device needs w = ceil(t/U) waves. A tile
// takes
//   compute = 2 q_m q_n k' / (flops per clock per unit * clock),  k' = ceil(ceil(k/q_k) / split_k) q_k
//   memory  = (bytes of all tiles / t) min(U, t) / bandwidth
//   bytes   = m k ceil(n/tile_n) bytes_a + n k ceil(m/tile_m) bytes_b + m n bytes_c (split_k + [beta != 0])
// and the launch w max(compute, memory). Padding is in q_m, q_n and k': a partial tile costs a whole one. Every tile
// reads its own operands (no cache between tiles is modelled), so memory is an upper bound that prefers large tiles.
//
// On a GPU the quantum q is the tile. On a CPU it is the register block (warp tile): the kernels there share the work
// in register blocks, and the tile, a cache block, decides how often memory is read. With v lanes per vector, a block
// takes
//   cycles = max(r, warp_tile_m + warp_tile_n / v, 8) / 2,  r = warp_tile_m warp_tile_n / v accumulators
// per warp_tile_k steps along k: two multiply-add units of latency 4 need 8 sums in flight, and two loads fit in a
// clock. v follows from the stated rate, 4 v warp_tile_k operations per clock: that of dtype A where warp_tile_k > 1
// (dot products), of fp32 otherwise (inputs are widened). The results pass through memory 2 ceil(k/tile_k) - 1 times,
// and packing does not overlap with multiplying, so the launch takes w (compute + memory).
//
// Sources: NVIDIA, Matrix Multiplication Background User's Guide, "Tile Quantization" and "Wave Quantization";
// Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009; Low, Igual, Smith, Quintana-Orti, "Analytical Modeling
// Is Enough for High-Performance BLIS", ACM TOMS 43(2), 2016, section 4.2 (register blocks).
#ifndef TILEWRIGHT_DISPATCHER_ANALYTIC_HPP
#define TILEWRIGHT_DISPATCHER_ANALYTIC_HPP

#include "tilewright/abi.h"

namespace tilewright {

struct Estimate {
  double tiles = 0;
  double waves = 0;
  double compute_us = 0;  // of all waves
  double memory_us = 0;
  double total_us = 0;
  double useful = 1;  // share of the padded multiplications that the problem asked for
};

// compute_units > 0. A dtype for which the architecture states no rate counts as one operation per clock: it ranks
// last.
Estimate estimate(const tw_gemm_problem& problem, const tw_arch& arch, const tw_gemm_traits& traits,
                  uint32_t compute_units);

}  // namespace tilewright

#endif  // TILEWRIGHT_DISPATCHER_ANALYTIC_HPP
