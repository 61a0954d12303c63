/* clang-format off */
/* Made of codegen/kernelwright/codegen/operations/convolution/formulas/cdna.py by `kernelwright formulas`, and explained there. */
#ifndef KW_CONVOLUTION_CDNA_H
#define KW_CONVOLUTION_CDNA_H

#include <stdbool.h>

#include "kernelwright/dispatcher/convolution/formulas/problem.h"
#include "kernelwright/dispatcher/convolution/formulas/tiles.h"
#include "kernelwright/dispatcher/support/cdna.h"
#include "kernelwright/dispatcher/support/machine.h"
#include "kernelwright/dispatcher/support/numbers.h"


static inline kw_machine_Estimate kw_convolution_cdna_estimate(KW_GIVEN(kw_convolution_problem_Problem) p, KW_GIVEN(kw_cdna_Kernel) t, double merged, double spare_dimensions, KW_GIVEN(kw_machine_Device) d, double most_us) {
  const kw_convolution_problem_Gemm g = kw_convolution_tiles_multiplied(p, merged);
  const double groups = kw_ceil(p.groups / merged);
  const double moved = kw_convolution_problem_moved_bytes(p);
  const double pixels = p.n * p.c * kw_convolution_problem_in_points(p);
  const double elements = g.m * g.k * groups;
  const double shared = elements > 0.0 && !p.backward_data && !p.backward_weight ? kw_min(1.0, pixels / elements) : 1.0;
  const kw_machine_Estimate e = kw_cdna_implicit(KW_RECORD(kw_cdna_Implicit, g.m, g.n, g.k, groups, p.split, p.size, moved, shared), t, d, most_us);
  const double slower = kw_convolution_tiles_spare(spare_dimensions);
  return KW_RECORD(kw_machine_Estimate, e.tiles, e.waves, e.compute_us, e.fill_us, e.memory_us, e.total_us * slower, e.useful);
}

#endif /* KW_CONVOLUTION_CDNA_H */
