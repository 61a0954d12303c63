"""Arrays of a norm for the tile engine, and its results in float64 with bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelwright.dispatch import dtypes
from kernelwright.dispatch.operations.norm import NormProblem

Array = np.ndarray[Any, Any]

_ROUNDOFF = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8, "int8": 0.5, "fp8": 2.0**-4}
_SUMS = 2.0**-18  # error of sums in fp32, relative to the largest number
_UNWRITTEN = -128  # no quantised result has this value


class NormOperands:
    """Inputs are small integers, ``outs`` the problem's outputs, poisoned; ``names`` covers both."""

    def __init__(self, problem: NormProblem, seed: int) -> None:
        """Draw the inputs; equal seeds give equal numbers."""
        self._problem, rng = problem, np.random.default_rng(seed)
        p = problem
        rows: tuple[int, ...] = (p.rows, p.columns)
        row: tuple[int, ...] = (p.columns,)
        given = {"x": (rows, p.dtype)}
        given |= {"weight": (row, p.dtype_w)} if p.weight else {}
        given |= {"bias": (row, p.dtype_w)} if p.bias and not p.backward else {}
        given |= {"residual": (rows, p.dtype)} if p.residual else {}
        given |= {"dy": (rows, p.dtype)} if p.backward else {}
        written = {"out": (rows, p.dtype_y)}
        written |= {"sum": (rows, p.dtype)} if p.residual and not p.backward else {}
        written |= {"scales": ((p.rows,), "fp32")} if p.quantised else {}
        written |= {"dweight": (row, p.dtype_w)} if p.backward and p.weight else {}
        written |= {"dbias": (row, p.dtype_w)} if p.backward and p.bias else {}
        self.names = (*given, *written)
        self.inputs: Sequence[Array] = tuple(
            rng.integers(-4, 5, shape).astype(dtypes.numpy_dtype(dtype)) for shape, dtype in given.values()
        )
        self.outs: Sequence[Array] = tuple(
            np.zeros(shape, dtypes.numpy_dtype(dtype)) for shape, dtype in written.values()
        )
        self._exact: dict[str, tuple[Array, Array]] | None = None
        self.poison()

    def poison(self) -> None:
        """Fill outputs with NaN, or int8 ones with a value that no result has."""
        for out in self.outs:
            out[...] = _UNWRITTEN if out.dtype == np.int8 else np.nan

    def error(self) -> float:
        """The largest error of an element as a fraction of its bound."""
        outputs = dict(zip(self.names[len(self.inputs) :], self.outs, strict=True))
        if any(_is_unwritten(one) for one in self.outs):
            return float("inf")
        if self._exact is None:
            self._exact = self._results()
        worst = 0.0
        for name, (exact, bound) in self._exact.items():
            wide = outputs[name].astype(np.float64)
            if name == "out" and self._problem.quantised:
                wide = wide * outputs["scales"].astype(np.float64)[:, None]
            off = np.abs(wide - exact)
            worst = max(worst, float(np.where(off == 0, 0.0, off / np.maximum(bound, 1e-300)).max(initial=0.0)))
        return worst

    def _results(self) -> dict[str, tuple[Array, Array]]:
        """Each result with the error bound of each element."""
        p = self._problem
        given = {name: one.astype(np.float64) for name, one in zip(self.names, self.inputs, strict=False)}
        s = given["x"] + (given["residual"] if p.residual and not p.backward else 0.0)
        apart = s - s.mean(-1, keepdims=True) if p.kind == "layer" else s
        inverse = 1 / np.sqrt((apart * apart).mean(-1, keepdims=True) + p.epsilon)
        h, weight = apart * inverse, given.get("weight", np.ones(p.columns))
        if not p.backward:
            y = h * weight + given.get("bias", 0.0)
            largest = np.abs(y).max(-1, keepdims=True, initial=0.0)
            scale = largest / {"int8": 127, "fp8": 448}.get(p.dtype_y, 1)
            step = scale if p.dtype_y == "int8" else np.abs(y) + (scale * 2.0**-6 if p.quantised else 0.0)
            results = {"out": (y, _ROUNDOFF[p.dtype_y] * step * 1.01 + _SUMS * largest)}
            if p.quantised:
                results["scales"] = (scale[:, 0], scale[:, 0] * 2.0**-16)
            return results | ({"sum": (s, np.zeros_like(s))} if p.residual else {})
        g = given["dy"] * weight
        mean = g.mean(-1, keepdims=True) if p.kind == "layer" else 0.0
        dx = inverse * (g - mean - h * (g * h).mean(-1, keepdims=True)) + given.get("residual", 0.0)
        results = {"out": _bounded(dx, p.dtype)}
        if p.weight:
            results["dweight"] = _bounded((given["dy"] * h).sum(0), p.dtype_w)
        if p.bias:
            results["dbias"] = _bounded(given["dy"].sum(0), p.dtype_w)
        return results


def _bounded(exact: Array, dtype: str) -> tuple[Array, Array]:
    return exact, _ROUNDOFF[dtype] * np.abs(exact) * 1.01 + _SUMS * np.abs(exact).max(initial=0.0)


def _is_unwritten(out: Array) -> bool:
    return bool((out == _UNWRITTEN).any() if out.dtype == np.int8 else np.isnan(out.astype(np.float32)).any())
