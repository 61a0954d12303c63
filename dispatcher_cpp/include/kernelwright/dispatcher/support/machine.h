/* clang-format off */
/* Made of codegen/kernelwright/codegen/formulas/machine.py by `kernelwright formulas`, and explained there. */
#ifndef KW_MACHINE_H
#define KW_MACHINE_H

#include <stdbool.h>

#include "kernelwright/dispatcher/support/numbers.h"


typedef struct kw_machine_Device {
  double units;
  double clocks_per_us;
  double bytes_per_us;
  double rate;
  double rate_fp32;
  double lds_bytes;
} kw_machine_Device;

typedef struct kw_machine_Estimate {
  double tiles;
  double waves;
  double compute_us;
  double fill_us;
  double memory_us;
  double total_us;
  double useful;
} kw_machine_Estimate;

#endif /* KW_MACHINE_H */
