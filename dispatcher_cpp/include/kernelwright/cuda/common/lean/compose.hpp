// The composition of a flat layout and an integral one by arithmetic, where both are known at compile time: the types
// are those of cute::detail::composition_impl, which takes a chain of function templates for each mode.
#pragma once

#include <cute/container/tuple.hpp>
#include <cute/numeric/integral_constant.hpp>

namespace cute {
template <class Shape, class Stride>
struct Layout;
}

namespace kernelwright::lean {

template <class Shape>
inline constexpr bool are_ints = false;
template <auto... values>
inline constexpr bool are_ints<cute::tuple<cute::C<values>...>> = (__is_same(decltype(values), int) && ...);
template <auto value>
inline constexpr bool are_ints<cute::C<value>> = __is_same(decltype(value), int);

// Can `composition` compose these?
template <class Shape, class Stride, class Extent, class Step>
inline constexpr bool is_composable = are_ints<Shape> && are_ints<Extent> && are_ints<Step> && __is_empty(Stride);

// Modes of a result: each takes `extent` elements, `step` apart, of the mode `of`.
template <int count>
struct modes {
  int extent[count]{}, step[count]{}, of[count]{};
  int size{};
  bool divides{true};

  constexpr void add(int e, int s, int mode) {
    extent[size] = e;
    step[size] = s;
    of[size++] = mode;
  }
};

constexpr int rounded_up(int a, int b) { return (a + b - 1) / b; }

template <int count>
constexpr modes<count> composed(const int (&shape)[count], int extent, int step) {
  modes<count> out{};
  for (int mode = 0; mode < count - 1; ++mode) {
    const int size = step < 0 ? -step : step;
    out.divides = out.divides && (step % shape[mode] == 0 || step < shape[mode]);
    const int fits = rounded_up(shape[mode], size);
    if (fits != 1 && extent != 1) {
      const int taken = fits < extent ? fits : extent;
      out.divides = out.divides && extent % taken == 0;
      out.add(taken, step, mode);
      extent /= taken;
    }
    step = rounded_up(size, shape[mode]) * (step < 0 ? -1 : 1);
  }
  if (out.size == 0 || extent != 1) out.add(extent, step, count - 1);
  return out;
}

template <class Shape, class Stride, class Extent, class Step>
struct composition;
template <auto... sizes, class... Strides, auto extent, auto step>
struct composition<cute::tuple<cute::C<sizes>...>, cute::tuple<Strides...>, cute::C<extent>, cute::C<step>> {
  static constexpr auto of = composed<sizeof...(sizes)>({sizes...}, extent, step);
  static_assert(of.divides, "Shape or Stride Divisibility Condition");

  template <int mode>
  using stride = decltype(cute::C<of.step[mode]>{} * __type_pack_element<of.of[mode], Strides...>{});
  template <class Modes>
  struct made;
  template <int... mode>
  struct made<cute::integer_sequence<int, mode...>> {
    using type = cute::Layout<cute::tuple<cute::C<of.extent[mode]>...>, cute::tuple<stride<mode>...>>;
  };
  template <int mode>
  struct made<cute::integer_sequence<int, mode>> {
    using type = cute::Layout<cute::C<of.extent[mode]>, stride<mode>>;
  };
  using type = typename made<cute::make_integer_sequence<int, of.size>>::type;
};

}  // namespace kernelwright::lean
