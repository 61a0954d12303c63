// The type of a tile distribution, computed from its encoding by arithmetic.
#ifndef KERNELWRIGHT_HIP_COMMON_LEAN_DISTRIBUTION_HPP
#define KERNELWRIGHT_HIP_COMMON_LEAN_DISTRIBUTION_HPP

#include "ck_tile/core/algorithm/coordinate_transform.hpp"
#include "ck_tile/core/container/sequence.hpp"
#include "ck_tile/core/container/tuple.hpp"
#include "ck_tile/core/tensor/tensor_adaptor.hpp"
#include "ck_tile/core/tensor/tensor_descriptor.hpp"
#include "ck_tile/core/tensor/tile_distribution_encoding.hpp"

namespace kernelwright::lean {

using ck_tile::index_t;
using ck_tile::number;
using ck_tile::sequence;
using ck_tile::tuple;

// Dimensions are numbered like this: X, then R, then the parts H of each X in turn, then P. R is "major" dimension 0
// and the parts of X number i are major dimension i + 1.
template <index_t Majors, index_t All>
struct numbering {
  index_t first[Majors]; /* the first dimension of each major one */
  index_t length[All];
};
template <index_t... Xs>
CK_TILE_HOST_DEVICE constexpr index_t* append(index_t* to, sequence<Xs...>) {
  ((*to++ = Xs), ...);
  return to;
}
template <class... Majors>
CK_TILE_HOST_DEVICE constexpr auto number_dimensions() {
  constexpr index_t dims_x = sizeof...(Majors) - 1, sizes[] = {static_cast<index_t>(Majors::size())...};
  numbering<sizeof...(Majors), (static_cast<index_t>(Majors::size()) + ... + dims_x)> made{};
  for (index_t i = 0, next = dims_x; i <= dims_x; next += sizes[i++]) made.first[i] = next;
  index_t* to = made.length + dims_x;
  ((to = append(to, Majors{})), ...);
  return made;
}

template <class Encoding, class Xs, class Ps, class Ys>
struct distribution_of;
template <index_t... Rs, class... Hs, class... PMajors, class... PMinors, index_t... YMajors, index_t... YMinors,
          index_t... Xs, index_t... Ps, index_t... Ys>
struct distribution_of<
    ck_tile::tile_distribution_encoding<sequence<Rs...>, tuple<Hs...>, tuple<PMajors...>, tuple<PMinors...>,
                                        sequence<YMajors...>, sequence<YMinors...>>,
    sequence<Xs...>, sequence<Ps...>, sequence<Ys...>> {
  static constexpr auto dimensions = number_dimensions<sequence<Rs...>, Hs...>();
  static constexpr index_t first_p = sizeof(dimensions.length) / sizeof(index_t);

  template <index_t Major, index_t... Is>
  static sequence<(dimensions.first[Major] + Is)...> parts(sequence<Is...>);
  template <index_t Major, class Lengths>
  using parts_of = decltype(parts<Major>(ck_tile::make_index_sequence<Lengths::size()>{}));
  template <index_t... Is>
  static ck_tile::unmerge<tuple<number<Is>...>, false> unmerge(sequence<Is...>);
  template <index_t... Majors, index_t... Minors>
  static sequence<(dimensions.first[Majors] + Minors)...> pick(sequence<Majors...>, sequence<Minors...>);
  template <index_t... Is>
  static ck_tile::merge_v2_magic_division<tuple<number<dimensions.length[Is]>...>> merge(sequence<Is...>);
  template <class Major, class Minor>
  using picked = decltype(pick(Major{}, Minor{}));

  using to_x =
      ck_tile::tensor_adaptor<tuple<ck_tile::replicate<tuple<number<Rs>...>>, decltype(unmerge(Hs{}))...,
                                    decltype(merge(picked<PMajors, PMinors>{}))...>,
                              tuple<sequence<>, sequence<Xs>..., picked<PMajors, PMinors>...>,
                              tuple<parts_of<0, sequence<Rs...>>, parts_of<Xs + 1, Hs>..., sequence<first_p + Ps>...>,
                              sequence<Xs...>, sequence<(first_p + Ps)..., (dimensions.first[YMajors] + YMinors)...>>;
  using to_d = ck_tile::tensor_descriptor<
      tuple<ck_tile::unmerge<tuple<number<dimensions.length[dimensions.first[YMajors] + YMinors]>...>, false>>,
      tuple<sequence<0>>, tuple<sequence<(Ys + 1)...>>, sequence<(Ys + 1)...>,
      number<(dimensions.length[dimensions.first[YMajors] + YMinors] * ... * 1)>, sequence<-1, (0 * Ys - 1)...>,
      sequence<-1, (0 * Ys - 1)...>>;
  using ids = tuple<parts_of<0, sequence<Rs...>>, parts_of<Xs + 1, Hs>...>;
};
template <class Encoding>
using distribution_parts =
    distribution_of<Encoding, ck_tile::make_index_sequence<Encoding::NDimX>,
                    ck_tile::make_index_sequence<Encoding::NDimP>, ck_tile::make_index_sequence<Encoding::NDimY>>;

}  // namespace kernelwright::lean

#endif
