// A GEMM kernel of CK Tile from one description of types and extents; a rendered header only fills in the description.
#ifndef KERNELWRIGHT_HIP_GEMM_GEMM_HPP
#define KERNELWRIGHT_HIP_GEMM_GEMM_HPP

#include <hip/hip_runtime.h>

#include "ck_tile/core.hpp"
#include "ck_tile/ops/epilogue/cshuffle_epilogue.hpp"
#include "ck_tile/ops/epilogue/default_2d_epilogue.hpp"
#include "ck_tile/ops/gemm/kernel/gemm_tile_partitioner.hpp"
#include "ck_tile/ops/gemm/pipeline/gemm_pipeline_problem.hpp"
#include "ck_tile/ops/gemm/pipeline/tile_gemm_shape.hpp"
#include "ck_tile/ops/gemm/pipeline/tile_gemm_traits.hpp"
#include "kernelwright/hip/gemm/arguments.h"
#include "kernelwright/hip/gemm/finish.hpp"
#include "kernelwright/hip/gemm/pipelines.hpp"
#include "kernelwright/hip/gemm/stream_k.hpp"
#include "kernelwright/hip/gemm/sum.hpp"

namespace kernelwright::hip {

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

// Accumulators travel through LDS so that rows are written in whole vectors. Rows: how many of a tile at a time.
struct cshuffle {
  static constexpr int row_bytes = 4;
  template <class T, class P, int Rows>
  using type = ck_tile::CShuffleEpilogue<ck_tile::CShuffleEpilogueProblem<
      typename T::a, typename T::b, ck_tile::tuple<>, typename T::acc, stored<T>, ck_tile::tuple<>, row_major,
      ck_tile::element_wise::PassThrough, Rows, n_of<typename T::tile>, m_of<typename T::wave>, n_of<typename T::wave>,
      m_of<typename T::warp_tile>, n_of<typename T::warp_tile>, k_of<typename T::warp_tile>, P::TransposeC,
      ck_tile::memory_operation_enum::set>>;
};

// Each lane writes its own accumulators. Not the raw store: it bypasses the bounds check that padding relies on.
struct direct {
  static constexpr int row_bytes = 1;
  template <class T, class P, int Rows>
  using type = ck_tile::DefaultGemm2DEpilogue<ck_tile::DefaultGemm2DEpilogueProblem<
      typename T::a, typename T::b, ck_tile::tuple<>, typename T::acc, stored<T>, ck_tile::tuple<>, row_major,
      ck_tile::element_wise::PassThrough, Rows, n_of<typename T::tile>, T::pad_m, T::pad_n, m_of<typename T::warp_tile>,
      n_of<typename T::warp_tile>, k_of<typename T::warp_tile>, P::TransposeC, false>>;
};

// What a description adds to, so that those of tests say only what is unusual.
struct plain {
  static constexpr bool split_k = false, persistent = false, batched = false;
  static constexpr int num_d = 0;
  using d_op = add;
  using activation = none;
  using stream_k = void;
};

// T describes the kernel: types a b d acc layout_a layout_b tile wave warp_tile pipeline epilogue, the constants pad_m
// pad_n pad_k scheduler, and what `plain` has.
template <class T>
struct gemm {
  using shape = ck_tile::TileGemmShape<typename T::tile, typename T::wave, typename T::warp_tile>;
  // Eight groups of tiles along x and four rows per group: neighbours in time share A and B in L2.
  using tiles = ck_tile::GemmSpatiallyLocalTilePartitioner<shape, 8, 4>;
  using traits = ck_tile::TileGemmUniversalTraits<T::pad_m, T::pad_n, T::pad_k, T::pipeline::two_lds_buffers,
                                                  typename T::layout_a, typename T::layout_b, row_major, false, false,
                                                  false, 1, T::pipeline::preshuffle>;
  // 8-bit floats of two kinds travel as one, see mixed_warp_gemm.
  using moved_b = std::conditional_t<T::pipeline::preshuffle, typename T::b, typename T::a>;
  using pass = ck_tile::element_wise::PassThrough;
  static constexpr bool single_elements = std::is_same_v<typename T::pipeline, narrow>;
  using problem =
      ck_tile::UniversalGemmPipelineProblem<typename T::a, moved_b, typename T::acc, shape, traits, T::scheduler, true,
                                            ck_tile::TailNumber::Full, pass, pass, typename T::a, single_elements>;
  using pipeline = typename T::pipeline::template type<problem, typename T::b>;
  template <int Rows>
  using epilogue_of = typename T::epilogue::template type<T, problem, Rows>;
  using epilogue = epilogue_of<m_of<typename T::tile>>;

  // Elements of a load. The pipeline's own answer is what it would choose.
  static constexpr int vector_a = single_elements ? 1 : pipeline::GetVectorSizeA();
  static constexpr int vector_b = single_elements ? 1 : pipeline::GetVectorSizeB();
  static constexpr bool stream_k = !std::is_void_v<typename T::stream_k>;
  static constexpr int block_size = pipeline::BlockSize;
  static constexpr int lds_bytes = ck_tile::max(pipeline::GetSmemSize(), epilogue::GetSmemSize());
  static_assert(lds_bytes * (T::pipeline::two_lds_buffers ? 2 : 1) <= T::lds_bytes, "LDS budget");

  CK_TILE_DEVICE static void run(const kw_hip_gemm_arguments& x) {
    const auto first = uniform(blockIdx.x);
    if constexpr (stream_k) {
      run_share(x, first);
    } else if constexpr (T::persistent) {
      const int32_t count = tiles::GridSize(x.m, x.n) * x.shares * x.batch;
      for (int32_t at = first; at < count; at += x.workgroups) {
        if (at != first) ck_tile::block_sync_lds();  // the tile before may still be read
        run_tile(x, at);
      }
    } else {
      run_tile(x, first);
    }
  }

  // The groups are read where the launch put them: they are too many for registers.
  CK_TILE_DEVICE static void run_groups() {
    using arguments = const __attribute__((address_space(4))) kw_hip_grouped_arguments;
    auto* x = (arguments*)(__builtin_amdgcn_kernarg_segment_ptr());
    const auto first = uniform(blockIdx.x);
    const int32_t tile_count = T::persistent ? x->tiles : first + 1, step = T::persistent ? x->workgroups : 1;
    int32_t group = 0;
    for (int32_t at = first; at < tile_count; at += step) {
      if (at != first) ck_tile::block_sync_lds();
      while (group + 1 < x->count && x->groups[group + 1].first <= at) ++group;
      const auto* g = &x->groups[group];
      kw_hip_gemm_arguments one{};
      one.a = g->a, one.b = g->b, one.c = g->c, one.d = g->d;
      one.m = g->m, one.n = g->n, one.k = g->k;
      one.lda = g->lda, one.ldb = g->ldb, one.ldc = g->ldc;
      one.batch = one.shares = 1;
      one.alpha = x->alpha, one.beta = x->beta;
      run_tile(one, at - g->first);
    }
  }

  // The second kernel, where K is shared; the only one, where K is empty.
  CK_TILE_DEVICE static void sum(const kw_hip_gemm_arguments& x) {
    if constexpr (stream_k)
      if (x.shares != 0) return sum_shares<T, tiles>(x);
    sum_slices<T>(x);
  }

  static constexpr kw_hip_gemm_facts facts(uint32_t arguments_bytes = sizeof(kw_hip_gemm_arguments)) {
    return {KW_HIP_GEMM_FACTS_MAGIC, arguments_bytes,        block_size, vector_a, vector_b, epilogue::GetVectorSizeC(),
            pipeline::min_loops,     T::pipeline::row_bytes, packed_k(), 0};
  }

 private:
  static constexpr uint32_t packed_k() {
    if constexpr (T::pipeline::preshuffle) return T::pipeline::template packed_k<problem>;
    return 0;
  }

  static constexpr int32_t tile_m = m_of<typename T::tile>, tile_n = n_of<typename T::tile>,
                           tile_k = k_of<typename T::tile>;

  CK_TILE_DEVICE static int32_t uniform(int32_t value) { return ck_tile::amd_wave_read_first_lane(value); }

  // Workgroups are numbered matrix by matrix, slice by slice, tile by tile.
  CK_TILE_DEVICE static void run_tile(kw_hip_gemm_arguments x, int32_t at) {
    const int32_t per_slice = tiles::GridSize(x.m, x.n);
    int32_t matrix = 0, slice = 0;
    if constexpr (T::batched) {
      matrix = uniform(at / (per_slice * x.shares));
      x = matrix_of_batch<T>(x, matrix);
      at -= matrix * per_slice * x.shares;
    }
    if constexpr (T::split_k) {
      slice = uniform(at / per_slice);
      at -= slice * per_slice;
      // Whole tiles of K, as even as they go: the first slices have one more.
      const shares work(1, tiles::GetLoopNum(x.k), x.shares);
      const int32_t begin = work.begin(slice);
      take_k(x, begin, work.begin(slice + 1) - begin);
      const int32_t rows = x.m, row = (x.n + KW_HIP_SUM_VECTOR - 1) / KW_HIP_SUM_VECTOR * KW_HIP_SUM_VECTOR;
      x.d = static_cast<typename T::acc*>(x.partial) + (int64_t{matrix} * x.shares + slice) * rows * row;
      x.ldc = row;
    }
    multiply(x, at, [&](auto& sums, int32_t at_m, int32_t at_n, void* lds) {
      const auto rows = rows_of_tile(x, at_m);
      if constexpr (T::split_k)
        store(sums, rows, 0, at_n, lds);
      else
        finish_and_store(sums, rows, at_n, lds);
    });
  }

  CK_TILE_DEVICE static void run_share(const kw_hip_gemm_arguments& x, int32_t index) {
    const int32_t per_matrix = tiles::GridSize(x.m, x.n);
    const shares work(per_matrix * x.batch, tiles::GetLoopNum(x.k), x.shares);
    const int32_t begin = work.begin(index), end = work.begin(index + 1);
    for (int32_t at = begin; at < end;) {
      if (at != begin) ck_tile::block_sync_lds();
      int32_t tile = uniform(at / work.loops);
      const int32_t from = at - tile * work.loops, length = ck_tile::min(work.loops - from, end - at);
      kw_hip_gemm_arguments part = x;
      if constexpr (T::batched) {
        const int32_t matrix = uniform(tile / per_matrix);
        part = matrix_of_batch<T>(x, matrix);
        tile -= matrix * per_matrix;
      }
      take_k(part, from, length);
      multiply(part, tile, [&](auto& sums, int32_t at_m, int32_t at_n, void* lds) {
        if (length == work.loops) {
          finish_and_store(sums, rows_of_tile(part, at_m), at_n, lds);
        } else {
          leave(sums, static_cast<typename T::acc*>(x.partial) + slot_of(index, from > 0) * tile_m * tile_n);
        }
      });
      at += length;
    }
  }

  // What the epilogue reads and writes, from the first row of a tile on: byte offsets within a tile fit into 31 bits,
  // however many rows there are before it.
  CK_TILE_DEVICE static kw_hip_gemm_arguments rows_of_tile(kw_hip_gemm_arguments x, int32_t at_m) {
    x.d = static_cast<stored<T>*>(x.d) + int64_t{at_m} * x.ldc;
    if constexpr (!T::split_k) {
      x.c = static_cast<const typename T::d*>(x.c) + int64_t{at_m} * x.ldc;
      for (int i = 0; i < T::num_d; ++i)
        x.multi_d[i] = static_cast<const typename T::d*>(x.multi_d[i]) + int64_t{at_m} * x.ld_multi_d[i];
    }
    x.m = ck_tile::min(x.m - at_m, tile_m);
    return x;
  }

  // Narrows K to `length` tiles from `begin` on.
  CK_TILE_DEVICE static void take_k(kw_hip_gemm_arguments& x, int32_t begin, int32_t length) {
    const int32_t first = begin * tile_k;
    x.a = advance<typename T::a, typename T::layout_a, row_major>(x.a, first, x.lda);
    x.b = advance<typename T::b, typename T::layout_b, col_major>(x.b, first, x.ldb);
    x.k = ck_tile::min(length * tile_k, x.k - first);
  }

  template <class Element, class Layout, class KContiguous>
  CK_TILE_DEVICE static const void* advance(const void* base, int32_t k, int32_t stride) {
    const int64_t elements = std::is_same_v<Layout, KContiguous> ? k : static_cast<int64_t>(k) * stride;
    return static_cast<const Element*>(base) + elements;
  }

  // Computes a tile and hands its accumulators over.
  template <class Done>
  CK_TILE_DEVICE static void multiply(const kw_hip_gemm_arguments& x, int32_t tile, const Done& done) {
    const auto index = tiles{x.m, x.n}.GetOutputTileIndex(tile);
    const int32_t at_m = uniform(index.at(ck_tile::number<0>{}) * tile_m);
    const int32_t at_n = uniform(index.at(ck_tile::number<1>{}) * tile_n);
    constexpr bool a_by_row = std::is_same_v<typename T::layout_a, row_major>;
    const auto a = ck_tile::make_tuple(window<a_by_row, tile_m, tile_k, a_by_row ? T::pad_k : T::pad_m, vector_a>(
        static_cast<const typename T::a*>(x.a), x.m, x.k, x.lda, at_m));
    const auto b = ck_tile::make_tuple(window_b(x, at_n));
    const int32_t loops = uniform(tiles::GetLoopNum(x.k));
    constexpr ck_tile::element_wise::PassThrough pass{};
    __shared__ char lds[lds_bytes];
    if constexpr (T::pipeline::two_lds_buffers) {
      __shared__ char second[lds_bytes];
      auto sums = pipeline{}(a, pass, b, pass, loops, lds, second);
      done(sums, at_m, at_n, lds);
    } else {
      auto sums = pipeline{}(a, pass, b, pass, loops, lds);
      done(sums, at_m, at_n, lds);
    }
  }

  CK_TILE_DEVICE static auto window_b(const kw_hip_gemm_arguments& x, int32_t at_n) {
    const auto* b = static_cast<const moved_b*>(x.b);
    if constexpr (T::pipeline::preshuffle) {
      return T::pipeline::template window_b<shape, vector_b, T::pad_k>(b, x.n, x.k, at_n);
    } else {
      constexpr bool by_row = std::is_same_v<typename T::layout_b, row_major>;
      return window<!by_row, tile_n, tile_k, by_row ? T::pad_n : T::pad_k, vector_b>(b, x.n, x.k, x.ldb, at_n);
    }
  }

  // The operand's tiles from `at` on: (extent, K) where K is contiguous, else (K, extent). What lies outside along the
  // contiguous extent is masked; across rows it lies behind the buffer's end, which is that of the tile's rows where K
  // is contiguous. Both read zeros.
  template <bool KContiguous, int Extent, int K, bool Pad, int Vector, class Element>
  CK_TILE_DEVICE static auto window(const Element* base, int32_t size, int32_t k, int32_t leading, int32_t at) {
    using namespace ck_tile;
    if constexpr (KContiguous) {
      base += int64_t{at} * leading;
      size = ck_tile::min(size - at, Extent);
      at = 0;
    }
    const auto view = make_naive_tensor_view<address_space_enum::global>(
        base, make_tuple(KContiguous ? size : k, KContiguous ? k : size), make_tuple(leading, 1), number<Vector>{},
        number<1>{});
    constexpr auto lengths = make_tuple(number<KContiguous ? Extent : K>{}, number<KContiguous ? K : Extent>{});
    return make_tile_window(pad_tensor_view(view, lengths, sequence<false, Pad>{}), lengths,
                            {KContiguous ? at : 0, KContiguous ? 0 : at});
  }

  // Accumulators per work-item of which no second set fits beside them: finished, or read from C or a D tensor.
  static constexpr int most_at_once = 128;
  static constexpr int wave_rows = m_of<typename T::wave> * m_of<typename T::warp_tile>;
  // CShuffle stores two warp tiles of 16 rows at a time.
  static constexpr int slice_rows =
      m_of<typename T::warp_tile> == 16 && tile_m % (2 * wave_rows) == 0 ? 2 * wave_rows : wave_rows;

  // A large tile in slices of rows, each on its way to memory before the next one is looked at.
  template <class Sums>
  CK_TILE_DEVICE static void finish_and_store(Sums& sums, const kw_hip_gemm_arguments& x, int32_t at_n, void* lds) {
    using namespace ck_tile;
    if constexpr (Sums::get_thread_buffer_size() <= most_at_once) {
      finish_tile<T>(sums, x, 0, at_n);
      store(sums, x, 0, at_n, lds);
    } else {
      constexpr int per_wave = slice_rows / wave_rows;
      static_for<0, tile_m / slice_rows, 1>{}([&](auto i) {
        auto slice = rows_of<per_wave>(sums, i);
        finish_tile<T>(slice, x, i * slice_rows, at_n);
        store(slice, x, i * slice_rows, at_n, lds);
        __builtin_amdgcn_sched_barrier(0);  // else the loads of all slices come first
      });
    }
  }

  // Rows of accumulators: of a whole tile, or of a slice.
  template <class Sums>
  CK_TILE_DEVICE static void store(const Sums& sums, const kw_hip_gemm_arguments& x, int32_t at_m, int32_t at_n,
                                   void* lds) {
    using namespace ck_tile;
    const auto view = make_naive_tensor_view<address_space_enum::global>(
        static_cast<stored<T>*>(x.d), make_tuple(x.m, x.n), make_tuple(x.ldc, 1), number<epilogue::GetVectorSizeC()>{},
        number<1>{});
    constexpr auto lengths = Sums::get_lengths();
    auto out = make_tile_window(pad_tensor_view(view, lengths, sequence<false, T::pad_n>{}), lengths, {at_m, at_n});
    epilogue_of<lengths[number<0>{}]>{}(out, sums, ck_tile::tuple<>{}, lds);
  }

  // A whole tile of accumulators, into the workspace.
  template <class Sums>
  CK_TILE_DEVICE static void leave(const Sums& sums, typename T::acc* slot) {
    using namespace ck_tile;
    constexpr auto lengths = make_tuple(number<tile_m>{}, number<tile_n>{});
    const auto view = make_naive_tensor_view<address_space_enum::global>(slot, lengths, make_tuple(number<tile_n>{}, 1),
                                                                         number<1>{}, number<1>{});
    auto out = make_tile_window(view, lengths, {0, 0});
    store_tile(out, sums);
  }
};

}  // namespace kernelwright::hip

#endif
