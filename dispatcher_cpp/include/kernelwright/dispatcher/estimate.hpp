// The predicted time of a kernel on a problem, and where it would run.
#ifndef KERNELWRIGHT_DISPATCHER_ESTIMATE_HPP
#define KERNELWRIGHT_DISPATCHER_ESTIMATE_HPP

#include <math.h>

#include "kernelwright/abi.h"
#include "kernelwright/dispatcher/support/machine.h"

namespace kernelwright {

struct Estimate {
  double tiles = 0;  // of all of k; register blocks on CPU
  double waves = 0;
  double compute_us = 0;  // of all waves
  double fill_us = 0;     // of all waves; 0 on CPU
  double memory_us = 0;
  double total_us = 0;
  double useful = 1;  // share of the padded multiplications that the problem asked for
};

struct Place {
  const kw_arch* arch;
  uint32_t compute_units;  // > 0
  // An estimate that is sure to exceed it may end early: its total_us is then above this and at most what it would have
  // been, and the rest of it means nothing.
  double most_us = HUGE_VAL;
  bool slow_dots = false;  // whether dot products of bf16 are slower than multiplying in fp32, on a CPU
};

// The formulas that predict times on an architecture.
inline uint32_t times_of(const kw_arch& arch) {
  if (arch.times != 0) return arch.times;
  return arch.backend == KW_BACKEND_CUDA  ? KW_TIMES_HOPPER
         : arch.backend == KW_BACKEND_CPU ? KW_TIMES_PROCESSORS
                                          : KW_TIMES_TILES;
}

// A device as formulas see it, for operands of a type.
inline kw_machine_Device device_of(const Place& place, uint32_t dtype) {
  const kw_arch& arch = *place.arch;
  const double rate = dtype < 8 ? arch.flops_per_clock_per_cu[dtype] : 0.0;
  return {1.0 * place.compute_units,
          (arch.clock_ghz > 0 ? arch.clock_ghz : 1.0) * 1e3,
          (arch.memory_gbytes_per_s > 0 ? arch.memory_gbytes_per_s : 1.0) * 1e3,
          rate > 0 ? rate : 1.0,
          1.0 * arch.flops_per_clock_per_cu[KW_FP32],
          static_cast<double>(arch.lds_bytes)};
}

inline Estimate estimate_of(const kw_machine_Estimate& e) {
  return {e.tiles, e.waves, e.compute_us, e.fill_us, e.memory_us, e.total_us, e.useful};
}

// The whole part of a number that is not negative. Every number from 2^53 on is whole, and int64 does not hold the
// largest of them.
inline double whole_part(double value) {
  return value < 0x1p53 ? static_cast<double>(static_cast<int64_t>(value)) : value;
}
// The same as a count of 32 bits, at most the largest.
inline uint32_t whole_count(double value) {
  return value < static_cast<double>(UINT32_MAX) ? static_cast<uint32_t>(value) : UINT32_MAX;
}

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_ESTIMATE_HPP
