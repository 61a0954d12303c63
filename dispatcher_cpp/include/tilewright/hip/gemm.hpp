// A GEMM kernel of CK Tile from one description of types and extents; a rendered header only fills in the description.
#ifndef TILEWRIGHT_HIP_GEMM_HPP
#define TILEWRIGHT_HIP_GEMM_HPP

#include <hip/hip_runtime.h>

#include "ck_tile/core.hpp"
#include "ck_tile/ops/epilogue/cshuffle_epilogue.hpp"
#include "ck_tile/ops/epilogue/default_2d_epilogue.hpp"
#include "ck_tile/ops/gemm/kernel/gemm_kernel.hpp"
#include "ck_tile/ops/gemm/kernel/gemm_tile_partitioner.hpp"
#include "ck_tile/ops/gemm/pipeline/gemm_pipeline_problem.hpp"
#include "ck_tile/ops/gemm/pipeline/tile_gemm_shape.hpp"
#include "ck_tile/ops/gemm/pipeline/tile_gemm_traits.hpp"
#include "tilewright/hip/arguments.h"
#include "tilewright/hip/pipelines.hpp"
#include "tilewright/hip/sum.hpp"

namespace tilewright::hip {

using row_major = ck_tile::tensor_layout::gemm::RowMajor;
using col_major = ck_tile::tensor_layout::gemm::ColumnMajor;
template <int M, int N, int K>
using extent = ck_tile::sequence<M, N, K>;

template <class S>
inline constexpr int m_of = S::at(ck_tile::number<0>{});
template <class S>
inline constexpr int n_of = S::at(ck_tile::number<1>{});
template <class S>
inline constexpr int k_of = S::at(ck_tile::number<2>{});

// What the epilogue writes: D, or accumulators into the workspace.
template <class T>
using stored = std::conditional_t<T::split_k, typename T::acc, typename T::d>;

// Accumulators travel through LDS so that rows are written in whole vectors.
struct cshuffle {
  template <class T, class P>
  using type = ck_tile::CShuffleEpilogue<ck_tile::CShuffleEpilogueProblem<
      typename T::a, typename T::b, ck_tile::tuple<>, typename T::acc, stored<T>, ck_tile::tuple<>, row_major,
      ck_tile::element_wise::PassThrough, m_of<typename T::tile>, n_of<typename T::tile>, m_of<typename T::wave>,
      n_of<typename T::wave>, m_of<typename T::warp_tile>, n_of<typename T::warp_tile>, k_of<typename T::warp_tile>,
      P::TransposeC, ck_tile::memory_operation_enum::set>>;
};

// Each lane writes its own accumulators. Not the raw store: it bypasses the bounds check that padding relies on.
struct direct {
  template <class T, class P>
  using type = ck_tile::DefaultGemm2DEpilogue<ck_tile::DefaultGemm2DEpilogueProblem<
      typename T::a, typename T::b, ck_tile::tuple<>, typename T::acc, stored<T>, ck_tile::tuple<>, row_major,
      ck_tile::element_wise::PassThrough, m_of<typename T::tile>, n_of<typename T::tile>, T::pad_m, T::pad_n,
      m_of<typename T::warp_tile>, n_of<typename T::warp_tile>, k_of<typename T::warp_tile>, P::TransposeC, false>>;
};

// Workgroups are numbered slice by slice; those of a slice are the tiles in their usual order.
template <class Base>
struct sliced : Base {
  CK_TILE_DEVICE sliced(ck_tile::index_t m, ck_tile::index_t n) : Base(m, n), tiles(Base::GridSize(m, n)) {}
  CK_TILE_DEVICE auto GetOutputTileIndex(ck_tile::index_t block) { return Base::GetOutputTileIndex(block % tiles); }
  ck_tile::index_t tiles;
};

// T describes the kernel: types a b d acc layout_a layout_b tile wave warp_tile pipeline epilogue and the constants
// pad_m pad_n pad_k scheduler split_k.
template <class T>
struct gemm {
  using shape = ck_tile::TileGemmShape<typename T::tile, typename T::wave, typename T::warp_tile>;
  // Eight groups of tiles along x and four rows per group: neighbours in time share A and B in L2.
  using tiles = ck_tile::GemmSpatiallyLocalTilePartitioner<shape, 8, 4>;
  using partitioner = std::conditional_t<T::split_k, sliced<tiles>, tiles>;
  using traits = ck_tile::TileGemmUniversalTraits<T::pad_m, T::pad_n, T::pad_k, T::pipeline::two_lds_buffers,
                                                  typename T::layout_a, typename T::layout_b, row_major>;
  using problem =
      ck_tile::UniversalGemmPipelineProblem<typename T::a, typename T::b, typename T::acc, shape, traits, T::scheduler>;
  using pipeline = typename T::pipeline::template type<problem>;
  using epilogue = typename T::epilogue::template type<T, problem>;
  using kernel = typename ck_tile::GemmKernel<partitioner, pipeline, epilogue>::UniversalGemmKernel;

  static constexpr int block_size = kernel::kBlockSize;
  static_assert(kernel::GetSmemSize() * (T::pipeline::two_lds_buffers ? 2 : 1) <= T::lds_bytes, "LDS budget");

  CK_TILE_DEVICE static void run(tw_hip_gemm_arguments x) {
    if constexpr (T::split_k) take_slice(x);
    kernel{}(typename kernel::KernelArgs{{x.a}, {x.b}, {}, x.d, x.m, x.n, x.k, {x.lda}, {x.ldb}, {}, x.ldd, 1});
  }

  CK_TILE_DEVICE static void sum(const tw_hip_sum_arguments& x) { sum_slices<typename T::d, typename T::acc>(x); }

  static constexpr tw_hip_gemm_facts facts() {
    return {TW_HIP_GEMM_FACTS_MAGIC,    sizeof(tw_hip_gemm_arguments), block_size,          pipeline::GetVectorSizeA(),
            pipeline::GetVectorSizeB(), epilogue::GetVectorSizeC(),    pipeline::min_loops, T::pipeline::row_bytes};
  }

 private:
  // Whole tiles of K, as even as they go: the first slices have one more. CK's own slices are multiples of the warp
  // tile, so its last one can be empty.
  CK_TILE_DEVICE static void take_slice(tw_hip_gemm_arguments& x) {
    constexpr int32_t tile_k = k_of<typename T::tile>;
    const int32_t slice =
        ck_tile::amd_wave_read_first_lane(static_cast<int32_t>(blockIdx.x) / tiles::GridSize(x.m, x.n));
    const int32_t loops = tiles::GetLoopNum(x.k), share = loops / x.slices, more = loops % x.slices;
    const int32_t first = (slice * share + ck_tile::min(slice, more)) * tile_k;
    const int32_t length = (share + (slice < more ? 1 : 0)) * tile_k;
    x.a = advance<typename T::a, typename T::layout_a, row_major>(x.a, first, x.lda);
    x.b = advance<typename T::b, typename T::layout_b, col_major>(x.b, first, x.ldb);
    x.d = static_cast<typename T::acc*>(x.d) + static_cast<int64_t>(slice) * x.m * x.ldd;
    x.k = ck_tile::min(length, x.k - first);
  }

  template <class Element, class Layout, class KContiguous>
  CK_TILE_DEVICE static const void* advance(const void* base, int32_t k, int32_t stride) {
    const int64_t elements = std::is_same_v<Layout, KContiguous> ? k : static_cast<int64_t>(k) * stride;
    return static_cast<const Element*>(base) + elements;
  }
};

}  // namespace tilewright::hip

#endif
