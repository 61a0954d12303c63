// The predicted time of a kernel on a problem, and where it would run.
#ifndef KERNELWRIGHT_DISPATCHER_ESTIMATE_HPP
#define KERNELWRIGHT_DISPATCHER_ESTIMATE_HPP

#include <math.h>

#include "kernelwright/abi.h"

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

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_ESTIMATE_HPP
