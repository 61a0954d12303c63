"""A GEMM problem as programs pose it, and whether a kernel serves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType
from kernelwright.codegen.operations.gemm.spec import GemmSpec, default_acc_dtype, default_output_dtype
from kernelwright.codegen.violations import SpecError

_ALIGNED_BYTES = 16  # of rows: TMA, and the vectors of AMD kernels


@dataclass(frozen=True)
class Posed:
    """The fields of ``kernelwright.dispatch.GemmProblem``, with its defaults; leading dimensions are 0 where dense."""

    m: int
    n: int
    k: int
    dtype: str = "fp32"
    layout: str = "rcr"
    dtype_a: str = ""
    dtype_b: str = ""
    dtype_c: str = ""
    dtype_acc: str = ""
    lda: int = 0
    ldb: int = 0
    ldc: int = 0
    alpha: float = 1.0
    beta: float = 0.0
    split_k: int = 1
    batch: int = 1
    stride_a: int | None = None
    stride_b: int | None = None
    stride_c: int | None = None
    num_d: int = 0
    d_op: str = "add"
    activation: str = "none"
    ld_multi_d: tuple[int, ...] = ()
    stride_multi_d: tuple[int, ...] = ()
    b_format: int = 0

    @property
    def types(self) -> tuple[str, str, str, str]:
        """Types of A, B, C and the accumulators."""
        a = DType(self.dtype_a or self.dtype)
        c = self.dtype_c or str(default_output_dtype(a))
        return str(a), self.dtype_b or str(self.dtype), c, self.dtype_acc or str(default_acc_dtype(a))

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Bytes of an element of A, B and C."""
        a, b, c, _ = self.types
        return ELEMENT_BYTES[DType(a)], ELEMENT_BYTES[DType(b)], ELEMENT_BYTES[DType(c)]

    @property
    def rows(self) -> tuple[int, int, int]:
        """Leading dimensions of A, B and C in bytes."""
        across = {"a": (self.k, self.m), "b": (self.n, self.k), "c": (self.n, self.m)}
        given = {"a": self.lda, "b": self.ldb, "c": self.ldc}
        dense = [given[name] or across[name][letter == "c"] for name, letter in zip("abc", self.layout, strict=True)]
        a, b, c = (length * size for length, size in zip(dense, self.sizes, strict=True))
        return a, b, c


def read_posed(problem: Mapping[str, Any]) -> Posed:
    """The problem of a trace's entry. SpecError for unknown fields and values of the wrong kind."""
    known = {field.name: field for field in fields(Posed)}
    if unknown := sorted(set(problem) - set(known)):
        raise SpecError(f"a GEMM problem has unknown fields {', '.join(unknown)}; allowed: {', '.join(known)}")
    try:
        given: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in problem.items()
        }
        posed = Posed(**given)
        posed.rows  # noqa: B018 - reads types and layout
        counted = (posed.m, posed.n, posed.k, posed.batch, posed.split_k, posed.num_d)
        if not all(type(value) is int and value >= 0 for value in counted):
            raise ValueError("extents and counts are whole numbers, at least 0")
    except (TypeError, ValueError, KeyError) as error:
        raise SpecError(f"{dict(problem)!r} is no GEMM problem: {error}") from None
    return posed


def serves(spec: GemmSpec, posed: Posed, arch: Arch) -> bool:
    """Whether a kernel can be expected to serve the problem: types, variant, and what its memory accesses ask for.

    Of AMD kernels this asks for more than the kernels do: whole vectors along rows, whole tiles where they do not pad.
    """
    same = (spec.dtype_a, spec.dtype_b, spec.dtype_c, spec.dtype_acc) == posed.types and spec.layout == posed.layout
    fused = (spec.num_d, str(spec.activation)) == (posed.num_d, posed.activation)
    if not same or not fused or spec.grouped or (posed.num_d and str(spec.d_op) != posed.d_op):
        return False
    if spec.preshuffle != (posed.b_format != 0) or (posed.batch > 1 and not spec.batched):
        return False
    if posed.split_k > 1 and not spec.split_k:
        return False
    if arch.backend == "cpu":
        return True
    if arch.backend == "cutlass":
        return all(length % _ALIGNED_BYTES == 0 for length in (*posed.rows, posed.n * posed.sizes[2]))
    extents = ((posed.m, spec.tile.m), (posed.n, spec.tile.n), (posed.k, spec.tile.k))
    pads = (spec.pad.m, spec.pad.n, spec.pad.k)
    whole = all(padded or extent % tile == 0 for (extent, tile), padded in zip(extents, pads, strict=True))
    return whole and all(length % _ALIGNED_BYTES == 0 for length in posed.rows)
