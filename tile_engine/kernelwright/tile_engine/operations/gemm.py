"""GEMM as the tile engine measures it: D (m, n) = A (m, k) · B (k, n), batches and fused activations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelwright.dispatch import Dispatcher, GemmProblem, NoKernelError, OperationPlan, Plan, ProblemError, dtypes
from kernelwright.tile_engine.operation import Operands, Record

_DEFAULTS: dict[str, Any] = {"batch": 1, "layout": "rcr", "dtype": "fp16"}
# Half a unit in the last place, relative to 1; integers are exact.
_ROUNDOFF = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8, "int32": 0.0}
_LARGEST = 4  # of operands: sums of k products stay exact in fp32 up to k = 2**24 / 16


class Gemm:
    """See :class:`kernelwright.tile_engine.operation.Measurable`."""

    name = "gemm"
    columns: Sequence[str] = ("m", "n", "k", "batch", "layout", "dtype")

    def read(self, record: Record) -> Record:
        """Keys are m, n, k and, if they differ from 1, rcr and fp16, batch, layout, dtype; capitals are allowed."""
        given = {key.lower(): value for key, value in record.items()}
        if unknown := sorted(set(given) - set(self.columns)):
            raise ValueError(f"a GEMM problem has unknown keys {unknown}; allowed: {', '.join(self.columns)}")
        if missing := [key for key in ("m", "n", "k") if key not in given]:
            raise ValueError(f"a GEMM problem lacks {', '.join(missing)}: {dict(record)!r}")
        whole = {**_DEFAULTS, **given}
        try:
            self.problem(whole)
        except (ProblemError, TypeError) as error:
            raise ValueError(f"{dict(record)!r}: {error}") from None
        return {key: whole[key] for key in self.columns}

    def problem(self, record: Record) -> GemmProblem:
        """The problem of contiguous matrices."""
        m, n, k, batch = (record[key] for key in ("m", "n", "k", "batch"))
        strides = {"stride_a": m * k, "stride_b": k * n, "stride_c": m * n} if batch > 1 else {}
        return GemmProblem(m, n, k, dtype=record["dtype"], layout=record["layout"], batch=batch, **strides)

    def operands(self, record: Record, seed: int) -> Operands:
        """Whole numbers of magnitude up to 4, poisoned output."""
        problem, rng = self.problem(record), np.random.default_rng(seed)
        lead = (problem.batch,) if problem.batch > 1 else ()
        a = _matrix(rng, lead, problem.m, problem.k, problem.dtype_a, problem.layout[0])
        b = _matrix(rng, lead, problem.k, problem.n, problem.dtype_b, problem.layout[1])
        exact = a.astype(np.float64) @ b.astype(np.float64)
        integer = problem.dtype_c == "int32"
        out = _ordered(np.full(exact.shape, -(2**31) if integer else np.nan), problem.dtype_c, problem.layout[2])
        return Operands((a, b, out), exact, _ROUNDOFF.get(problem.dtype_c, 2.0**-3) * np.abs(exact))

    def bind(self, plan: OperationPlan[Any], operands: Operands) -> Any:
        """A bound plan."""
        assert isinstance(plan, Plan)
        a, b, out = operands.arrays
        return plan.bind(a, b, out=out)

    def serves(self, dispatcher: Dispatcher, record: Record) -> str:
        """The dispatcher's own reason."""
        try:
            dispatcher.plan(self.problem(record))
        except NoKernelError as error:
            return str(error)
        return ""

    def flops(self, record: Record) -> int:
        """2·m·n·k of each product."""
        return 2 * int(record["m"] * record["n"] * record["k"] * record["batch"])

    def bytes_moved(self, record: Record) -> int:
        """A and B once, D once."""
        problem = self.problem(record)
        m, n, k = problem.m, problem.n, problem.k
        size = dtypes.ITEMSIZE
        each = m * k * size[problem.dtype_a] + k * n * size[problem.dtype_b] + m * n * size[problem.dtype_c]
        return int(each * problem.batch)


def _matrix(
    rng: np.random.Generator, lead: tuple[int, ...], rows: int, columns: int, dtype: str, layout: str
) -> np.ndarray[Any, Any]:
    return _ordered(rng.integers(-_LARGEST, _LARGEST + 1, (*lead, rows, columns)), dtype, layout)


def _ordered(values: np.ndarray[Any, Any], dtype: str, layout: str) -> np.ndarray[Any, Any]:
    """Each matrix row-major, or column-major through a transposed view."""
    kind = dtypes.numpy_dtype(dtype)
    if layout == "r":
        return np.ascontiguousarray(values.astype(kind))
    return np.ascontiguousarray(values.swapaxes(-1, -2).astype(kind)).swapaxes(-1, -2)
