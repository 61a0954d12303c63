"""Gradients of convolutions, which are convolutions of the same dispatcher.

With Z = conv(x, w) + bias + residual, the result is act(Z). Given G, the gradient of Z:

* of x it is ``conv_backward_data(G, w)`` and of w ``conv_backward_weight(x, G)``, two operators with gradients of their
  own: both are linear in each operand, so that these are convolutions again,
* of the residual it is G, and of the bias the sum of G over images and points.

The convolution is recomputed if an activation needs Z: a fused kernel does not write it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.dispatch import NoKernelError
from kernelwright.torch import activations
from kernelwright.torch.fallback import convolutions
from kernelwright.torch.operator import laid_out, register
from kernelwright.torch.operators import convolution_batching, convolution_launch
from kernelwright.torch.operators.convolution_launch import WINDOW_SCHEMA, Window, channels_last, empty
from kernelwright.torch.operators.native import directions


def save(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    """Keep what :func:`backward` needs."""
    x, w, bias, residual, *window, activation, ctx.dispatcher = inputs
    ctx.window = Window(*window)
    keep(ctx, x, w, bias, residual, activation, output)


def keep(
    ctx: Any, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None,
    activation: str, output: torch.Tensor,
) -> None:  # fmt: skip
    """Keep operands and result, except those that no gradient needs."""
    ctx.activation = activation
    ctx.dtype, ctx.size, ctx.points = x.dtype, x.shape[2:], w.shape[2:]
    again = activations.needs_argument(activation)
    ctx.save_for_backward(
        x if w.requires_grad or again else None,
        w if x.requires_grad or again else None,
        bias if again else None,
        residual if again else None,
        output if activations.needs_result(activation) else None,
    )


def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
    """Gradients of x, w, bias and residual. Raises NoKernelError if no kernel serves one of the convolutions."""
    x, w, bias, residual, output = ctx.saved_tensors
    needs_x, needs_w, needs_bias, needs_residual, *_ = ctx.needs_input_grad
    argument = None
    if activations.needs_argument(ctx.activation):
        argument, grad = _argument(x, w, bias, residual, ctx), grad.to(torch.float32)  # several roundings
    grad = activations.gradient(ctx.activation, grad, output, argument)
    of_bias = grad.sum((0, *range(2, grad.dim()))).to(ctx.dtype) if needs_bias else None
    grad = channels_last(grad.to(ctx.dtype))
    of_x = _launched("x", "conv_backward_data", grad, w, ctx.size, ctx) if needs_x else None
    of_w = _launched("w", "conv_backward_weight", x, grad, ctx.points, ctx) if needs_w else None
    of_residual = grad if needs_residual else None
    return of_x, of_w, of_bias, of_residual, *[None] * (len(ctx.needs_input_grad) - 4)


def _argument(x: torch.Tensor, w: torch.Tensor, bias: Any, residual: Any, ctx: Any) -> torch.Tensor:
    argument = _forward("the activation's argument", x, w, ctx).to(torch.float32)
    if bias is not None:
        argument = argument + bias.to(torch.float32).view(-1, *[1] * len(ctx.size))
    return argument if residual is None else argument + residual.to(torch.float32)


def _forward(what: str, x: torch.Tensor, w: torch.Tensor, ctx: Any) -> torch.Tensor:
    with _named(what):
        arguments = x, w, None, None, *ctx.window, "none", ctx.dispatcher
        result: torch.Tensor = torch.ops.kernelwright.conv(*arguments)
        return result


def _launched(what: str, name: str, a: torch.Tensor, b: torch.Tensor, given: Sequence[Any], ctx: Any) -> torch.Tensor:
    with _named(what):
        return directions.convolved(name, a, b, given, ctx.window, ctx.dispatcher)


@contextmanager
def _named(what: str) -> Iterator[None]:
    try:
        yield
    except NoKernelError as error:
        why = f"the gradient of kernelwright::conv needs another convolution, for {what}: {error.reason}"
        raise NoKernelError(why, *error.advice) from None


def _run_data(dy: torch.Tensor, w: torch.Tensor, size: Sequence[int], *rest: Any) -> torch.Tensor:
    *window, dispatcher = _complete(rest)
    return convolution_launch.backward_data(dy, w, _fake_data(dy, w, size, *rest), Window(*window), dispatcher)


def _fake_data(dy: torch.Tensor, w: torch.Tensor, size: Sequence[Any], *rest: Any) -> torch.Tensor:
    groups = rest[4]
    return empty(dy, (dy.shape[0], w.shape[1] * groups, *size))


def _run_weight(x: torch.Tensor, dy: torch.Tensor, points: Sequence[int], *rest: Any) -> torch.Tensor:
    *window, dispatcher = _complete(rest)
    return convolution_launch.backward_weight(x, dy, _fake_weight(x, dy, points, *rest), Window(*window), dispatcher)


def _fake_weight(x: torch.Tensor, dy: torch.Tensor, points: Sequence[Any], *rest: Any) -> torch.Tensor:
    groups = rest[4]
    return empty(x, (dy.shape[1], x.shape[1] // groups, *points))


def _complete(rest: tuple[Any, ...]) -> tuple[Any, ...]:
    """Window and dispatcher; torch omits arguments that have default values."""
    return rest if len(rest) == 6 else (*rest, "")


def _save(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    a, b, _, *window, ctx.dispatcher = inputs
    ctx.window, ctx.size, ctx.points = Window(*window), a.shape[2:], b.shape[2:]
    ctx.save_for_backward(a, b)


def _backward_of_data(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
    dy, w = ctx.saved_tensors
    grad = channels_last(grad)
    of_dy = _forward("dy", grad, w, ctx) if ctx.needs_input_grad[0] else None
    of_w = _launched("w", "conv_backward_weight", grad, dy, ctx.points, ctx) if ctx.needs_input_grad[1] else None
    return of_dy, of_w, *[None] * (len(ctx.needs_input_grad) - 2)


def _backward_of_weight(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
    x, dy = ctx.saved_tensors
    grad = channels_last(grad)
    of_x = _launched("x", "conv_backward_data", dy, grad, ctx.size, ctx) if ctx.needs_input_grad[0] else None
    of_dy = _forward("dy", x, grad, ctx) if ctx.needs_input_grad[1] else None
    return of_x, of_dy, *[None] * (len(ctx.needs_input_grad) - 2)


def _schema(name: str, operands: str) -> str:
    return f'{name}({operands}, {WINDOW_SCHEMA}, str dispatcher="") -> Tensor'


DATA = register(
    _schema("conv_backward_data", "Tensor dy, Tensor w, SymInt[] size"),
    _run_data,
    laid_out(convolutions.backward_data, _fake_data),
    _fake_data,
    _save,
    _backward_of_data,
    convolution_batching.backward_data,
)
WEIGHT = register(
    _schema("conv_backward_weight", "Tensor x, Tensor dy, SymInt[] filter"),
    _run_weight,
    laid_out(convolutions.backward_weight, _fake_weight),
    _fake_weight,
    _save,
    _backward_of_weight,
    convolution_batching.backward_weight,
)
