// The element of a tuple by one function with a stated type, where CuTe has two whose types are deduced. Empty elements
// are not stored.
#pragma once

namespace kernelwright::lean {

template <class T, bool empty = __is_empty(T)>
struct element {
  using of_const = const T&;
  using of_lvalue = T&;
  using of_rvalue = T&&;
};
template <class T>
struct element<T, true> {
  using of_const = T;
  using of_lvalue = T;
  using of_rvalue = T;
};

}  // namespace kernelwright::lean

namespace cute {

template <size_t I, class... T>
CUTE_HOST_DEVICE constexpr typename kernelwright::lean::element<__type_pack_element<I, T...>>::of_const get(
    const tuple<T...>& t) noexcept {
  if constexpr (__is_empty(__type_pack_element<I, T...>))
    return {};
  else
    return eso::getr<const __type_pack_element<I, T...>&, I>(t);
}

template <size_t I, class... T>
CUTE_HOST_DEVICE constexpr typename kernelwright::lean::element<__type_pack_element<I, T...>>::of_lvalue get(
    tuple<T...>& t) noexcept {
  if constexpr (__is_empty(__type_pack_element<I, T...>))
    return {};
  else
    return eso::getr<__type_pack_element<I, T...>&, I>(t);
}

template <size_t I, class... T>
CUTE_HOST_DEVICE constexpr typename kernelwright::lean::element<__type_pack_element<I, T...>>::of_rvalue get(
    tuple<T...>&& t) noexcept {
  if constexpr (__is_empty(__type_pack_element<I, T...>))
    return {};
  else
    return eso::getr<__type_pack_element<I, T...>&&, I>(static_cast<tuple<T...>&&>(t));
}

}  // namespace cute
