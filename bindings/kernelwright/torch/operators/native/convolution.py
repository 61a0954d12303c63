"""Convolutions on the native road: what it learns of a call, and gradients of results it has computed."""

from __future__ import annotations

from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.dispatch.operations.convolution.calls import ConvOptions
from kernelwright.problems.convolution.structs import ConvArgs
from kernelwright.problems.literals import Activation
from kernelwright.torch import dispatchers
from kernelwright.torch.operators import convolution_gradient
from kernelwright.torch.operators.convolution_launch import Window, channels_last, innermost, options_of
from kernelwright.torch.operators.native.taught import Lesson, Taught, records, same_memory
from kernelwright.torch.road import launch, launch_all

_TAUGHT = Taught("conv", "conv1d", "conv2d", "conv3d")
_KINDS = _TAUGHT.kinds
_INTEGERS = {int}


def _exact(stride: Any, padding: Any, dilation: Any, groups: Any) -> bool:
    """Whether these are integers and tuples of them: True and 1.0 would match an entry for 1, and lists none."""
    if type(groups) is not int:
        return False
    for one in (stride, padding, dilation):
        kind = type(one)
        if kind is not int and not (kind is tuple and {*map(type, one)} == _INTEGERS) and not (
            kind is str and one is padding
        ):  # fmt: skip
            return False
    return True


def conv(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None, dims: int,
    stride: Any, padding: Any, dilation: Any, groups: int, activation: str | None,
) -> Any:  # fmt: skip
    """Return the convolution, with its gradient recorded; None if the Python road must be taken."""
    if not _exact(stride, padding, dilation, groups):
        return None
    option = dims, stride, padding, dilation, groups, activation, residual is None
    if residual is None:
        result = launch(_KINDS, option, x, w, bias)
    else:
        result = launch_all(_KINDS, option, (x, w, residual) if bias is None else (x, w, bias, residual))
    if result is None or not records():
        return result
    given = dims, stride, padding, dilation, groups
    if not any(one is not None and one.requires_grad for one in (x, w, bias, residual)):
        return result
    word = "none" if activation is None else activation
    if x.dim() == w.dim():
        return _Conv.apply((result,), x, w, bias, residual, given, word)
    # One image. Nobody else holds the result yet: it becomes no view.
    images = x[None], w, bias, None if residual is None else residual[None]
    return _Conv.apply((result[None].data,), *images, given, word).squeeze(0)


class _Conv(torch.autograd.function._SingleLevelFunction):  # type: ignore[misc]
    """Records a convolution that has been computed. No transform is active."""

    @staticmethod
    def forward(
        ctx: Any, computed: Any, x: Any, w: Any, bias: Any, residual: Any, given: Any, activation: str
    ) -> torch.Tensor:
        """Return the only element of ``computed``; not passed as an input, of which autograd would make a view."""
        result: torch.Tensor = computed[0]
        ctx.given = given
        convolution_gradient.keep(ctx, x, w, bias, residual, activation, result)
        return result

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
        """See :func:`convolution_gradient.backward`."""
        dims, *rest = ctx.given
        ctx.window, ctx.dispatcher = Window.of(dims, ctx.points, *rest), ""
        needed = ctx.needs_input_grad
        ctx.needs_input_grad = needed[1:5]
        try:
            gradients = convolution_gradient.backward(ctx, grad)
        finally:
            ctx.needs_input_grad = needed
        return None, *gradients, None, None


def learn(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None, dims: int,
    stride: Any, padding: Any, dilation: Any, groups: int, activation: Activation | None, result: torch.Tensor,
    generation: int,
) -> None:  # fmt: skip
    """Teach the native road the plan of a convolution that the dispatcher in use has just launched.

    It can be taught if kernels read all operands in place.
    """
    if not _exact(stride, padding, dilation, groups):
        return
    made, biased, added = result.detach(), bias is not None, residual is not None

    def lesson(x: torch.Tensor, w: torch.Tensor, *rest: torch.Tensor) -> Lesson | None:
        bias = rest[0] if biased else None
        residual = rest[-1] if added else None
        window = Window.of(dims, w.shape[2:], stride, padding, dilation, groups)
        return _planned((x, w, *rest), x, w, bias, residual, window, activation or "none", made)

    option = dims, stride, padding, dilation, groups, activation, residual is None
    tensors = [one for one in (x, w, bias, residual) if one is not None]
    _TAUGHT.learn(tensors, option, generation, lesson)


def _planned(
    given: tuple[torch.Tensor, ...], x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None,
    residual: torch.Tensor | None, window: Window, activation: Activation, result: torch.Tensor,
) -> Lesson | None:  # fmt: skip
    if bias is not None and bias.stride(0) != 1 and bias.shape[0] > 1:
        return None  # it is copied
    out = result
    if x.dim() < w.dim():
        x, residual, out = x[None], None if residual is None else residual[None], out[None]
    x, w = channels_last(x, dense=False), channels_last(w)
    residual = None if residual is None else channels_last(residual)
    if not same_memory([one for one in (x, w, bias, residual) if one is not None], given):
        return None
    in_use = dispatchers.find("", x.device)
    options = ConvOptions("forward", activation=activation, **options_of(window))
    plan = in_use._conv.plan(innermost(x), innermost(w), bias, innermost(residual), innermost(out), options)
    named = {"a": x, "b": w, "bias": bias, "residual": residual}
    places = [getattr(ConvArgs, name).offset for name, one in named.items() if one is not None]
    return Lesson(in_use, plan, (result,), (places, [ConvArgs.d.offset]))
