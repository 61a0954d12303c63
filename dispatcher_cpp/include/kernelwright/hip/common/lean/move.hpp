// Moving a coordinate by a step that is known when compiling: only the transformations that feel it are looked at.
#ifndef KERNELWRIGHT_HIP_COMMON_LEAN_MOVE_HPP
#define KERNELWRIGHT_HIP_COMMON_LEAN_MOVE_HPP

#include "ck_tile/core/container/container_helper.hpp"
#include "ck_tile/core/container/multi_index.hpp"
#include "ck_tile/core/container/sequence.hpp"
#include "ck_tile/core/container/tuple.hpp"

namespace kernelwright::lean {

using ck_tile::index_t;
using ck_tile::number;
using ck_tile::sequence;
using ck_tile::tuple;

template <class Step>
inline constexpr bool is_known_step = false;
template <index_t... Steps>
inline constexpr bool is_known_step<tuple<number<Steps>...>> = true;

// Whether a transformation has an upper dimension that moves; then all its lower ones are taken to move.
template <index_t... Lows, index_t... Ups>
CK_TILE_HOST_DEVICE constexpr bool feels(bool* moves, sequence<Lows...>, sequence<Ups...>) {
  const bool any = (moves[Ups] || ... || false);
  ((moves[Lows] = any), ...);
  return any;
}

template <class Adaptor, class Step, class Tops, class Transforms>
struct mover;
template <class Adaptor, index_t... Steps, index_t... Tops, index_t... Transforms>
struct mover<Adaptor, tuple<number<Steps>...>, sequence<Tops...>, sequence<Transforms...>> {
  static constexpr index_t count = sizeof...(Transforms), hidden = Adaptor::get_num_of_hidden_dimension();
  using lows = decltype(Adaptor::get_lower_dimension_hidden_idss());
  using ups = decltype(Adaptor::get_upper_dimension_hidden_idss());

  // The transformations that feel the step, from the top down.
  CK_TILE_HOST_DEVICE static constexpr numbers<count> felt() {
    bool moves[hidden]{};
    ((moves[Tops] = Steps != 0), ...);
    numbers<count> made{};
    ((feels(moves, lows{}[number<count - 1 - Transforms>{}], ups{}[number<count - 1 - Transforms>{}])
          ? void(made.at[made.size++] = count - 1 - Transforms)
          : void()),
     ...);
    return made;
  }
  static constexpr auto value = felt();

  template <index_t Transform, class Index>
  CK_TILE_HOST_DEVICE static constexpr void move_one(const Adaptor& adaptor, Index& at, Index& by) {
    using namespace ck_tile;
    constexpr auto low = lows{}[number<Transform>{}];
    constexpr auto up = ups{}[number<Transform>{}];
    const auto up_at = get_container_subset(at, up), up_by = get_container_subset(by, up);
    auto low_at = get_container_subset(at, low);
    multi_index<low.size()> low_by;
    adaptor.get_transforms().at(number<Transform>{}).update_lower_index(low_by, up_by, low_at, up_at);
    set_container_subset(by, low, low_by);
    set_container_subset(at, low, low_at);
  }

  template <class Index, index_t... Felt>
  CK_TILE_HOST_DEVICE static constexpr void move(const Adaptor& adaptor, Index& at, Index& by, sequence<Felt...>) {
    ((by.data[Tops] = Steps), ...);
    ((at.data[Tops] += Steps), ...);
    (move_one<Felt>(adaptor, at, by), ...);
  }
};

// Moves `coordinate` and says by how much that moves the bottom dimensions.
template <class Adaptor, class Coordinate, class Step, class Bottom>
CK_TILE_HOST_DEVICE constexpr void move(const Adaptor& adaptor, Coordinate& coordinate, const Step&, Bottom& bottom) {
  using all = mover<Adaptor, Step, ck_tile::remove_cvref_t<decltype(Adaptor::get_top_dimension_hidden_ids())>,
                    ck_tile::make_index_sequence<Adaptor::get_num_of_transform()>>;
  ck_tile::multi_index<all::hidden> by{};
  all::move(adaptor, coordinate.get_hidden_index(), by, taken_t<all, all::value.size>{});
  bottom = ck_tile::get_container_subset(by, Adaptor::get_bottom_dimension_hidden_ids());
}

}  // namespace kernelwright::lean

#endif
