"""Norms of GPU kernels against float64: operands lie in guarded memory, results are poisoned before.

Arrays are NumPy's, of the simulator, or those of a library that ``Memory`` stands for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import ml_dtypes
import numpy as np

from kernelwright.dispatch import Dispatcher
from kernelwright.dispatch.operations.norm import NormProblem
from norm import reference
from norm.reference import BOUNDS, DTYPES, Array, drawn, off

FRONT = 32  # elements in front of an operand: vectors of what begins there are aligned
_POISON = -128  # of int8, which no quantised result is
_SHARE = 6  # of the bound: gradients have more terms


class Memory(Protocol):
    """Memory of a device, with contents that NumPy says."""

    def send(self, memory: Array) -> Any:
        """A copy of one dimension, on the device."""

    def rows(self, sent: Any, first: int, shape: tuple[int, int], stride: int) -> Any:
        """The rows that begin at an element of it."""

    def fetch(self, sent: Any) -> Array:
        """Its contents."""


class Simulated:
    """NumPy's arrays, which the simulator's devices work on."""

    def send(self, memory: Array) -> Array:
        """See :class:`Memory`."""
        return memory.copy()

    def rows(self, sent: Array, first: int, shape: tuple[int, int], stride: int) -> Array:
        """See :class:`Memory`."""
        item = sent.itemsize
        return np.lib.stride_tricks.as_strided(sent[first:], shape, (stride * item, item))

    def fetch(self, sent: Array) -> Array:
        """See :class:`Memory`."""
        return sent


def _rows_of(memory: Array, first: int, shape: tuple[int, int], stride: int) -> Array:
    return Simulated().rows(memory, first, shape, stride)


class _Operand:
    """An operand in memory that is poisoned everywhere else."""

    def __init__(self, memory: Memory, values: Array, stride: int, first: int) -> None:
        self._shape: tuple[int, int] = (values.shape[0], values.shape[1])
        self._stride, self._first, self._memory = max(stride, values.shape[1]), first, memory
        poison = _POISON if values.dtype == np.int8 else np.nan
        whole = np.full(first + self._stride * max(values.shape[0], 1) + FRONT, poison, values.dtype)
        _rows_of(whole, first, self._shape, self._stride)[...] = values
        self._before, self._sent = whole, memory.send(whole)
        self.array = memory.rows(self._sent, first, self._shape, self._stride)

    def values(self) -> Array:
        """What is there now; nothing outside of the rows may differ from what was."""
        now = np.asarray(self._memory.fetch(self._sent)).copy()
        rows = _rows_of(now, self._first, self._shape, self._stride).copy()
        _rows_of(now, self._first, self._shape, self._stride)[...] = _rows_of(
            self._before, self._first, self._shape, self._stride
        )
        assert now.tobytes() == self._before.tobytes(), "memory outside of the operand was written"
        return rows


def fp8(fnuz: bool) -> tuple[Any, float]:
    """The type of results that are fp8, and the largest number of it."""
    return (ml_dtypes.float8_e4m3fnuz, 240.0) if fnuz else (ml_dtypes.float8_e4m3fn, 448.0)


def check(
    dispatcher: Dispatcher, problem: NormProblem, seed: int, memory: Memory, *, fnuz: bool = False, shift: int = 0
) -> None:
    """Run a problem and compare all that it writes; operands begin ``shift`` elements behind a multiple of 16 bytes."""
    p, rng = problem, np.random.default_rng(seed)
    rows, columns, first = p.rows, p.columns, FRONT + shift
    kinds: Mapping[str, Any] = {**DTYPES, "int8": np.int8, "fp8": fp8(fnuz)[0]}

    def given(dtype: str, count: int, stride: int | None) -> tuple[Array, _Operand]:
        values = drawn(rng, (count, columns), dtype, offset=0.5)
        return values, _Operand(memory, values, stride or 0, first)

    def written(dtype: str, shape: tuple[int, int], stride: int | None = 0) -> _Operand:
        poison = _POISON if dtype == "int8" else np.nan
        return _Operand(memory, np.full(shape, poison, kinds[dtype]), stride or 0, first)

    x, x_at = given(p.dtype, rows, p.stride_x)
    inputs, values = {"x": x_at}, {"x": x}
    if p.weight:
        values["weight"], inputs["weight"] = given(p.dtype_w, 1, 0)
    if p.bias and not p.backward:
        values["bias"], inputs["bias"] = given(p.dtype_w, 1, 0)
    if p.residual:
        values["residual"], inputs["residual"] = given(p.dtype, rows, p.stride_residual)
    if p.backward:
        values["dy"], inputs["dy"] = given(p.dtype, rows, p.stride_dy)
    outs = {"out": written(p.dtype_y, (rows, columns), p.stride_y)}
    if p.residual and not p.backward:
        outs["sum"] = written(p.dtype, (rows, columns), p.stride_sum)
    if p.quantised:
        outs["scales"] = written("fp32", (1, rows))
    if p.backward and p.weight:
        outs["dweight"] = written(p.dtype_w, (1, columns))
    if p.backward and p.bias:
        outs["dbias"] = written(p.dtype_w, (1, columns))
    vectors = ("weight", "bias", "scales", "dweight", "dbias")
    arrays = {name: one.array[0] if name in vectors else one.array for name, one in {**inputs, **outs}.items()}
    dispatcher.plan(p)(**arrays)
    for one in inputs.values():
        one.values()
    compare(p, values, {name: one.values() for name, one in outs.items()}, fnuz)


def compare(p: NormProblem, given: Mapping[str, Array], outputs: Mapping[str, Array], fnuz: bool) -> None:
    """Results beside those of float64."""
    weight, bias = (None if name not in given else given[name][0] for name in ("weight", "bias"))
    bound = _SHARE * BOUNDS[p.dtype]
    if p.backward:
        asked = (given["x"], given["dy"], p.kind, p.epsilon, weight, given.get("residual"))
        every = zip(
            ("out", "dweight", "dbias"), reference.backward(*asked), reference.backward_terms(*asked), strict=True
        )
        for name, exact, terms in every:
            if name in outputs:
                assert off(outputs[name], exact, terms) < bound, name
        return
    s = given["x"]
    if p.residual:
        s = (s.astype(np.float32) + given["residual"].astype(np.float32)).astype(DTYPES[p.dtype])
        assert np.array_equal(outputs["sum"], s)
    exact, terms = (one(s, p.kind, p.epsilon, weight, bias) for one in (reference.forward, reference.forward_terms))
    if not p.quantised:
        assert off(outputs["out"], exact, terms) < bound
        return
    largest = np.abs(exact).max(-1, initial=0)
    steps = 127.0 if p.dtype_y == "int8" else fp8(fnuz)[1]
    scales, inexact = outputs["scales"][0].astype(np.float64), terms.max(-1, initial=0) * 2.0**-19
    assert (np.abs(scales - largest / steps) <= (inexact + largest * 2.0**-20) / steps).all()
    restored = outputs["out"].astype(np.float64) * scales[:, None]
    step = largest / 254 if p.dtype_y == "int8" else np.abs(exact).T / 16 + largest / steps / 256
    assert (step * 1.001 + inexact >= np.abs(restored - exact).T).all()
    assert (np.abs(outputs["out"].astype(np.float32)).max(-1, initial=0)[largest > 0] == steps).all()
