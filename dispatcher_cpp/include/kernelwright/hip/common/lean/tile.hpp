// Parts of what a work-item holds of a tile, and functions of each element of it.
#ifndef KERNELWRIGHT_HIP_COMMON_LEAN_TILE_HPP
#define KERNELWRIGHT_HIP_COMMON_LEAN_TILE_HPP

#include "ck_tile/core/container/sequence.hpp"
#include "ck_tile/core/numeric/integral_constant.hpp"

namespace kernelwright::lean {

using ck_tile::index_t;
using ck_tile::number;
using ck_tile::sequence;

// A part of the elements of a work-item: they are packed, the last Y the fastest, and so is the part by itself.
template <class Distribution, class Origins, class Lengths, index_t Packed>
struct part;
template <class Distribution, index_t... Origins, index_t... Lengths, index_t Packed>
struct part<Distribution, sequence<Origins...>, sequence<Lengths...>, Packed> {
  using all = ck_tile::make_index_sequence<(Lengths * ... * 1)>;

  // Where element `i` of the part lies in the whole.
  CK_TILE_HOST_DEVICE static constexpr index_t place(index_t i) {
    const index_t origins[] = {Origins...}, lengths[] = {Lengths...};
    index_t sum = 0, stride = 1;
    for (index_t y = sizeof...(Lengths); y-- > 0;) {
      sum += (origins[y] + i % lengths[y]) * stride;
      i /= lengths[y];
      stride *= Distribution::DstrEncode::detail::ys_lengths_.data[y];
    }
    return sum / Packed;
  }

  template <class Whole, class Part, index_t... Is>
  CK_TILE_HOST_DEVICE static void get(const Whole& whole, Part& taken, sequence<Is...>) {
    ((taken.at(number<Is / Packed>::value) = whole.at(number<place(Is)>::value)), ...);
  }
  template <class Whole, class Part, index_t... Is>
  CK_TILE_HOST_DEVICE static void set(Whole& whole, const Part& given, sequence<Is...>) {
    ((whole.at(number<place(Is)>::value) = given.at(number<Is / Packed>::value)), ...);
  }
};

// f(element i of each tile) for every i. The index is an argument, so that `f` is instantiated once.
template <class F, class... Tiles>
CK_TILE_DEVICE void call_with_element(index_t i, const F& f, Tiles&... tiles) {
  f(tiles.get_thread_buffer().at(i)...);
}
template <index_t... Is, class F, class... Tiles>
CK_TILE_DEVICE void for_each_element(sequence<Is...>, const F& f, Tiles&... tiles) {
  (call_with_element(Is, f, tiles...), ...);
}

// out[i] = f(in[i], ...).
template <class F, class Out, class... Tiles>
CK_TILE_DEVICE void assign_element(index_t i, const F& f, Out& out, const Tiles&... tiles) {
  out.get_thread_buffer()(i) = f(tiles.get_thread_buffer()[i]...);
}
template <index_t... Is, class F, class Out, class... Tiles>
CK_TILE_DEVICE void assign_each_element(sequence<Is...>, const F& f, Out& out, const Tiles&... tiles) {
  (assign_element(Is, f, out, tiles...), ...);
}

}  // namespace kernelwright::lean

#endif
