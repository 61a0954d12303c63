"""NumPy arrays of attention and its gradients, and the errors of results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from kernelwright.dispatch import AttentionProblem, dtypes
from kernelwright.dispatch.operations.attention.operand import NAMES, OUTPUTS, Wanted, wanted
from kernelwright.tile_engine.operation import Record
from kernelwright.tile_engine.operations.attention.comparing import Comparison, NumpyArrays, Sample, Where
from kernelwright.tile_engine.operations.attention.exact import Array, Result
from kernelwright.tile_engine.operations.attention.requests import lengths_of, problem_of

_ALL_CHECKED = 1 << 28  # multiplications; of larger problems, some heads and rows are compared
_HEADS, _ROWS = 4, 64  # numbers of those compared
_KEPT = 1 << 24  # elements of exact results
_STEPS = 4  # values are integers from -4 to 4, divided by 4


def names_of(problem: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Operands that launches of a problem read, and operands that they write, in launch order."""
    kind = problem.direction if isinstance(problem, AttentionProblem) else "append"
    needed, written = wanted(problem), NAMES[kind][-OUTPUTS[kind] :]
    given = [name for name in NAMES[kind] if name in needed]
    return tuple(n for n in given if n not in written), tuple(n for n in given if n in written)


class AttentionOperands:
    """Operands of one problem by name. Results start poisoned."""

    def __init__(self, record: Record, seed: int) -> None:
        """Draw the operands; equal seeds give equal numbers."""
        self._rng, self._problem = np.random.default_rng(seed), problem_of(record)
        reads, writes = names_of(self._problem)
        needed = wanted(self._problem)
        lengths = lengths_of(record, self._problem, self._rng)
        self.named = {name: lengths[name] if name in lengths else self._drawn(name, needed[name]) for name in reads}
        for name in writes:
            self.named[name] = np.zeros(shape_of(needed[name]), dtypes.numpy_dtype(needed[name].dtype))
        sample = Sample() if self._small() else Sample(pairs=_HEADS, rows=_ROWS)
        self._compared = Comparison(record, self.named, NumpyArrays(), sample, self._rng)
        if "lse" in reads:
            self._compared.set_lse()
        self.inputs = tuple(self.named[name] for name in reads)
        self.outs = tuple(self.named[name] for name in writes)
        self._known: Sequence[tuple[Result, Where]] | None = None
        self.poison()

    def poison(self) -> None:
        """Fill the outputs with NaN."""
        for out in self.outs:
            out[...] = np.nan

    def error(self) -> float:
        """The error of every element; for large problems, of some heads and rows, though all must be written."""
        if any(np.isnan(out.astype(np.float32)).any() for out in self.outs):
            return float("inf")
        return max((result.share(self._compared.rows(where)) for result, where in self._expected()), default=0.0)

    def _expected(self) -> Iterable[tuple[Result, Where]]:
        """Exact results and their places; kernels share them unless there are many."""
        if self._known is not None:
            return self._known
        exact = self._compared.expected()
        if sum(out.size for out in self.outs) <= _KEPT or not self._small():
            self._known = list(exact)
            return self._known
        return exact

    def _small(self) -> bool:
        return self._problem.flops <= 2 * _ALL_CHECKED

    def _drawn(self, name: str, want: Wanted) -> Array:
        kind = dtypes.numpy_dtype(want.dtype)
        if name == "bias" and want.shape is not None:  # ALiBi slopes, as published: a geometric sequence
            return np.asarray(2.0 ** (-8 * (np.arange(want.shape[-1]) + 1) / want.shape[-1]), kind)
        shape = shape_of(want)
        if name == "bias":
            shape = 1, shape[2], shape[1], shape[3]  # heads before rows, one matrix for all requests
        drawn: Array = (self._rng.integers(-_STEPS, _STEPS + 1, shape, np.int8) / np.float32(_STEPS)).astype(kind)
        return drawn


def shape_of(want: Wanted) -> tuple[int, ...]:
    """The shape of a dense array; heads lie inside of rows, except in an elementwise bias."""
    if want.shape is not None:
        return want.shape
    assert want.extents is not None
    requests, heads, rows, hdim = want.extents
    return requests, rows, heads, hdim
