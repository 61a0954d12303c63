"""Gradients of attention on the native road, for backward passes that are not recorded themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.dispatch.operations.attention.from_arrays import AttentionOptions
from kernelwright.dispatch.operations.attention.operand import C_NAMES
from kernelwright.problems.attention.structs import AttentionArgs
from kernelwright.torch import dispatchers
from kernelwright.torch.operators.native.taught import Lesson, Taught, records
from kernelwright.torch.road import ROAD, launch_triple

NAME = "attention_backward"
_TAUGHT = Taught(NAME)
_READ, _WRITTEN = ("q", "k", "v", "o", "do", "lse"), ("dq", "dk", "dv")
_OFFSETS = {name: getattr(AttentionArgs, C_NAMES.get(name, name)).offset for name in (*_READ, *_WRITTEN)}
_PLACES = [_OFFSETS[name] for name in _READ], [_OFFSETS[name] for name in _WRITTEN]


def differentiated(operator: Callable[..., Any], a: Any) -> tuple[torch.Tensor, ...]:
    """dQ, dK, dV and dbias, if any: the results of ``operator(*a)``, ``kernelwright::attention_backward``.

    The operator computes calls that the native road does not know. NoKernelError in ``strict()`` regions.
    """
    result: tuple[torch.Tensor, ...]
    added = a.bias is not None or a.slopes is not None or a.with_dbias
    if ROAD.why_not or a.dispatcher or a.dropout_p or added or records():
        result = operator(*a)
        return result
    window = None if a.mask == "none" else (a.window_left, a.window_right)
    option = a.mask, window, a.scale, a.soft_cap, a.deterministic
    tensors = a.q, a.k, a.v, a.out, a.grad, a.lse
    launched = launch_triple(_TAUGHT.kinds, option, tensors)
    if launched is not None:
        result = launched
        return result

    def lesson(gradients: tuple[torch.Tensor, ...], *read: torch.Tensor) -> Lesson:
        in_use, written = dispatchers.find("", a.q.device), gradients[:3]
        options = AttentionOptions(
            "backward", "bhsd", mask=a.mask, window=window, scale=a.scale, soft_cap=a.soft_cap,
            deterministic=a.deterministic,
        )  # fmt: skip
        named = {**dict(zip(_READ, read, strict=True)), **dict(zip(_WRITTEN, written, strict=True))}
        return Lesson(in_use, in_use._attention.plan(named, options), written, _PLACES)

    return _TAUGHT.computed(lambda: operator(*a), tensors, option, lesson)
