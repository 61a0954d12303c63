"""From arrays to the problem they pose: shapes must agree, strides become layouts and leading dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from kernelwright.dispatch import dtypes
from kernelwright.dispatch.arrays import Operand, operand
from kernelwright.dispatch.errors import ArchMismatchError, ArrayError
from kernelwright.dispatch.problem import GemmProblem


class Epilogue(NamedTuple):
    """What follows the product."""

    alpha: float = 1.0
    beta: float = 0.0
    d_op: str = "add"
    activation: str = "none"


@dataclass(slots=True)
class Match:
    """Operands that fit together. ``batch`` is None where all have two dimensions."""

    a: Operand
    b: Operand
    c: Operand | None
    out: Operand | None
    ds: tuple[Operand, ...]
    m: int
    n: int
    k: int
    batch: int | None
    dtype_c: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the result."""
        return (self.m, self.n) if self.batch is None else (self.batch, self.m, self.n)

    def problems(self, epilogue: Epilogue, layout: str | None, split_k: int = 0) -> tuple[GemmProblem, ...]:
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
                split_k=split_k,
                b_format=self.b.b_format,
                **self._batches(layout_c, ldc),
                **self._d_tensors(layout_c),
                **epilogue._asdict(),
            )
            for (layout_a, lda), (layout_b, ldb), (layout_c, ldc) in readings
        )

    def _batches(self, layout_c: str, ldc: int) -> dict[str, Any]:
        if self.batch is None:
            return {}
        result = self.out if self.out is not None else self.c
        dense = (self.m if layout_c == "r" else self.n) * ldc
        stride_c = dense if result is None or self.out is None else result.batch_stride
        return {
            "batch": max(self.batch, 1),
            "stride_a": _batch_stride(self.a),
            "stride_b": _batch_stride(self.b),
            "stride_c": stride_c,
        }

    def _d_tensors(self, layout_c: str) -> dict[str, Any]:
        if not self.ds:
            return {}
        ld = [d_leading(f"ds[{number}]", view, (self.m, self.n), layout_c) for number, view in enumerate(self.ds)]
        return {
            "num_d": len(self.ds),
            "ld_multi_d": tuple(ld),
            "stride_multi_d": tuple(_batch_stride(view) for view in self.ds),
        }

    def _result_layouts(self, wanted: str | None) -> list[tuple[str, int]]:
        if self.out is None:  # allocated dense, in the order of c, which is copied into it first
            letter = wanted or (layouts("c", self.c, None)[0][0] if self.c is not None else "r")
            return [(letter, max(1, self.n if letter == "r" else self.m))]
        choices = layouts("out", self.out, wanted)
        if self.c is not None:
            choices = [choice for choice in choices if choice in layouts("c", self.c, wanted)]
            if not choices:
                raise ArrayError(f"c has strides {self.c.strides} and out {self.out.strides}; they must be equal")
            if _batch_stride(self.c) != _batch_stride(self.out):
                raise ArrayError(
                    f"c has a batch stride of {_batch_stride(self.c)} and out of {_batch_stride(self.out)} elements; "
                    "they must be equal"
                )
        return choices


def _batch_stride(view: Operand) -> int:
    """0 where all of the batch share the matrix."""
    return 0 if view.batch in (None, 1) else view.batch_stride


def match(a: Any, b: Any, c: Any, out: Any, ds: Sequence[Any] = (), *, beta: float, stream: int | None = None) -> Match:
    """View the arrays and check that they fit together, without touching their data. Raises ArrayError."""
    views = {
        name: operand(array, name, stream)
        for name, array in (("a", a), ("b", b), ("c", c), ("out", out))
        if array is not None
    }
    ds_views = tuple(d_operand(array, f"ds[{number}]", stream) for number, array in enumerate(ds))
    m, n, k = _sizes(views)
    batch = _batch(views)
    result = views.get("out", views.get("c"))
    dtype_a = views["a"].dtype
    dtype_c = result.dtype if result is not None else dtypes.RESULT.get(dtype_a, dtype_a)
    for number, view in enumerate(ds_views):
        check_d(f"ds[{number}]", view, (m, n), batch, dtype_c)
        views[f"ds[{number}]"] = view
    _check_devices(views)
    _check_beta(beta, "c" in views)
    check_memory(views)
    return Match(views["a"], views["b"], views.get("c"), views.get("out"), ds_views, m, n, k, batch, dtype_c)


def _batch(views: dict[str, Operand]) -> int | None:
    """How many products there are; None without an array of three dimensions."""
    given = {name: view.batch for name, view in views.items() if view.batch is not None}
    if not given:
        return None
    counts = {count for name, count in given.items() if count != 1 or name in ("c", "out")}
    batch = max(counts, default=1)
    if len(counts) > 1:
        listed = ", ".join(f"{name} of {count}" for name, count in given.items())
        raise ArrayError(f"batches are {listed}; they must be equal, or 1 for a or b that all share")
    for name in ("c", "out"):
        if name in views and views[name].batch is None:
            raise ArrayError(f"{name} has two dimensions; allowed for a batch: {batch} matrices in an array of three")
    for name, view in views.items():
        if view.batch is not None and view.batch > 1 and view.batch_stride < 0:
            raise ArrayError(f"{name} has a negative batch stride; pass a copy")
    out = views.get("out")
    if out is not None and batch > 1 and out.batch_stride == 0 and 0 not in out.shape:
        raise ArrayError("out is broadcast over its batch, so results would overlap; pass a whole array")
    return batch


def d_operand(array: Any, name: str, stream: int | None = None) -> Operand:
    """A D tensor: a matrix, a batch, or n values for every row."""
    if len(getattr(array, "shape", ())) == 1:
        return operand(array[None, :], name, stream)._replace(owner=array)
    return operand(array, name, stream)


def check_d(name: str, view: Operand, shape: tuple[int, int], batch: int | None, dtype: str) -> None:
    """ArrayError unless a D tensor can be combined with a result of this shape: extents are equal, or 1."""
    fits = all(extent in (whole, 1) for extent, whole in zip(view.shape, shape, strict=True))
    if not fits or view.batch not in (None, 1, batch):
        given = "x".join(map(str, view.shape if view.batch is None else (view.batch, *view.shape)))
        whole = "x".join(map(str, shape if batch is None else (batch, *shape)))
        raise ArrayError(f"{name} is {given}; allowed: {whole}, or 1x{shape[1]} for all rows")
    if view.dtype != dtype:
        raise ArrayError(f"{name} is {view.dtype}; allowed: {dtype}, as the result")


def d_leading(name: str, view: Operand, shape: tuple[int, int], letter: str) -> int:
    """The leading dimension of a D tensor beside a result in the layout ``letter``; 0 for one line for all."""
    lines, outer, inner = (0, 0, 1) if letter == "r" else (1, 1, 0)
    if view.shape[inner] != shape[inner]:
        kind = "row" if letter == "r" else "column"
        raise ArrayError(
            f"{name} has one value for each {kind}; allowed beside a {kind}-major result: whole matrices, or one "
            f"{kind} for all"
        )
    one_line = view.shape[lines] == 1 or view.strides[outer] == 0
    if one_line and shape[lines] != 1:
        if view.strides[inner] != 1 and view.shape[inner] > 1:
            raise ArrayError(
                f"{name} has strides {view.strides}; the values of its line must lie together, pass a copy"
            )
        return 0
    found = [leading for _, leading in layouts(name, view, letter)]
    return found[0]


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
    for name in views:
        if name not in ("c", "out") and overlaps(out, views[name]):
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
    """Whether two operands share an element. Blocks side by side in one larger matrix do not."""
    left_begin, left_end = span(left)
    right_begin, right_end = span(right)
    if left_begin >= right_end or right_begin >= left_end:
        return False
    if any(view.batch not in (None, 1) for view in (left, right)):
        return True
    sizes = [dtypes.ITEMSIZE[view.dtype] for view in (left, right)]
    steps = [max(view.strides) * size for view, size in zip((left, right), sizes, strict=True)]
    widths = [_line(view) * size for view, size in zip((left, right), sizes, strict=True)]
    if steps[0] != steps[1] or steps[0] == 0:
        return True
    # Same distance between lines: they are apart if their positions within that distance are.
    offset = (right_begin - left_begin) % steps[0]
    return not (offset >= widths[0] and offset + widths[1] <= steps[0])


def _line(view: Operand) -> int:
    return view.shape[1] if view.strides[0] >= view.strides[1] else view.shape[0]


def span(view: Operand) -> tuple[int, int]:
    """Addresses of the first byte and behind the last one; equal for an empty operand."""
    if 0 in view.shape or view.batch == 0:
        return view.pointer, view.pointer
    if view.b_format:
        return view.pointer, view.pointer + _bytes_of_shuffled(view)
    (rows, columns), (row_stride, column_stride) = view.shape, view.strides
    last = (rows - 1) * row_stride + (columns - 1) * column_stride + ((view.batch or 1) - 1) * view.batch_stride
    return view.pointer, view.pointer + (last + 1) * dtypes.ITEMSIZE[view.dtype]


def _bytes_of_shuffled(view: Operand) -> int:
    return int(getattr(view.owner, "nbytes", 0))


def check_operand(shown: str, name: str, view: Operand, problem: GemmProblem, memory: str) -> None:
    """ArrayError unless ``view`` is what a plan for ``problem`` takes as ``name``: a, b, c or out."""
    p = problem
    rows, columns, dtype, letter, leading, stride = {
        "a": (p.m, p.k, p.dtype_a, p.layout[0], p.lda, p.stride_a),
        "b": (p.k, p.n, p.dtype_b, p.layout[1], p.ldb, p.stride_b),
    }.get(name, (p.m, p.n, p.dtype_c, p.layout[2], p.ldc, p.stride_c))
    if view.shape != (rows, columns) or view.dtype != dtype:
        shape = "x".join(map(str, view.shape))
        raise ArrayError(f"{shown} is {shape} {view.dtype}; allowed for this plan: {rows}x{columns} {dtype}")
    shared = view.batch in (None, 1) and stride == 0 and name in ("a", "b")
    if (view.batch or 1) != p.batch and not shared:
        raise ArrayError(f"{shown} is a batch of {view.batch or 1}; allowed for this plan: {p.batch}")
    if p.batch > 1 and not shared and view.batch_stride != stride:
        raise ArrayError(f"{shown} has a batch stride of {view.batch_stride} elements; allowed for this plan: {stride}")
    if view.device != memory:
        raise ArrayError(f"{shown} is on {view.device}; allowed for this plan: {memory}")
    if name == "b" and view.b_format != p.b_format:
        kinds = ["shuffled for another kernel" if f else "not shuffled" for f in (view.b_format, p.b_format)]
        wanted = f"one that shuffle_b made in b_format {p.b_format}" if p.b_format else "a matrix as it is"
        raise ArrayError(f"{shown} is {kinds[0]}; allowed for this plan: {wanted}")
    if not is_addressed_by(view, letter, leading or 1):
        kind = "row" if letter == "r" else "column"
        raise ArrayError(
            f"{shown} has strides {view.strides}; allowed for this plan: {kind}-major, leading dimension {leading}"
        )
    if name == "out" and view.readonly:
        raise ArrayError(f"{shown} cannot be written to; pass a writable array")


def check_format(shown: str, view: Operand, arch: str) -> None:
    """ArchMismatchError where 8-bit floats are in the other format than that of an architecture's kernels."""
    if view.dtype not in ("fp8", "bf8"):
        return
    wants_fnuz = arch in dtypes.FNUZ_ARCHS
    if view.fnuz != wants_fnuz:
        raise ArchMismatchError(
            f"{shown} is in the {'FNUZ' if view.fnuz else 'OCP'} format of {view.dtype}; "
            f"allowed on {arch}: {'FNUZ' if wants_fnuz else 'OCP'}"
        )
