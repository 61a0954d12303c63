"""Convolution in float64, one filter point after another, and how far a kernel's result may be from it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gemm.correctness.reference import ACTIVATIONS as PRODUCTS_ACTIVATIONS
from kernelwright.dispatch import ConvProblem

Array = np.ndarray[Any, Any]

_UNIT = 2.0**-24  # half an ulp of fp32 at 1
_ROUNDING = {"fp32": (_UNIT, 2.0**-150), "fp16": (2.0**-11, 2.0**-25), "bf16": (2.0**-8, 2.0**-134)}


def _fast_gelu(x: Array) -> Array:
    return x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x * x * x)))


# fast_gelu in full precision: the bound below is narrower than what products are held to.
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {**PRODUCTS_ACTIVATIONS, "fast_gelu": _fast_gelu}


def channels_last(array: Array, problem: ConvProblem) -> Array:
    """x, y or w of a problem with channels (of w: input channels) as the last dimension."""
    return np.moveaxis(array, 1, -1) if problem.layout == "ngchw" else array


def _points(p: ConvProblem, padded: Array) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Each filter point, and the part of padded x that it meets."""
    for point in itertools.product(*map(range, p.filter)):  # type: ignore[arg-type]
        meets = []
        for at, stride, dilation, out in zip(point, p.stride, p.dilation, p.out_size, strict=True):  # type: ignore[arg-type]
            meets.append(slice(at * dilation, at * dilation + (out - 1) * stride + 1, stride))
        yield point, tuple(meets)


def _padding(p: ConvProblem) -> list[tuple[int, int]]:
    return [(0, 0), *zip(p.pad_left, p.pad_right, strict=True), (0, 0)]  # type: ignore[arg-type]


def _grouped(array: Array, groups: int, axis: int) -> Array:
    shape = array.shape
    return array.reshape(*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :])


def convolve(p: ConvProblem, a: Array, b: Array) -> Array:
    """The sums of a problem, without alpha, beta and epilogue, in float64 with channels last.

    ``a`` and ``b`` are the operands in the order of a launch, with channels last.
    """
    a, b = a.astype(np.float64), b.astype(np.float64)
    if p.direction == "forward":
        padded = _grouped(np.pad(a, _padding(p)), p.groups, a.ndim - 1)
        w = _grouped(b, p.groups, 0)  # g, k, points, c
        y = np.zeros((p.n, *p.out_size, p.groups, p.k // p.groups))
        for point, meets in _points(p, padded):
            y += np.einsum("...gc,gkc->...gk", padded[(slice(None), *meets)], w[(slice(None), slice(None), *point)])
        return y.reshape(p.n, *p.out_size, p.k)
    if p.direction == "backward_data":
        dy, w = _grouped(a, p.groups, a.ndim - 1), _grouped(b, p.groups, 0)
        size = [s + left + right for s, (left, right) in zip(p.sizes, _padding(p)[1:-1], strict=True)]
        dx = np.zeros((p.n, *size, p.groups, p.c // p.groups))
        for point, meets in _points(p, dx):
            dx[(slice(None), *meets)] += np.einsum("...gk,gkc->...gc", dy, w[(slice(None), slice(None), *point)])
        inside = tuple(slice(left, left + s) for s, (left, _) in zip(p.sizes, _padding(p)[1:-1], strict=True))
        return dx[(slice(None), *inside)].reshape(p.n, *p.sizes, p.c)
    padded, dy = _grouped(np.pad(a, _padding(p)), p.groups, a.ndim - 1), _grouped(b, p.groups, b.ndim - 1)
    dw = np.zeros((p.groups, p.k // p.groups, *p.filter, p.c // p.groups))  # type: ignore[misc]
    for point, meets in _points(p, padded):
        met = padded[(slice(None), *meets)]
        lines = dy.reshape(-1, *dy.shape[-2:]), met.reshape(-1, *met.shape[-2:])
        dw[(slice(None), slice(None), *point)] = np.einsum("pgk,pgc->gkc", *lines)
    return dw.reshape(p.k, *p.filter, p.c // p.groups)  # type: ignore[misc]


def finished(p: ConvProblem, sums: Array, old: Array | None, bias: Array | None, residual: Array | None) -> Array:
    """What must come out, in float64 with channels last."""
    value = p.alpha * sums
    if p.beta:
        assert old is not None
        value = value + p.beta * old.astype(np.float64)
    for added in (bias, residual):
        if added is not None:
            value = value + added.astype(np.float64)
    return ACTIVATIONS[p.activation](value)


def bound(p: ConvProblem, magnitude: Array, exact: Array) -> Array:
    """The largest error that summing in fp32 in any order, and rounding the result, can leave.

    ``magnitude`` is the result of absolute values. Activations are taken to be at most 1.13 times as steep.
    """
    terms = {
        "forward": p.c // p.groups * np.prod(p.filter),  # type: ignore[arg-type]
        "backward_data": p.k // p.groups * np.prod(p.filter),  # type: ignore[arg-type]
        "backward_weight": p.n * np.prod(p.out_size),
    }[p.direction]
    steps = float(terms) + 8
    gamma = steps * _UNIT / (1 - steps * _UNIT)
    relative, absolute = _ROUNDING[p.dtype]
    steep = 1.0 if p.activation in ("none", "relu") else 1.2
    return (
        steep * (1 + relative) * gamma * magnitude + (relative + 8 * _UNIT) * abs(exact) + absolute + steps * 2.0**-125
    )
