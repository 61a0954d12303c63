// Rows of K that are shorter than a tile, for pipelines that copy them into LDS.
//
// CK Tile's raw asynchronous loads take no notice of which elements are valid (buffer_view::async_get_raw,
// core/tensor/buffer_view.hpp): beyond a padded head dimension they read what follows the row in memory, the next
// head's K. Q is zero there, but zero times NaN or infinity is NaN, so a head's result would depend on its neighbour.
// Here lanes without a valid element read at the end of the buffer, where loads give zeros, as CK Tile's other
// asynchronous load does (amd_async_buffer_load, core/arch/amd_buffer_addressing_builtins.hpp).
#ifndef KERNELWRIGHT_HIP_ATTENTION_MASKED_KEYS_HPP
#define KERNELWRIGHT_HIP_ATTENTION_MASKED_KEYS_HPP

// clang-format off: barriers come first
#include "kernelwright/hip/attention/barriers.hpp"
// clang-format on
#include "ck_tile/core.hpp"

namespace kernelwright::hip::attention {

template <class Buffer>
struct masked_buffer : Buffer {
  constexpr masked_buffer() = default;
  CK_TILE_DEVICE explicit constexpr masked_buffer(const Buffer& buffer) : Buffer(buffer) {}

  template <class X, bool PreNop = false>
  CK_TILE_DEVICE constexpr void async_get_raw(ck_tile::remove_cvref_t<typename Buffer::type>* lds, ck_tile::index_t at,
                                              ck_tile::index_t linear, bool valid,
                                              ck_tile::bool_constant<PreNop> pre_nop = {}) const {
    const auto place = valid ? at : static_cast<ck_tile::index_t>(this->buffer_size_);
    Buffer::template async_get_raw<X>(lds, place, linear, true, pre_nop);
  }
};

// A pipeline whose second window, or third where element functions stand between them, is K's.
template <class Pipeline>
struct masked_keys : Pipeline {
  template <class Q, class Second, class Third, class... Rest>
  CK_TILE_DEVICE auto operator()(const Q& q, const Second& second, const Third& third, Rest&&... rest) const {
    if constexpr (is_window<Second>(0))
      return Pipeline::operator()(q, masked(second), third, static_cast<Rest&&>(rest)...);
    else
      return Pipeline::operator()(q, second, masked(third), static_cast<Rest&&>(rest)...);
  }

 private:
  template <class X, class = typename X::BottomTensorView>
  static constexpr bool is_window(int) {
    return true;
  }
  template <class X>
  static constexpr bool is_window(...) {
    return false;
  }

  template <class Window>
  CK_TILE_DEVICE static auto masked(const Window& window) {
    const auto& view = window.get_bottom_tensor_view();
    using buffer = masked_buffer<ck_tile::remove_cvref_t<decltype(view.get_buffer_view())>>;
    using masked_view = ck_tile::tensor_view<buffer, ck_tile::remove_cvref_t<decltype(view.get_tensor_descriptor())>>;
    return ck_tile::make_tile_window(masked_view{buffer{view.get_buffer_view()}, view.get_tensor_descriptor()},
                                     window.get_window_lengths(), window.get_window_origin());
  }
};

}  // namespace kernelwright::hip::attention

#endif
