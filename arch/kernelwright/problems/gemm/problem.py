"""A GEMM problem: what to compute, independent of the kernel that computes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Unpack

from kernelwright.problems import literals
from kernelwright.problems.base import BaseProblem
from kernelwright.problems.errors import ProblemError
from kernelwright.problems.gemm import structs
from kernelwright.problems.gemm.description import MAX_D, PROBLEM, DOp, GemmOp
from kernelwright.problems.gemm.options import GemmOptions
from kernelwright.problems.scalars import integer, real
from kernelwright.problems.shared import ITEM_BYTES, RESULT, Activation, DType
from kernelwright.problems.structs import make, values

_MAX_ELEMENTS = (2**63 - 1) // 8  # so that byte offsets fit into 64 bits for every dtype

_LAYOUTS = {"r": "row-major", "c": "column-major"}
_LETTERS = {word: letter for letter, word in _LAYOUTS.items()}
_TYPES = ("dtype_a", "dtype_b", "dtype_c", "dtype_acc")
_COUNTS = ("m", "n", "k", "batch", "num_d")
_D_TENSORS = ("ld_multi_d", "stride_multi_d")


@dataclass(frozen=True, repr=False)
class GemmProblem(BaseProblem):
    """D = act((alpha * A·B + beta * C) op D0 op D1 …), a batch of such products, or one.

    A is (m, k), B (k, n); C, D and the D tensors D0, D1, … are (m, n). Sizes may be 0. Leading dimensions and strides
    count elements and default to dense.

    :ivar dtype: element type of A and B unless ``dtype_a`` or ``dtype_b`` say otherwise: ``fp32``, ``fp16``, ``bf16``,
        ``fp8`` (e4m3), ``bf8`` (e5m2), ``int8``.
    :ivar dtype_c: element type of C, D and the D tensors; by default that of A, fp16 for 8-bit floats, int32 for int8.
    :ivar dtype_acc: type of the accumulator: fp32, or int32 for int8.
    :ivar layout: r(ow-major) or c(olumn-major) for A, B and C, such as ``rcr``.
    :ivar lda: leading dimension of A; ``ldb`` is that of B, ``ldc`` that of C and D.
    :ivar alpha: factor of the product.
    :ivar beta: factor of C; 0 means that C is not read.
    :ivar split_k: number of slices of k that are computed separately and added up; 0 lets the dispatcher choose.
    :ivar batch: number of products.
    :ivar stride_a: elements from one A to the next; 0 means that all products share it. ``stride_b`` likewise;
        ``stride_c`` is that of C and D.
    :ivar num_d: number of D tensors, at most 4, of C's type and layout.
    :ivar d_op: how the D tensors are combined with the product, ``"add"`` or ``"multiply"``.
    :ivar activation: ``"none"``, ``"relu"``, ``"gelu"`` (erf form), ``"fast_gelu"`` (tanh form), ``"silu"``,
        ``"sigmoid"`` or ``"tanh"``.
    :ivar ld_multi_d: leading dimension of each D tensor; 0 broadcasts one line, such as a bias of n values with a
        row-major C.
    :ivar stride_multi_d: elements from one matrix of each D tensor to the next; 0 where all products share it.
    :ivar b_format: the format of a B that :meth:`Dispatcher.shuffle_b` ordered, else 0.
    :raises ProblemError: for an illegal size, dtype, layout, leading dimension, stride or factor.
    """

    m: int
    n: int
    k: int
    dtype: str = "fp32"
    layout: literals.GemmLayout = "rcr"
    dtype_a: str = ""
    dtype_b: str = ""
    dtype_c: str = ""
    dtype_acc: str = ""
    lda: int | None = None
    ldb: int | None = None
    ldc: int | None = None
    alpha: float = 1.0
    beta: float = 0.0
    split_k: int = 1
    batch: int = 1
    stride_a: int | None = None
    stride_b: int | None = None
    stride_c: int | None = None
    num_d: int = 0
    d_op: literals.DOp = "add"
    activation: literals.Activation = "none"
    ld_multi_d: Sequence[int] | None = None
    stride_multi_d: Sequence[int] | None = None
    b_format: int = 0

    read_arrays: ClassVar[Callable[..., dict[str, Any]] | None] = None
    """Fields of the problem that arrays determine; ``kernelwright.dispatch`` reads arrays."""

    def __post_init__(self) -> None:
        """Fill in what follows from the other fields, then check everything."""
        self._fill_dtypes()
        if not isinstance(self.layout, str) or len(self.layout) != 3 or set(self.layout) - {"r", "c"}:
            raise ProblemError(f"layout is {self.layout!r}; allowed: three letters r or c for A, B and C, e.g. 'rcr'")
        for field in _COUNTS:
            self._set(field, integer(field, getattr(self, field), PROBLEM.members[field].field.least))
        self._set("b_format", integer("b_format", self.b_format, 0))
        self._set("split_k", integer("split_k", self.split_k, 0, most=2**32 - 1))
        for field in ("alpha", "beta"):
            self._set(field, real(field, getattr(self, field)))
        for field, letter, rows, columns in (("lda", 0, "m", "k"), ("ldb", 1, "k", "n"), ("ldc", 2, "m", "n")):
            value = self._leading(field, getattr(self, field), self.layout[letter], rows, columns)
            self._set(field, value)
        for field, operand in (("stride_a", "lda"), ("stride_b", "ldb"), ("stride_c", "ldc")):
            self._set(field, self._stride(field, getattr(self, field), self._dense(operand)))
        self._check_results()
        self._fill_epilogue()

        self._keep_hash()

    __hash__ = BaseProblem.__hash__

    def _fill_dtypes(self) -> None:
        self._choose("dtype", DType.codes)
        given_a = self.dtype_a or self.dtype
        filled = {
            "dtype_a": given_a,
            "dtype_b": self.dtype_b or self.dtype,
            "dtype_c": self.dtype_c or RESULT.get(given_a, given_a),
            "dtype_acc": self.dtype_acc or ("int32" if given_a in ("int8", "int32") else "fp32"),
        }
        for field, value in filled.items():
            self._set(field, value)
            self._choose(field, DType.codes)
        self._set("dtype", given_a)  # so that equivalent problems are equal

    def _leading(self, field: str, value: Any, layout: str, rows: str, columns: str) -> int:
        row_major = layout == "r"
        inner, outer = (columns, rows) if row_major else (rows, columns)
        extent = getattr(self, inner)
        value = max(extent, 1) if value is None else integer(field, value, least=None)
        kind = "row" if row_major else "column"
        if value < max(extent, 1):
            raise ProblemError(
                f"{field} is {value}, too small for a {kind}-major matrix with {inner} = {extent}; "
                f"allowed: {max(extent, 1)} or more"
            )
        if getattr(self, outer) * value > _MAX_ELEMENTS:
            raise ProblemError(
                f"{outer} * {field} is {getattr(self, outer)} * {value}; allowed: at most {_MAX_ELEMENTS} elements"
            )
        return int(value)

    def _stride(self, field: str, value: Any, dense: int) -> int:
        """Return a batch stride: 0 where it is never used, so that equivalent problems are equal."""
        if self.batch == 1:
            return 0
        value = dense if value is None else integer(field, value, least=0)
        if (self.batch - 1) * value + dense > _MAX_ELEMENTS:
            raise ProblemError(f"batch * {field} is {self.batch} * {value}; allowed: at most {_MAX_ELEMENTS} elements")
        return int(value)

    def _dense(self, operand: str) -> int:
        """Return the number of elements in a line of A, B or C, given the name of its leading dimension."""
        lines = {"lda": (self.m, self.k), "ldb": (self.k, self.n), "ldc": (self.m, self.n)}[operand]
        letter = self.layout[("lda", "ldb", "ldc").index(operand)]
        leading: int = getattr(self, operand)
        return lines[letter == "c"] * leading

    def _check_results(self) -> None:
        """Check that results do not overlap: they lie one after another, or side by side within lines of one matrix."""
        lines, extent = (self.m, self.n) if self.layout[2] == "r" else (self.n, self.m)
        assert self.ldc is not None and self.stride_c is not None
        if self.batch == 1 or not lines * extent:
            return
        span = (lines - 1) * self.ldc + extent
        beside = self.stride_c >= extent and (self.batch - 1) * self.stride_c + extent <= self.ldc
        if self.stride_c < span and not beside:
            raise ProblemError(f"stride_c is {self.stride_c}, so results would overlap; allowed: {span} or more")

    def _fill_epilogue(self) -> None:
        if self.num_d > MAX_D.value:
            raise ProblemError(f"num_d is {self.num_d}; allowed: 0 to {MAX_D.value}")
        self._choose("d_op", DOp.codes)
        self._choose("activation", Activation.codes)
        if self.num_d == 0:
            self._set("d_op", "add")  # so that equivalent problems are equal
        given = (None,) * self.num_d if self.ld_multi_d is None else tuple(self.ld_multi_d)
        strides = (None,) * self.num_d if self.stride_multi_d is None else tuple(self.stride_multi_d)
        for field, listed in (("ld_multi_d", given), ("stride_multi_d", strides)):
            if len(listed) != self.num_d:
                raise ProblemError(f"{field} has {len(listed)} numbers; allowed: one for each of num_d = {self.num_d}")
        leading = tuple(
            0 if value == 0 else self._leading("ld_multi_d", value, self.layout[2], "m", "n") for value in given
        )
        lines, extent = (self.m, self.n) if self.layout[2] == "r" else (self.n, self.m)
        self._set("ld_multi_d", leading)
        self._set(
            "stride_multi_d",
            tuple(
                self._stride("stride_multi_d", value, lines * ld if ld else extent)
                for value, ld in zip(strides, leading, strict=True)
            ),
        )

    @classmethod
    def from_arrays(
        cls,
        a: Any,
        b: Any,
        c: Any = None,
        out: Any = None,
        **options: Unpack[GemmOptions],
    ) -> GemmProblem:
        """The problem of :meth:`Dispatcher.gemm` with these arrays and options, without a copy. Raises ArrayError."""
        if cls.read_arrays is None:
            raise ProblemError("from_arrays has no reader of arrays; import kernelwright.dispatch, which brings it")
        return cls(**cls.read_arrays(a, b, c, out, **options))

    @property
    def flops(self) -> int:
        """Multiplications and additions of A·B."""
        return 2 * self.batch * self.m * self.n * self.k

    @property
    def bytes_moved(self) -> int:
        """The least bytes that must be read and written: every operand once."""
        size = ITEM_BYTES
        a, b = self.m * self.k * size[self.dtype_a], self.k * self.n * size[self.dtype_b]
        results = self.batch * self.m * self.n * (2 if self.beta else 1) + sum(self.d_elements)
        shared = (1 if self.stride_a == 0 else self.batch), (1 if self.stride_b == 0 else self.batch)
        return a * shared[0] + b * shared[1] + results * size[self.dtype_c]

    @property
    def d_elements(self) -> list[int]:
        """The number of elements of every D tensor."""
        line = self.n if self.layout[2] == "r" else self.m
        assert self.ld_multi_d is not None and self.stride_multi_d is not None
        return [
            (self.m * self.n if ld else line) * (self.batch if stride else 1)
            for ld, stride in zip(self.ld_multi_d, self.stride_multi_d, strict=True)
        ]

    @property
    def types(self) -> tuple[str, str, str, str]:
        """Element types of A, B, C and the accumulator."""
        return self.dtype_a, self.dtype_b, self.dtype_c, self.dtype_acc

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Bytes of an element of A, B and C."""
        return ITEM_BYTES[self.dtype_a], ITEM_BYTES[self.dtype_b], ITEM_BYTES[self.dtype_c]

    @property
    def rows(self) -> tuple[int, int, int]:
        """Leading dimensions of A, B and C in bytes."""
        a, b, c = self.sizes
        return (self.lda or 0) * a, (self.ldb or 0) * b, (self.ldc or 0) * c

    @property
    def spans(self) -> tuple[int, int, int]:
        """Bytes from the first to behind the last element of A, B and D, gaps and batches included."""
        assert self.lda is not None and self.ldb is not None and self.ldc is not None
        a, b, d = tuple(self.layout)
        return (
            self._span(a, self.m, self.k, self.lda, self.stride_a, self.dtype_a),
            self._span(b, self.k, self.n, self.ldb, self.stride_b, self.dtype_b),
            self._span(d, self.m, self.n, self.ldc, self.stride_c, self.dtype_c),
        )

    @property
    def d_spans(self) -> tuple[int, ...]:
        """The same for every D tensor."""
        assert self.ld_multi_d is not None and self.stride_multi_d is not None
        letter = self.layout[2]
        rows, columns = (1, self.n) if letter == "r" else (self.m, 1)
        return tuple(
            self._span(letter, self.m, self.n, ld, stride, self.dtype_c)
            if ld
            else self._span(letter, rows, columns, max(rows, columns), stride, self.dtype_c)
            for ld, stride in zip(self.ld_multi_d, self.stride_multi_d, strict=True)
        )

    def _span(self, letter: str, rows: int, columns: int, leading: int, stride: int | None, dtype: str) -> int:
        lines, extent = (rows, columns) if letter == "r" else (columns, rows)
        last = (self.batch - 1) * (stride or 0) + (lines - 1) * leading + extent
        return last * ITEM_BYTES[dtype] if lines * extent else 0

    def in_c(self) -> dict[str, Any]:
        """Return the members of the C struct: words and numbers."""
        return native_types(self) | {name: getattr(self, name) for name in _SAME}

    def native(self) -> structs.GemmProblem:
        """The C struct of this problem."""
        return make(structs.GemmProblem, PROBLEM, GemmOp.GEMM.number, self.in_c())

    @classmethod
    def from_native(cls, address: int) -> GemmProblem:
        """Read the problem from the C struct at an address."""
        read = values(structs.GemmProblem.from_address(address), PROBLEM)
        tensors = {name: read[name][: read["num_d"]] for name in _D_TENSORS}
        return cls(**types_of(read), **{name: read[name] for name in _SAME} | tensors)

    def __str__(self) -> str:
        """E.g. ``gemm bf16 rcr 512x512x512``."""
        operands = self.dtype_a if self.dtype_a == self.dtype_b else f"{self.dtype_a}*{self.dtype_b}"
        result = "" if self.dtype_c == self.dtype_a else f"->{self.dtype_c}"
        text = f"gemm {operands}{result} {self.layout} {f'{self.batch}*' if self.batch != 1 else ''}"
        text += f"{self.m}x{self.n}x{self.k}" + (f" split_k {self.split_k}" if self.split_k > 1 else "")
        text += f" {self.d_op} {self.num_d} D" if self.num_d else ""
        text += f" {self.activation}" if self.activation != "none" else ""
        return text + (" B shuffled" if self.b_format else "")


_SAME = tuple(one.name for one in fields(GemmProblem) if one.name in PROBLEM.members and one.name not in _TYPES)
"""Fields with the same name in C, except element types."""


def native_types(problem: Any) -> dict[str, Any]:
    """Return element types and layouts as the C struct has them, for a problem with or without groups."""
    a, b, c = (_LAYOUTS[letter] for letter in problem.layout)
    return {name: getattr(problem, name) for name in _TYPES} | {"layout_a": a, "layout_b": b, "layout_c": c}


def types_of(read: dict[str, Any]) -> dict[str, Any]:
    """Return element types and layout from the members of the C struct."""
    layout = "".join(_LETTERS[read[name]] for name in ("layout_a", "layout_b", "layout_c"))
    return {"dtype": read["dtype_a"], "layout": layout, **{name: read[name] for name in _TYPES}}


class Epilogue(NamedTuple):
    """The arithmetic of a :class:`GemmProblem` that follows the product."""

    alpha: float = GemmProblem.alpha
    beta: float = GemmProblem.beta
    d_op: literals.DOp = GemmProblem.d_op
    activation: literals.Activation = GemmProblem.activation
