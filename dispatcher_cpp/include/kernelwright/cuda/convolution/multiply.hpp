// The multiplying warp groups: wgmma over the stages of a tile, sums in registers.
#pragma once

#include <cute/atom/mma_atom.hpp>
#include <cute/tensor.hpp>

#include "kernelwright/cuda/convolution/loads.hpp"

namespace kernelwright::cuda::conv {

template <class Config>
struct multiplication {
  using element = typename Config::element;
  using tile = cute::Shape<cute::Int<Config::tile_m>, cute::Int<Config::tile_n>, cute::Int<kStep>>;
  // K-major operands have kStep channels of a point side by side; the others have channels along M or N.
  static constexpr cute::GMMA::Major major_a = Config::weight ? cute::GMMA::Major::MN : cute::GMMA::Major::K;
  static constexpr cute::GMMA::Major major_b =
      Config::weight || Config::data ? cute::GMMA::Major::MN : cute::GMMA::Major::K;

  using mma = decltype(cute::make_tiled_mma(
      cute::GMMA::ss_op_selector<element, element, float, tile, major_a, major_b>(),
      cute::Layout<cute::Shape<cute::Int<Config::groups_per_tile>, cute::_1, cute::_1>>{}));

  template <cute::GMMA::Major major, int extent>
  static auto staged() {
    using stages = cute::Int<Config::stages>;
    if constexpr (major == cute::GMMA::Major::K) {
      return cute::tile_to_shape(cute::GMMA::Layout_K_SW128_Atom<element>{},
                                 cute::Shape<cute::Int<extent>, cute::Int<kStep>, stages>{},
                                 cute::Step<cute::_1, cute::_2, cute::_3>{});
    } else {
      // TMA leaves blocks of kStep channels by kStep points: points first, then the next channels.
      return cute::tile_to_shape(cute::GMMA::Layout_MN_SW128_Atom<element>{},
                                 cute::Shape<cute::Int<extent>, cute::Int<kStep>, stages>{},
                                 cute::Step<cute::_2, cute::_1, cute::_3>{});
    }
  }
  using layout_a = decltype(staged<major_a, Config::tile_m>());
  using layout_b = decltype(staged<major_b, Config::tile_n>());

  CUTLASS_DEVICE static auto sums() {
    return cute::partition_fragment_C(mma{}, cute::Shape<cute::Int<Config::tile_m>, cute::Int<Config::tile_n>>{});
  }

  // One warp of each group that reads a stage says so when it is done with it.
  static constexpr uint32_t releases = 4 * Config::groups_per_tile;

  template <class Ring>
  CUTLASS_DEVICE static void release(const Ring& ring, int stage) {
    if (threadIdx.x % 32 == 0) cutlass::arch::ClusterBarrier::arrive(ring.empty + stage);
  }

  // The sum over `steps` stages. issued() is called once all multiplications are under way.
  template <class Ring, class Sums, class Issued>
  CUTLASS_DEVICE static void run(char* a, char* b, Ring& ring, int steps, int thread, Sums& sums, Issued issued) {
    using namespace cute;
    Tensor shared_a = make_tensor(make_smem_ptr(reinterpret_cast<element*>(a)), layout_a{});
    Tensor shared_b = make_tensor(make_smem_ptr(reinterpret_cast<element*>(b)), layout_b{});
    mma multiply;
    auto slice = multiply.get_thread_slice(thread);
    Tensor from_a = slice.make_fragment_A(slice.partition_A(shared_a));
    Tensor from_b = slice.make_fragment_B(slice.partition_B(shared_b));
    // Zeros that all steps add to: a first step that overwrites would make ptxas serialise the others (C7515).
    clear(sums);
    multiply.accumulate_ = GMMA::ScaleOut::One;
    int before = 0;
    CUTLASS_PRAGMA_NO_UNROLL
    for (int step = 0; step < steps; ++step, ++ring.step) {
      const int stage = ring.stage();
      ring.wait_full();
      warpgroup_fence_operand(sums);
      warpgroup_arrive();
      CUTLASS_PRAGMA_UNROLL
      for (int part = 0; part < size<2>(from_a); ++part) {
        cute::gemm(multiply, from_a(_, _, part, stage), from_b(_, _, part, stage), sums);
      }
      warpgroup_commit_batch();
      warpgroup_wait<1>();
      warpgroup_fence_operand(sums);
      if (step > 0) release(ring, before);
      before = stage;
    }
    issued();
    warpgroup_wait<0>();
    warpgroup_fence_operand(sums);
    if (steps > 0) release(ring, before);
  }
};

}  // namespace kernelwright::cuda::conv
