"""A GEMM problem: what to compute, independent of who computes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.dispatch import dtypes, native
from tilewright.dispatch.errors import ProblemError

_MAX_ELEMENTS = (2**63 - 1) // 8  # so that byte offsets fit into 64 bits for every dtype


@dataclass(frozen=True)
class GemmProblem:
    """D = alpha * A·B + beta * C with A (m, k), B (k, n), C and D (m, n).

    ``dtype`` is the type of A and B unless ``dtype_a`` or ``dtype_b`` say otherwise; C is of the same type (fp16 for
    8-bit floats, int32 for int8) and sums are fp32 (int32). ``layout`` holds r(ow-) or c(olumn-major) for A, B and C.
    Leading dimensions count elements and default to dense. Sizes may be 0. Raises ProblemError.
    """

    m: int
    n: int
    k: int
    dtype: str = "fp32"
    layout: str = "rcr"
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

    def __post_init__(self) -> None:
        """Fill in what follows from the other fields, then check everything."""
        self._fill_dtypes()
        if not isinstance(self.layout, str) or len(self.layout) != 3 or set(self.layout) - {"r", "c"}:
            raise ProblemError(f"layout is {self.layout!r}; allowed: three letters r or c for A, B and C, e.g. 'rcr'")
        for field in ("m", "n", "k"):
            object.__setattr__(self, field, _integer(field, getattr(self, field), least=0))
        object.__setattr__(self, "split_k", _integer("split_k", self.split_k, least=1))
        for field in ("alpha", "beta"):
            object.__setattr__(self, field, float(getattr(self, field)))
        for field, letter, rows, columns in (("lda", 0, "m", "k"), ("ldb", 1, "k", "n"), ("ldc", 2, "m", "n")):
            self._fill_leading(field, self.layout[letter], rows, columns)

    def _fill_dtypes(self) -> None:
        dtypes.check("dtype", self.dtype)
        given_a = self.dtype_a or self.dtype
        filled = {
            "dtype_a": given_a,
            "dtype_b": self.dtype_b or self.dtype,
            "dtype_c": self.dtype_c or dtypes.RESULT.get(given_a, given_a),
            "dtype_acc": self.dtype_acc or dtypes.ACCUMULATOR.get(given_a, given_a),
        }
        for field, value in filled.items():
            object.__setattr__(self, field, dtypes.check(field, value))
        object.__setattr__(self, "dtype", given_a)  # so that problems that mean the same are equal

    def _fill_leading(self, field: str, layout: str, rows: str, columns: str) -> None:
        row_major = layout == "r"
        inner, outer = (columns, rows) if row_major else (rows, columns)
        extent = getattr(self, inner)
        value = getattr(self, field)
        value = max(extent, 1) if value is None else _integer(field, value, least=None)
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
        object.__setattr__(self, field, value)

    @classmethod
    def from_arrays(
        cls,
        a: Any,
        b: Any,
        c: Any = None,
        out: Any = None,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        layout: str | None = None,
        split_k: int = 1,
    ) -> GemmProblem:
        """The problem that two to four arrays pose: shapes, dtypes and strides, no copy. Raises ArrayError."""
        from tilewright.dispatch.matching import match

        return match(a, b, c, out, beta=beta).problems(alpha, beta, layout, split_k)[0]

    @property
    def flops(self) -> int:
        """Multiplications and additions of A·B."""
        return 2 * self.m * self.n * self.k

    @property
    def bytes(self) -> int:
        """Bytes that must be read and written at least: every operand once."""
        size = dtypes.ITEMSIZE
        results = self.m * self.n * size[self.dtype_c] * (2 if self.beta else 1)
        return self.m * self.k * size[self.dtype_a] + self.k * self.n * size[self.dtype_b] + results

    @property
    def spans(self) -> tuple[int, int, int]:
        """Bytes from the first to behind the last element of A, B and D, gaps of leading dimensions included."""
        assert self.lda is not None and self.ldb is not None and self.ldc is not None

        def span(letter: str, rows: int, columns: int, leading: int, dtype: str) -> int:
            lines, extent = (rows, columns) if letter == "r" else (columns, rows)
            return ((lines - 1) * leading + extent) * dtypes.ITEMSIZE[dtype] if lines * extent else 0

        a, b, d = tuple(self.layout)
        return (
            span(a, self.m, self.k, self.lda, self.dtype_a),
            span(b, self.k, self.n, self.ldb, self.dtype_b),
            span(d, self.m, self.n, self.ldc, self.dtype_c),
        )

    def native(self) -> native.GemmProblem:
        """The C struct of this problem."""
        layouts = [0 if letter == "r" else 1 for letter in self.layout]
        types = [dtypes.CODES[name] for name in (self.dtype_a, self.dtype_b, self.dtype_c, self.dtype_acc)]
        return native.GemmProblem(
            native.sizeof(native.GemmProblem), native.OP_GEMM, *types, *layouts, self.split_k,
            self.m, self.n, self.k, self.lda, self.ldb, self.ldc, self.alpha, self.beta, 1,
        )  # fmt: skip

    def __str__(self) -> str:
        """E.g. ``gemm bf16 rcr 512x512x512``."""
        operands = self.dtype_a if self.dtype_a == self.dtype_b else f"{self.dtype_a}*{self.dtype_b}"
        result = "" if self.dtype_c == self.dtype_a else f"->{self.dtype_c}"
        split = "" if self.split_k == 1 else f" split_k {self.split_k}"
        return f"gemm {operands}{result} {self.layout} {self.m}x{self.n}x{self.k}{split}"


def _integer(field: str, value: Any, least: int | None) -> int:
    try:
        number = value.__index__()
    except AttributeError:
        raise ProblemError(f"{field} is {value!r}; allowed: an integer") from None
    if least is not None and number < least:
        raise ProblemError(f"{field} is {number}; allowed: {least} or more")
    if not -(2**63) <= number < 2**63:
        raise ProblemError(f"{field} is {number}; allowed: a 64-bit integer")
    return int(number)
