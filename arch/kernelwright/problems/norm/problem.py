"""Norms as Python states them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernelwright.problems.base import BaseProblem
from kernelwright.problems.errors import ProblemError
from kernelwright.problems.norm import structs
from kernelwright.problems.norm.description import LARGEST, PROBLEM, NormOp
from kernelwright.problems.scalars import integer, real
from kernelwright.problems.shared import ITEM_BYTES
from kernelwright.problems.structs import make, values

KINDS = ("rms", "layer")
DTYPES = ("fp32", "fp16", "bf16")
"""Element types that can be normalised."""
_STRIDES = tuple(name for name in PROBLEM.members if name.startswith("stride_"))
_MAX_ELEMENTS = 2**57


def op_name(kind: str, backward: bool) -> str:
    """Return the name of the operation in the C ABI, such as ``rms norm backward``."""
    return f"{kind} norm backward" if backward else f"{kind} norm"


OPS: Mapping[int, tuple[str, bool]] = {
    NormOp.codes[op_name(kind, backward)]: (kind, backward) for kind in KINDS for backward in (False, True)
}
"""Kind and direction by the operation's number in the C ABI."""


@dataclass(frozen=True, repr=False)
class NormProblem(BaseProblem):
    """RMS norm or layer norm of each row of a (rows, columns) matrix, or its gradient. Arithmetic is in fp32.

    Forward, ``y = norm(x + residual) * weight + bias``, and the sum of x and residual is written too. Backward computes
    dx and the gradients of weight and bias from dy; dsum, the gradient of the written sum, is added to dx.

    :ivar kind: ``rms`` or ``layer``.
    :ivar rows: number of rows, 0 or more; ``columns``: contiguous elements of each row, 1 or more.
    :ivar dtype: element type of x and of every operand of its shape: ``fp32``, ``fp16`` or ``bf16``.
    :ivar dtype_y: element type of y, by default ``dtype``; ``int8`` or ``fp8`` for a result quantised row by row.
    :ivar dtype_w: element type of weight and bias: ``dtype`` (the default) or ``fp32``.
    :ivar weight: whether there is a weight; ``bias`` likewise, for layer norm.
    :ivar residual: forward: whether a residual is added; backward: whether dsum is.
    :ivar backward: whether the gradients are computed.
    :ivar epsilon: added to the mean of squares; 0 or more.
    :ivar stride_x: elements from one row to the next, by default ``columns``; ``stride_residual`` (of dsum too),
        ``stride_y`` (of dx too), ``stride_sum`` and ``stride_dy`` likewise; 0 where the problem lacks the operand.
    :raises ProblemError: for an illegal number, word or stride, or rows of results that would overlap.
    """

    kind: str
    rows: int
    columns: int
    dtype: str = "fp32"
    dtype_y: str = ""
    dtype_w: str = ""
    weight: bool = True
    bias: bool = False
    residual: bool = False
    backward: bool = False
    epsilon: float = 1e-6
    stride_x: int | None = None
    stride_residual: int | None = None
    stride_y: int | None = None
    stride_sum: int | None = None
    stride_dy: int | None = None

    def __post_init__(self) -> None:
        """Fill in what follows from the other fields, then check everything."""
        self._choose("kind", KINDS)
        self._choose("dtype", DTYPES)
        for flag in ("weight", "bias", "residual", "backward"):
            self._set(flag, bool(getattr(self, flag)))
        if self.bias and self.kind == "rms":
            raise ProblemError("bias is given; allowed for rms: none")
        self._set("dtype_y", self.dtype_y or self.dtype)
        self._choose("dtype_y", (self.dtype,) if self.backward else (self.dtype, *LARGEST))
        self._set("dtype_w", self.dtype_w if self.dtype_w and (self.weight or self.bias) else self.dtype)
        self._choose("dtype_w", tuple(dict.fromkeys((self.dtype, "fp32"))))
        for name in ("rows", "columns"):
            self._set(name, integer(name, getattr(self, name), PROBLEM.members[name].field.least))
        self._set("epsilon", real("epsilon", self.epsilon))
        if not (math.isfinite(self.epsilon) and self.epsilon >= 0):
            raise ProblemError(f"epsilon is {self.epsilon}; allowed: a finite number, 0 or more")
        for name in _STRIDES:
            self._set(name, self._stride(name))
        self._keep_hash()

    __hash__ = BaseProblem.__hash__

    def _stride(self, name: str) -> int:
        """The elements from one row to the next; the stride of a single row means nothing and is that of dense rows."""
        if not self._has(name.removeprefix("stride_")):
            return 0
        given = getattr(self, name)
        stride = self.columns if given is None or self.rows < 2 else integer(name, given, 0)
        written = name in ("stride_y", "stride_sum")
        if written and stride < self.columns:
            raise ProblemError(f"{name} is {stride}, so rows would overlap; allowed: {self.columns} or more")
        if max(self.rows - 1, 0) * stride + self.columns > _MAX_ELEMENTS:
            raise ProblemError(f"{name} is {stride}; allowed: rows that span at most {_MAX_ELEMENTS} elements")
        return stride

    def _has(self, operand: str) -> bool:
        if operand in ("residual", "sum"):
            return self.residual and not (operand == "sum" and self.backward)
        return operand != "dy" or self.backward

    @property
    def quantised(self) -> bool:
        """Whether y has a scale for each row."""
        return self.dtype_y in LARGEST

    @property
    def flops(self) -> int:
        """Additions and multiplications, approximately: six for each element, twelve for gradients."""
        return (12 if self.backward else 6) * self.rows * self.columns

    @property
    def bytes_moved(self) -> int:
        """Bytes of the operands, each read or written once."""
        x, y, w = (ITEM_BYTES[dtype] for dtype in (self.dtype, self.dtype_y, self.dtype_w))
        tensors = x + y + (x * (1 if self.backward else 2) if self.residual else 0) + (x if self.backward else 0)
        vectors = (self.weight + self.bias) * w * (2 if self.backward else 1)
        return self.rows * (self.columns * tensors + (4 if self.quantised else 0)) + self.columns * vectors

    def native(self) -> structs.NormProblem:
        """The C struct of this problem."""
        given = {name: getattr(self, name) for name in PROBLEM.members if name != "dtype_x"}
        op = NormOp.codes[op_name(self.kind, self.backward)]
        return make(structs.NormProblem, PROBLEM, op, {"dtype_x": self.dtype, **given})

    @classmethod
    def from_native(cls, address: int) -> NormProblem:
        """Read the problem from the C struct at an address."""
        struct = structs.NormProblem.from_address(address)
        read: dict[str, Any] = values(struct, PROBLEM)
        kind, backward = OPS[struct.op]
        return cls(kind, dtype=read.pop("dtype_x"), backward=backward, **read)

    def __str__(self) -> str:
        """E.g. ``rms norm bf16->int8 8x4096 weight residual``."""
        text = f"{op_name(self.kind, self.backward)} {self.dtype}"
        text += f"->{self.dtype_y}" if self.dtype_y != self.dtype else ""
        text += f" {self.rows}x{self.columns}"
        return text + "".join(f" {word}" for word in ("weight", "bias", "residual") if getattr(self, word))
