"""Rewrites of CUTLASS's headers: CuTe functions whose results are known from the types of their arguments.

Layouts of tiles are such types. The code that computes them is compiled, inlined and then removed: 24,000 of the 40,000
functions of a kernel. Our code in ``kernelwright/cuda/common/lean`` keeps it from being compiled at all. The device
code of kernels is the same to the byte with and without (``tests/gemm/lean``).
"""

from __future__ import annotations

from kernelwright.codegen.lean import cutlass_archs
from kernelwright.codegen.lean.rewrite import Edit, Header, Swap

FOLDER = "cutlass_library/source/"
_CUTE = f"{FOLDER}include/cute"
_OPEN, _CLOSE = "namespace cute\n{\n", "} // end namespace cute\n"
_LEAN = "::kernelwright::lean::"


def _ours(*headers: str) -> str:
    return "".join(f'#include "kernelwright/cuda/common/lean/{header}.hpp"\n' for header in headers)


def _known(*lines: str) -> Edit:
    """Compile the body of the function whose head ends with ``lines`` only if its result is not known."""
    head = "\n".join(lines)
    return Edit(f"{head}\n{{\n", "\n}\n", f"  return {_LEAN}known([&]() {{\n", tail="\n  });")


def _returns(value: str) -> Swap:
    """The same for a function that returns ``value`` and does nothing else."""
    result = f"decltype({value})"
    known = f"if constexpr (is_empty<{result}>::value)\n        return {result}{{}};\n      else\n"
    return Swap(f"      return {value};", f"      {known}        return {value};")


_LAYOUT = "Layout<LShape,LStride> const& layout,"
_FILTER = "filter_tuple(T0 const& t0, T1 const& t1,"


def _extending(name: str, parameters: str) -> Edit:
    head = f"template <{parameters}>", "CUTE_HOST_DEVICE constexpr", "auto", f"{name}(T const& a, X const& x)"
    return _known(*head)


# Constructors of empty types are not called where C++ knows that they do nothing. A tuple's own stays: a default one
# would clear tuples with elements first, with which optimisers number registers otherwise.
_CONSTEXPR = "  CUTE_HOST_DEVICE constexpr\n"
_TUPLE = """  if constexpr (is_empty<tuple<T...>>::value)
    return {};
  else
    return {t...};"""
_LAYOUT_OF = "  Layout(Shape  const& shape"
_COMPOSITION = Edit(
    "return Layout{rhs_shape, rhs_stride * lhs_stride};\n  }",
    " else {",
    f" else if constexpr ({_LEAN}is_composable<LShape, LStride, RShape, RStride>) {{\n"
    f"    return typename {_LEAN}composition<LShape, LStride, RShape, RStride>::type{{}};\n  }}",
)

HEADERS = (
    Header(
        f"{_CUTE}/container/tuple.hpp",
        "3fe2de09d1da2dd70a1fcfbbb74a49b844b40d4336f5131ef86b987c7231569c",
        (
            Swap(f"{_CONSTEXPR}  ESO() {{}}", "  ESO() = default;"),
            Edit("// Compilers disagree on decltype(auto)", "} // end namespace eso", "\n\n"),
            Swap("  return {t...};", _TUPLE),
            Edit(
                "// Returns the element in the ith position of the tuple\n",
                "// Returns the first position",
                f"\n{_CLOSE}\n{_ours('get')}\n{_OPEN}\n",
            ),
        ),
    ),
    Header(
        f"{_CUTE}/algorithm/tuple_algorithms.hpp",
        "4e1e2fceff0dee3cb073aae9bb3b0073b357d30b2a5ec77f2b67fb65b86ce395",
        (
            Edit("#pragma once\n", "\n#include", f"\n{_ours('known')}"),
            _known("filter_tuple(T const& t, F&& f)"),
            _known(f"{_FILTER} F&& f)"),
            _known(f"{_FILTER} T2 const& t2, F&& f)"),
            _known("fold(T&& t, V const& v, F&& f, seq<Is...>)"),
            _known("flatten_to_tuple(T const& t)"),
            _known("flatten(T const& t)"),
            *(
                _extending(name, parameters)
                for name in ("append", "prepend")
                for parameters in ("int N, class T, class X", "class T, class X")
            ),
            _known("zip2_by(T const& t, TG const& guide)"),
        ),
    ),
    Header(
        f"{_CUTE}/layout.hpp",
        "b2e9a96efed8cf78193435e1b72697ab8e2f908b396f5c2327a65fdd82bf2b98",
        (
            Edit("numeric_types.hpp>", "\n\nnamespace cute", f"\n\n{_ours('compose', 'known')}"),
            _COMPOSITION,
            Swap(f"{_CONSTEXPR}{_LAYOUT_OF}  = {{}}", f"  Layout() = default;\n{_CONSTEXPR}{_LAYOUT_OF}"),
            _known("            Layout<Shape1,Stride1> const& layout1)"),
            _known("            Layout<Shapes,Strides> const&... layouts)"),
            _known("slice(Coord const& c, Layout<Shape,Stride> const& layout)"),
            _known("transform_layout(Tuple const& t, F&& f, seq<I...>)"),
            _known("transform_layout(Tuple0 const& t0, Tuple1 const& t1, F&& f, seq<I...>, seq<I0...>, seq<I1...>)"),
            _known("coalesce_x(Layout<Shape,Stride> const& layout)"),
            _known("coalesce_x(Layout<Shape,Stride> const& layout, IntTuple const& trg_profile)"),
            _known("                 RShape const& rhs_shape, RStride const& rhs_stride)"),
            _known("            Layout<RShape,RStride> const& rhs)"),
            _known("            Tiler                  const& rhs)"),
            _known("complement(Shape const& shape, Stride const& stride, CoTarget const& cotarget)"),
            _known(f"tile_unzip({_LAYOUT}", "           Tiler                  const& tiler)"),
            _known(f"logical_divide({_LAYOUT}", "               Layout<TShape,TStride> const& tiler)"),
            _known(f"logical_divide({_LAYOUT}", "               Tiler                  const& tiler)"),
            _known(f"zipped_divide({_LAYOUT}", "              Tiler                  const& tiler)"),
        ),
    ),
    Header(
        f"{_CUTE}/stride.hpp",
        "e77d5febafa814d8bc6150261e099f3b54dcbb74d653415fd6f4c8c4c68fbeb8",
        (
            _returns("detail::crd2idx_ttt(coord, shape, stride, tuple_seq<Coord>{})"),
            _returns("detail::crd2idx_itt(coord, shape, stride, tuple_seq<Shape>{})"),
        ),
    ),
    Header(
        f"{_CUTE}/arch/util.hpp",
        "6c4f78507adbfc43094eb1770d60c96ce3e02cc53c5d1b49edb0a8444c6ad7f2",
        (
            Edit("#include <cute/numeric/integer_sequence.hpp>\n", "", _ours("place"), tail=""),
            *(Swap(f"{x}[I{x}]", f"{_LEAN}at<I{x}>({x})", times=5) for x in "abcd"),
        ),
    ),
    # Containers and locks for logging that is disabled.
    Header(
        f"{FOLDER}include/cutlass/arch/synclog.hpp",
        "1232c652366854f2bd7f8d8835ac5254ddb7a48680ee13855de9f1007c459a61",
        (Edit("#include <cstdint>\n#endif\n\n", "namespace cutlass", ""),),
    ),
    *cutlass_archs.headers(f"{FOLDER}include"),
)
