// CK Tile's GEMM pipelines with the main loop and the tail chosen at run time, so that one kernel serves every K.
//
// Upstream compiles one kernel per (main loop, tail) and picks on the host. Here each pipeline is asked for all of its
// bodies and branches once, on a scalar. The rules are written out: CK's own are missing on the device (v6, async), or
// enter the main loop one tile too early (v4, async: wrong results for exactly three K tiles).
#ifndef KERNELWRIGHT_HIP_GEMM_PIPELINES_HPP
#define KERNELWRIGHT_HIP_GEMM_PIPELINES_HPP

// CK's pipeline headers use these without including them.
#include "ck_tile/core.hpp"
#include "ck_tile/ops/gemm/block/block_gemm_areg_breg_creg_v1.hpp"
#include "ck_tile/ops/gemm/block/block_gemm_areg_breg_creg_v1_custom_policy.hpp"
#include "ck_tile/ops/gemm/block/block_gemm_asmem_bsmem_creg_v1_custom_policy.hpp"
#include "ck_tile/ops/gemm/block/block_universal_gemm_as_bs_cr.hpp"
#include "ck_tile/ops/gemm/block/block_wp_asmem_bsmem_creg_v1.hpp"
#include "ck_tile/ops/gemm/block/block_wp_asmem_bsmem_creg_v1_custom_policy.hpp"
#include "ck_tile/ops/gemm/pipeline/gemm_pipeline_ag_bg_cr_comp_async.hpp"
#include "ck_tile/ops/gemm/pipeline/gemm_pipeline_ag_bg_cr_comp_v3.hpp"
#include "ck_tile/ops/gemm/pipeline/gemm_pipeline_ag_bg_cr_comp_v4.hpp"
#include "ck_tile/ops/gemm/pipeline/gemm_pipeline_ag_bg_cr_comp_v6.hpp"
#include "ck_tile/ops/gemm/pipeline/gemm_pipeline_ag_bg_cr_mem.hpp"
#include "ck_tile/ops/gemm/pipeline/wp_pipeline_agmem_bgmem_creg_v2.hpp"

namespace kernelwright::hip {

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

// B permuted beforehand, so that what a lane multiplies at a time is contiguous and needs no LDS. A tile of K per turn
// of half the main loop, one or two in the tail.
template <class Base>
struct packed_tail : Base {
  static constexpr int min_loops = 1;
  template <class AWindows, class AMap, class BWindows, class BMap>
  CK_TILE_DEVICE auto operator()(const AWindows& a, const AMap& a_map, const BWindows& b, const BMap&, index_t loops,
                                 void* ping, void* pong) const {
    const auto& a0 = a[ck_tile::number<0>{}];
    const auto& b0 = b[ck_tile::number<0>{}];
    const auto run = [&](auto, auto tail) {
      const auto map = [&](const typename Base::ADataType& value) { return value; };
      return Base::template operator()<tail.value>(a0, map, b0, loops, ping, pong);
    };
    static_cast<void>(a_map);
    return Base::TailHandler(run, true, loops % 2 == 1 ? TailNumber::Odd : TailNumber::Even);
  }
};

// Multiplies 8-bit floats of two kinds. The pipelines move both operands as A's kind, whose bytes are not looked at,
// and only the matrix instruction is told B's.
template <class Same, class Mixed>
struct mixed_warp_gemm : Same {
  template <class C, class A, class B>
  CK_TILE_DEVICE void operator()(C& c, const A& a, const B& b) const {
    typename Mixed::BWarpTensor real;
    using bytes = ck_tile::remove_cvref_t<decltype(real.get_thread_buffer())>;
    real.get_thread_buffer() = __builtin_bit_cast(bytes, b.get_thread_buffer());
    Mixed{}(c, a, real);
  }
};

template <class B>
struct mixed_policy : ck_tile::UniversalGemmPipelineAgBgCrPolicy {
  template <class P, class Other>
  using dispatched = ck_tile::WarpGemmDispatcher<typename P::ADataType, Other, typename P::CDataType,
                                                 P::BlockGemmShape::WarpTile::at(ck_tile::number<0>{}),
                                                 P::BlockGemmShape::WarpTile::at(ck_tile::number<1>{}),
                                                 P::BlockGemmShape::WarpTile::at(ck_tile::number<2>{}), P::TransposeC>;
  template <class P>
  CK_TILE_HOST_DEVICE static constexpr auto GetBlockGemm() {
    using warp_gemm = mixed_warp_gemm<dispatched<P, typename P::ADataType>, dispatched<P, B>>;
    using policy = ck_tile::BlockGemmASmemBSmemCRegV1CustomPolicy<typename P::ADataType, typename P::BDataType,
                                                                  typename P::CDataType,
                                                                  typename P::BlockGemmShape::BlockWarps, warp_gemm>;
    return ck_tile::BlockUniversalGemmAsBsCr<P, policy>{};
  }
};
template <class P, class B>
using policy_for = std::conditional_t<std::is_same_v<typename P::BDataType, B>,
                                      ck_tile::UniversalGemmPipelineAgBgCrPolicy, mixed_policy<B>>;

// CK Tile transposes in registers as if it had chosen the vectors itself; here they are the problem's.
template <class Base>
struct fixed_vectors : Base {
  template <class P>
  CK_TILE_HOST_DEVICE static constexpr auto MakeShuffledARegTileDistribution() {
    return turned<P, P::BlockGemmShape::kM, P::VectorSizeA>();
  }
  template <class P>
  CK_TILE_HOST_DEVICE static constexpr auto MakeShuffledBRegTileDistribution() {
    return turned<P, P::BlockGemmShape::kN, P::VectorSizeB>();
  }

 private:
  template <class P, index_t Extent, index_t Vector>
  CK_TILE_HOST_DEVICE static constexpr auto turned() {
    constexpr auto pattern = ck_tile::tile_distribution_pattern::thread_raked;
    return ck_tile::tile_distribution_encoding_pattern_2d<P::kBlockSize, P::BlockGemmShape::kK, Extent, Vector,
                                                          pattern>::make_shuffled_2d_static_tile_distribution();
  }
};

// The pipelines by the names of the specs: a problem and what B really is -> pipeline, whether it needs two LDS
// buffers, and how rows must be aligned (buffer loads of any width need 4 bytes; direct loads into LDS move 16 at a
// time).
struct one_lds_buffer {
  static constexpr bool two_lds_buffers = false, preshuffle = false;
  static constexpr int row_bytes = 4;
};
struct two_lds_buffers_of_it {
  static constexpr bool two_lds_buffers = true, preshuffle = false;
  static constexpr int row_bytes = 4;
};
struct mem : one_lds_buffer {
  template <class P, class B>
  using type = runtime_tail<ck_tile::GemmPipelineAgBgCrMem<P, policy_for<P, B>>,
                            own_rule<ck_tile::BaseGemmPipelineAgBgCrMem<P>>>;
};
struct compv3 : one_lds_buffer {
  template <class P, class B>
  using type = runtime_tail<ck_tile::GemmPipelineAgBgCrCompV3<P, policy_for<P, B>>,
                            own_rule<ck_tile::BaseGemmPipelineAgBgCrCompV3<P>>>;
};
// compv3 with loads of single elements: rows of A and B may have any length, and begin at any element.
struct narrow : one_lds_buffer {
  template <class P, class>
  using type =
      runtime_tail<ck_tile::GemmPipelineAgBgCrCompV3<P, fixed_vectors<ck_tile::UniversalGemmPipelineAgBgCrPolicy>>,
                   own_rule<ck_tile::BaseGemmPipelineAgBgCrCompV3<P>>>;
};
struct compv4 : two_lds_buffers_of_it {
  template <class P, class>
  using type = runtime_tail<ck_tile::GemmPipelineAgBgCrCompV4<P>, ping_pong_rule>;
};
struct compv6 : one_lds_buffer {
  template <class P, class>
  using type = runtime_tail<ck_tile::GemmPipelineAgBgCrCompV6<P>, prefetch3_rule>;
};
struct comp_async : two_lds_buffers_of_it {
  static constexpr int row_bytes = 16;
  template <class P, class>
  using type = drained_tail<ck_tile::GemmPipelineAgBgCrCompAsync<P>, ping_pong_rule>;
};
struct preshufflev2 : two_lds_buffers_of_it {
  static constexpr bool preshuffle = true;
  template <class P, class>
  using type = packed_tail<ck_tile::WeightPreshufflePipelineAGmemBGmemCRegV2<P>>;

  // Elements of K that a lane has side by side.
  template <class P>
  static constexpr int packed_k = ck_tile::UniversalWeightPreshufflePipelineAgBgCrPolicy::template GetKBPerLoad<P>();

  // Rows of permuted B are as wide as a warp tile and hold all of K, in whole warp tiles: beyond them read zeros.
  template <class Shape, int Vector, bool Pad, class Element>
  CK_TILE_DEVICE static auto window_b(const Element* base, int32_t n, int32_t k, int32_t at_n) {
    using namespace ck_tile;
    constexpr int warp_n = Shape::WarpTile::at(number<1>{}), warp_k = Shape::WarpTile::at(number<2>{});
    const int32_t rows = integer_divide_ceil(n, warp_n), row = integer_divide_ceil(k, warp_k) * Shape::flatKPerWarp;
    const auto view = make_naive_tensor_view<address_space_enum::global>(
        base, make_tuple(rows, row), make_tuple(row, 1), number<Vector>{}, number<1>{});
    constexpr auto padded = make_tuple(number<Shape::flatNPerWarp>{}, number<Shape::flatKPerBlock>{});
    constexpr auto lengths = make_tuple(number<Shape::flatNPerWarp>{}, number<Shape::flatKPerWarp>{});
    return make_tile_window(pad_tensor_view(view, padded, sequence<false, Pad>{}), lengths, {at_n / warp_n, 0});
  }
};

}  // namespace kernelwright::hip

#endif
