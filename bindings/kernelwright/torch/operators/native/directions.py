"""Backward convolutions on the native road, for backward passes that are not recorded themselves."""

from __future__ import annotations

from collections.abc import Sequence

import torch  # pants: no-infer-dep
from kernelwright.dispatch.operations.convolution.calls import ConvOptions
from kernelwright.problems.convolution.structs import ConvArgs
from kernelwright.torch import dispatchers
from kernelwright.torch.operators.convolution_launch import Window, innermost, options_of
from kernelwright.torch.operators.native.taught import Lesson, Taught, records
from kernelwright.torch.road import ROAD, launch

_DIRECTIONS = {"conv_backward_data": ("backward_data", None), "conv_backward_weight": ("backward_weight", 0)}
_TAUGHT = {name: Taught(name) for name in _DIRECTIONS}
_PLACES = [ConvArgs.a.offset, ConvArgs.b.offset], [ConvArgs.d.offset]


def convolved(
    name: str, a: torch.Tensor, b: torch.Tensor, given: Sequence[int], window: Window, dispatcher: str
) -> torch.Tensor:
    """Compute ``kernelwright::<name>``, by the operator if the native road does not know the call.

    NoKernelError in ``strict()`` regions.
    """
    operator = getattr(torch.ops.kernelwright, name).default
    result: torch.Tensor
    if ROAD.why_not or dispatcher or records():
        result = operator(a, b, list(given), *window, dispatcher)
        return result
    taught = _TAUGHT[name]
    option = tuple(given), *map(tuple, window[:4]), window.groups
    launched = launch(taught.kinds, option, a, b)
    if launched is not None:
        result = launched
        return result

    def lesson(gradient: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> Lesson:
        in_use, (direction, split_k) = dispatchers.find("", a.device), _DIRECTIONS[name]
        options = ConvOptions(direction, tuple(given), split_k=split_k, **options_of(window))
        plan = in_use._conv.plan(innermost(a), innermost(b), None, None, innermost(gradient), options)
        return Lesson(in_use, plan, (gradient,), _PLACES)

    result = taught.computed(lambda: operator(a, b, list(given), *window, dispatcher), (a, b), option, lesson)
    return result
