// A convolution kernel of CK Tile's GEMM parts from one description of types and extents; a rendered header only fills
// in the description.
#ifndef KERNELWRIGHT_HIP_CONVOLUTION_CONVOLUTION_HPP
#define KERNELWRIGHT_HIP_CONVOLUTION_CONVOLUTION_HPP

#include <hip/hip_runtime.h>

#include "ck_tile/core.hpp"
#include "ck_tile/ops/epilogue/cshuffle_epilogue.hpp"
#include "ck_tile/ops/epilogue/default_2d_epilogue.hpp"
#include "ck_tile/ops/gemm/kernel/gemm_tile_partitioner.hpp"
#include "ck_tile/ops/gemm/pipeline/gemm_pipeline_problem.hpp"
#include "ck_tile/ops/gemm/pipeline/tile_gemm_shape.hpp"
#include "ck_tile/ops/gemm/pipeline/tile_gemm_traits.hpp"
#include "kernelwright/hip/common/activation.hpp"
#include "kernelwright/hip/convolution/arguments.h"
#include "kernelwright/hip/convolution/pipelines.hpp"
#include "kernelwright/hip/convolution/problem.hpp"
#include "kernelwright/hip/convolution/warp_tiles.hpp"

namespace kernelwright::hip::convolution {

using row_major = ck_tile::tensor_layout::gemm::RowMajor;
using col_major = ck_tile::tensor_layout::gemm::ColumnMajor;
using pass = ck_tile::element_wise::PassThrough;
template <int M, int N, int K>
using extent = ck_tile::sequence<M, N, K>;

template <class S, int I>
inline constexpr int at = S::at(ck_tile::number<I>{});

// What the epilogue writes: the result, or sums into the workspace.
template <class T>
using stored = std::conditional_t<T::two_stage, float, typename T::element>;

// Accumulators travel through LDS so that rows are written in whole vectors.
struct cshuffle {
  template <class T, class P>
  using type = ck_tile::CShuffleEpilogue<ck_tile::CShuffleEpilogueProblem<
      typename T::element, typename T::element, ck_tile::tuple<>, float, stored<T>, ck_tile::tuple<>, row_major, pass,
      at<typename T::tile, 0>, at<typename T::tile, 1>, at<typename T::wave, 0>, at<typename T::wave, 1>,
      at<typename T::warp_tile, 0>, at<typename T::warp_tile, 1>, at<typename T::warp_tile, 2>, P::TransposeC,
      ck_tile::memory_operation_enum::set, 1, true, T::vector_c>>;
};

// Each lane writes its own accumulators.
struct direct {
  template <class T, class P>
  using type = ck_tile::DefaultGemm2DEpilogue<ck_tile::DefaultGemm2DEpilogueProblem<
      typename T::element, typename T::element, ck_tile::tuple<>, float, stored<T>, ck_tile::tuple<>, row_major, pass,
      at<typename T::tile, 0>, at<typename T::tile, 1>, true, true, at<typename T::warp_tile, 0>,
      at<typename T::warp_tile, 1>, at<typename T::warp_tile, 2>, P::TransposeC, false>>;
};

// T describes the kernel: the types element, tile, wave, warp_tile, pipeline, epilogue, activation, the template
// direction, and the constants dims, specialization, scheduler, vector_a, vector_b, vector_c, explicit_gemm, two_stage,
// bias, residual and lds_bytes.
template <class T>
struct kernel {
  using gemm = typename T::template direction<T>;
  using shape = ck_tile::TileGemmShape<typename T::tile, typename T::wave, typename T::warp_tile>;
  // Eight groups of tiles along x and four rows per group: neighbours in time share A and B in L2.
  using tiles = ck_tile::GemmSpatiallyLocalTilePartitioner<shape, 8, 4>;
  using traits = ck_tile::TileGemmUniversalTraits<
      true, true, true, T::pipeline::two_lds_buffers, std::conditional_t<gemm::a_by_column, col_major, row_major>,
      std::conditional_t<gemm::b_by_row, row_major, col_major>, row_major, false, false, false, 1, false>;
  using problem = ck_tile::UniversalGemmPipelineProblem<typename T::element, typename T::element, float, shape, traits,
                                                        T::scheduler, true, ck_tile::TailNumber::Full, pass, pass,
                                                        typename T::element, true, T::vector_a, T::vector_b>;
  using pipeline = typename T::pipeline::template type<problem>;
  using epilogue = typename T::epilogue::template type<T, problem>;

  static constexpr int block_size = pipeline::BlockSize;
  static constexpr int lds_bytes = ck_tile::max(pipeline::GetSmemSize(), epilogue::GetSmemSize());
  static_assert(lds_bytes * (T::pipeline::two_lds_buffers ? 2 : 1) <= T::lds_bytes, "LDS budget");

  static constexpr kw_hip_conv_facts facts() {
    return {KW_HIP_CONV_FACTS_MAGIC, sizeof(arguments), block_size, pipeline::min_loops};
  }

  // Workgroups are numbered group by group, slice by slice, phase by phase, tile by tile.
  CK_TILE_DEVICE static void run(const arguments& x) {
    const gemm first(x, 0);
    const int32_t per_phase = uniform(tiles::GridSize(first.most_m(), first.n()));
    int32_t rest = uniform(static_cast<int32_t>(blockIdx.x));
    const int32_t tile = take(rest, per_phase);
    const int32_t phase = take(rest, phases(x));
    const int32_t slice = take(rest, x.shares);
    run_tile(x, gemm(x, phase), tile, slice, rest, first.most_m());
  }

  // An element of dw per work-item: the slices, added up in their order, and what beta scales. No images, no slices.
  CK_TILE_DEVICE static void sum(const arguments& x) {
    const int64_t count = int64_t{x.groups} * x.k * product(x.filter) * x.c;
    const int64_t index = int64_t{blockIdx.x} * KW_HIP_CONV_SUM_BLOCK + threadIdx.x;
    if (index >= count) return;
    const float* slices = static_cast<const float*>(x.partial) + index;
    float total = x.shares != 0 ? *slices : 0.0f;
    for (int32_t slice = 1; slice < x.shares; ++slice) total += slices[slice * count];
    typename T::element& result = static_cast<typename T::element*>(x.d)[index];
    total *= x.alpha;
    if (x.beta != 0.0f) total += x.beta * ck_tile::type_convert<float>(result);
    result = ck_tile::type_convert<typename T::element>(total);
  }

 private:
  static constexpr int32_t tile_m = at<typename T::tile, 0>, tile_n = at<typename T::tile, 1>,
                           tile_k = at<typename T::tile, 2>;

  CK_TILE_DEVICE static int32_t uniform(int32_t value) { return ck_tile::amd_wave_read_first_lane(value); }
  CK_TILE_DEVICE static int32_t take(int32_t& number, int32_t base) {
    const int32_t quotient = uniform(number / base), rest = number - quotient * base;
    number = quotient;
    return rest;
  }
  CK_TILE_DEVICE static int32_t phases(const arguments& x) {
    return std::is_same_v<gemm, backward_data<T>> ? product(x.stride) : 1;
  }

  CK_TILE_DEVICE static void run_tile(const arguments& x, const gemm& g, int32_t tile, int32_t slice, int32_t group,
                                      int32_t most_m) {
    using namespace ck_tile;
    using element = typename T::element;
    const auto index = tiles{most_m, g.n()}.GetOutputTileIndex(tile);
    const int32_t at_m = uniform(index.at(number<0>{}) * tile_m), at_n = uniform(index.at(number<1>{}) * tile_n);
    if (at_m >= g.m()) return;  // a phase with fewer points than the first
    // Whole tiles of K, as even as they go. What is beyond K reads as zeros.
    const int32_t all = (g.k() + tile_k - 1) / tile_k, each = all / x.shares, more = all - each * x.shares;
    const int32_t begin = slice * each + ck_tile::min(slice, more), loops = each + (slice < more ? 1 : 0);
    const auto a = make_tuple(window<gemm::a_by_column, tile_m>(static_cast<const element*>(x.a) + g.at_a(group), g.a(),
                                                                at_m, begin * tile_k));
    const auto b = make_tuple(
        window<gemm::b_by_row, tile_n>(static_cast<const element*>(x.b) + g.at_b(group), g.b(), at_n, begin * tile_k));
    const int32_t turns = uniform(ck_tile::max(loops, pipeline::min_loops));
    constexpr pass map{};
    __shared__ char lds[lds_bytes];
    if constexpr (T::pipeline::two_lds_buffers) {
      __shared__ char second[lds_bytes];
      auto sums = pipeline{}(a, map, b, map, turns, lds, second);
      finish(sums, x, g, at_m, at_n, slice, group, lds);
    } else {
      auto sums = pipeline{}(a, map, b, map, turns, lds);
      finish(sums, x, g, at_m, at_n, slice, group, lds);
    }
  }

  // The operand's tiles: (extent, K), or (K, extent) where the extent lies side by side in memory.
  template <bool KFirst, int Extent, class Element, class Descriptor>
  CK_TILE_DEVICE static auto window(const Element* base, const Descriptor& descriptor, int32_t from, int32_t from_k) {
    using namespace ck_tile;
    constexpr auto lengths = make_tuple(number<KFirst ? tile_k : Extent>{}, number<KFirst ? Extent : tile_k>{});
    const auto view = make_tensor_view<address_space_enum::global>(base, descriptor);
    return make_tile_window(pad_tensor_view(view, lengths, sequence<true, true>{}), lengths,
                            {KFirst ? from_k : from, KFirst ? from : from_k});
  }

  template <class Sums>
  CK_TILE_DEVICE static void finish(Sums& sums, const arguments& x, const gemm& g, int32_t at_m, int32_t at_n,
                                    int32_t slice, int32_t group, void* lds) {
    using namespace ck_tile;
    constexpr auto lengths = make_tuple(number<tile_m>{}, number<tile_n>{});
    const auto put = [&](auto* base) {
      const auto view = make_tensor_view<address_space_enum::global>(base + g.at_d(group), g.d());
      auto out = make_tile_window(pad_tensor_view(view, lengths, sequence<true, true>{}), lengths, {at_m, at_n});
      epilogue{}(out, sums, ck_tile::tuple<>{}, lds);
    };
    if constexpr (T::two_stage) {
      put(static_cast<float*>(x.partial) + int64_t{slice} * x.groups * g.m() * g.n());
    } else {
      tile_elementwise_inout([&](float& sum) { sum *= x.alpha; }, sums);
      constexpr bool any = any_epilogue<T>;
      if constexpr (T::bias || any) {
        const auto row =
            make_naive_tensor_descriptor(make_tuple(g.m(), g.n()), make_tuple(0, 1), number<1>{}, number<1>{});
        if (!any || x.bias != nullptr)
          add(sums, static_cast<const typename T::element*>(x.bias) + int64_t{group} * x.k, row, at_m, at_n);
      }
      if constexpr (T::residual || any) {
        if (!any || x.residual != nullptr)
          add(sums, static_cast<const typename T::element*>(x.residual) + g.at_d(group), g.d(), at_m, at_n);
      }
      const auto activate = [&](auto activation) {
        tile_elementwise_inout([](float& sum) { sum = decltype(activation)::of(sum); }, sums);
      };
      if constexpr (any)
        with_activation(x.activation, activate);
      else if constexpr (!std::is_same_v<typename T::activation, none>)
        activate(typename T::activation{});
      put(static_cast<typename T::element*>(x.d));
    }
  }

  template <class Sums, class Descriptor>
  CK_TILE_DEVICE static void add(Sums& sums, const typename T::element* base, const Descriptor& descriptor,
                                 int32_t at_m, int32_t at_n) {
    using namespace ck_tile;
    constexpr auto lengths = make_tuple(number<tile_m>{}, number<tile_n>{});
    const auto view = make_tensor_view<address_space_enum::global>(base, descriptor);
    const auto padded = pad_tensor_view(view, lengths, sequence<true, true>{});
    const auto other = load_tile(make_tile_window(padded, lengths, {at_m, at_n}, sums.get_tile_distribution()));
    tile_elementwise_inout([](float& sum, const auto& one) { sum += type_convert<float>(one); }, sums, other);
  }
};

}  // namespace kernelwright::hip::convolution

#endif
