// GEMM kernels with a choice of main-loop rule: grid.y planes, one result each, so that right and wrong share a
// compile.
#ifndef KERNELWRIGHT_TESTS_AMD_GEMM_HPP
#define KERNELWRIGHT_TESTS_AMD_GEMM_HPP

#include "kernelwright/hip/gemm/gemm.hpp"

namespace known_bad {

using ck_tile::index_t;
using ck_tile::TailNumber;

// Plane 0 is Wrong, plane 1 is Right. Not through TailHandler, which drops tails that it does not know.
template <class Base, class Wrong, class Right>
struct two_rules : kernelwright::hip::runtime_tail<Base, Right> {
  using right = kernelwright::hip::runtime_tail<Base, Right>;
  template <class AWindows, class AMap, class BWindows, class BMap, class... Lds>
  CK_TILE_DEVICE auto operator()(const AWindows& a, const AMap& a_map, const BWindows& b, const BMap& b_map,
                                 index_t loops, Lds... lds) const {
    const auto run = [&](auto hot, auto tail) {
      using body = typename Base::template PipelineImpl<Base::Scheduler>;
      return body{}.template operator()<hot.value, tail.value>(a, a_map, b, b_map, loops, lds...);
    };
    if (blockIdx.y == 0) return Wrong::call(run, loops);
    return right::operator()(a, a_map, b, b_map, loops, lds...);
  }
};

// What upstream's host code chooses for v4 and async: the main loop from three K tiles on.
template <class Base>
struct upstream_hot_loop {
  static_assert(Base::BlockHasHotloop(3) && !Base::BlockHasHotloop(2));
  static_assert(Base::GetBlockLoopTailNum(3) == TailNumber::Three && Base::GetBlockLoopTailNum(4) == TailNumber::Two);
  template <class Run>
  CK_TILE_DEVICE static auto call(const Run& run, index_t loops) {
    const TailNumber tail = loops == 1 ? TailNumber::One : loops % 2 == 1 ? TailNumber::Three : TailNumber::Two;
    return Base::TailHandler(run, loops > 2, tail);
  }
};

// What a pipeline problem says unless it is told a tail: accepted, and no tail runs.
struct full_tail {
  template <class Run>
  CK_TILE_DEVICE static auto call(const Run& run, index_t) {
    return run(ck_tile::bool_constant<true>{}, ck_tile::integral_constant<TailNumber, TailNumber::Full>{});
  }
};

template <class Upstream, template <class> class Pipeline, template <class> class Wrong, class Right>
struct pipeline : Upstream {
  template <class P, class>
  using type = two_rules<Pipeline<P>, Wrong<Pipeline<P>>, Right>;
};

template <class T>
CK_TILE_DEVICE void run_plane(kw_hip_gemm_arguments x) {
  x.d = static_cast<typename T::d*>(x.d) + static_cast<int64_t>(blockIdx.y) * x.m * x.ldc;
  kernelwright::hip::gemm<T>::run(x);
}

// fp16, rcr, no padding; the rest is given.
template <class Tile, class Wave, class WarpTile, class Pipeline, int LdsBytes = 65536>
struct half_gemm : kernelwright::hip::plain {
  using a = ck_tile::fp16_t;
  using b = ck_tile::fp16_t;
  using d = ck_tile::fp16_t;
  using acc = float;
  using layout_a = kernelwright::hip::row_major;
  using layout_b = kernelwright::hip::col_major;
  using tile = Tile;
  using wave = Wave;
  using warp_tile = WarpTile;
  using pipeline = Pipeline;
  using epilogue = kernelwright::hip::cshuffle;
  static constexpr auto scheduler = ck_tile::GemmPipelineScheduler::Intrawave;
  static constexpr bool pad_m = false, pad_n = false, pad_k = false;
  static constexpr int lds_bytes = LdsBytes;
};

template <class T>
inline constexpr int block_of = kernelwright::hip::gemm<T>::block_size;

}  // namespace known_bad

// A kernel that computes one plane per grid.y.
#define KNOWN_BAD_GEMM(name, description)                                                                        \
  extern "C" __global__ __launch_bounds__(known_bad::block_of<description>) void name(kw_hip_gemm_arguments x) { \
    known_bad::run_plane<description>(x);                                                                        \
  }

#endif
