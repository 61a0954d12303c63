"""From arrays to the fields of their problem: shapes must agree, strides become layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple, Unpack

from kernelwright.dispatch.core.errors import ArrayError, ProblemError
from kernelwright.dispatch.operations.gemm.aliasing import check_aliasing
from kernelwright.dispatch.operations.gemm.layouts import batch_stride_of, d_leading, layouts
from kernelwright.dispatch.operations.gemm.operand import Operand, d_operand, operand
from kernelwright.problems.gemm.options import GemmOptions
from kernelwright.problems.gemm.problem import Epilogue
from kernelwright.problems.literals import Activation, DOp
from kernelwright.problems.scalars import real
from kernelwright.problems.shared import RESULT

_PLAIN = Epilogue()


@dataclass(slots=True)
class GemmOperands:
    """Operands whose shapes agree. ``batch`` is None if all have two dimensions, else the product of ``batches``."""

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
    batches: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return (*self.batches, self.m, self.n)

    @property
    def views(self) -> tuple[Operand | None, ...]:
        """A, B, C, D tensors and the result: the order of a plan's operands."""
        return (self.a, self.b, self.c, *self.ds, self.out)

    def readings(self, epilogue: Epilogue, layout: str | None, split_k: int = 0) -> tuple[dict[str, Any], ...]:
        """Fields of the :class:`GemmProblem` of the operands.

        There are several readings if a single row or column fits both layouts. Raises ArrayError for strides that no
        layout describes, or that contradict ``layout``.
        """
        if layout is not None and (not isinstance(layout, str) or len(layout) != 3 or set(layout) - {"r", "c"}):
            raise ArrayError(f"layout is {layout!r}; allowed: three letters r or c for A, B and C, e.g. 'rcr'")
        wanted = list(layout) if layout is not None else [None, None, None]
        readings = product(layouts("a", self.a, wanted[0]), layouts("b", self.b, wanted[1]), self._results(wanted[2]))
        common = {
            **{"m": self.m, "n": self.n, "k": self.k, "split_k": split_k, "b_format": self.b.b_format},
            **{"dtype": self.a.dtype, "dtype_b": self.b.dtype, "dtype_c": self.dtype_c},
            **epilogue._asdict(),
        }
        return tuple(
            {
                **common,
                **{"layout": layout_a + layout_b + layout_c, "lda": lda, "ldb": ldb, "ldc": ldc},
                **self._batches(layout_c, ldc),
                **d_tensors,
            }
            for (layout_a, lda), (layout_b, ldb), (layout_c, ldc, d_tensors) in readings
        )

    def _batches(self, layout_c: str, ldc: int) -> dict[str, Any]:
        if self.batch is None:
            return {}
        result = self.out if self.out is not None else self.c
        dense = (self.m if layout_c == "r" else self.n) * ldc
        stride_c = dense if result is None or self.out is None else result.batch_stride
        return {
            "batch": max(self.batch, 1),
            "stride_a": batch_stride_of(self.a),
            "stride_b": batch_stride_of(self.b),
            "stride_c": stride_c,
        }

    def _results(self, wanted: str | None) -> list[tuple[str, int, dict[str, Any]]]:
        """Layouts and leading dimensions of the result with which every D tensor can be read, and their fields.

        A result of one row or column has both layouts, and a bias fits one of them. Raises ArrayError if it fits none.
        """
        fitting, refused = [], None
        for letter, leading in self._result_layouts(wanted):
            try:
                fitting.append((letter, leading, self._d_tensors(letter)))
            except ArrayError as error:
                refused = refused or error
        if refused is not None and not fitting:
            raise refused
        return fitting

    def _d_tensors(self, layout_c: str) -> dict[str, Any]:
        if not self.ds:
            return {}
        ld = [d_leading(f"ds[{number}]", view, (self.m, self.n), layout_c) for number, view in enumerate(self.ds)]
        return {
            "num_d": len(self.ds),
            "ld_multi_d": tuple(ld),
            "stride_multi_d": tuple(batch_stride_of(view) for view in self.ds),
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
            if batch_stride_of(self.c) != batch_stride_of(self.out):
                strides = f"{batch_stride_of(self.c)} and out of {batch_stride_of(self.out)} elements"
                raise ArrayError(f"c has a batch stride of {strides}; they must be equal")
        return choices


def read_operands(
    a: Any, b: Any, c: Any, out: Any, ds: Sequence[Any] = (), *, beta: float, stream: int | None = None
) -> GemmOperands:
    """View the arrays and check that their shapes agree, without reading their data. Raises ArrayError."""
    if a is None or b is None:
        raise ArrayError(f"{'a' if a is None else 'b'} is None; allowed: an array for each of a and b")
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
    dtype_c = result.dtype if result is not None else RESULT.get(dtype_a, dtype_a)
    for number, view in enumerate(ds_views):
        check_d(f"ds[{number}]", view, (m, n), batch, dtype_c)
        views[f"ds[{number}]"] = view
    _check_devices(views)
    _check_beta(beta, "c" in views)
    check_aliasing(views)
    batches = _batches(views, batch)
    return GemmOperands(
        views["a"], views["b"], views.get("c"), views.get("out"), ds_views, m, n, k, batch, dtype_c, batches
    )


class Options(NamedTuple):
    """Checked options of a product. ``ds`` are the D tensors with the bias in front."""

    ds: tuple[Any, ...]
    epilogue: Epilogue
    layout: str | None
    split_k: int


def read_options(
    ds: Sequence[Any] = (),
    bias: Any = None,
    d_op: DOp = _PLAIN.d_op,
    activation: Activation = _PLAIN.activation,
    alpha: float = _PLAIN.alpha,
    beta: float = _PLAIN.beta,
    layout: str | None = None,
    split_k: int = 0,
) -> Options:
    """Check options. Raises ProblemError for factors that are not numbers, ArrayError for ``ds`` that is not a list."""
    epilogue = Epilogue(real("alpha", alpha), real("beta", beta), d_op, activation)
    return Options(d_tensors(ds, bias, d_op), epilogue, layout, split_k)


def d_tensors(ds: Any, bias: Any, d_op: str) -> tuple[Any, ...]:
    """D tensors as a tuple with the bias in front: an iterator would be empty at its second use."""
    if not isinstance(ds, list | tuple):
        raise ArrayError(f"ds is a {type(ds).__name__}; allowed: a list or tuple of arrays; pass ds=[array]")
    if bias is None:
        return tuple(ds)
    if d_op != "add":
        raise ProblemError(f"d_op is {d_op!r}; allowed with a bias, which is added: 'add'")
    return (bias, *ds)


def fields_of_arrays(a: Any, b: Any, c: Any, out: Any, **options: Unpack[GemmOptions]) -> dict[str, Any]:
    """The fields of a product's problem, in the first of the layouts that fit. Raises ArrayError."""
    ds, epilogue, layout, split_k = read_options(**options)
    return read_operands(a, b, c, out, ds, beta=epilogue.beta).readings(epilogue, layout, split_k)[0]


def _batch(views: dict[str, Operand]) -> int | None:
    """Number of products; None if all arrays have two dimensions."""
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
            raise ArrayError(
                f"{name} has two dimensions; allowed for a batch: {batch} matrices in one of three or more"
            )
    for name, view in views.items():
        if view.batch is not None and view.batch > 1 and view.batch_stride < 0:
            raise ArrayError(f"{name} has a negative batch stride; pass a copy")
    out = views.get("out")
    if out is not None and batch > 1 and out.batch_stride == 0 and 0 not in out.shape:
        raise ArrayError("out is broadcast over its batch, so results would overlap; pass a whole array")
    return batch


def _batches(views: dict[str, Operand], batch: int | None) -> tuple[int, ...]:
    """Batch extents, shared by all operands but those of a single matrix. Raises ArrayError if they differ."""
    if batch is None:
        return ()
    given = {name: view.batches for name, view in views.items() if view.batch == batch}
    shared = given.get("out", given.get("c", max(given.values(), key=len, default=())))
    if any(batches != shared for batches in given.values()) and batch != 1:
        listed = ", ".join(f"{name} of {batches}" for name, batches in given.items())
        raise ArrayError(f"batches are {listed}; they must be equal, or 1 for a or b that all share")
    return shared


def _sizes(views: dict[str, Operand]) -> tuple[int, int, int]:
    (m, k), (k_of_b, n) = views["a"].shape, views["b"].shape
    if k != k_of_b:
        raise ArrayError(f"a is {m}x{k} and b is {k_of_b}x{n}: k is {k} and {k_of_b}; they must be equal")
    for name in ("c", "out"):
        if name in views and views[name].shape != (m, n):
            raise ArrayError(f"{name} is {views[name].shown_shape}; allowed for a of {m}x{k} and b of {k}x{n}: {m}x{n}")
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


def check_d(name: str, view: Operand, shape: tuple[int, int], batch: int | None, dtype: str) -> None:
    """Raise ArrayError unless a D tensor can be combined with a result of this shape: extents are equal, or 1."""
    fits = all(extent in (whole, 1) for extent, whole in zip(view.shape, shape, strict=True))
    if not fits or view.batch not in (None, 1, batch):
        given = "x".join(map(str, view.shape if view.batch is None else (view.batch, *view.shape)))
        whole = "x".join(map(str, shape if batch is None else (batch, *shape)))
        raise ArrayError(f"{name} is {given}; allowed: {whole}, or 1x{shape[1]} for all rows")
    if view.dtype != dtype:
        raise ArrayError(f"{name} is {view.dtype}; allowed: {dtype}, as the result")
