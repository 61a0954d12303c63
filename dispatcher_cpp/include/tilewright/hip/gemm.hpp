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

// Accumulators travel through LDS so that rows are written in whole vectors.
struct cshuffle {
  template <class T, class P>
  using type = ck_tile::CShuffleEpilogue<ck_tile::CShuffleEpilogueProblem<
      typename T::a, typename T::b, ck_tile::tuple<>, typename T::acc, typename T::d, ck_tile::tuple<>, row_major,
      ck_tile::element_wise::PassThrough, m_of<typename T::tile>, n_of<typename T::tile>, m_of<typename T::wave>,
      n_of<typename T::wave>, m_of<typename T::warp_tile>, n_of<typename T::warp_tile>, k_of<typename T::warp_tile>,
      P::TransposeC, ck_tile::memory_operation_enum::set>>;
};

// Each lane writes its own accumulators. Not the raw store: it bypasses the bounds check that padding relies on.
struct direct {
  template <class T, class P>
  using type = ck_tile::DefaultGemm2DEpilogue<ck_tile::DefaultGemm2DEpilogueProblem<
      typename T::a, typename T::b, ck_tile::tuple<>, typename T::acc, typename T::d, ck_tile::tuple<>, row_major,
      ck_tile::element_wise::PassThrough, m_of<typename T::tile>, n_of<typename T::tile>, T::pad_m, T::pad_n,
      m_of<typename T::warp_tile>, n_of<typename T::warp_tile>, k_of<typename T::warp_tile>, P::TransposeC, false>>;
};

// T describes the kernel: types a b d acc layout_a layout_b tile wave warp_tile pipeline epilogue and the constants
// pad_m pad_n pad_k scheduler.
template <class T>
struct gemm {
  using shape = ck_tile::TileGemmShape<typename T::tile, typename T::wave, typename T::warp_tile>;
  // Eight groups of tiles along x and four rows per group: neighbours in time share A and B in L2.
  using partitioner = ck_tile::GemmSpatiallyLocalTilePartitioner<shape, 8, 4>;
  using traits = ck_tile::TileGemmUniversalTraits<T::pad_m, T::pad_n, T::pad_k, T::pipeline::two_lds_buffers,
                                                  typename T::layout_a, typename T::layout_b, row_major>;
  using problem =
      ck_tile::UniversalGemmPipelineProblem<typename T::a, typename T::b, typename T::acc, shape, traits, T::scheduler>;
  using pipeline = typename T::pipeline::template type<problem>;
  using epilogue = typename T::epilogue::template type<T, problem>;
  using kernel = typename ck_tile::GemmKernel<partitioner, pipeline, epilogue>::UniversalGemmKernel;

  static constexpr int block_size = kernel::kBlockSize;
  static_assert(kernel::GetSmemSize() * (T::pipeline::two_lds_buffers ? 2 : 1) <= T::lds_bytes, "LDS budget");

  CK_TILE_DEVICE static void run(const tw_hip_gemm_arguments& x) {
    kernel{}(typename kernel::KernelArgs{{x.a}, {x.b}, {}, x.d, x.m, x.n, x.k, {x.lda}, {x.ldb}, {}, x.ldd, x.k_batch});
  }

  static constexpr tw_hip_gemm_facts facts() {
    return {TW_HIP_GEMM_FACTS_MAGIC,    sizeof(tw_hip_gemm_arguments), block_size,          pipeline::GetVectorSizeA(),
            pipeline::GetVectorSizeB(), epilogue::GetVectorSizeC(),    pipeline::min_loops, T::pipeline::row_bytes};
  }
};

}  // namespace tilewright::hip

#endif
