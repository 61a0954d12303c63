// The predicted time of a kernel on a problem, and where it would run.
#ifndef KERNELWRIGHT_DISPATCHER_ESTIMATE_HPP
#define KERNELWRIGHT_DISPATCHER_ESTIMATE_HPP

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
};

}  // namespace kernelwright

#endif  // KERNELWRIGHT_DISPATCHER_ESTIMATE_HPP
