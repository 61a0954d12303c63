// The pipeline that reads a permuted B, with B column-major as it was made for, and row-major: both compile and link.
#include "ck_tile/ops/gemm.hpp"
#include "gemm.hpp"

namespace known_bad {

using namespace ck_tile;
using row = tensor_layout::gemm::RowMajor;

template <class LayoutB>
struct preshuffle {
  using shape = TileGemmShape<sequence<64, 64, 64>, sequence<1, 4, 1>, sequence<16, 16, 32>>;
  using traits = TileGemmUniversalTraits<false, false, false, true, row, LayoutB, row, false, false, false, 1, true>;
  using problem = UniversalGemmPipelineProblem<fp16_t, fp16_t, float, shape, traits, GemmPipelineScheduler::Default,
                                               true, TailNumber::Even>;
  using pipeline = WeightPreshufflePipelineAGmemBGmemCRegV2<problem>;
  using epilogue = CShuffleEpilogue<
      CShuffleEpilogueProblem<fp16_t, fp16_t, tuple<>, float, fp16_t, tuple<>, row, element_wise::PassThrough, 64, 64,
                              1, 4, 16, 16, 32, problem::TransposeC, memory_operation_enum::set>>;
  using kernel =
      typename GemmKernel<GemmSpatiallyLocalTilePartitioner<shape, 8, 4>, pipeline, epilogue>::UniversalGemmKernel;

  CK_TILE_DEVICE static void run(const kw_hip_gemm_arguments& x) {
    kernel{}(typename kernel::KernelArgs{{x.a}, {x.b}, {}, x.d, x.m, x.n, x.k, {x.lda}, {x.ldb}, {}, x.ldc, 1});
  }
};
using b_col = preshuffle<tensor_layout::gemm::ColumnMajor>;
using b_row = preshuffle<row>;

}  // namespace known_bad

extern "C" __global__ __launch_bounds__(256) void b_col(kw_hip_gemm_arguments x) { known_bad::b_col::run(x); }
extern "C" __global__ __launch_bounds__(256) void b_row(kw_hip_gemm_arguments x) { known_bad::b_row::run(x); }
