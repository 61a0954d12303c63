// The pipelines of convolution: those of GEMM with vectors that the spec fixes, and the simplest one.
#ifndef KERNELWRIGHT_HIP_CONVOLUTION_PIPELINES_HPP
#define KERNELWRIGHT_HIP_CONVOLUTION_PIPELINES_HPP

#include "kernelwright/hip/gemm/pipelines.hpp"

namespace kernelwright::hip::convolution {

using ck_tile::index_t;

using policy = fixed_vectors<ck_tile::UniversalGemmPipelineAgBgCrPolicy>;
using policy_v4 = fixed_vectors<ck_tile::GemmPipelineAgBgCrCompV4DefaultPolicy>;
using policy_v6 = fixed_vectors<ck_tile::GemmPipelineAgBgCrCompV6DefaultPolicy>;

// One K tile in LDS and the next one on its way in registers. CK Tile's own V1 cannot transpose, which gradients need.
template <class P>
struct single_stage : ck_tile::GemmPipelineAgBgCrCompV3<P, policy> {
  using steps = ck_tile::GemmPipelineAgBgCrImplBase<P, policy>;
  using block_gemm = ck_tile::remove_cvref_t<decltype(policy::template GetBlockGemm<P>())>;
  static constexpr int min_loops = 1;
  static constexpr bool a_by_column = std::is_same_v<typename P::ALayout, ck_tile::tensor_layout::gemm::ColumnMajor>;
  static constexpr bool b_by_row = std::is_same_v<typename P::BLayout, ck_tile::tensor_layout::gemm::RowMajor>;

  template <class AWindows, class Map, class BWindows>
  CK_TILE_DEVICE auto operator()(const AWindows& a, const Map&, const BWindows& b, const Map&, ck_tile::index_t loops,
                                 void* lds) const {
    using namespace ck_tile;
    constexpr steps step{};
    constexpr bool_constant<steps::is_a_load_tr> a_transposed{};
    constexpr bool_constant<steps::is_b_load_tr> b_transposed{};
    constexpr auto a_lanes = make_static_tile_distribution(block_gemm::MakeABlockDistributionEncode());
    constexpr auto b_lanes = make_static_tile_distribution(block_gemm::MakeBBlockDistributionEncode());
    auto views = step.GetABLdsTensorViews(lds);
    auto a_windows = step.GetAWindows(a[number<0>{}], views.at(number<0>{}), a_lanes);
    auto b_windows = step.GetBWindows(b[number<0>{}], views.at(number<1>{}), b_lanes);
    auto& a_copy = a_windows.at(number<0>{});
    auto& b_copy = b_windows.at(number<0>{});
    const auto a_step = make_array(a_by_column ? tile_k : 0, a_by_column ? 0 : tile_k);
    const auto b_step = make_array(b_by_row ? tile_k : 0, b_by_row ? 0 : tile_k);

    block_gemm multiply;
    auto sums = multiply.MakeCBlockTile();
    tile_elementwise_inout([](auto& sum) { sum = 0; }, sums);
    auto a_held = load_tile(a_copy);
    auto b_held = load_tile(b_copy);
    for (index_t at = 0; at < loops; ++at) {
      if (at != 0) block_sync_lds();  // the tile before may still be read
      fill<a_by_column && !steps::is_a_load_tr>(a_windows.at(number<1>{}), a_held, [](auto of) {
        return policy::template MakeShuffledARegTileDistribution<decltype(of)>();
      });
      fill<b_by_row && !steps::is_b_load_tr>(b_windows.at(number<1>{}), b_held, [](auto of) {
        return policy::template MakeShuffledBRegTileDistribution<decltype(of)>();
      });
      if (at + 1 < loops) {
        move_tile_window(a_copy, a_step);
        move_tile_window(b_copy, b_step);
        a_held = load_tile(a_copy);
        b_held = load_tile(b_copy);
      }
      block_sync_lds();
      auto& a_read = a_windows.at(number<2>{});
      auto& b_read = b_windows.at(number<2>{});
      if constexpr (P::Scheduler == GemmPipelineScheduler::Intrawave)
        multiply.LocalPrefetch(a_read, b_read, a_transposed, b_transposed);
      multiply(sums, a_read, b_read, a_transposed, b_transposed);
    }
    return sums;
  }

 private:
  static constexpr ck_tile::index_t tile_k = P::BlockGemmShape::kK;

  // Registers to LDS; transposed on the way where lanes hold what memory has side by side but LDS has not.
  template <bool Transpose, class Window, class Held, class Lanes>
  CK_TILE_DEVICE static void fill(Window& window, const Held& held, const Lanes& lanes) {
    using namespace ck_tile;
    if constexpr (Transpose) {
      auto turned = make_static_distributed_tensor<typename Held::DataType>(lanes(P{}));
      transpose_tile2d(turned, held);
      store_tile(window, turned);
    } else {
      store_tile(window, held);
    }
  }
};

// The pipelines by the names of the specs.
struct compv1 : one_lds_buffer {
  template <class P>
  using type = single_stage<P>;
};
struct mem : one_lds_buffer {
  template <class P>
  using type = runtime_tail<ck_tile::GemmPipelineAgBgCrMem<P, policy>, own_rule<ck_tile::BaseGemmPipelineAgBgCrMem<P>>>;
};
struct compv3 : one_lds_buffer {
  template <class P>
  using type =
      runtime_tail<ck_tile::GemmPipelineAgBgCrCompV3<P, policy>, own_rule<ck_tile::BaseGemmPipelineAgBgCrCompV3<P>>>;
};
struct compv4 : two_lds_buffers_of_it {
  template <class P>
  using type = runtime_tail<ck_tile::GemmPipelineAgBgCrCompV4<P, policy_v4>, ping_pong_rule>;
};
struct compv6 : one_lds_buffer {
  template <class P>
  using type = runtime_tail<ck_tile::GemmPipelineAgBgCrCompV6<P, policy_v6>, prefetch3_rule>;
};

}  // namespace kernelwright::hip::convolution

#endif
