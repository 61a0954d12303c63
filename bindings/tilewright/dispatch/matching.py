"""From arrays to the problem they pose: shapes must agree, strides become layouts and leading dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from tilewright.dispatch import dtypes
from tilewright.dispatch.arrays import Operand, operand
from tilewright.dispatch.errors import ArrayError
from tilewright.dispatch.problem import GemmProblem


@dataclass(slots=True)
class Match:
    """Operands that fit together."""

    a: Operand
    b: Operand
    c: Operand | None
    out: Operand | None
    m: int
    n: int
    k: int
    dtype_c: str

    def problems(self, alpha: float, beta: float, layout: str | None, split_k: int = 1) -> tuple[GemmProblem, ...]:
        """What they pose: more than one problem where a single row or column can be read in both layouts.

        ArrayError for strides that no layout describes, or another layout than asked for.
        """
        if layout is not None and (len(layout) != 3 or set(layout) - {"r", "c"}):
            raise ArrayError(f"layout is {layout!r}; allowed: three letters r or c for A, B and C, e.g. 'rcr'")
        wanted = list(layout) if layout is not None else [None, None, None]
        readings = product(
            layouts("a", self.a, wanted[0]), layouts("b", self.b, wanted[1]), self._result_layouts(wanted[2])
        )
        return tuple(
            GemmProblem(
                self.m,
                self.n,
                self.k,
                dtype=self.a.dtype,
                dtype_b=self.b.dtype,
                dtype_c=self.dtype_c,
                layout=layout_a + layout_b + layout_c,
                lda=lda,
                ldb=ldb,
                ldc=ldc,
                alpha=alpha,
                beta=beta,
                split_k=split_k,
            )
            for (layout_a, lda), (layout_b, ldb), (layout_c, ldc) in readings
        )

    def _result_layouts(self, wanted: str | None) -> list[tuple[str, int]]:
        if self.out is None:  # allocated dense, in the order of c, which is copied into it first
            letter = wanted or (layouts("c", self.c, None)[0][0] if self.c is not None else "r")
            return [(letter, max(1, self.n if letter == "r" else self.m))]
        choices = layouts("out", self.out, wanted)
        if self.c is not None:
            choices = [choice for choice in choices if choice in layouts("c", self.c, wanted)]
            if not choices:
                raise ArrayError(f"c has strides {self.c.strides} and out {self.out.strides}; they must be equal")
        return choices


def match(a: Any, b: Any, c: Any, out: Any, *, beta: float, stream: int | None = None) -> Match:
    """View the arrays and check that they fit together, without touching their data. Raises ArrayError."""
    views = {
        name: operand(array, name, stream)
        for name, array in (("a", a), ("b", b), ("c", c), ("out", out))
        if array is not None
    }
    m, n, k = _sizes(views)
    _check_devices(views)
    _check_beta(beta, "c" in views)
    check_memory(views)
    result = views.get("out", views.get("c"))
    dtype_a = views["a"].dtype
    dtype_c = result.dtype if result is not None else dtypes.RESULT.get(dtype_a, dtype_a)
    return Match(views["a"], views["b"], views.get("c"), views.get("out"), m, n, k, dtype_c)


def _sizes(views: dict[str, Operand]) -> tuple[int, int, int]:
    (m, k), (k_of_b, n) = views["a"].shape, views["b"].shape
    if k != k_of_b:
        raise ArrayError(f"a is {m}x{k} and b is {k_of_b}x{n}: k is {k} and {k_of_b}; they must be equal")
    for name in ("c", "out"):
        if name in views and views[name].shape != (m, n):
            shape = "x".join(map(str, views[name].shape))
            raise ArrayError(f"{name} is {shape}; allowed for a of {m}x{k} and b of {k}x{n}: {m}x{n}")
    if "c" in views and "out" in views and views["c"].dtype != views["out"].dtype:
        raise ArrayError(f"c is {views['c'].dtype} and out is {views['out'].dtype}; they must be equal")
    return m, n, k


def _check_devices(views: dict[str, Operand]) -> None:
    first = views["a"].device
    if any(view.device != first for view in views.values()):
        where = ", ".join(f"{name} on {view.device}" for name, view in views.items())
        raise ArrayError(f"arrays are on different devices: {where}; move them to one")
    if "out" in views and views["out"].readonly:
        raise ArrayError("out cannot be written to; pass a writable array")


def _check_beta(beta: float, has_c: bool) -> None:
    if beta != 0.0 and not has_c:
        raise ArrayError(f"beta is {beta} but c is not given; pass c (c=out accumulates in place)")
    if beta == 0.0 and has_c:
        raise ArrayError("c is given but beta is 0, so it would be ignored; pass beta=1.0 or leave c out")


def check_memory(views: dict[str, Operand]) -> None:
    """Raise ArrayError where ``out`` shares memory with a or b, or with c without being c."""
    out = views.get("out")
    if out is None:
        return
    for name in ("a", "b"):
        if overlaps(out, views[name]):
            raise ArrayError(f"out shares memory with {name}, which is read while out is written; pass another out")
    if "c" in views and views["c"].pointer != out.pointer and overlaps(out, views["c"]):
        raise ArrayError("out overlaps c without being the same matrix; pass c=out or separate memory")


def layouts(name: str, view: Operand, wanted: str | None) -> list[tuple[str, int]]:
    """Layout letters and leading dimensions that address this matrix, row-major first. ArrayError if there are none."""
    (rows, columns), (row_stride, column_stride) = view.shape, view.strides
    found = []
    for letter, lines, extent, outer, inner in (
        ("r", rows, columns, row_stride, column_stride),
        ("c", columns, rows, column_stride, row_stride),
    ):
        if wanted not in (None, letter):
            continue
        dense = max(extent, 1)
        if rows * columns == 0 or (lines == 1 and (inner == 1 or extent == 1)):
            found.append((letter, dense))  # with at most one line its stride means nothing
        elif (inner == 1 or extent == 1) and outer >= dense:
            found.append((letter, outer))
    if not found:
        raise ArrayError(_why_not(name, view, wanted))
    return found


def is_addressed_by(view: Operand, letter: str, leading: int) -> bool:
    """Whether this layout and leading dimension reach every element; a stride that is never taken may be anything."""
    inner, outer = (1, 0) if letter == "r" else (0, 1)
    return 0 in view.shape or (
        (view.strides[inner] == 1 or view.shape[inner] == 1)
        and (view.strides[outer] == leading or view.shape[outer] == 1)
    )


def _why_not(name: str, view: Operand, wanted: str | None) -> str:
    what = f"{name} of shape {view.shape} has strides {view.strides} (elements)"
    if min(view.strides) < 0:
        return f"{what}; negative strides cannot be addressed, pass a copy"
    if min(view.strides) == 0 or max(view.strides) < min(view.shape):
        return f"{what}; its rows or columns overlap in memory, pass a copy"
    if 1 not in view.strides:
        return f"{what}; one of them must be 1, pass a copy"
    if wanted is not None:
        return f"{what}, which is not {'row' if wanted == 'r' else 'column'}-major as layout says; leave layout out"
    return f"{what}; its rows or columns overlap in memory, pass a copy"


def overlaps(left: Operand, right: Operand) -> bool:
    """Whether two matrices share an element. Blocks side by side in one larger matrix do not."""
    left_begin, left_end = _span(left)
    right_begin, right_end = _span(right)
    if left_begin >= right_end or right_begin >= left_end:
        return False
    sizes = [dtypes.ITEMSIZE[view.dtype] for view in (left, right)]
    steps = [max(view.strides) * size for view, size in zip((left, right), sizes, strict=True)]
    widths = [_line(view) * size for view, size in zip((left, right), sizes, strict=True)]
    if steps[0] != steps[1]:
        return True
    # Same distance between lines: they are apart if their positions within that distance are.
    offset = (right_begin - left_begin) % steps[0]
    return not (offset >= widths[0] and offset + widths[1] <= steps[0])


def _line(view: Operand) -> int:
    return view.shape[1] if view.strides[0] >= view.strides[1] else view.shape[0]


def _span(view: Operand) -> tuple[int, int]:
    if 0 in view.shape:
        return view.pointer, view.pointer
    (rows, columns), (row_stride, column_stride) = view.shape, view.strides
    last = (rows - 1) * row_stride + (columns - 1) * column_stride
    return view.pointer, view.pointer + (last + 1) * dtypes.ITEMSIZE[view.dtype]
