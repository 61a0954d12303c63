// The space-filling curve of CK Tile, computed: where access number i of a tile begins, and the steps between accesses.
#ifndef KERNELWRIGHT_HIP_COMMON_LEAN_CURVE_HPP
#define KERNELWRIGHT_HIP_COMMON_LEAN_CURVE_HPP

#include "ck_tile/core/container/sequence.hpp"
#include "ck_tile/core/container/tuple.hpp"

namespace kernelwright::lean {

using ck_tile::index_t;
using ck_tile::number;
using ck_tile::sequence;

template <index_t N>
struct index_of {
  index_t at[N];
};

template <class Lengths, class Order, class Scalars, bool Snake>
struct curve;
// Dimension `Order[0]` is the slowest one. Where `Snake`, every second row of a dimension is walked backwards.
template <index_t... Lengths, index_t... Order, index_t... Scalars, bool Snake>
struct curve<sequence<Lengths...>, sequence<Order...>, sequence<Scalars...>, Snake> {
  static constexpr index_t dimensions = sizeof...(Lengths);
  using index = index_of<dimensions>;
  using all = ck_tile::make_index_sequence<dimensions>;

  CK_TILE_HOST_DEVICE static constexpr index of(index_t access) {
    const index_t order[] = {Order...}, scalars[] = {Scalars...}, lengths[] = {(Lengths / Scalars)...};
    index_t along[dimensions]{}; /* in the order of the walk */
    for (index_t i = dimensions, rest = access; i-- > 0;) {
      along[i] = i == 0 ? rest : rest % lengths[order[i]];
      rest /= lengths[order[i]];
    }
    index begin{};
    for (index_t i = 0, row = 0; i < dimensions; ++i) {
      const index_t length = lengths[order[i]];
      const bool backwards = Snake && i > 0 && row % 2 != 0;
      begin.at[order[i]] = (backwards ? length - 1 - along[i] : along[i]) * scalars[order[i]];
      row = row * length + along[i];
    }
    return begin;
  }

  // Both as tuples of numbers, which CK Tile calculates with.
  template <index_t Access, index_t... Is>
  CK_TILE_HOST_DEVICE static constexpr auto begin(sequence<Is...>) {
    constexpr index at = of(Access);
    return ck_tile::tuple<number<at.at[Is]>...>{};
  }
  template <index_t From, index_t To, index_t... Is>
  CK_TILE_HOST_DEVICE static constexpr auto step(sequence<Is...>) {
    constexpr index from = of(From), to = of(To);
    return ck_tile::tuple<number<to.at[Is] - from.at[Is]>...>{};
  }

  // The step of a coordinate that has further dimensions `Before` in front, along which it does not move.
  template <index_t From, index_t... Before, index_t... Is>
  CK_TILE_HOST_DEVICE static constexpr auto padded_step(sequence<Before...>, sequence<Is...>) {
    constexpr index from = of(From), to = of(From + 1);
    return ck_tile::tuple<number<0 * Before>..., number<to.at[Is] - from.at[Is]>...>{};
  }
};

}  // namespace kernelwright::lean

#endif
