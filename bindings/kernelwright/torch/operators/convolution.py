"""``kernelwright::conv``: convolutions of two and three dimensions with bias, residual and activation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.dispatch import ArrayError
from kernelwright.torch.operator import register
from kernelwright.torch.operators import convolution_gradient
from kernelwright.torch.operators.convolution_launch import WINDOW_SCHEMA, Window, channels_last, empty, forward

_SCHEMA = (
    f"conv(Tensor x, Tensor w, Tensor? bias, Tensor? residual, {WINDOW_SCHEMA}, "
    'str activation="none", str dispatcher="") -> Tensor'
)

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
    activation: str | None = None,
    dispatcher: str = "",
) -> torch.Tensor:
    """activation(convolution of x by w + bias + residual), as :func:`torch.nn.functional.conv2d`, in one kernel.

    Kernels read and write channels side by side: tensors in ``torch.channels_last`` are read where they lie, and the
    result is one. Tensors in another memory format are copied by torch first, at every call.

    Gradients of ``x``, ``w``, ``bias`` and ``residual`` are computed by the same dispatcher, and have derivatives
    themselves. Where autocast is on, floating-point operands are cast as for torch's own convolutions.

    :param x: images (n, c, h, w).
    :param w: weights (k, c / groups, r, s), of the dtype of ``x``.
    :param bias: (k,).
    :param stride: one number, or one for each dimension; ``dilation`` likewise.
    :param padding: one number, or one for each dimension; ``"valid"`` for none, ``"same"`` for a result of the size
        of ``x``, which takes a stride of 1.
    :param residual: a tensor of the result's shape that is added before the activation.
    :param activation: ``"relu"``, ``"gelu"`` (erf form), ``"fast_gelu"`` (tanh form), ``"silu"``, ``"sigmoid"`` or
        ``"tanh"``.
    :param dispatcher: the name that :func:`use` gave a dispatcher.
    :returns: (n, k, out_h, out_w), in ``torch.channels_last``.
    :raises DispatcherNotFoundError: if none is in use for the device of ``x``.
    :raises ArrayError: for tensors that do not fit together.
    :raises ProblemError: for numbers that make no convolution.
    :raises NoKernelError: if no kernel serves the problem, or in the backward pass one of its gradients.
    """
    return _conv(2, x, w, bias, residual, (stride, padding, dilation, groups), activation, dispatcher)


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
    activation: str | None = None,
    dispatcher: str = "",
) -> torch.Tensor:
    """:func:`conv2d` for x (n, c, d, h, w) and w (k, c / groups, q, r, s), in ``torch.channels_last_3d``."""
    return _conv(3, x, w, bias, residual, (stride, padding, dilation, groups), activation, dispatcher)


def _conv(
    dims: int, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None,
    window: tuple[Any, ...], activation: str | None, dispatcher: str,
) -> torch.Tensor:  # fmt: skip
    for name, tensor in (("x", x), ("w", w), ("residual", residual)):
        if tensor is not None and tensor.dim() != dims + 2:
            raise ArrayError(f"{name} has shape {tuple(tensor.shape)}; allowed for conv{dims}d: {dims + 2} dimensions")
    stride, padding, dilation, groups = window
    made = Window.of(dims, w.shape[2:], stride, padding, dilation, groups)
    x, w, bias, residual = _autocast(x, w, bias, residual)
    x, w = channels_last(x, dense=False), channels_last(w)
    residual = None if residual is None else channels_last(residual)
    return OPERATOR(x, w, bias, residual, *made, activation or "none", dispatcher)


def _autocast(x: torch.Tensor, *others: torch.Tensor | None) -> tuple[Any, ...]:
    kind = x.device.type
    if kind not in ("cpu", "cuda") or not torch.is_autocast_enabled(kind) or not x.is_floating_point():
        return x, *others
    dtype = torch.get_autocast_dtype(kind)
    return x.to(dtype), *(None if one is None else one.to(dtype) for one in others)


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
    torch._check(
        x.shape[1] == w.shape[1] * groups,
        lambda: f"x has {x.shape[1]} channels, and w has {w.shape[1]} for each of {groups} groups; they must agree",
    )
    window = Window(stride, pad_left, pad_right, dilation, groups)
    return empty(x, (x.shape[0], w.shape[0], *window.outputs(x.shape[2:], w.shape[2:])))


OPERATOR = register(_SCHEMA, _run, _fake, convolution_gradient.save, convolution_gradient.backward)
