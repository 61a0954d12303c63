"""GEMM as the tile engine measures it: D (m, n) = A (m, k) · B (k, n), batches and fused activations."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kernelwright.dispatch import GemmProblem, OperationPlan, Plan, ProblemError, dtypes
from kernelwright.tile_engine.learning.gemm import GemmLearning
from kernelwright.tile_engine.operation import Measurable, Operands, Record
from kernelwright.tile_engine.operations.gemm.words import WORDS
from kernelwright.tile_engine.problems.gemm import GEMM_SETS, weights

_DEFAULTS: dict[str, Any] = {"batch": 1, "layout": "rcr", "dtype": "fp16", "dtype_c": ""}
# Half a unit in the last place, relative to 1; integers are exact.
_ROUNDOFF = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8, "int32": 0.0}
_ROUNDOFF_8_BITS = 2.0**-3  # bf8 has two bits of mantissa
_ALL_CHECKED = 1 << 31  # multiplications; larger products are checked in part, as float64 takes too long
_SAMPLED = 64  # rows and columns
_KEPT = 1 << 24  # elements of exact results
_LARGEST = 4  # of operands: sums of k products stay exact in fp32 up to k = 2**24 / 16


class Gemm(Measurable):
    """See :class:`kernelwright.tile_engine.operation.Measurable`."""

    name = "gemm"
    problem_sets, words, learning = GEMM_SETS, WORDS, GemmLearning()
    columns: Sequence[str] = ("m", "n", "k", "batch", "layout", "dtype", "dtype_c")

    def read(self, record: Record) -> Record:
        """Keys are m, n, k and, if not the default, batch (1), layout (rcr), dtype (fp16) and dtype_c.

        ``dtype_c`` is the type of the result, by default that of :class:`GemmProblem`. Case is ignored.
        """
        given = {key.lower(): value for key, value in record.items()}
        if unknown := sorted(set(given) - set(self.columns)):
            raise ValueError(f"a GEMM problem has unknown keys {unknown}; allowed: {', '.join(self.columns)}")
        if missing := [key for key in ("m", "n", "k") if key not in given]:
            raise ValueError(f"a GEMM problem lacks {', '.join(missing)}: {dict(record)!r}")
        whole = {**_DEFAULTS, **given}
        try:
            whole["dtype_c"] = self.problem(whole).dtype_c
        except (ProblemError, TypeError) as error:
            raise ValueError(f"{dict(record)!r}: {error}") from None
        return {key: whole[key] for key in self.columns}

    def problem(self, record: Record) -> GemmProblem:
        """The problem of contiguous matrices; the dispatcher chooses the slices of k."""
        m, n, k, batch = (record[key] for key in ("m", "n", "k", "batch"))
        strides = {"stride_a": m * k, "stride_b": k * n, "stride_c": m * n} if batch > 1 else {}
        types = {"dtype": record["dtype"], "dtype_c": record["dtype_c"]}
        return GemmProblem(m, n, k, layout=record["layout"], batch=batch, split_k=0, **types, **strides)

    def record_of(self, problem: object) -> Record | None:
        """The record of plain products of dense matrices of one element type."""
        if not isinstance(problem, GemmProblem) or not problem.m * problem.n * problem.k:
            return None
        given = {name: getattr(problem, name) for name in ("m", "n", "k", "batch", "layout", "dtype", "dtype_c")}
        return self.read(given) if self.problem(given) == problem else None

    def origin(self, record: Record) -> tuple[str, str]:
        """Origin by N and K, whatever the number of rows."""
        return weights().get((record["n"], record["k"]), ("", ""))

    def with_value(self, problem: Any, value: int) -> Any:
        """The problem with a number of slices of k."""
        return dataclasses.replace(problem, split_k=value) if problem.split_k == 0 else problem

    def operands(self, record: Record, seed: int) -> GemmOperands:
        """Integers of magnitude up to 4."""
        return GemmOperands(self.problem(record), seed)

    def bind(self, plan: OperationPlan[Any], operands: Operands) -> Callable[[], object]:
        """A bound plan."""
        assert isinstance(plan, Plan)
        (a, b), (out,) = operands.inputs, operands.outs
        return plan.bind(a, b, out=out)

    def bind_addresses(
        self, plan: OperationPlan[Any], inputs: Sequence[int], outs: Sequence[int], stream: int, workspace: int
    ) -> Callable[[], object]:
        """A call of the plan."""
        assert isinstance(plan, Plan)
        (a, b), (out,) = inputs, outs
        return lambda: plan(a, b, out=out, stream=stream, workspace=workspace)

    def auxiliary(self, spec: Mapping[str, Any]) -> bool:
        """Return False: a plan has one stage."""
        return False

    def flops(self, record: Record) -> int:
        """2·m·n·k of each product."""
        return 2 * int(record["m"] * record["n"] * record["k"] * record["batch"])

    def bytes_moved(self, record: Record) -> int:
        """Bytes of A, B and D, each once."""
        problem = self.problem(record)
        m, n, k = problem.m, problem.n, problem.k
        size = dtypes.ITEMSIZE
        each = m * k * size[problem.dtype_a] + k * n * size[problem.dtype_b] + m * n * size[problem.dtype_c]
        return int(each * problem.batch)


class GemmOperands:
    """A, B and D of one problem; D starts poisoned."""

    def __init__(self, problem: GemmProblem, seed: int) -> None:
        """Draw A and B; equal seeds give equal numbers."""
        self._rng = np.random.default_rng(seed)
        lead = (problem.batch,) if problem.batch > 1 else ()
        m, n, k = problem.m, problem.n, problem.k
        self.inputs = (
            self._matrix((*lead, m, k), problem.dtype_a, problem.layout[0]),
            self._matrix((*lead, k, n), problem.dtype_b, problem.layout[1]),
        )
        self._integer = problem.dtype_c == "int32"
        self._roundoff = _ROUNDOFF.get(problem.dtype_c, _ROUNDOFF_8_BITS)
        self.outs = (_ordered(np.zeros((*lead, m, n), np.int8), problem.dtype_c, problem.layout[2]),)
        self._known: Sequence[tuple[Any, Any]] | None = None
        self.poison()

    def poison(self) -> None:
        """Fill D with NaN, or with an integer below every result."""
        self.outs[0][...] = -(2**31) if self._integer else np.nan

    def error(self) -> float:
        """The error of every element; for large products, of some rows and columns, though all must be written."""
        (out,) = self.outs
        if not self._small():
            written = out != -(2**31) if self._integer else ~np.isnan(out.astype(np.float32))
            if not written.all():
                return math.inf
        return max(self._share(exact, out[at]) for at, exact in self._expected())

    def _small(self) -> bool:
        (a, b) = self.inputs
        return bool(a.size * b.shape[-1] <= _ALL_CHECKED)

    def _expected(self) -> Sequence[tuple[Any, Any]]:
        """Compared elements and their exact values; kernels share them unless there are many."""
        if self._known is not None:
            return self._known
        a, b = (one.astype(np.float64) for one in self.inputs)
        if self._small():
            expected: list[tuple[Any, Any]] = [(..., a @ b)]
        else:
            rows, columns = (
                np.sort(self._rng.choice(extent, min(extent, _SAMPLED), replace=False))
                for extent in (a.shape[-2], b.shape[-1])
            )
            expected = [((..., rows, slice(None)), a[..., rows, :] @ b), ((..., columns), a @ b[..., columns])]
        if sum(exact.size for _, exact in expected) <= _KEPT:
            self._known = expected
        return expected

    def _share(self, exact: Any, out: Any) -> float:
        off = np.abs(out.astype(np.float64) - exact)
        bound = np.maximum(self._roundoff * np.abs(exact), np.finfo(np.float64).tiny)
        with np.errstate(over="ignore"):
            share = np.where(off == 0, 0.0, off / bound)
        return float(np.nan_to_num(share, nan=np.inf).max(initial=0.0))

    def _matrix(self, shape: tuple[int, ...], dtype: str, layout: str) -> np.ndarray[Any, Any]:
        return _ordered(self._rng.integers(-_LARGEST, _LARGEST + 1, shape, np.int8), dtype, layout)


def _ordered(values: np.ndarray[Any, Any], dtype: str, layout: str) -> np.ndarray[Any, Any]:
    """Each matrix row-major, or column-major through a transposed view."""
    kind = dtypes.numpy_dtype(dtype)
    if layout == "r":
        return np.ascontiguousarray(values.astype(kind))
    return np.ascontiguousarray(values.swapaxes(-1, -2).astype(kind)).swapaxes(-1, -2)
