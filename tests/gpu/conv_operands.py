"""Operands of convolutions on the device, in poisoned memory with guards, and what torch computes from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from places import DEVICE, synchronize

from kernelwright.dispatch import ConvProblem, Dispatcher

GUARD = 1024  # elements on each side: addresses stay multiples of 16 bytes
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
ROUNDING = {"bf16": 2.0**-8, "fp16": 2.0**-11}
_UNIT = 2.0**-24
_ACTIVATIONS: dict[str, Any] = {
    "none": lambda x: x,
    "relu": torch.relu,
    "silu": torch.nn.functional.silu,
    "gelu": torch.nn.functional.gelu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "fast_gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
}


class Operand:
    """A tensor of ``shape`` at ``strides`` between guards; gaps and guards hold NaN."""

    def __init__(self, shape: Sequence[int], dtype: str, strides: Sequence[int] | None = None) -> None:
        """Poisoned everywhere."""
        dense = [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]
        used = list(dense if strides is None else strides)
        span = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, used, strict=True))
        self.storage = torch.full((2 * GUARD + max(span, 1),), math.nan, dtype=DTYPES[dtype], device=DEVICE)
        self.view = self.storage.as_strided(tuple(shape), tuple(used), GUARD)

    def fill(self, whole: bool, generator: torch.Generator) -> None:
        """Small integers, or normally distributed numbers."""
        shape = tuple(self.view.shape)
        if whole:
            values = torch.randint(-2, 3, shape, generator=generator, device=DEVICE)
        else:
            values = torch.randn(shape, generator=generator, device=DEVICE)
        self.view.copy_(values)

    def around(self) -> torch.Tensor:
        """The bits of everything but the values."""
        copy = self.storage.clone()
        copy.as_strided(tuple(self.view.shape), self.view.stride(), GUARD).zero_()
        return copy.view(torch.int16)


def tensor(p: ConvProblem, kind: str) -> Operand:
    """x, w or y of a problem whose channels are innermost."""
    if kind == "w":
        return Operand(p.w_shape, p.dtype)
    shape, strides = (p.x_shape, p.stride_x) if kind == "x" else (p.y_shape, p.stride_y)
    assert strides is not None
    return Operand(shape, p.dtype, (strides[0], *strides[2:], strides[1]))


def _first(values: torch.Tensor) -> torch.Tensor:
    return values.movedim(-1, 1)


def convolve(p: ConvProblem, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The sums of a problem in the precision of its operands, channels last; torch pads nothing, we do."""
    dims = len(p.sizes)
    pads = [side for pair in zip(reversed(p.pad_left), reversed(p.pad_right), strict=True) for side in pair]  # type: ignore[call-overload]
    plain = (list(p.stride), [0] * dims, list(p.dilation))  # type: ignore[arg-type]
    if p.direction == "forward":
        x = torch.nn.functional.pad(_first(a), pads)
        call = getattr(torch.nn.functional, f"conv{dims}d")
        return call(x, _first(b), None, *plain, p.groups).movedim(1, -1)
    padded = [s + left + right for s, left, right in zip(p.sizes, p.pad_left, p.pad_right, strict=True)]  # type: ignore[arg-type]
    more = (False, [0] * dims, p.groups)
    backward = torch.ops.aten.convolution_backward
    if p.direction == "backward_data":
        x = torch.zeros((p.n, p.c, *padded), dtype=a.dtype, device=DEVICE)
        dx = backward(_first(a).contiguous(), x, _first(b).contiguous(), None, *plain, *more, [True, False, False])[0]
        inside = tuple(slice(left, left + s) for s, left in zip(p.sizes, p.pad_left, strict=True))  # type: ignore[arg-type]
        return dx[(slice(None), slice(None), *inside)].movedim(1, -1)
    x = torch.nn.functional.pad(_first(a), pads)
    w = torch.zeros((p.k, p.c // p.groups, *p.filter), dtype=a.dtype, device=DEVICE)  # type: ignore[misc]
    return backward(_first(b).contiguous(), x, w, None, *plain, *more, [False, True, False])[1].movedim(1, -1)


def check(dispatcher: Dispatcher, p: ConvProblem, seed: int, whole: bool) -> str:
    """AssertionError unless the chosen kernel is right and touches nothing else; returns its name.

    With ``whole`` operands are small integers and results must be exact; else they are held against float64.
    """
    generator = torch.Generator(DEVICE).manual_seed(seed)
    kinds = {"forward": "xwy", "backward_data": "ywx", "backward_weight": "xyw"}[p.direction]
    a, b, out = (tensor(p, kind) for kind in kinds)
    bias = Operand((p.k,), p.dtype) if p.bias else None
    residual = tensor(p, "y") if p.residual else None
    for one in (a, b, bias, residual):
        if one is not None:
            one.fill(whole, generator)
    old = None
    if p.beta:
        out.fill(whole, generator)
        old = out.view.double()
    around, given = out.around(), {"bias": bias, "residual": residual}
    plan = dispatcher.plan(p)
    plan(a.view, b.view, out.view, **{name: None if one is None else one.view for name, one in given.items()})
    synchronize()
    assert torch.equal(out.around(), around), f"{p}: memory beside the result was written"
    _compare(p, a.view, b.view, [old, *(one and one.view.double() for one in given.values())], out.view, whole)
    return plan.kernel.name


def _compare(p: ConvProblem, a: Any, b: Any, extras: list[Any], got: torch.Tensor, whole: bool) -> None:
    old, *added = extras
    sums = p.alpha * convolve(p, a.double(), b.double())
    value = sums if old is None else sums + p.beta * old
    for one in added:
        value = value if one is None else value + one
    exact = _ACTIVATIONS[p.activation](value)
    if whole and p.activation in ("none", "relu"):
        wanted = exact.to(got.dtype)
        wrong = int((got != wanted).sum())  # NaN, which poison is, is unequal to everything
        assert wrong == 0, f"{p}: {wrong} of {got.numel()} are wrong"
        return
    magnitude = abs(p.alpha) * convolve(p, a.double().abs(), b.double().abs())
    for one in (old, *added):
        magnitude = magnitude if one is None else magnitude + one.abs()
    terms = p.flops / (2 * max(1, got.numel())) + 64
    fast = 2.0**-10 if p.activation not in ("none", "relu") else 0.0  # of activations by the fast exponential
    allowed = 1.2 * (terms * _UNIT + fast) * magnitude + ROUNDING[p.dtype] * exact.abs() + 2.0**-24
    error = (got.double() - exact).abs()
    assert bool((error <= allowed).all()), f"{p}: {float((error / allowed).nan_to_num(math.inf).max())} times the bound"
