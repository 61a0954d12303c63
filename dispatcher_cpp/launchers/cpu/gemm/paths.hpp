// One planned problem, in the way that its plan chose.
#ifndef KERNELWRIGHT_CPU_LAUNCHERS_GEMM_PATHS_HPP
#define KERNELWRIGHT_CPU_LAUNCHERS_GEMM_PATHS_HPP

#include "launchers/cpu/gemm/driver.hpp"
#include "launchers/cpu/gemm/skinny_driver.hpp"
#include "launchers/cpu/gemm/tiles.hpp"

namespace kernelwright::cpu {

inline void run_direct(const gemm_kernel& kernel, const gemm_plan& plan, const product& args) {
  const kw_gemm_problem& p = plan.problem;
  const bool a_rows = p.layout_a == KW_ROW_MAJOR;
  direct_block b = {};
  b.rows = p.m;
  b.cols = p.n;
  b.depth = p.k;
  b.a = static_cast<const float*>(args.a);
  b.a_row = a_rows ? p.lda : 1;
  b.a_step = a_rows ? 1 : p.lda;
  b.b = static_cast<const float*>(args.b);
  b.b_step = p.ldb;
  if (p.layout_b != KW_ROW_MAJOR) {
    kernel.pack_b(args.workspace, args.b, p.ldb, p.n, p.k);
    b.b = static_cast<const float*>(args.workspace);
    b.b_step = kernel.traits.warp_tile_n;
    b.panel_stride = panel_units(kernel.traits.warp_tile_n, p.k);
  }
  b.to = output_at(kernel, p, args, 0, 0);
  kernel.direct(b);
}

inline void launch(const gemm_kernel& kernel, const gemm_plan& plan, const product& args) {
  switch (plan.way) {
    case path::kDirect:
      return run_direct(kernel, plan, args);
    case path::kSkinny:
      return skinny_job(kernel, plan, args).run();
    case path::kTiles:
      return tiles_job(kernel, plan, args).run();
    case path::kPacked:
      return gemm_job(kernel, plan, args).run();
  }
}

}  // namespace kernelwright::cpu

#endif  // KERNELWRIGHT_CPU_LAUNCHERS_GEMM_PATHS_HPP
