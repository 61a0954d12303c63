// What a forward kernel leaves of a tile: O through shared memory and TMA, LSE from the threads that hold it.
#pragma once

#include "kernelwright/cuda/attention/forward/load.hpp"

namespace kernelwright::cuda::attention {

struct output {
  void* o;
  int64_t row, head, request;  // strides of O in elements
  float* lse;                  // or null
  int64_t lse_head, lse_request;

  CUTLASS_DEVICE float* lse_of(tile const& t) const {
    return lse + t.request * lse_request + t.head * lse_head + t.q.start;
  }

  // Of a tile whose queries see no key: O = 0, and LSE is that of the sink, or -inf.
  template <class Element, int M, int HDim, int Threads>
  CUTLASS_DEVICE void store_nothing(tile const& t, int thread, float sink) const {
    constexpr int vector = 16 / sizeof(Element), vectors = HDim / vector;
    const int first = t.index * M, count = cutlass::fast_min(M, t.q.count - first);
    auto* const to =
        static_cast<Element*>(o) + t.request * request + t.head * head + (int64_t(t.q.start) + first) * row;
    for (int i = thread; i < count * vectors; i += Threads) {
      *reinterpret_cast<uint4*>(to + i / vectors * row + i % vectors * vector) = uint4{};
    }
    if (lse == nullptr) return;
    for (int i = thread; i < count; i += Threads) lse_of(t)[first + i] = sink;
  }

  template <class Traits, class Sums, class Lse, class Storage, class Multiply>
  CUTLASS_DEVICE void store(operands<Traits> const& to, Sums const& sums, Lse const& values, Storage& shared,
                            Multiply multiply, int thread, tile const& t) const {
    using namespace cute;
    using element = typename Traits::DTypeO;
    constexpr int threads = Traits::NUM_MMA_THREADS, M = Traits::CTA_Q;
    auto buffer = make_tensor(make_smem_ptr(shared.buffer_of_o()), typename Traits::SmemLayoutO{});
    auto copier = make_tiled_copy_C(Copy_Atom<SM90_U32x4_STSM_N, element>{}, multiply).get_thread_slice(thread);
    Tensor rounded = flashinfer::convert_type<element>(sums);
    // Every group has read V, where the buffer may lie, and the tile before has left it.
    cutlass::arch::NamedBarrier::sync(threads, static_cast<int>(flashinfer::NamedBarriers::kValueEmpty));
    copy(Copy_Atom<SM90_U32x4_STSM_N, element>{}, copier.retile_S(rounded), copier.partition_D(buffer));
    cutlass::arch::fence_view_async_shared();
    cutlass::arch::NamedBarrier::sync(threads, cutlass::arch::ReservedNamedBarriers::EpilogueBarrier);
    // The thread that tells the producer when the buffer is free is the one that waits for the copy.
    if (cutlass::canonical_warp_idx_sync() == Traits::NUM_WARPS - 1 && elect_one_sync()) {
      auto whole = tiles_of(to.o, to.shape_o, typename operands<Traits>::tile_o{}, t.head, to.at_q.of(t.q, t.request));
      auto one = whole(_, _, t.index);
      auto slice = to.o.get_slice(_0{});
      copy(to.o, slice.partition_S(buffer), slice.partition_D(one));
      tma_store_arrive();
      tma_store_wait<0>();
    }
    if (lse == nullptr) return;
    Tensor places =
        multiply.get_thread_slice(thread).partition_C(make_identity_tensor(Shape<Int<M>, Int<Traits::HEAD_DIM_VO>>{}));
    Tensor rows_of = places(make_coord(_0{}, _, _0{}), _, _0{});
    if (get<1>(rows_of(_0{})) != 0) return;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < size(values); ++i) {
      const int row_of = t.index * M + get<0>(rows_of(i));
      if (row_of < t.q.count) lse_of(t)[row_of] = values(i);
    }
  }
};

}  // namespace kernelwright::cuda::attention
