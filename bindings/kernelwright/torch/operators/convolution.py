"""``kernelwright::conv``: convolutions of one to three dimensions with bias, residual and activation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.dispatch import ArrayError
from kernelwright.problems.literals import Activation
from kernelwright.torch import inputs
from kernelwright.torch.fallback import convolutions, decisions
from kernelwright.torch.operator import laid_out, register
from kernelwright.torch.operators import convolution_batching, convolution_gradient
from kernelwright.torch.operators.convolution_launch import WINDOW_SCHEMA, Window, channels_last, empty, forward
from kernelwright.torch.operators.native import convolution as native
from kernelwright.torch.operators.native.taught import computed
from kernelwright.torch.road import ROAD
from torch.compiler import is_dynamo_compiling  # pants: no-infer-dep

__all__ = ["conv1d", "conv2d", "conv3d"]

_SCHEMA = (
    f"conv(Tensor x, Tensor w, Tensor? bias, Tensor? residual, {WINDOW_SCHEMA}, "
    'str activation="none", str dispatcher="") -> Tensor'
)

_DECISIONS = decisions.of("conv")
_PYTHON_ROAD = bool(ROAD.why_not)

Extents = int | Sequence[int]


def conv2d(
    x: torch.Tensor,
    w: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Extents = 1,
    padding: Extents | str = 0,
    dilation: Extents = 1,
    groups: int = 1,
    *,
    residual: torch.Tensor | None = None,
    activation: Activation | None = None,
    dispatcher: str = "",
) -> torch.Tensor:
    """Compute activation(convolution of x by w + bias + residual), see :func:`torch.nn.functional.conv2d`.

    Kernels read and write contiguous channels: tensors in ``torch.channels_last`` are read in place, and the result is
    one. Tensors in another memory format, and expanded ones, are first copied by torch, at every call; the logger
    ``kernelwright.torch`` reports that at level DEBUG.

    Gradients of ``x``, ``w``, ``bias`` and ``residual`` are computed by the same dispatcher, and are differentiable
    themselves. Under autocast, floating-point operands are cast as for torch's own convolutions.

    :param x: images (n, c, h, w), or one image (c, h, w), for a result without n.
    :param w: weights (k, c / groups, r, s), in the dtype of ``x``.
    :param bias: (k,).
    :param stride: one number, or one per dimension; ``dilation`` likewise.
    :param padding: one number, or one per dimension; ``"valid"`` for none, ``"same"`` for a result of the size of
        ``x``, which requires a stride of 1.
    :param residual: a tensor of the result's shape, added before the activation.
    :param activation: ``"relu"``, ``"gelu"`` (erf form), ``"fast_gelu"`` (tanh form), ``"silu"``, ``"sigmoid"`` or
        ``"tanh"``.
    :param dispatcher: a dispatcher's name, as given to :func:`use`.
    :returns: (n, k, out_h, out_w), in ``torch.channels_last``.
    :raises DispatcherNotFoundError: for a name that is not in use on the device of ``x``.
    :raises ArrayError: for operands that are not dense tensors on the device of ``x``, for tensors that do not fit
        together or differ in dtype, and for a stride, padding, dilation or groups that torch refuses, bools included.
    :raises ProblemError: for numbers that describe no convolution.
    :raises NoKernelError: in a :func:`strict` region, if no kernel serves the problem or a gradient.
    """
    return _convolved(x, w, bias, residual, 2, stride, padding, dilation, groups, activation, dispatcher)


def conv1d(
    x: torch.Tensor,
    w: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Extents = 1,
    padding: Extents | str = 0,
    dilation: Extents = 1,
    groups: int = 1,
    *,
    residual: torch.Tensor | None = None,
    activation: Activation | None = None,
    dispatcher: str = "",
) -> torch.Tensor:
    """:func:`conv2d` for x (n, c, l) or (c, l), and w (k, c / groups, r). Kernels of more dimensions serve it, too.

    torch has no memory format for these. The result has contiguous channels, like ``y.mT`` of a dense tensor (n, l, k);
    such an x is read in place.
    """
    return _convolved(x, w, bias, residual, 1, stride, padding, dilation, groups, activation, dispatcher)


def conv3d(
    x: torch.Tensor,
    w: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Extents = 1,
    padding: Extents | str = 0,
    dilation: Extents = 1,
    groups: int = 1,
    *,
    residual: torch.Tensor | None = None,
    activation: Activation | None = None,
    dispatcher: str = "",
) -> torch.Tensor:
    """:func:`conv2d` for x (n, c, d, h, w) or (c, d, h, w) and w (k, c / groups, q, r, s).

    The memory format is ``torch.channels_last_3d``.
    """
    return _convolved(x, w, bias, residual, 3, stride, padding, dilation, groups, activation, dispatcher)


def _convolved(*given: Any) -> Any:
    """Convolve on the known road; arguments are those of :func:`_conv`."""
    if _PYTHON_ROAD or given[-1] != "" or is_dynamo_compiling():
        return _DECISIONS.call(_conv, convolutions.public, given, 4)
    result = native.conv(*given[:-1])
    if result is not None:
        return result
    return computed(_DECISIONS, _conv, convolutions.public, given, 4, lambda *made: native.learn(*given[:-1], *made))


def _conv(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None, dims: int,
    stride: Extents, padding: Extents | str, dilation: Extents, groups: int, activation: str | None, dispatcher: str,
) -> torch.Tensor:  # fmt: skip
    inputs.check_tensors(x=x, w=w, bias=bias, residual=residual)
    inputs.check_devices(x=x, w=w, bias=bias, residual=residual)
    inputs.check_dtype("x", x)
    if x.dim() not in (dims + 1, dims + 2):
        raise ArrayError(
            f"x has shape {tuple(x.shape)}; allowed for conv{dims}d: {dims + 2} dimensions, {dims + 1} for one"
        )
    if w.dim() != dims + 2:
        raise ArrayError(f"w has shape {tuple(w.shape)}; allowed for conv{dims}d: {dims + 2} dimensions")
    activation = "none" if activation is None else activation
    inputs.check_options(activation=activation, dispatcher=dispatcher)
    made = Window.of(dims, w.shape[2:], stride, padding, dilation, groups)
    x, w, bias, residual = inputs.autocast(x, w, bias, residual)
    if residual is not None and residual.dim() != x.dim():
        raise ArrayError(f"residual has shape {tuple(residual.shape)}; allowed: as many dimensions as x, {x.dim()}")
    one = x.dim() == dims + 1
    if one:
        x, residual = x[None], None if residual is None else residual[None]
    _check(x, w, bias, residual, made)
    x, w = channels_last(x, "x", dense=False), channels_last(w, "w")
    residual = None if residual is None else channels_last(residual, "residual")
    result = OPERATOR(x, w, bias, residual, *made, activation, dispatcher)
    return result.squeeze(0) if one else result


def _check(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None, window: Window
) -> None:
    """Raise ArrayError for operands that do not fit together."""
    (n, c), (k, per_group), groups = x.shape[:2], w.shape[:2], window.groups
    if c != per_group * groups:
        raise ArrayError(f"c is {c}, and w has {per_group} for each of {groups} groups; they must agree")
    if c == 0 or k == 0 or k % groups:
        raise ArrayError(
            f"x has {c} channels, w makes {k}, groups is {groups}; allowed: at least one each, multiples of groups"
        )
    points = window.outputs(x.shape[2:], w.shape[2:])
    if any(count < 1 for count in (*w.shape[2:], *points)):
        raise ArrayError(
            f"w has {tuple(w.shape[2:])} points and x {tuple(x.shape[2:])}, which leaves results of {tuple(points)}; "
            "allowed: one point or more of each; pass a larger padding, or another stride or dilation"
        )
    shapes = {"bias": (bias, (k,)), "residual": (residual, (n, k, *points))}
    for name, (operand, shape) in shapes.items():
        if operand is not None and tuple(operand.shape) != shape:
            raise ArrayError(f"{name} has shape {tuple(operand.shape)}; allowed: {shape}; expand it, or leave it out")
    for name, operand in (("w", w), ("bias", bias), ("residual", residual)):
        if operand is not None and operand.dtype != x.dtype:
            raise ArrayError(
                f"{name} is {operand.dtype} and x {x.dtype}; allowed: one dtype for all; pass {name}.to(x.dtype)"
            )


def _run(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None, stride: Sequence[int],
    pad_left: Sequence[int], pad_right: Sequence[int], dilation: Sequence[int], groups: int, activation: str = "none",
    dispatcher: str = "",
) -> torch.Tensor:  # fmt: skip
    window = Window(stride, pad_left, pad_right, dilation, groups)
    points = (max(each, 0) for each in window.outputs(x.shape[2:], w.shape[2:]))  # the dispatcher refuses 0
    out = empty(x, (x.shape[0], w.shape[0], *points))
    return forward(x, w, bias, residual, out, window, activation, dispatcher)


def _fake(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None, stride: Sequence[int],
    pad_left: Sequence[int], pad_right: Sequence[int], dilation: Sequence[int], groups: int, activation: str = "none",
    dispatcher: str = "",
) -> torch.Tensor:  # fmt: skip
    if x.shape[1] != w.shape[1] * groups:
        raise ArrayError(f"c is {x.shape[1]}, and w has {w.shape[1]} for each of {groups} groups; they must agree")
    window = Window(stride, pad_left, pad_right, dilation, groups)
    return empty(x, (x.shape[0], w.shape[0], *window.outputs(x.shape[2:], w.shape[2:])))


OPERATOR = register(
    _SCHEMA,
    _run,
    laid_out(convolutions.forward, _fake),
    _fake,
    convolution_gradient.save,
    convolution_gradient.backward,
    convolution_batching.forward,
)
