// What a tensor adaptor of CK Tile asks about the numbers of its dimensions.
#ifndef KERNELWRIGHT_HIP_COMMON_LEAN_ADAPTOR_HPP
#define KERNELWRIGHT_HIP_COMMON_LEAN_ADAPTOR_HPP

#include "ck_tile/core/container/sequence.hpp"
#include "ck_tile/core/container/tuple.hpp"
#include "ck_tile/core/numeric/integral_constant.hpp"

namespace kernelwright::lean {

using ck_tile::index_t;
using ck_tile::number;
using ck_tile::sequence;
using ck_tile::tuple;

// In which sequence a number stands, and where in it.
struct place {
  index_t which, at;
  bool found;
};
template <index_t... Xs>
CK_TILE_HOST_DEVICE constexpr void look(place& found, index_t wanted, index_t which, sequence<Xs...>) {
  index_t at = 0;
  ((Xs == wanted ? void(found = {which, at++, true}) : void(++at)), ...);
}
template <class... Sequences>
CK_TILE_HOST_DEVICE constexpr place find(index_t wanted, tuple<Sequences...>) {
  place found{};
  index_t which = 0;
  (look(found, wanted, which++, Sequences{}), ...);
  return found;
}

// How many different numbers there are.
template <index_t... Xs>
CK_TILE_HOST_DEVICE constexpr void collect(index_t* seen, index_t& count, sequence<Xs...>) {
  const index_t values[] = {Xs..., 0};
  for (index_t i = 0; i < static_cast<index_t>(sizeof...(Xs)); ++i) {
    bool is_new = true;
    for (index_t j = 0; j < count; ++j) is_new = is_new && seen[j] != values[i];
    if (is_new) seen[count++] = values[i];
  }
}
template <class... As, class... Bs>
CK_TILE_HOST_DEVICE constexpr index_t count_distinct(tuple<As...>, tuple<Bs...>) {
  index_t seen[(static_cast<index_t>(As::size()) + ... + (static_cast<index_t>(Bs::size()) + ... + 1))]{}, count = 0;
  (collect(seen, count, As{}), ...);
  (collect(seen, count, Bs{}), ...);
  return count;
}

// The product of the lengths of dimensions, given by their numbers: a number if all lengths are numbers.
template <index_t Dimension, class Transforms, class Uppers>
CK_TILE_HOST_DEVICE constexpr auto length_of(const Transforms& transforms, Uppers) {
  constexpr place at = find(Dimension, Uppers{});
  static_assert(at.found, "no transformation has this dimension");
  return transforms[number<at.which>{}].get_upper_lengths()[number<at.at>{}];
}
template <class Transforms, class Uppers, index_t... Dimensions>
CK_TILE_HOST_DEVICE constexpr auto size_of(const Transforms& transforms, Uppers, sequence<Dimensions...>) {
  return (number<1>{} * ... * length_of<Dimensions>(transforms, Uppers{}));
}

}  // namespace kernelwright::lean

#endif
