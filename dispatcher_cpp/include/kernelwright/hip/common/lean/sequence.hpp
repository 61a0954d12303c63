// Sequences as constexpr functions over arrays make them. Included by CK Tile's container/sequence.hpp in place of
// templates that make them by recursion, one instantiation per element; never by itself.
#ifndef KERNELWRIGHT_HIP_COMMON_LEAN_SEQUENCE_HPP
#define KERNELWRIGHT_HIP_COMMON_LEAN_SEQUENCE_HPP

namespace kernelwright::lean {

using ck_tile::index_t;
using ck_tile::sequence;

// As many numbers as fit; arrays of no element are not allowed, so there is always one more.
template <index_t N>
struct numbers {
  index_t at[N + 1];
  index_t size;
};

template <class Source, class Indices>
struct taken;
template <class Source, index_t... Is>
struct taken<Source, sequence<Is...>> {
  using type = sequence<Source::value.at[Is]...>;
};
// The sequence of the first `Size` numbers of `Source::value`.
template <class Source, index_t Size>
using taken_t = typename taken<Source, ck_tile::make_index_sequence<Size>>::type;

// Sorted values, and where each of them was. Of equal values the last one comes first.
template <index_t N>
struct sorted {
  numbers<N> values, places;
};
template <class Less, index_t... Xs>
CK_TILE_HOST_DEVICE constexpr auto sort(sequence<Xs...>) {
  constexpr index_t count = sizeof...(Xs);
  sorted<count> all{{{Xs...}, count}, {{}, count}};
  for (index_t i = 0; i < count; ++i) {
    const index_t value = all.values.at[i];
    index_t to = i;
    for (; to > 0 && !Less{}(all.values.at[to - 1], value); --to) {
      all.values.at[to] = all.values.at[to - 1];
      all.places.at[to] = all.places.at[to - 1];
    }
    all.values.at[to] = value;
    all.places.at[to] = i;
  }
  return all;
}

// The first of each run of equal values.
template <index_t N>
CK_TILE_HOST_DEVICE constexpr sorted<N> unique(sorted<N> all) {
  index_t count = 0;
  for (index_t i = 0; i < all.values.size; ++i) {
    if (count != 0 && all.values.at[i] == all.values.at[count - 1]) continue;
    all.values.at[count] = all.values.at[i];
    all.places.at[count++] = all.places.at[i];
  }
  all.values.size = all.places.size = count;
  return all;
}

template <class Sequence, class Less, bool Unique>
struct sort_of {
  static constexpr auto both = Unique ? unique(sort<Less>(Sequence{})) : sort<Less>(Sequence{});
  struct values {
    static constexpr auto value = both.values;
  };
  struct places {
    static constexpr auto value = both.places;
  };
  using type = taken_t<values, both.values.size>;
  using sorted2unsorted_map = taken_t<places, both.values.size>;
};

template <index_t... Xs>
CK_TILE_HOST_DEVICE constexpr bool is_permutation(sequence<Xs...>) {
  constexpr index_t count = sizeof...(Xs);
  const index_t map[] = {Xs..., 0};
  bool seen[count + 1]{};
  for (index_t i = 0; i < count; ++i) {
    if (map[i] < 0 || map[i] >= count || seen[map[i]]) return false;
    seen[map[i]] = true;
  }
  return true;
}

template <class Map>
struct inverse_of;
template <index_t... Xs>
struct inverse_of<sequence<Xs...>> {
  CK_TILE_HOST_DEVICE static constexpr auto inverse() {
    const index_t map[] = {Xs..., 0};
    numbers<sizeof...(Xs)> made{};
    for (index_t i = 0; i < static_cast<index_t>(sizeof...(Xs)); ++i) made.at[map[i]] = i;
    return made;
  }
  static constexpr auto value = inverse();
};

template <class Sequence, class Reduce, index_t Init>
struct reverse_scan_of;
template <index_t... Xs, class Reduce, index_t Init>
struct reverse_scan_of<sequence<Xs...>, Reduce, Init> {
  CK_TILE_HOST_DEVICE static constexpr auto scan() {
    const index_t from[] = {Xs..., 0};
    numbers<sizeof...(Xs)> made{};
    index_t last = Init;
    for (index_t i = sizeof...(Xs); i-- > 0;) made.at[i] = last = Reduce{}(from[i], last);
    return made;
  }
  static constexpr auto value = scan();
};

template <class Indices, class F>
struct generated;
template <index_t... Is, class F>
struct generated<sequence<Is...>, F> {
  using type = sequence<static_cast<index_t>(F{}(ck_tile::number<Is>{}))...>;
};

template <class Indices, index_t Begin, index_t Increment>
struct arithmetic;
template <index_t... Is, index_t Begin, index_t Increment>
struct arithmetic<sequence<Is...>, Begin, Increment> {
  using type = sequence<(Begin + Is * Increment)...>;
};

}  // namespace kernelwright::lean

namespace ck_tile {

template <index_t Size, typename F>
struct sequence_gen : kernelwright::lean::generated<make_index_sequence<Size>, F> {};

template <index_t Begin, index_t End, index_t Increment>
struct arithmetic_sequence_gen
    : kernelwright::lean::arithmetic<
          make_index_sequence<((Increment > 0) == (Begin < End) && Begin != End ? (End - Begin) / Increment : 0)>,
          Begin, Increment> {};
template <index_t End>
struct arithmetic_sequence_gen<0, End, 1> {
  using type = make_index_sequence<End>;
};

template <index_t Size, index_t Value>
struct uniform_sequence_gen : kernelwright::lean::arithmetic<make_index_sequence<Size>, Value, 0> {};

template <typename Sequence, typename Reduce, index_t Init>
struct sequence_reverse_inclusive_scan {
  using type =
      kernelwright::lean::taken_t<kernelwright::lean::reverse_scan_of<Sequence, Reduce, Init>, Sequence::size()>;
};

template <typename Values, typename Less>
struct sequence_sort : kernelwright::lean::sort_of<Values, Less, false> {};

template <typename Values, typename Less, typename Equal>
struct sequence_unique_sort : kernelwright::lean::sort_of<Values, Less, true> {};

template <typename Map>
struct is_valid_sequence_map : std::bool_constant<kernelwright::lean::is_permutation(Map{})> {};

template <typename Map>
struct sequence_map_inverse {
  using type = kernelwright::lean::taken_t<kernelwright::lean::inverse_of<Map>, Map::size()>;
};

}  // namespace ck_tile

#endif
