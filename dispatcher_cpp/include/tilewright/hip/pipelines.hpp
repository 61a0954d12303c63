// CK Tile's GEMM pipelines with the main loop and the tail chosen at run time, so that one kernel serves every K.
//
// Upstream compiles one kernel per (main loop, tail) and picks on the host. Here each pipeline is asked for all of its
// bodies and branches once, on a scalar. The rules are written out: CK's own are missing on the device (v6, async), or
// enter the main loop one tile too early (v4, async: wrong results for exactly three K tiles).
#ifndef TILEWRIGHT_HIP_PIPELINES_HPP
#define TILEWRIGHT_HIP_PIPELINES_HPP

// CK's pipeline headers use these without including them.
#include "ck_tile/core.hpp"
#include "ck_tile/ops/gemm/block/block_gemm_areg_breg_creg_v1.hpp"
#include "ck_tile/ops/gemm/block/block_gemm_areg_breg_creg_v1_custom_policy.hpp"
#include "ck_tile/ops/gemm/block/block_gemm_asmem_bsmem_creg_v1_custom_policy.hpp"
#include "ck_tile/ops/gemm/block/block_universal_gemm_as_bs_cr.hpp"
#include "ck_tile/ops/gemm/pipeline/gemm_pipeline_ag_bg_cr_comp_async.hpp"
#include "ck_tile/ops/gemm/pipeline/gemm_pipeline_ag_bg_cr_comp_v3.hpp"
#include "ck_tile/ops/gemm/pipeline/gemm_pipeline_ag_bg_cr_comp_v4.hpp"
#include "ck_tile/ops/gemm/pipeline/gemm_pipeline_ag_bg_cr_comp_v6.hpp"
#include "ck_tile/ops/gemm/pipeline/gemm_pipeline_ag_bg_cr_mem.hpp"

namespace tilewright::hip {

using ck_tile::index_t;
using ck_tile::TailNumber;

// CK's rule holds as it is: the tail finishes 1..PrefetchStages tiles.
template <class Base>
struct own_rule {
  static constexpr int min_loops = 1;
  CK_TILE_DEVICE static constexpr bool hot(index_t loops) { return Base::BlockHasHotloop(loops); }
  CK_TILE_DEVICE static constexpr TailNumber tail(index_t loops) { return Base::GetBlockLoopTailNum(loops); }
};

// v4 and async consume two tiles per turn of the main loop and two or three in the tail.
struct ping_pong_rule {
  static constexpr int min_loops = 1;
  CK_TILE_DEVICE static constexpr bool hot(index_t loops) { return loops > 3; }
  CK_TILE_DEVICE static constexpr TailNumber tail(index_t loops) {
    return loops == 1 ? TailNumber::One : loops % 2 == 1 ? TailNumber::Three : TailNumber::Two;
  }
};

// v6 has three tiles in flight and no body for a single tile.
struct prefetch3_rule {
  static constexpr int min_loops = 2;
  CK_TILE_DEVICE static constexpr bool hot(index_t loops) { return loops > 3; }
  CK_TILE_DEVICE static constexpr TailNumber tail(index_t loops) {
    return loops % 2 == 1 ? TailNumber::Odd : TailNumber::Even;
  }
};

template <class Base, class Rule>
struct runtime_tail : Base {
  static constexpr int min_loops = Rule::min_loops;

  // lds is one buffer or a ping-pong pair, as the pipeline asks.
  template <class AWindows, class AMap, class BWindows, class BMap, class... Lds>
  CK_TILE_DEVICE auto operator()(const AWindows& a, const AMap& a_map, const BWindows& b, const BMap& b_map,
                                 index_t loops, Lds... lds) const {
    const auto run = [&](auto hot, auto tail) {
      using body = typename Base::template PipelineImpl<Base::Scheduler>;
      return body{}.template operator()<hot.value, tail.value>(a, a_map, b, b_map, loops, lds...);
    };
    return Base::TailHandler(run, Rule::hot(loops), Rule::tail(loops));
  }
};

// With one K tile and with even counts async has loads beyond the last tile under way, straight into LDS, and no tail
// waits for them: they would arrive in what the epilogue writes there.
template <class Base, class Rule>
struct drained_tail : runtime_tail<Base, Rule> {
  template <class AWindows, class AMap, class BWindows, class BMap, class... Lds>
  CK_TILE_DEVICE auto operator()(const AWindows& a, const AMap& a_map, const BWindows& b, const BMap& b_map,
                                 index_t loops, Lds... lds) const {
    const auto c = runtime_tail<Base, Rule>::operator()(a, a_map, b, b_map, loops, lds...);
    ck_tile::block_sync_lds_direct_load<0>();
    return c;
  }
};

// The pipelines by the names of the specs: problem -> pipeline, whether it needs two LDS buffers, and how rows must be
// aligned (buffer loads of any width need 4 bytes; direct loads into LDS move 16 at a time).
struct mem {
  static constexpr bool two_lds_buffers = false;
  static constexpr int row_bytes = 4;
  template <class P>
  using type = runtime_tail<ck_tile::GemmPipelineAgBgCrMem<P>, own_rule<ck_tile::BaseGemmPipelineAgBgCrMem<P>>>;
};
struct compv3 {
  static constexpr bool two_lds_buffers = false;
  static constexpr int row_bytes = 4;
  template <class P>
  using type = runtime_tail<ck_tile::GemmPipelineAgBgCrCompV3<P>, own_rule<ck_tile::BaseGemmPipelineAgBgCrCompV3<P>>>;
};
struct compv4 {
  static constexpr bool two_lds_buffers = true;
  static constexpr int row_bytes = 4;
  template <class P>
  using type = runtime_tail<ck_tile::GemmPipelineAgBgCrCompV4<P>, ping_pong_rule>;
};
struct compv6 {
  static constexpr bool two_lds_buffers = false;
  static constexpr int row_bytes = 4;
  template <class P>
  using type = runtime_tail<ck_tile::GemmPipelineAgBgCrCompV6<P>, prefetch3_rule>;
};
struct comp_async {
  static constexpr bool two_lds_buffers = true;
  static constexpr int row_bytes = 16;
  template <class P>
  using type = drained_tail<ck_tile::GemmPipelineAgBgCrCompAsync<P>, ping_pong_rule>;
};

}  // namespace tilewright::hip

#endif
