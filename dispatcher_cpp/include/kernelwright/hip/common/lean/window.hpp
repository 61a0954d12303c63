// How a work-item reads and writes its part of a tile. Where each access begins, and where its elements lie in
// registers, is arithmetic on constants, not an instantiation for each element.
#ifndef KERNELWRIGHT_HIP_COMMON_LEAN_WINDOW_HPP
#define KERNELWRIGHT_HIP_COMMON_LEAN_WINDOW_HPP

#include "ck_tile/core/algorithm/space_filling_curve.hpp"
#include "ck_tile/core/container/sequence.hpp"
#include "ck_tile/core/numeric/integral_constant.hpp"

namespace kernelwright::lean {

using ck_tile::bool_constant;
using ck_tile::index_t;
using ck_tile::number;
using ck_tile::sequence;

// The accesses of a window: `Window` is a tile window with a distribution.
template <class Window>
struct accesses {
  using base = typename Window::Base;
  using traits = typename base::Traits;
  using element = typename base::DataType;
  using vector = typename traits::vector_t;
  static constexpr index_t count = traits::NumAccess;
  using all = ck_tile::make_index_sequence<count>;
  using elements = ck_tile::make_index_sequence<traits::ScalarPerVector / traits::PackedSize>;

  // Element `element` of access `access` among those that a work-item holds, which are packed, the last Y the fastest.
  CK_TILE_HOST_DEVICE static constexpr index_t place(index_t access, index_t element) {
    auto at = traits::SFC_Ys::curve::of(access);
    at.at[traits::VectorDimY] += element * traits::PackedSize;
    index_t sum = 0;
    for (index_t i = 0; i < base::NDimY; ++i)
      sum = sum * base::TileDstr::DstrEncode::detail::ys_lengths_.data[i] + at.at[i];
    return sum / traits::PackedSize;
  }

  // From access `Access` to the next one, as a step of both coordinates.
  template <index_t Access>
  CK_TILE_HOST_DEVICE static constexpr auto step() {
    using curve = typename traits::SFC_Ys::curve;
    return curve::template padded_step<Access>(ck_tile::make_index_sequence<base::NDimP>{}, typename curve::all{});
  }
};

// A function for each element: with all of them in one, or with places as arguments, the optimiser sees the vector
// another way, and some kernels come out with other (fewer) shuffles than from CK Tile's own code.
template <class Element, index_t To, index_t From, class Tile, class Vector>
CK_TILE_DEVICE void load_element(Tile& tile, const Vector& vector) {
  tile.get_thread_buffer().at(To) = vector.template get_as<Element>()[From];
}
template <bool Checked, index_t Access, class Window, class Tile, class Inner, class Outer, index_t... Is>
CK_TILE_DEVICE void load_access(const Window& window, Tile& tile, Inner& inner, Outer& outer, sequence<Is...>) {
  using each = accesses<Window>;
  const typename each::vector vector =
      window.get_bottom_tensor_view().template get_vectorized_elements<typename each::vector>(outer, 0,
                                                                                              bool_constant<Checked>{});
  (load_element<typename each::element, each::place(Access, Is), Is>(tile, vector), ...);
  if constexpr (Access + 1 < each::count) {
    constexpr auto step = each::template step<Access>();
    window.move_window_adaptor_and_bottom_tensor_thread_coordinate(inner, outer, step);
  }
}
template <bool Checked, class Window, class Tile, index_t... Accesses>
CK_TILE_DEVICE void load_accesses(const Window& window, Tile& tile, sequence<Accesses...>) {
  auto inner = window.pre_computed_coords_[number<0>{}][number<0>{}];
  auto outer = window.pre_computed_coords_[number<0>{}][number<1>{}];
  (load_access<Checked, Accesses>(window, tile, inner, outer, typename accesses<Window>::elements{}), ...);
}
// All of a work-item's part of the tile.
template <bool Checked, class Window, class Tile>
CK_TILE_DEVICE void load(const Window& window, Tile& tile) {
  load_accesses<Checked>(window, tile, typename accesses<Window>::all{});
}

template <bool Checked, index_t Access, class Window, class Tile, class Inner, class Outer, index_t... Is>
CK_TILE_DEVICE void store_access(const Window& window, const Tile& tile, Inner& inner, Outer& outer, sequence<Is...>) {
  using each = accesses<Window>;
  typename each::vector vector;
  const auto& buffer = tile.get_thread_buffer();
  ((vector.template get_as<typename each::element>()(Is) = buffer.at(number<each::place(Access, Is)>::value)), ...);
  window.get_bottom_tensor_view().template set_vectorized_elements<typename each::vector>(outer, 0, vector,
                                                                                          bool_constant<Checked>{});
  if constexpr (Access + 1 < each::count) {
    constexpr auto step = each::template step<Access>();
    window.move_window_adaptor_and_bottom_tensor_thread_coordinate(inner, outer, step);
  }
}
template <bool Checked, class Window, class Tile, index_t... Accesses>
CK_TILE_DEVICE void store_accesses(const Window& window, const Tile& tile, sequence<Accesses...>) {
  auto inner = window.pre_computed_coords_[number<0>{}][number<0>{}];
  auto outer = window.pre_computed_coords_[number<0>{}][number<1>{}];
  (store_access<Checked, Accesses>(window, tile, inner, outer, typename accesses<Window>::elements{}), ...);
}
template <bool Checked, class Window, class Tile>
CK_TILE_DEVICE void store(const Window& window, const Tile& tile) {
  store_accesses<Checked>(window, tile, typename accesses<Window>::all{});
}

}  // namespace kernelwright::lean

#endif
